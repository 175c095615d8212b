/** Finds out what a path is (run report, leaderboard folder or file, predictions) and reads it as a side of a comparison. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Side } from './side.ts';
import {
  leaderboardSchema,
  parsePredictions,
  runReportSchema,
  sideOfLeaderboard,
  sideOfPredictions,
  sideOfRunReport,
  verdictOf,
} from './sideFiles.ts';

/** The file or folder cannot be a side; the message says what was expected. */
export class SideError extends Error {
  override readonly name = 'SideError';
}

export function readSide(path: string): Side {
  return statSync(path).isDirectory() ? readFolder(path) : readFile(path);
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new SideError(`${path} is not JSON: ${(error as Error).message}`);
  }
}

function readFile(path: string): Side {
  if (path.endsWith('.jsonl')) return readPredictions(path);
  const value = readJson(path);
  const side = sideOfValue(value, path);
  if (side) return side;
  try {
    return readPredictions(path);
  } catch {
    throw new SideError(
      `${path} is neither a run report (resolved_ids), leaderboard results (resolved), nor predictions (instance_id, model_patch)`,
    );
  }
}

function sideOfValue(value: unknown, path: string): Side | null {
  const report = runReportSchema.safeParse(value);
  if (report.success) return sideOfRunReport(report.data, labelOf(path));
  const leaderboard = leaderboardSchema.safeParse(value);
  if (!leaderboard.success) return null;
  const totals = join(dirname(path), 'resolved_by_repo.json');
  return sideOfLeaderboard(
    leaderboard.data,
    labelOf(path),
    existsSync(totals) ? readJson(totals) : undefined,
  );
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
      const side = sideOfValue(readJson(join(folder, name)), join(folder, name));
      if (side) return side;
    }
  for (const name of ['preds.json', 'all_preds.jsonl', 'predictions.jsonl'])
    if (existsSync(join(folder, name)))
      return { ...readPredictions(join(folder, name)), label: basename(folder) };
  const reports = readdirSync(folder).filter((f) => f.endsWith('.json'));
  for (const name of reports) {
    const report = runReportSchema.safeParse(tryJson(join(folder, name)));
    if (report.success) return sideOfRunReport(report.data, labelOf(name));
  }
  throw new SideError(`${folder} holds neither results.json, predictions nor a run report`);
}

const tryJson = (path: string): unknown => {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
};

/** Reports lie beside predictions: per instance in any folder below, or a run report in the same folder. */
function readPredictions(path: string): Side {
  const predictions = parsePredictions(readFileSync(path, 'utf8'));
  const wanted = new Set(predictions.map((p) => p.instance_id));
  const verdicts = new Map<string, boolean>();
  for (const [id, file] of instanceReports(dirname(path), wanted)) {
    const verdict = verdictOf(tryJson(file), id);
    if (verdict !== undefined) verdicts.set(id, verdict);
  }
  const label = labelOf(path);
  if (verdicts.size > 0) return sideOfPredictions(predictions, verdicts, label);
  for (const name of readdirSync(dirname(path)).filter((f) => f.endsWith('.json') && f !== basename(path))) {
    const report = runReportSchema.safeParse(tryJson(join(dirname(path), name)));
    if (report.success)
      return { ...sideOfRunReport(report.data, label), model: predictions[0]?.model_name_or_path ?? null };
  }
  return sideOfPredictions(predictions, verdicts, label);
}

/** report.json files in folders named as an instance. */
function instanceReports(root: string, wanted: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (folder: string, depth: number) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const inside = join(folder, entry.name);
      const report = join(inside, 'report.json');
      if (wanted.has(entry.name)) {
        if (existsSync(report)) found.set(entry.name, report);
      } else if (depth > 0) walk(inside, depth - 1);
    }
  };
  // logs/run_evaluation/<run>/<model>/<id>, or <id> beside the predictions.
  walk(root, 5);
  return found;
}
