/** Verdicts from saved logs, without containers: the harness's own folders, unchanged. */
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { writeAtomically } from '../base/files/atomicWrite.ts';
import { pathInside } from '../base/files/pathInside.ts';
import type { Instance } from '../dataset/instance.ts';
import { type InstanceReport, instanceReportText, reportedIds } from '../formats/harness/instanceReport.ts';
import { FILES, type FoundFolder, findInstanceFolders } from '../formats/harness/logFolders.ts';
import { examine, type GradeSuspicion, LOG_HOLDS_SECRET } from './doubts/doubts.ts';
import { gradeSafely } from './grade.ts';
import type { HarnessVersion } from './parsers/logParser.ts';
import { findParser, officialRegistry, type ParserRegistry } from './parsers/parserRegistry.ts';
import { classifyLog, type InfraSignature } from './readLog.ts';
import { resolveGradeSpec } from './specs/spec.ts';

interface FolderRegrade {
  readonly harness: HarnessVersion;
  /** Rows by id; where datasets overlap the first one given wins. */
  readonly instances: ReadonlyMap<string, Instance>;
  readonly parsers?: ParserRegistry;
  /** Leaves other instances out. */
  readonly only?: ReadonlySet<string>;
  /** Replaces report.json in each folder. */
  readonly write: boolean;
  /** Such a log is flagged; its bytes and its verdict stay. */
  readonly holdsSecret?: (log: Uint8Array) => boolean;
}

export interface Regrading {
  readonly rows: readonly Regraded[];
  /** Sentences about folders without test output, which the harness leaves out as well. */
  readonly skipped: readonly string[];
}

export interface Regraded {
  readonly run_id: string;
  readonly model: string;
  readonly instance_id: string;
  /** The report as report.json holds it; null when there is nothing to grade. */
  readonly report: InstanceReport | null;
  readonly resolved: boolean | null;
  readonly resolved_strict: boolean | null;
  readonly suspicion: readonly GradeSuspicion[];
  /** The reason why there is no report. */
  readonly error: string | null;
  readonly folder: string;
  readonly patch: string | null;
  readonly specHash: string | null;
  readonly infra: InfraSignature | undefined;
}

const read = (path: string): Promise<Buffer | undefined> => readFile(path).catch(() => undefined);
/** Python's `errors="replace"`; a byte order mark is text (observed: tests/grading/regrade.test.ts). */
const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** The instance by the folder's name, else by the id in its report, else by the longest id that the name begins with (`<id>.copy`). */
async function instanceOf(
  folder: FoundFolder,
  instances: ReadonlyMap<string, Instance>,
): Promise<Instance | undefined> {
  const own = instances.get(folder.name);
  if (own) return own;
  const report = await read(join(folder.path, FILES.report));
  for (const id of report ? reportedIds(decode(report)) : []) {
    const instance = instances.get(id);
    if (instance) return instance;
  }
  for (let end = folder.name.lastIndexOf('.'); end > 0; end = folder.name.lastIndexOf('.', end - 1)) {
    const instance = instances.get(folder.name.slice(0, end));
    if (instance) return instance;
  }
  return undefined;
}

async function regradeOne(
  folder: FoundFolder,
  output: Uint8Array,
  options: FolderRegrade,
): Promise<Regraded> {
  const instance = await instanceOf(folder, options.instances);
  const row = {
    run_id: folder.runId,
    model: folder.model,
    instance_id: instance?.instance_id ?? folder.name,
    report: null,
    resolved: null,
    resolved_strict: null,
    suspicion: [],
    folder: folder.path,
    patch: null,
    specHash: null,
    infra: undefined,
  };
  if (!instance) return { ...row, error: `${folder.name} is in none of the datasets given` };
  // By the rules of SWE-bench it would get a verdict, and a wrong one.
  if (instance.kind !== undefined)
    return {
      ...row,
      error: `${instance.instance_id} has the rules of "${instance.kind}", by which saved logs cannot be graded again; evaluate its prediction instead`,
    };
  const { harness, parsers } = options;
  const resolved = resolveGradeSpec(instance, { harness, ...(parsers && { parsers }) });
  if (!resolved.ok) return { ...row, error: resolved.reason };
  const { spec } = resolved;
  const patchBytes = await read(join(folder.path, FILES.patch));
  const patch = patchBytes === undefined ? null : decode(patchBytes);
  const secret = options.holdsSecret?.(output) === true ? [LOG_HOLDS_SECRET] : [];
  const known = { ...row, patch, specHash: spec.specHash, suspicion: secret };
  const parser = findParser(parsers ?? officialRegistry(), spec.logParser)!;
  const graded = gradeSafely(spec, decode(output), parser, spec.harness);
  if (!graded.ok) return { ...known, error: graded.message };
  const { grade } = graded;
  const { suspicion, resolvedStrict } = examine(spec, patch ?? '', grade);
  return {
    ...known,
    report: { [spec.instanceId]: grade.verdict },
    resolved: grade.verdict.resolved,
    resolved_strict: resolvedStrict,
    suspicion: [...suspicion, ...secret],
    infra: grade.verdict.resolved ? undefined : classifyLog(grade.read.log),
    error: null,
  };
}

export async function regradeFolder(root: string, options: FolderRegrade): Promise<Regrading> {
  const rows: Regraded[] = [];
  const skipped: string[] = [];
  for (const folder of findInstanceFolders(root)) {
    const output = await read(join(folder.path, FILES.output));
    if (output === undefined) {
      skipped.push(`${folder.name} has no ${FILES.output}: its tests were never run`);
      continue;
    }
    const row = await regradeOne(folder, output, options);
    if (options.only && !options.only.has(row.instance_id)) continue;
    rows.push(row);
    if (options.write && row.report)
      // A link of theirs may lead to a folder that is nobody's log (observed: tests/grading/regrade.test.ts).
      await writeAtomically(
        pathInside(root, relative(root, folder.path), FILES.report),
        instanceReportText(row.report),
      );
  }
  return { rows, skipped };
}
