/**
 * What a file or folder says of each instance, without a run: a run report, results of the leaderboard, or predictions with their reports. Read
 * at once, because the library's `compare` is synchronous.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readForeignFile, SourceError } from './foreignFile.ts';
import type { ForeignOutcome } from './foreignFormat.ts';
import type { Read } from './foreignJson.ts';
import { readInstanceReport } from './harness/instanceReport.ts';
import { FILES, findInstanceFolders } from './harness/logFolders.ts';
import { type ReportedRun, readRunReport } from './harness/runReport.ts';
import {
  type LeaderboardResults,
  RESULTS,
  readLeaderboardResults,
  readRepoTotals,
} from './leaderboard/results.ts';
import { isEmptyPatch, NO_MODEL, PREDICTIONS, type Prediction, parsePredictions } from './predictions.ts';

/** Whether it is resolved, or why a verdict is missing. */
type Stated = boolean | 'error' | 'incomplete' | 'infra' | 'no_logs' | 'not_graded';

export interface VerdictSheet {
  readonly label: string;
  readonly kind: 'run-report' | 'predictions' | 'leaderboard';
  readonly model: string | null;
  readonly verdicts: ReadonlyMap<string, Stated>;
  /** Where only some ids are named, and every other instance of the dataset is unresolved; null where all are named. */
  readonly open: {
    /** Instances of the dataset; null when unknown. */
    readonly total: number | null;
    readonly byRepo: ReadonlyMap<string, number> | null;
  } | null;
  readonly facts: ReadonlyMap<string, unknown>;
  readonly warnings: readonly string[];
}

/** Throws a SourceError: what cannot be read says what was expected. */
export const readVerdictSheet = (path: string): VerdictSheet =>
  statSync(path).isDirectory() ? readFolder(path) : readFile(path);

/** Null for a file of another kind; one of this kind that is damaged is an error. */
function found<T>(read: Read<T>, path: string): T | null {
  if (read.ok) return read.value;
  if (read.fault !== 'damaged') return null;
  throw new SourceError(`${path}: ${read.message}`);
}

function readFile(path: string): VerdictSheet {
  if (path.endsWith('.jsonl')) return readPredicted(path);
  const sheet = readResults(path);
  if (sheet) return sheet;
  try {
    return readPredicted(path);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new SourceError(
      `${path} is neither a run report (resolved_ids), leaderboard results (resolved), nor predictions (instance_id, model_patch):\n${error.message}`,
    );
  }
}

function readResults(path: string): VerdictSheet | null {
  const text = readForeignFile(path);
  const report = found(readRunReport(text), path);
  if (report) return sheetOfRunReport(report, labelOf(path));
  const results = found(readLeaderboardResults(text), path);
  if (!results) return null;
  const totals = join(dirname(path), 'resolved_by_repo.json');
  return sheetOfLeaderboard(results, labelOf(path), existsSync(totals) ? totalsIn(totals) : null);
}

/** Entries with totals of another form can be compared all the same, only not by repository. */
function totalsIn(path: string): ReadonlyMap<string, number> | null {
  const read = readRepoTotals(readForeignFile(path));
  if (read.ok) return read.value;
  if (read.fault === 'not_json') throw new SourceError(`${path}: ${read.message}`);
  return null;
}

/** Leaderboard folders are named for the entry, not for the file inside. */
function labelOf(path: string): string {
  const name = basename(path);
  if (name !== 'results.json') return name.replace(/\.jsonl?$/, '');
  const folder = dirname(path);
  return basename(basename(folder) === 'results' ? dirname(folder) : folder);
}

function readFolder(folder: string): VerdictSheet {
  for (const name of RESULTS)
    if (existsSync(join(folder, name))) {
      const sheet = readResults(join(folder, name));
      if (sheet) return sheet;
    }
  for (const name of PREDICTIONS)
    if (existsSync(join(folder, name)))
      return { ...readPredicted(join(folder, name)), label: basename(folder) };
  const report = runReportIn(folder);
  if (report) return sheetOfRunReport(report.value, labelOf(report.name));
  throw new SourceError(`${folder} holds neither results.json, predictions nor a run report`);
}

function runReportIn(folder: string, except?: string): { name: string; value: ReportedRun } | null {
  for (const name of readdirSync(folder).filter((f) => f.endsWith('.json') && f !== except)) {
    const path = join(folder, name);
    const value = found(readRunReport(readForeignFile(path)), path);
    if (value) return { name, value };
  }
  return null;
}

/** Reports lie beside predictions: per instance in any folder below, or a run report in the same folder. */
function readPredicted(path: string): VerdictSheet {
  const read = parsePredictions(readForeignFile(path), path);
  if (!read.ok) throw new SourceError(read.problems.join('\n'));
  const { predictions } = read;
  const verdicts = verdictsBelow(dirname(path), new Set(predictions.map((p) => p.instance_id)));
  const label = labelOf(path);
  if ([...verdicts.values()].every((verdict) => verdict === null)) {
    const report = runReportIn(dirname(path), basename(path));
    if (report) return { ...sheetOfRunReport(report.value, label), model: modelOf(predictions) };
  }
  return sheetOfPredictions(predictions, verdicts, label);
}

/** logs/run_evaluation/<run>/<model>/<id>, or <id> beside the predictions; null where a report cannot be read, which is an error to the harness. */
function verdictsBelow(root: string, wanted: ReadonlySet<string>): Map<string, boolean | null> {
  return new Map(
    findInstanceFolders(root, wanted).map(({ path, name }) => {
      const file = join(path, FILES.report);
      const report = existsSync(file) ? readInstanceReport(readForeignFile(file), name) : null;
      return [name, report?.ok ? report.value.resolved : null];
    }),
  );
}

const STATED: Readonly<Record<ForeignOutcome, Stated>> = {
  resolved: true,
  unresolved: false,
  empty_patch: false,
  error: 'error',
  pending: 'incomplete',
  incomplete: 'incomplete',
};

const repeatedWarning = (label: string, repeated: number): string[] =>
  repeated > 0 ? [`${label} lists ${repeated} resolved id(s) twice; each counts once`] : [];

/**
 * Errors, infrastructure failures and pending ones have no score here, although the official score counts them as not resolved: the
 * sensitivity of the comparison does.
 */
export function sheetOfRunReport(report: ReportedRun, label: string): VerdictSheet {
  const { harness, total } = report;
  return {
    label,
    kind: 'run-report',
    model: null,
    verdicts: new Map(
      [...report.verdicts].map(([id, verdict]) => {
        // What the environment broke is listed as unresolved or an error too.
        const broken = report.infra.has(id) && (verdict === 'unresolved' || verdict === 'error');
        return [id, broken ? 'infra' : STATED[verdict]];
      }),
    ),
    open: null,
    facts: new Map<string, unknown>([
      ...(harness === null ? [] : ([['grading.harnesses_seen', harness]] as const)),
      ...(total === null ? [] : ([['dataset.instances', total]] as const)),
    ]),
    warnings: repeatedWarning(label, report.repeated),
  };
}

/** `sizes` is resolved_by_repo.json, whose totals add up to the size of the dataset; null where it is not there. */
function sheetOfLeaderboard(
  results: LeaderboardResults,
  label: string,
  sizes: ReadonlyMap<string, number> | null,
): VerdictSheet {
  const resolved = new Set(results.resolved);
  return {
    label,
    kind: 'leaderboard',
    model: null,
    verdicts: new Map<string, Stated>([
      ...results.no_generation.map((id) => [id, false] as const),
      ...results.no_logs.map((id) => [id, 'no_logs'] as const),
      ...[...resolved].map((id) => [id, true] as const),
    ]),
    open: { total: sizes && [...sizes.values()].reduce((s, n) => s + n, 0), byRepo: sizes },
    facts: new Map(),
    warnings: [
      `${label} lists resolved ids only: every other instance is taken as unresolved`,
      ...repeatedWarning(label, results.resolved.length - resolved.size),
    ],
  };
}

function modelOf(predictions: readonly Prediction[]): string | null {
  const model = predictions[0]?.model_name_or_path ?? NO_MODEL;
  return model === NO_MODEL ? null : model;
}

/** `reports`: instance id to the harness's verdict; null where it ran and left none that can be read, absent where it never ran. */
function sheetOfPredictions(
  predictions: readonly Prediction[],
  reports: ReadonlyMap<string, boolean | null>,
  label: string,
): VerdictSheet {
  // Without any report nobody graded these, and an empty patch is a failure only of a graded side.
  const unseen = (patch: string | null): Stated =>
    reports.size > 0 && isEmptyPatch(patch) ? false : 'not_graded';
  return {
    label,
    kind: 'predictions',
    model: modelOf(predictions),
    verdicts: new Map(
      predictions.map(({ instance_id: id, model_patch: patch }) => {
        const verdict = reports.get(id);
        return [id, verdict === undefined ? unseen(patch) : (verdict ?? 'error')];
      }),
    ),
    open: null,
    facts: new Map(),
    warnings:
      reports.size === 0 ? [`no reports were found beside ${label}: nothing of it can be compared`] : [],
  };
}
