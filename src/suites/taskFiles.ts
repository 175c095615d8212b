/** The files of a task's folder, below one of its folders. Nothing outside of the task is ever read: a link that leads out is refused. */
import { type Dirent, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { sha256 } from '../base/sha256.ts';
import type { PlacedFile } from '../environment/environment.ts';
import type { BuildFile } from '../environment/places/buildRecipes.ts';

/** `path` is below the folder that was asked for. */
export type TaskFile = BuildFile;

/** The folder of a task cannot be used; the message says why. */
export class TaskFolderError extends Error {
  override readonly name = 'TaskFolderError';
}

/** A task is read as a whole; more than this is data that belongs into its image. */
const MOST_BYTES = 256 * 2 ** 20;
const MOST_FILES = 20_000;

/** A single call of the system: `realpathSync` asks for each part of the path, which takes time with many tasks. */
const realPath = realpathSync.native;

const byName = (a: Dirent, b: Dirent): number => (a.name < b.name ? -1 : 1);

/** The target of a link, which must be a file of the same task (observed: tests/suites/harbor/harbor.test.ts). */
function linkedFile(root: string, path: string, shown: string): string {
  let target: string;
  try {
    target = realPath(path);
  } catch {
    throw new TaskFolderError(`${shown} is a link that leads nowhere`);
  }
  if (!target.startsWith(root + sep))
    throw new TaskFolderError(`${shown} is a link that leads out of the task's folder`);
  if (!statSync(target).isFile())
    throw new TaskFolderError(`${shown} is a link to something other than a file`);
  return target;
}

const NOTHING = new Uint8Array(0);

/** A link to what is left out is left out too (observed: tests/suites/harbor/harborIgnore.test.ts). */
function leavesOutTarget(root: string, path: string, leavesOut: LeavesOut): boolean {
  try {
    const target = realPath(path);
    return target.startsWith(root + sep) && leavesOut(relative(root, target), statSync(target).isDirectory());
  } catch {
    return false;
  }
}

/** Whether the suite leaves out a path below the task. */
export type LeavesOut = (path: string, isFolder: boolean) => boolean;

/**
 * All files below `folder` of the task, and its folders that hold none, by name; none where it is not there. Files left out are not read.
 * Throws TaskFolderError.
 */
export function taskFiles(task: string, folder: string, leavesOut: LeavesOut = () => false): TaskFile[] {
  const root = realPath(task);
  const files: TaskFile[] = [];
  let bytes = 0;
  const count = (size: number) => {
    bytes += size;
    if (bytes > MOST_BYTES) throw new TaskFolderError(`${folder} holds more than ${MOST_BYTES / 2 ** 20} MB`);
    if (files.length >= MOST_FILES)
      throw new TaskFolderError(`${folder} holds more than ${MOST_FILES} files`);
  };
  const add = (path: string, shown: string) => {
    const { size, mode } = statSync(path);
    count(size);
    files.push({ path: shown, content: readFileSync(path), executable: (mode & 0o111) !== 0 });
  };
  const walk = (below: string) => {
    const entries = readdirSync(join(root, folder, below), { withFileTypes: true }).sort(byName);
    // Git needs some of its own that hold nothing.
    if (entries.length === 0 && below !== '') {
      count(0);
      files.push({ path: below, content: NOTHING, executable: true, isFolder: true });
    }
    for (const entry of entries) {
      const shown = below === '' ? entry.name : `${below}/${entry.name}`;
      const path = join(root, folder, shown);
      if (leavesOut(posix.join(folder, shown), entry.isDirectory())) continue;
      if (entry.isSymbolicLink() && leavesOutTarget(root, path, leavesOut)) continue;
      if (entry.isDirectory()) walk(shown);
      else if (entry.isSymbolicLink()) add(linkedFile(root, path, `${folder}/${shown}`), shown);
      else if (entry.isFile()) add(path, shown);
      else throw new TaskFolderError(`${folder}/${shown} is neither a file nor a folder`);
    }
  };
  const stat = statSync(join(root, folder), { throwIfNoEntry: false });
  if (!stat) return [];
  const home = realPath(join(root, folder));
  if (home !== root && !home.startsWith(root + sep))
    throw new TaskFolderError(`${folder} is a link that leads out of the task's folder`);
  if (stat.isDirectory()) walk('');
  return files;
}

/** The files below a folder of a container. */
export const placedFiles = (folder: string, files: readonly TaskFile[]): PlacedFile[] =>
  files.map(({ path, content, executable, isFolder }) => ({
    path: posix.join(folder, path),
    content,
    mode: executable ? 0o755 : 0o644,
    ...(isFolder && { kind: 'folder' as const }),
  }));

/** A file of the task as text; undefined where it is not there. Throws TaskFolderError. */
export function taskText(task: string, name: string): string | undefined {
  const path = join(task, name);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return undefined;
  if (stat.size > MOST_BYTES) throw new TaskFolderError(`${name} is larger than ${MOST_BYTES / 2 ** 20} MB`);
  return readFileSync(linkedFile(realPath(task), path, name), 'utf8');
}

const hashes = new WeakMap<readonly TaskFile[], string>();

/** Names, contents and modes in one hash. The same list is hashed once: for its task, and for the image that it builds. */
export function hashOfFiles(files: readonly TaskFile[]): string {
  const known = hashes.get(files);
  if (known !== undefined) return known;
  const lines = files.map(
    ({ path, content, executable, isFolder }) =>
      `${isFolder ? 'folder' : sha256(content)} ${executable ? 'x' : '-'} ${path}\n`,
  );
  const hash = sha256(lines.join(''));
  hashes.set(files, hash);
  return hash;
}
