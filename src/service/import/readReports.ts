/**
 * What other graders left, as a run that can be imported: a run report of the SWE-bench harness or of sb-cli, or a folder of instance reports
 * (logs/run_evaluation/…). Patches come from beside them where they are; a report alone knows none.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  type ImportedVerdict,
  readInstanceReport,
  readRunReport,
  reportedIds,
} from '../../grading/imports.ts';
import { FILES, findInstanceFolders } from '../../grading/logLayout.ts';
import { type Prediction, parsePredictions } from '../../grading/predictions.ts';
import { exitClassOf } from '../../outcome.ts';
import { leaderboardSchema } from '../../report/compare/sideFiles.ts';
import type { ImportedInstance, ImportedRun } from '../../report/files/importMiniRun.ts';

export interface VerdictOf {
  readonly verdict: ImportedVerdict;
  readonly reason: string | null;
  /** The instance's report.json, where there is one. */
  readonly report: string | null;
  readonly grader: 'harness' | 'sb-cli';
}
export type Verdicts = ReadonlyMap<string, VerdictOf>;
export interface GradedElsewhere {
  readonly imported: ImportedRun;
  readonly verdicts: Verdicts;
}

export type RunReportVerdicts =
  | { readonly ok: true; readonly verdicts: Verdicts }
  | { readonly ok: false; readonly message: string };

export function verdictsOfRunReport(path: string): RunReportVerdicts {
  const read = readRunReport(readFileSync(path, 'utf8'));
  if (!read.ok) return { ok: false, message: `${path} cannot be used: ${read.message}` };
  const { verdicts, reasons, kind } = read.value;
  return {
    ok: true,
    verdicts: new Map(
      [...verdicts].map(([id, verdict]) => [
        id,
        { verdict, reason: reasons[id] ?? null, report: null, grader: kind },
      ]),
    ),
  };
}

/** results.json of a leaderboard entry says who was resolved; what else the run predicted was not. null when it is no such file. */
export function verdictsOfLeaderboard(path: string, run: ImportedRun): Verdicts | null {
  const parsed = leaderboardSchema.safeParse(parseOrNull(readFileSync(path, 'utf8')));
  if (!parsed.success) return null;
  const [resolved, empty, lost] = [parsed.data.resolved, parsed.data.no_generation, parsed.data.no_logs].map(
    (list) => new Set(list),
  ) as [Set<string>, Set<string>, Set<string>];
  const verdictOf = ({ instanceId: id, modelPatch }: ImportedInstance): ImportedVerdict => {
    if (resolved.has(id)) return 'resolved';
    if (lost.has(id)) return 'error';
    return empty.has(id) || modelPatch === '' ? 'empty_patch' : 'unresolved';
  };
  return new Map(
    run.instances.map((i) => [
      i.instanceId,
      { verdict: verdictOf(i), reason: null, report: null, grader: 'harness' },
    ]),
  );
}

const parseOrNull = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** `<model>.<run>.json` with its predictions beside it, or without. Instances that have no prediction are left out. */
export function runFromReport(path: string, verdicts: Verdicts): GradedElsewhere {
  const predictions = predictionsBeside(path, verdicts);
  const model = predictions.values().next().value?.model_name_or_path ?? modelInName(basename(path));
  const ids = [...verdicts].filter(([, v]) => v.verdict !== 'incomplete' && v.verdict !== 'pending');
  return {
    imported: {
      folder: path,
      instances: ids
        .map(([id, { verdict }]) => instance(id, model, patchOf(predictions.get(id), verdict)))
        .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
      warnings:
        predictions.size === 0
          ? [
              `there are no predictions beside ${path}: verdicts are imported, patches are not known and none are exported`,
            ]
          : [],
    },
    verdicts,
  };
}

/** An empty one is known from its verdict; any other is not where no prediction says it. */
const patchOf = (prediction: Prediction | undefined, verdict: ImportedVerdict): string | null =>
  prediction ? (prediction.model_patch ?? '') : verdict === 'empty_patch' ? '' : null;

/** A copied folder has another name (`<id>.first-try`); its report says which instance it is about. */
function idOf(folderName: string, report: string | null): string {
  const stated = report === null ? [] : reportedIds(report);
  return stated.length === 1 ? stated[0]! : folderName;
}

/** The folder of one instance, when the file is its report; null when it is something else. */
export async function runFromInstanceReport(path: string): Promise<GradedElsewhere | null> {
  const report = readFileSync(path, 'utf8');
  if (!readInstanceReport(report, idOf('', report)).ok || basename(path) !== FILES.report) return null;
  return runFromInstanceReports(dirname(path));
}

/** Empty when there is none. */
export async function runFromInstanceReports(folder: string): Promise<GradedElsewhere> {
  const found = await findInstanceFolders(folder);
  const text = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : null);
  const verdicts = new Map<string, VerdictOf>();
  const instances = found.map(({ path, name: folderName, model }) => {
    const report = text(join(path, FILES.report));
    const name = idOf(folderName, report);
    const read = report === null ? null : readInstanceReport(report, name);
    const verdict = !read?.ok ? 'error' : read.value.resolved ? 'resolved' : 'unresolved';
    const reason = read?.ok ? (read.value.infra_failure_reason ?? null) : null;
    verdicts.set(name, { verdict, reason, report: read?.ok ? report : null, grader: 'harness' });
    return instance(name, model, text(join(path, FILES.patch)));
  });
  const several = found.length - verdicts.size;
  return {
    imported: {
      folder,
      instances: [...new Map(instances.map((i) => [i.instanceId, i])).values()],
      warnings:
        several > 0 ? [`${several} instance(s) have several folders; the last of each is imported`] : [],
    },
    verdicts,
  };
}

const PREDICTIONS = ['preds.json', 'all_preds.jsonl', 'predictions.jsonl', 'predictions.json'];

/** Only a file that predicts what the report judges. */
function predictionsBeside(path: string, verdicts: Verdicts): ReadonlyMap<string, Prediction> {
  for (const name of PREDICTIONS) {
    const file = join(dirname(path), name);
    if (!existsSync(file)) continue;
    const read = parsePredictions(readFileSync(file, 'utf8'), file);
    if (read.ok && read.predictions.some((p) => verdicts.has(p.instance_id)))
      return new Map(read.predictions.map((p) => [p.instance_id, p]));
  }
  return new Map();
}

/** The harness names its report `<model with __ for />.<run>.json`. */
const modelInName = (name: string): string => name.split('.').slice(0, -2).join('.') || 'unknown';

const instance = (instanceId: string, model: string, modelPatch: string | null): ImportedInstance => ({
  instanceId,
  model,
  format: 'report',
  version: null,
  exitStatus: null,
  exitReason: 'submitted',
  exitClass: exitClassOf('submitted'),
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
