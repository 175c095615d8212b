/**
 * Files of a grading by the SWE-bench harness or sb-cli, as a run: a run report, or a folder of instance reports (logs/run_evaluation/…).
 * Patches are read from files beside them; a report alone has none.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ForeignTextError, readForeignFile, textOfBody } from '../foreignFile.ts';
import {
  type ForeignInstance,
  type ForeignOutcome,
  type ForeignRun,
  type ForeignVerdict,
  type ForeignVerdicts,
  foreignIdProblem,
  foreignInstance,
  type StatedVerdicts,
} from '../foreignFormat.ts';
import { NO_MODEL, type Prediction, parsePredictions } from '../predictions.ts';
import { readInstanceReport, reportedIds, verdictInRunLog } from './instanceReport.ts';
import { FILES, findInstanceFolders } from './logFolders.ts';
import type { ReportedRun } from './runReport.ts';

/** The model in a run report's name; the model's own name may have had "/" where this has "__". */
const modelInName = (name: string): string => name.split('.').slice(0, -2).join('.') || 'unknown';

/**
 * Errors, infrastructure failures and pending ones have no score here, although the official score counts them as not resolved: the
 * sensitivity of a comparison does.
 */
export function statedByRunReport(report: ReportedRun): StatedVerdicts {
  const { verdicts, reasons, kind, infra, total, harness, warnings } = report;
  const verdictOf = (id: string, verdict: ForeignOutcome): ForeignVerdict => {
    const broken = infra.has(id) && (verdict === 'unresolved' || verdict === 'error');
    return {
      verdict: broken ? 'error' : verdict,
      reason: reasons.get(id) ?? null,
      report: null,
      grader: kind,
      ...(broken && { lost: 'infra' }),
    };
  };
  return {
    kind: 'run-report',
    verdicts: new Map([...verdicts].map(([id, verdict]) => [id, verdictOf(id, verdict)])),
    open: null,
    printed: {
      resolved: [...verdicts.values()].filter((verdict) => verdict === 'resolved').length,
      of: total ?? verdicts.size,
    },
    facts: new Map<string, unknown>([
      ...(harness === null ? [] : ([['grading.harnesses_seen', harness]] as const)),
      ...(total === null ? [] : ([['dataset.instances', total]] as const)),
    ]),
    warnings,
  };
}

/** `<model>.<run>.json` with its predictions beside it, or without. Instances that have no prediction are left out. */
export function runFromReport(path: string, verdicts: ForeignVerdicts): ForeignRun {
  const { predictions, problems } = predictionsBeside(path, verdicts);
  const named = predictions.values().next().value?.model_name_or_path ?? NO_MODEL;
  const model = named === NO_MODEL ? modelInName(basename(path)) : named;
  const waits = ({ verdict }: ForeignVerdict) => verdict === 'incomplete' || verdict === 'pending';
  const instances = [...verdicts]
    .filter(([, verdict]) => !waits(verdict))
    .map(([id, { verdict }]) => instanceOfPrediction(id, model, patchOf(predictions.get(id), verdict)))
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const bare = `there are no predictions beside ${path}: the verdicts are imported without patches, and no patches are exported`;
  return {
    folder: path,
    instances,
    verdicts,
    neverRun: [...verdicts].flatMap(([instanceId, verdict]) => (waits(verdict) ? [{ instanceId }] : [])),
    warnings: predictions.size === 0 ? [bare] : [],
    problems,
  };
}

/** The patch; without a prediction only an empty one is known, from its verdict. */
const patchOf = (prediction: Prediction | undefined, verdict: ForeignOutcome): string | null =>
  prediction ? (prediction.model_patch ?? '') : verdict === 'empty_patch' ? '' : null;

/** A copied folder may have another name (`<id>.first-try`); its report names the instance. */
function idOf(folderName: string, report: Uint8Array | null): string {
  const stated = report === null ? [] : reportedIds(report);
  return stated.length === 1 ? stated[0]! : folderName;
}

/** Reads the folder of one instance when the file is its report; null for any other file. */
export function runFromInstanceReport(path: string): ForeignRun | null {
  const report = readForeignFile(path);
  if (!readInstanceReport(report, idOf('', report)).ok || basename(path) !== FILES.report) return null;
  return runFromInstanceReports(dirname(path));
}

const bytesOf = (path: string): Uint8Array | null => (existsSync(path) ? readForeignFile(path) : null);

/** The patch as text, and as bytes where it is none. */
function patchIn(path: string, id: string, warnings: string[]) {
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
export function runFromInstanceReports(folder: string, wanted?: ReadonlySet<string>): ForeignRun {
  const found = findInstanceFolders(folder, wanted).map((each) => {
    const report = bytesOf(join(each.path, FILES.report));
    return { ...each, report, id: idOf(each.name, report) };
  });
  const verdicts = new Map<string, ForeignVerdict>();
  const instances = new Map<string, ForeignInstance>();
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const { path, id, report, model } of found) {
    const noId = foreignIdProblem(path, id);
    if (noId !== null) problems.push(noId);
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
  return { folder, instances: [...instances.values()], verdicts, warnings, problems };
}

const BESIDE = ['preds.json', 'all_preds.jsonl', 'predictions.jsonl', 'predictions.json'];

/** Only a file that predicts instances of the report. A file that cannot be read may be that one, so it is a problem. */
function predictionsBeside(path: string, verdicts: ForeignVerdicts) {
  const none = new Map<string, Prediction>();
  for (const name of BESIDE) {
    const file = join(dirname(path), name);
    if (!existsSync(file)) continue;
    const read = parsePredictions(readForeignFile(file), file);
    if (!read.ok) return { predictions: none, problems: read.problems };
    if (read.predictions.some((p) => verdicts.has(p.instance_id)))
      return { predictions: new Map(read.predictions.map((p) => [p.instance_id, p])), problems: [] };
  }
  return { predictions: none, problems: [] };
}

export const instanceOfPrediction = (
  instanceId: string,
  model: string,
  modelPatch: string | null,
): ForeignInstance =>
  foreignInstance({ instanceId, model, format: 'report', submission: modelPatch || null, modelPatch });
