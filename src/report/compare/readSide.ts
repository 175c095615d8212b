/** Finds out what a path is (run report, leaderboard folder or file, predictions) and reads it as a side of a comparison. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Read } from '../../formats/foreignJson.ts';
import { findInstanceFolders } from '../../formats/harness/findInstanceFolders.ts';
import { FILES } from '../../formats/harness/logLayout.ts';
import { parsePredictions } from '../../formats/predictions/readPredictions.ts';
import { readInstanceReport } from '../../formats/reports/instanceReport.ts';
import { readLeaderboardResults, readRepoTotals } from '../../formats/reports/leaderboardResults.ts';
import { type ReportedRun, readRunReport } from '../../formats/reports/runReport.ts';
import type { Side } from './side.ts';
import { modelOfPredictions, sideOfLeaderboard, sideOfPredictions, sideOfRunReport } from './sideFiles.ts';

/** The file or folder cannot be a side; the message says what was expected. */
export class SideError extends Error {
  override readonly name = 'SideError';
}

export function readSide(path: string): Side {
  return statSync(path).isDirectory() ? readFolder(path) : readFile(path);
}

/** Null for a file of another kind; one of this kind that is damaged is an error. */
function found<T>(read: Read<T>, path: string): T | null {
  if (read.ok) return read.value;
  if (read.fault !== 'damaged') return null;
  throw new SideError(`${path}: ${read.message}`);
}

function readFile(path: string): Side {
  if (path.endsWith('.jsonl')) return readPredictions(path);
  const side = sideOfResults(path);
  if (side) return side;
  try {
    return readPredictions(path);
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    throw new SideError(
      `${path} is neither a run report (resolved_ids), leaderboard results (resolved), nor predictions (instance_id, model_patch):\n${error.message}`,
    );
  }
}

function sideOfResults(path: string): Side | null {
  const text = readFileSync(path);
  const report = found(readRunReport(text), path);
  if (report) return sideOfRunReport(report, labelOf(path));
  const leaderboard = found(readLeaderboardResults(text), path);
  if (!leaderboard) return null;
  const totals = join(dirname(path), 'resolved_by_repo.json');
  return sideOfLeaderboard(leaderboard, labelOf(path), existsSync(totals) ? totalsIn(totals) : null);
}

/** Entries with totals of another form can be compared all the same, only not by repository. */
function totalsIn(path: string): ReadonlyMap<string, number> | null {
  const read = readRepoTotals(readFileSync(path));
  if (read.ok) return read.value;
  if (read.fault === 'not_json') throw new SideError(`${path}: ${read.message}`);
  return null;
}

/** Leaderboard folders are named for the entry, not for the file inside. */
const labelOf = (path: string): string => {
  const name = basename(path);
  if (name !== 'results.json') return name.replace(/\.jsonl?$/, '');
  const folder = dirname(path);
  return basename(basename(folder) === 'results' ? dirname(folder) : folder);
};

function readFolder(folder: string): Side {
  for (const name of ['results/results.json', 'results.json'])
    if (existsSync(join(folder, name))) {
      const side = sideOfResults(join(folder, name));
      if (side) return side;
    }
  for (const name of ['preds.json', 'all_preds.jsonl', 'predictions.jsonl'])
    if (existsSync(join(folder, name)))
      return { ...readPredictions(join(folder, name)), label: basename(folder) };
  const report = runReportIn(folder);
  if (report) return sideOfRunReport(report.value, labelOf(report.name));
  throw new SideError(`${folder} holds neither results.json, predictions nor a run report`);
}

function runReportIn(folder: string, except?: string): { name: string; value: ReportedRun } | null {
  for (const name of readdirSync(folder).filter((f) => f.endsWith('.json') && f !== except)) {
    const path = join(folder, name);
    const value = found(readRunReport(readFileSync(path)), path);
    if (value) return { name, value };
  }
  return null;
}

/** Reports lie beside predictions: per instance in any folder below, or a run report in the same folder. */
function readPredictions(path: string): Side {
  const read = parsePredictions(readFileSync(path), path);
  if (!read.ok) throw new SideError(read.problems.join('\n'));
  const { predictions } = read;
  const verdicts = verdictsBelow(dirname(path), new Set(predictions.map((p) => p.instance_id)));
  const label = labelOf(path);
  if ([...verdicts.values()].every((verdict) => verdict === null)) {
    const report = runReportIn(dirname(path), basename(path));
    if (report) return { ...sideOfRunReport(report.value, label), model: modelOfPredictions(predictions) };
  }
  return sideOfPredictions(predictions, verdicts, label);
}

/** logs/run_evaluation/<run>/<model>/<id>, or <id> beside the predictions; null where a report cannot be read, which is an error to the harness. */
function verdictsBelow(root: string, wanted: ReadonlySet<string>): Map<string, boolean | null> {
  return new Map(
    findInstanceFolders(root, wanted).map(({ path, name }) => {
      const file = join(path, FILES.report);
      const report = existsSync(file) ? readInstanceReport(readFileSync(file), name) : null;
      return [name, report?.ok ? report.value.resolved : null];
    }),
  );
}
