/**
 * One file of the hub into the standard cache, as huggingface_hub lays it out: `blobs/<etag>` and a symlink to it under
 * `snapshots/<commit>/`. The client's own cache download neither resumes nor checks; this does both around its `downloadFile`.
 */

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { retry, startTimer } from '../../base/async/timer.ts';
import { moveIntoPlace } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { errorText } from '../../base/text/errorText.ts';

export interface HubFile {
  /** Inside the repository. */
  readonly path: string;
  readonly size: number;
  /** sha256 for a file in large-file storage, else git's blob id: the name of its blob, and its checksum. */
  readonly etag: string;
}

export interface CachedFile {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  /** Bytes that were there already: all of them, or what an interrupted download left. */
  readonly reusedBytes: number;
}

class ChecksumError extends Error {
  override readonly name = 'ChecksumError';
}

/** Hash of a file by the rule its etag shows: 64 digits are sha256, 40 are git's blob id. */
export async function etagOf(path: string, like: string): Promise<string> {
  const isSha256 = like.length === 64;
  const hash = createHash(isSha256 ? 'sha256' : 'sha1');
  if (!isSha256) hash.update(`blob ${(await stat(path)).size}\0`);
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

const sizeOf = async (path: string) => (await stat(path).catch(() => undefined))?.size;

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

/**
 * A partial download carries the id of its process. One of a dead process is taken over by renaming, which only one process can do, so two
 * processes never write to the same partial file.
 */
async function claimPartial(blob: string): Promise<string> {
  const mine = `${blob}.${process.pid}.incomplete`;
  const pattern = new RegExp(`^${basename(blob)}(?:\\.(\\d+))?\\.incomplete$`);
  for (const name of await readdir(dirname(blob)).catch(() => [])) {
    const match = pattern.exec(name);
    if (!match || (match[1] !== undefined && isAlive(Number(match[1])))) continue;
    const claimed = await rename(join(dirname(blob), name), mine).then(
      () => true,
      () => false,
    );
    if (claimed) break;
  }
  return mine;
}

/** How patient a transfer is, and whom it tells. */
export interface Transfer {
  readonly onProgress?: ((file: HubFile, bytes: number) => void) | undefined;
  readonly onWait?: ((message: string) => void) | undefined;
  /** A transfer that moves no byte for this long is cut and resumed. */
  readonly stallMs?: number | undefined;
}

export interface DownloadInto extends Transfer {
  /** `<cache>/datasets--ORG--NAME`. */
  readonly repoDir: string;
  readonly commit: string;
  /** Opens the file's content from a byte offset; from the hub client. */
  readonly open: (file: HubFile) => Promise<Blob | null>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly attempts?: number;
}

export async function downloadIntoCache(file: HubFile, into: DownloadInto): Promise<CachedFile> {
  const blob = pathInside(into.repoDir, 'blobs', file.etag);
  // The pointer itself is a link and is replaced; its folder must be in the cache.
  const [folder] = /^(?:.*\/)?/.exec(file.path)!;
  const snapshot = pathInside(into.repoDir, 'snapshots', into.commit, ...folder.split('/'));
  const pointer = join(snapshot, basename(file.path));
  makeFolder(dirname(blob));
  makeFolder(dirname(pointer));
  const isThere = (await sizeOf(blob)) === file.size && (await etagOf(blob, file.etag)) === file.etag;
  const reusedBytes = isThere ? file.size : await fetchBlob(file, blob, into);
  await rm(pointer, { force: true });
  await symlink(relative(dirname(pointer), blob), pointer);
  return { path: file.path, bytes: file.size, etag: file.etag, reusedBytes };
}

async function fetchBlob(file: HubFile, blob: string, into: DownloadInto): Promise<number> {
  const { sleep, onWait, attempts = 5 } = into;
  let found: number | undefined;
  const once = async (): Promise<number> => {
    const partial = await claimPartial(blob);
    let had = (await sizeOf(partial)) ?? 0;
    if (had > file.size) {
      await rm(partial);
      had = 0;
    }
    found ??= had;
    if (had < file.size) await append(file, partial, had, into);
    const got = await etagOf(partial, file.etag);
    if (got === file.etag) {
      await moveIntoPlace(partial, blob);
      return found;
    }
    await rm(partial); // a resumed part may stem from other bytes: start anew
    found = 0;
    throw new ChecksumError(
      `${file.path}: the checksum is ${got.slice(0, 12)}, the hub announced ${file.etag.slice(0, 12)}`,
    );
  };
  return retry(once, {
    delayMs: (_, tried) => (tried === attempts ? undefined : 500 * 2 ** (tried - 1)),
    onWait: (error, ms) => {
      const reason = errorText(error);
      onWait?.(`${file.path}: ${reason}; going on in ${Math.ceil(ms / 1000)} s`);
    },
    sleep,
  });
}

async function append(file: HubFile, partial: string, from: number, into: DownloadInto): Promise<void> {
  const blob = await into.open(file);
  if (!blob) throw new Error(`${file.path} is not in the repository at ${into.commit}`);
  const controller = new AbortController();
  const stallMs = into.stallMs ?? 60_000;
  const stalled = () => controller.abort(new Error(`no bytes for ${stallMs / 1000} s`));
  const timer = startTimer(stallMs, stalled);
  let bytes = from;
  const source = Readable.fromWeb(
    blob.slice(from, file.size).stream() as Parameters<typeof Readable.fromWeb>[0],
  );
  source.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    timer.restart();
    into.onProgress?.(file, bytes);
  });
  try {
    await pipeline(source, createWriteStream(partial, { flags: 'a' }), { signal: controller.signal });
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    timer.cancel();
  }
  if (bytes < file.size) throw new Error(`the transfer ended after ${bytes} of ${file.size} bytes`);
}
