/** Finds the harness's instance folders again, in its own layout or wherever they were copied to. */
import { closeSync, type Dirent, openSync, readdirSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { FILES } from './logLayout.ts';

export interface FoundFolder {
  readonly path: string;
  /** Name of the folder; usually the instance id. */
  readonly name: string;
  readonly runId: string;
  readonly model: string;
}

const EVIDENCE: ReadonlySet<string> = new Set([FILES.output, FILES.report, FILES.runLog]);
const MAX_DEPTH = 6;
const HEAD_BYTES = 20_000;

/** `…/run_evaluation/<run>/<model>/<id>/patch.diff` as a run_instance.log states it: true even where the folder was moved. */
const STATED = /written to \S*run_evaluation\/([^/\n]+)\/([^/\n]+)\/([^/\n]+)\/patch\.diff/;

function headOf(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return '';
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.toString('utf8', 0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}

function placeOf(root: string, parts: readonly string[], folder: string) {
  const path = [...resolve(root).split('/').slice(1), ...parts];
  const mark = path.lastIndexOf('run_evaluation');
  // The layout says it, when the folder still lies in it.
  const layout = { runId: path.at(-3) ?? '', model: path.at(-2) ?? '' };
  if (mark >= 0 && path.length - mark === 4) return layout;
  const stated = STATED.exec(headOf(join(folder, FILES.runLog)));
  return stated ? { runId: stated[1]!, model: stated[2]! } : layout;
}

const isFolder = (parent: string, entry: Dirent): boolean =>
  entry.isDirectory() ||
  (entry.isSymbolicLink() &&
    statSync(join(parent, entry.name), { throwIfNoEntry: false })?.isDirectory() === true);

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
    if (counts && entries.some((entry) => entry.isFile() && EVIDENCE.has(entry.name))) {
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
