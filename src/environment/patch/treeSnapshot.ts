/**
 * Snapshot and capture for images without git: a copy of the start tree is kept in the container, and both trees are compared here
 * from their archives. Nothing but `cp` is needed inside. Without git nobody can say what is ignored: caches are left out by name.
 */
import { createHash } from 'node:crypto';
import type { Extract as Archive } from 'tar-stream';
import { type CapturedPatch, EnvironmentError } from '../environment.ts';
import { shellScript } from '../shellScript.ts';
import { isBeside } from './besideWork.ts';
import type { ScriptRunner } from './capture.ts';
import { type ChangedFile, type FileVersion, writePatch } from './gitPatch.ts';

/** Reads a folder of the container as an archive; `read` begins again when the engine was away meanwhile. */
export type ReadFolder = <T>(
  folder: string,
  read: (archive: Archive) => Promise<T>,
  signal: AbortSignal,
) => Promise<T>;

/** A copy of the start tree, `folder`/tree in the container. */
export interface TreeSnapshot {
  readonly kind: 'copy';
  readonly folder: string;
}

const IGNORED = new Set(['.git', 'node_modules', '__pycache__', '.venv', '.pytest_cache', '.tox']);
const KEEP_TREE = shellScript('keepTree.sh', import.meta.url);

export async function keepTree(
  run: ScriptRunner,
  workTree: string,
  name: string,
  timeoutS: number,
): Promise<TreeSnapshot> {
  const done = await run(KEEP_TREE, { timeoutS, env: { W: workTree, N: name } });
  const folder = /^folder (.+)$/m.exec(done.output)?.[1];
  if (done.code !== 0 || !folder)
    throw new EnvironmentError(
      'setup_failed',
      `the start tree of ${workTree} could not be copied (rc ${done.code}): ${done.output.slice(-300).trim()}`,
    );
  return { kind: 'copy', folder };
}

interface Entry {
  readonly mode: string;
  readonly hash: string;
  readonly size: number;
  /** A hard link: the name in the same archive that has the content. */
  readonly linkTo?: string;
}

const isIgnored = (path: string) =>
  path.endsWith('.pyc') || path.split('/').some((part) => IGNORED.has(part));

interface Tree {
  readonly entries: Map<string, Entry>;
  readonly contents: Map<string, Buffer>;
  readonly repositories: Set<string>;
}

/** A file that makes no patch, and would be streamed from the container in all its length: a sparse file of 50 GB takes nothing there. */
class TooLong extends Error {
  readonly path: string;
  readonly size: number;
  constructor(path: string, size: number) {
    super(`${path} is too long`);
    this.path = path;
    this.size = size;
  }
}

/** `want`: the files whose content is kept. `tooLong`: the files whose length ends the reading. */
async function treeOf(
  archive: Archive,
  want: (path: string) => boolean,
  tooLong: (path: string, size: number) => boolean = none,
): Promise<Tree> {
  const entries = new Map<string, Entry>();
  const contents = new Map<string, Buffer>();
  const repositories = new Set<string>();
  for await (const entry of archive) {
    const { type, mode = 0, linkname } = entry.header;
    // The archive's names begin with the folder's own.
    const path = entry.header.name.split('/').slice(1).join('/').replace(/\/$/, '');
    if (tooLong(path, entry.header.size ?? 0)) throw new TooLong(path, entry.header.size ?? 0);
    if (/(^|\/)\.git$/.test(path) && path !== '.git') repositories.add(path.slice(0, -'/.git'.length));
    const hash = createHash('sha1');
    const parts: Buffer[] = [];
    const wanted = want(path);
    let size = 0;
    for await (const part of entry as AsyncIterable<Buffer>) {
      hash.update(part);
      size += part.length;
      if (wanted) parts.push(part);
    }
    if (path === '' || isIgnored(path)) continue;
    if (type === 'symlink') {
      hash.update(linkname ?? '');
      if (wanted) parts.push(Buffer.from(linkname ?? ''));
    } else if (type !== 'file' && type !== 'link') continue;
    const target = type === 'link' ? (linkname ?? '').split('/').slice(1).join('/') : undefined;
    const linked = target === undefined ? undefined : entries.get(target);
    entries.set(
      path,
      linked
        ? { ...linked, linkTo: target! }
        : {
            mode: type === 'symlink' ? '120000' : mode & 0o111 ? '100755' : '100644',
            hash: hash.digest('hex'),
            size,
          },
    );
    if (wanted)
      contents.set(path, (target === undefined ? undefined : contents.get(target)) ?? Buffer.concat(parts));
  }
  return { entries, contents, repositories };
}

const none = () => false;
/** The limit of capturePatch.sh. */
const MOST_READ = 50;

export async function diffTrees(
  readFolder: ReadFolder,
  snapshot: TreeSnapshot,
  workTree: string,
  limits: { timeoutS: number; maxBytes: number; beside?: readonly string[] },
): Promise<CapturedPatch> {
  const { timeoutS } = limits;
  const signal = timeoutS > 0 ? AbortSignal.timeout(timeoutS * 1000) : new AbortController().signal;
  try {
    return await compareTrees(readFolder, snapshot, workTree, limits, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return {
      patch: new Uint8Array(0),
      state: 'invalid',
      warnings: [`the capture took longer than ${timeoutS} s (environment.capture_timeout)`],
    };
  }
}

async function compareTrees(
  readFolder: ReadFolder,
  snapshot: TreeSnapshot,
  workTree: string,
  { maxBytes, beside = [] }: { readonly maxBytes: number; readonly beside?: readonly string[] },
  signal: AbortSignal,
): Promise<CapturedPatch> {
  const startFolder = `${snapshot.folder}/tree`;
  const readTree = (
    folder: string,
    want: (path: string) => boolean,
    tooLong?: (path: string, size: number) => boolean,
  ) => readFolder(folder, (archive) => treeOf(archive, want, tooLong), signal);
  const before = await readTree(startFolder, none);
  const isNewAndLong = (path: string, size: number) =>
    size > maxBytes * MOST_READ && before.entries.get(path)?.size !== size;
  let after: Tree;
  try {
    after = await readTree(workTree, none, isNewAndLong);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    const { path, size } = error;
    return {
      patch: new Uint8Array(0),
      state: 'oversized',
      warnings: [
        `${path} (${size} bytes) is more than ${MOST_READ} times environment.max_patch_bytes (${maxBytes})`,
      ],
    };
  }
  const warnings = [...after.repositories]
    .filter((path) => !before.repositories.has(path))
    .map((path) => `embedded repository ${path} left out`);
  const embedded = (path: string) =>
    [...after.repositories].some((r) => !before.repositories.has(r) && path.startsWith(`${r}/`));
  const changed = [...new Set([...before.entries.keys(), ...after.entries.keys()])].filter((path) => {
    const a = before.entries.get(path);
    const b = after.entries.get(path);
    if (a === undefined && isBeside(beside, path)) return false;
    return (a?.hash !== b?.hash || a?.mode !== b?.mode) && !embedded(path);
  });
  if (changed.length === 0) return { patch: new Uint8Array(0), state: 'empty', warnings };
  const bytes = changed.reduce((sum, path) => sum + (after.entries.get(path)?.size ?? 0), 0);
  const oversized = (size: number): CapturedPatch => ({
    patch: new Uint8Array(0),
    state: 'oversized',
    warnings: [
      ...warnings,
      `the patch has ${size} bytes or more, above environment.max_patch_bytes (${maxBytes}); largest files: ${changed
        .map((path) => ({ path, size: after.entries.get(path)?.size ?? 0 }))
        .sort((x, y) => y.size - x.size)
        .slice(0, 10)
        .map((f) => `${f.path} (${f.size} bytes)`)
        .join(', ')}`,
    ],
  });
  // Compression may make it smaller, but what is that large is not read into memory to find out.
  if (bytes > maxBytes * 4) return oversized(bytes);
  const wantedOf = (tree: Tree) => {
    const wanted = new Set(changed.flatMap((path) => [path, tree.entries.get(path)?.linkTo ?? path]));
    return (path: string) => wanted.has(path);
  };
  const old = await readTree(startFolder, wantedOf(before));
  const now = await readTree(workTree, wantedOf(after));
  const version = (tree: Tree, path: string): FileVersion | undefined => {
    const entry = tree.entries.get(path);
    const content = tree.contents.get(path);
    return entry && content ? { mode: entry.mode, content } : undefined;
  };
  const files: ChangedFile[] = changed.map((path) => ({
    path,
    before: version(old, path),
    after: version(now, path),
  }));
  const patch = await writePatch(files);
  if (patch.length > maxBytes) return oversized(patch.length);
  return {
    patch,
    state: 'ok',
    warnings: [...warnings, 'the image has no git: the patch was not checked with git apply'],
  };
}
