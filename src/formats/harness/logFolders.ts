/** The harness's log folders, `logs/run_evaluation/<run>/<model>/<id>/…`, and the run report beside them: names, found again, written. */

import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { pythonJson } from '../../base/python/json.ts';
import { harnessName } from '../../base/text/fileName.ts';
import { beginningOf } from '../foreignFile.ts';
import { instanceReportText } from './instanceReport.ts';

export const LOG_ROOT = join('logs', 'run_evaluation');
export const FILES = {
  patch: 'patch.diff',
  script: 'eval.sh',
  runLog: 'run_instance.log',
  output: 'test_output.txt',
  report: 'report.json',
} as const;

export const instanceFolder = (root: string, run: string, model: string, id: string): string =>
  pathInside(root, LOG_ROOT, run, harnessName(model), id);

export const runReportName = (model: string, run: string): string => `${harnessName(model)}.${run}.json`;

/** run.json of harness 5.x: the dataset that the run was graded against. */
export const runMetadataText = (dataset: string, split: string | null, createdAt: Date): string =>
  `${pythonJson({ dataset, split, task_repo: null, created_at: createdAt.toISOString().replace(/\.\d+Z$/, '+00:00') }, 2)}\n`;

export interface FoundFolder {
  readonly path: string;
  /** Name of the folder; usually the instance id. */
  readonly name: string;
  readonly runId: string;
  readonly model: string;
}

const EVIDENCE = [FILES.output, FILES.runLog];
/** A report.json of a whole run lists ids. */
const LISTS = /"(?:resolved|(?:resolved|completed|submitted)_ids)"\s{0,100}:\s{0,100}\[/;
const MAX_DEPTH = 6;
const HEAD_BYTES = 20_000;

/** `…/run_evaluation/<run>/<model>/<id>/patch.diff` as a run_instance.log states it: true even where the folder was moved. */
const STATED = /written to \S*run_evaluation\/([^/\n]+)\/([^/\n]+)\/([^/\n]+)\/patch\.diff/;

function placeOf(root: string, parts: readonly string[], folder: string) {
  const path = [...resolve(root).split('/').slice(1), ...parts];
  const mark = path.lastIndexOf('run_evaluation');
  // The layout says it, when the folder still lies in it.
  const layout = { runId: path.at(-3) ?? '', model: path.at(-2) ?? '' };
  if (mark >= 0 && path.length - mark === 4) return layout;
  const stated = STATED.exec(beginningOf(join(folder, FILES.runLog), HEAD_BYTES));
  return stated ? { runId: stated[1]!, model: stated[2]! } : layout;
}

const isFolder = (parent: string, entry: Dirent): boolean =>
  entry.isDirectory() ||
  (entry.isSymbolicLink() &&
    statSync(join(parent, entry.name), { throwIfNoEntry: false })?.isDirectory() === true);

const listsIds = (folder: string): boolean => LISTS.test(beginningOf(join(folder, FILES.report), HEAD_BYTES));

/**
 * Every instance folder at or below `root`, in order of path. `named`: only folders of these names, so that a report.json beside
 * predictions is not taken for an instance's.
 */
export function findInstanceFolders(root: string, named?: ReadonlySet<string>): FoundFolder[] {
  const found: FoundFolder[] = [];
  const seen = new Set<string>();
  const walk = (parts: readonly string[]): void => {
    const folder = join(root, ...parts);
    const real = realpathSync(folder);
    // A link to a folder above would be walked for ever.
    if (seen.has(real)) return;
    seen.add(real);
    const entries = readdirSync(folder, { withFileTypes: true });
    const name = parts.at(-1) ?? basename(resolve(root));
    const counts = named === undefined || named.has(name);
    const files = new Set(entries.flatMap((entry) => (entry.isFile() ? [entry.name] : [])));
    const isOne = EVIDENCE.some((file) => files.has(file)) || (files.has(FILES.report) && !listsIds(folder));
    if (counts && isOne) {
      found.push({ path: folder, name, ...placeOf(root, parts, folder) });
      return;
    }
    if (parts.length >= MAX_DEPTH) return;
    const folders = entries.filter((entry) => isFolder(folder, entry));
    for (const entry of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) walk([...parts, entry.name]);
  };
  walk([]);
  return found;
}

/** A line of run_instance.log: what was done with an instance. */
export interface RunLogLine {
  readonly at: Date;
  readonly level: 'INFO' | 'WARNING' | 'ERROR';
  readonly message: string;
}

/** `2026-03-21 10:25:14,902 - INFO - message`, in UTC. */
export const runLogText = (lines: readonly RunLogLine[]): string =>
  lines
    .map(({ at, level, message }) => {
      const [date, time] = at.toISOString().split('T') as [string, string];
      return `${date} ${time.slice(0, 12).replace('.', ',')} - ${level} - ${message}\n`;
    })
    .join('');

interface InstanceLogs {
  readonly script: string;
  readonly runLog: readonly RunLogLine[];
  /** Null when the tests were not started. */
  readonly log: string | null;
  /** Null where the harness writes no report. */
  readonly report: object | null;
}

/**
 * `secretLog`: nobody but the owner may read the log. Files of an earlier evaluation that this one did not make are removed: a
 * stale report.json would be believed.
 */
export async function writeInstanceLogs(
  folder: string,
  logs: InstanceLogs,
  patch: string | null,
  secretLog = false,
): Promise<void> {
  const files: readonly (readonly [name: string, content: string | null])[] = [
    [FILES.patch, patch ?? ''],
    [FILES.script, logs.script],
    [FILES.runLog, runLogText(logs.runLog)],
    [FILES.output, logs.log],
    [FILES.report, logs.report && instanceReportText(logs.report)],
  ];
  for (const [name, content] of files) {
    const path = pathInside(folder, name);
    if (content !== null)
      await writeAtomically(path, content, secretLog && name === FILES.output ? 0o600 : 0o666);
    else await rm(path, { force: true });
  }
}
