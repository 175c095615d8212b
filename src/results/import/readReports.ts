/**
 * Reads the results of other graders for an import: a run report of the SWE-bench harness or of sb-cli, or a folder of instance reports
 * (logs/run_evaluation/…). Patches are read from files beside them; a report alone has none.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { ForeignTextError, textOfBody } from '../../formats/foreignJson.ts';
import { findInstanceFolders } from '../../formats/harness/findInstanceFolders.ts';
import { FILES, modelInName } from '../../formats/harness/logLayout.ts';
import { verdictInRunLog } from '../../formats/harness/runLogVerdict.ts';
import { NO_MODEL, type Prediction, parsePredictions } from '../../formats/predictions/readPredictions.ts';
import { readInstanceReport, reportedIds } from '../../formats/reports/instanceReport.ts';
import { readLeaderboardResults, readRepoTotals } from '../../formats/reports/leaderboardResults.ts';
import { type ReportedVerdict, readRunReport } from '../../formats/reports/runReport.ts';
import { readVerdictMap } from '../../formats/reports/verdictMap.ts';
import { readForeignFile } from './foreignFile.ts';
import type { ImportedInstance, ImportedRun } from './importedRun.ts';

export interface VerdictOf {
  readonly verdict: ReportedVerdict;
  readonly reason: string | null;
  /** The instance's report.json, where there is one. */
  readonly report: string | null;
  readonly grader: 'harness' | 'sb-cli' | 'harbor' | 'inspect';
  /** Where the suite gives numbers. */
  readonly reward?: number | null;
  readonly rewards?: Readonly<Record<string, number>> | null;
}
export type Verdicts = ReadonlyMap<string, VerdictOf>;
export interface GradedElsewhere {
  readonly imported: ImportedRun;
  readonly verdicts: Verdicts;
}

/** The rate that the source itself states. */
export interface Printed {
  readonly resolved: number;
  readonly of: number;
}

export type RunReportVerdicts =
  | { readonly ok: true; readonly verdicts: Verdicts; readonly printed?: Printed }
  | { readonly ok: false; readonly message: string };

export function verdictsOfRunReport(path: string): RunReportVerdicts {
  const bytes = readForeignFile(path);
  const map = readVerdictMap(bytes);
  if (map.ok) return { ok: true, verdicts: verdictsOfMap(map.value) };
  const read = readRunReport(bytes);
  if (!read.ok) return { ok: false, message: `${path} cannot be used: ${read.message}` };
  const { verdicts, reasons, kind, infra, total } = read.value;
  // What the environment broke is listed as unresolved too; here it is missing.
  const ofInstance = (id: string, verdict: ReportedVerdict): ReportedVerdict =>
    infra.has(id) && verdict === 'unresolved' ? 'error' : verdict;
  return {
    ok: true,
    verdicts: new Map(
      [...verdicts].map(([id, verdict]) => [
        id,
        { verdict: ofInstance(id, verdict), reason: reasons.get(id) ?? null, report: null, grader: kind },
      ]),
    ),
    printed: {
      resolved: [...verdicts.values()].filter((verdict) => verdict === 'resolved').length,
      of: total ?? verdicts.size,
    },
  };
}

const verdictsOfMap = (map: ReadonlyMap<string, boolean>): Verdicts =>
  new Map(
    [...map].map(([id, resolved]) => [
      id,
      { verdict: resolved ? 'resolved' : 'unresolved', reason: null, report: null, grader: 'harness' },
    ]),
  );

/** results.json of a leaderboard entry lists resolved instances; all other predictions are unresolved. Null for another kind of file. */
export function verdictsOfLeaderboard(path: string, run: ImportedRun): RunReportVerdicts | null {
  const read = readLeaderboardResults(readForeignFile(path));
  if (!read.ok)
    return read.fault === 'damaged'
      ? { ok: false, message: `${path} cannot be used: ${read.message}` }
      : null;
  const { resolved, no_generation, no_logs } = read.value;
  const [won, empty, lost] = [new Set(resolved), new Set(no_generation), new Set(no_logs)];
  const verdictOf = ({ instanceId: id, modelPatch }: ImportedInstance): ReportedVerdict => {
    if (won.has(id)) return 'resolved';
    if (lost.has(id)) return 'error';
    return empty.has(id) || modelPatch === '' ? 'empty_patch' : 'unresolved';
  };
  return {
    ok: true,
    verdicts: new Map(
      run.instances.map((i) => [
        i.instanceId,
        { verdict: verdictOf(i), reason: null, report: null, grader: 'harness' },
      ]),
    ),
    printed: { resolved: won.size, of: datasetSize(path) ?? run.instances.length },
  };
}

/** The leaderboard's rate is over the whole dataset, also where a prediction is missing. */
function datasetSize(results: string): number | null {
  const path = join(dirname(results), 'resolved_by_repo.json');
  const totals = existsSync(path) ? readRepoTotals(readForeignFile(path)) : null;
  return totals?.ok ? [...totals.value.values()].reduce((sum, total) => sum + total, 0) : null;
}

/** `<model>.<run>.json` with its predictions beside it, or without. Instances that have no prediction are left out. */
export function runFromReport(path: string, verdicts: Verdicts): GradedElsewhere {
  const { predictions, problems } = predictionsBeside(path, verdicts);
  const named = predictions.values().next().value?.model_name_or_path ?? NO_MODEL;
  const model = named === NO_MODEL ? modelInName(basename(path)) : named;
  const ids = [...verdicts].filter(([, v]) => v.verdict !== 'incomplete' && v.verdict !== 'pending');
  const instances = ids
    .map(([id, { verdict }]) => instanceOfPrediction(id, model, patchOf(predictions.get(id), verdict)))
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const warnings =
    predictions.size === 0
      ? [
          `there are no predictions beside ${path}: the verdicts are imported without patches, and no patches are exported`,
        ]
      : [];
  return { imported: { folder: path, instances, warnings, problems }, verdicts };
}

/** Without a prediction only an empty patch is known, from its verdict. */
const patchOf = (prediction: Prediction | undefined, verdict: ReportedVerdict): string | null =>
  prediction ? (prediction.model_patch ?? '') : verdict === 'empty_patch' ? '' : null;

/** A copied folder may have another name (`<id>.first-try`); its report names the instance. */
function idOf(folderName: string, report: Uint8Array | null): string {
  const stated = report === null ? [] : reportedIds(report);
  return stated.length === 1 ? stated[0]! : folderName;
}

/** Reads the folder of one instance when the file is its report; null for any other file. */
export function runFromInstanceReport(path: string): GradedElsewhere | null {
  const report = readForeignFile(path);
  if (!readInstanceReport(report, idOf('', report)).ok || basename(path) !== FILES.report) return null;
  return runFromInstanceReports(dirname(path));
}

const bytesOf = (path: string): Uint8Array | null => (existsSync(path) ? readForeignFile(path) : null);

type FoundPatch = Pick<ImportedInstance, 'modelPatch' | 'patchBytes'>;

function patchIn(path: string, id: string, warnings: string[]): FoundPatch {
  const bytes = bytesOf(path);
  try {
    return { modelPatch: bytes && textOfBody(bytes) };
  } catch (error) {
    if (!(error instanceof ForeignTextError) || !bytes) throw error;
    warnings.push(`${path} (${id}): ${error.message}: its bytes are kept, and no prediction can hold them`);
    return { modelPatch: Buffer.from(bytes).toString('utf8'), patchBytes: bytes };
  }
}

/** Empty when there is none. */
export function runFromInstanceReports(folder: string, wanted?: ReadonlySet<string>): GradedElsewhere {
  const found = findInstanceFolders(folder, wanted).map((each) => {
    const report = bytesOf(join(each.path, FILES.report));
    return { ...each, report, id: idOf(each.name, report) };
  });
  const verdicts = new Map<string, VerdictOf>();
  const instances = new Map<string, ImportedInstance>();
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const { path, id, report, model } of found) {
    const noId = instanceIdProblem(id);
    if (noId !== null)
      problems.push(`${path}: the name ${JSON.stringify(id)} is not an instance id: it ${noId}`);
    const read = report === null ? null : readInstanceReport(report, id);
    const log = report === null ? bytesOf(join(path, FILES.runLog)) : null;
    const stated = read?.ok ? read.value : log === null ? undefined : verdictInRunLog(log, id);
    const lost = !stated || (stated.infra_failure === true && !stated.resolved);
    const verdict = lost ? 'error' : stated.resolved ? 'resolved' : 'unresolved';
    const reason = stated?.infra_failure_reason ?? null;
    const text = report !== null && read?.ok ? textOfBody(report) : null;
    verdicts.set(id, { verdict, reason, report: text, grader: 'harness' });
    const patch = patchIn(join(path, FILES.patch), id, warnings);
    instances.set(id, { ...instanceOfPrediction(id, model, patch.modelPatch), ...patch });
  }
  const several = found.length - verdicts.size;
  if (several > 0) warnings.push(`${several} instance(s) have several folders; the last of each is imported`);
  return { imported: { folder, instances: [...instances.values()], warnings, problems }, verdicts };
}

const PREDICTIONS = ['preds.json', 'all_preds.jsonl', 'predictions.jsonl', 'predictions.json'];

interface Beside {
  readonly predictions: ReadonlyMap<string, Prediction>;
  readonly problems: readonly string[];
}

/** Only a file that predicts instances of the report. One that cannot be read may be that file, so it is a problem. */
function predictionsBeside(path: string, verdicts: Verdicts): Beside {
  for (const name of PREDICTIONS) {
    const file = join(dirname(path), name);
    if (!existsSync(file)) continue;
    const read = parsePredictions(readForeignFile(file), file);
    if (!read.ok) return { predictions: new Map(), problems: read.problems };
    if (read.predictions.some((p) => verdicts.has(p.instance_id)))
      return { predictions: new Map(read.predictions.map((p) => [p.instance_id, p])), problems: [] };
  }
  return { predictions: new Map(), problems: [] };
}

export const instanceOfPrediction = (
  instanceId: string,
  model: string,
  modelPatch: string | null,
): ImportedInstance => ({
  instanceId,
  model,
  format: 'report',
  version: null,
  exitStatus: null,
  exitReason: 'submitted',
  errorMessage: null,
  submission: modelPatch || null,
  modelPatch,
  steps: 0,
  costNano: null,
  config: {},
  messages: [],
  calls: [],
  startedAt: null,
  endedAt: null,
  file: null,
});
