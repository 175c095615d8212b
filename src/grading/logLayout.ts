/** The harness's folders: `logs/run_evaluation/<run>/<model>/<id>/…` and the run report beside them. Writing, and finding them again. */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pythonJson } from '../base/python/jsonDump.ts';
import { harnessName } from '../base/text/fileName.ts';
import type { EvaluationResult } from './evaluatePrediction.ts';
import { runLogText } from './runLog.ts';

export const LOG_ROOT = join('logs', 'run_evaluation');
export const FILES = {
  patch: 'patch.diff',
  script: 'eval.sh',
  runLog: 'run_instance.log',
  output: 'test_output.txt',
  report: 'report.json',
} as const;

export const instanceFolder = (root: string, run: string, model: string, id: string): string =>
  join(root, LOG_ROOT, run, harnessName(model), id);

export const runReportName = (model: string, run: string): string => `${harnessName(model)}.${run}.json`;

export const instanceReportText = (report: object): string => pythonJson(report);

let serial = 0;
/** A reader sees the old file or the new one. */
async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${process.pid}-${++serial}.tmp`);
  await writeFile(temporary, content);
  await rename(temporary, path);
}

/** What an earlier evaluation left and this one did not make is removed: a stale report.json would be believed. */
export async function writeInstanceLogs(
  folder: string,
  result: EvaluationResult,
  patch: string | null,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const files: readonly (readonly [name: string, content: string | null])[] = [
    [FILES.patch, patch ?? ''],
    [FILES.script, result.script],
    [FILES.runLog, runLogText(result.runLog)],
    [FILES.output, result.log],
    [FILES.report, result.report && instanceReportText(result.report)],
  ];
  for (const [name, content] of files) {
    const path = join(folder, name);
    if (content !== null) await replaceFile(path, content);
    else await rm(path, { force: true });
  }
}

export async function writeTextFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await replaceFile(path, content);
}

/** What the run was graded against, as 5.x keeps it (run.json). */
export const runMetadataText = (dataset: string, split: string | null, createdAt: Date): string =>
  `${pythonJson({ dataset, split, task_repo: null, created_at: createdAt.toISOString().replace(/\.\d+Z$/, '+00:00') }, 2)}\n`;

export interface FoundFolder {
  readonly path: string;
  /** Name of the folder; usually the instance id. */
  readonly name: string;
  readonly runId: string;
  readonly model: string;
}

const EVIDENCE: ReadonlySet<string> = new Set([FILES.output, FILES.report, FILES.runLog]);
const MAX_DEPTH = 6;

/** `…/run_evaluation/<run>/<model>/<id>/patch.diff` as a run_instance.log states it: true even where the folder was moved. */
const STATED = /written to \S*run_evaluation\/([^/\n]+)\/([^/\n]+)\/([^/\n]+)\/patch\.diff/;

async function statedPlace(folder: string): Promise<{ runId: string; model: string } | undefined> {
  const text = await readFile(join(folder, FILES.runLog), 'utf8').catch(() => '');
  const match = STATED.exec(text.slice(0, 20_000));
  return match ? { runId: match[1]!, model: match[2]! } : undefined;
}

async function placeOf(root: string, parts: readonly string[], folder: string) {
  const above = resolve(root).split('/').slice(1);
  const path = [...above, ...parts];
  const mark = path.lastIndexOf('run_evaluation');
  // The layout says it, when the folder still lies in it.
  if (mark >= 0 && path.length - mark === 4) return { runId: path.at(-3)!, model: path.at(-2)! };
  const stated = await statedPlace(folder);
  if (stated) return stated;
  return { runId: path.at(-3) ?? '', model: path.at(-2) ?? '' };
}

/** Every instance folder at or below `root`, in order of path. */
export async function findInstanceFolders(root: string): Promise<FoundFolder[]> {
  const found: FoundFolder[] = [];
  const walk = async (parts: readonly string[]): Promise<void> => {
    const folder = join(root, ...parts);
    const entries = await readdir(folder, { withFileTypes: true });
    if (entries.some((entry) => entry.isFile() && EVIDENCE.has(entry.name))) {
      const name = parts.at(-1) ?? basename(resolve(root));
      found.push({ path: folder, name, ...(await placeOf(root, parts, folder)) });
      return;
    }
    if (parts.length >= MAX_DEPTH) return;
    const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
    for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1)))
      if ((await stat(join(folder, name)).catch(() => undefined))?.isDirectory())
        await walk([...parts, name]);
  };
  await walk([]);
  return found;
}
