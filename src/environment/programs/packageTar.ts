/**
 * Packages of a registry as one tar that is safe to unpack: files and folders only, below their folder, within limits. A forbidden
 * entry of a package makes the whole program unusable: it is refused, never repaired (observed: tests/environment/programs/packageTar.test.ts).
 */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import tar from 'tar-stream';
import type { ProgramPackage, ProgramVariant } from './program.ts';

/**
 * A package that is not what its registry said, or that would write outside of its folder (observed:
 * tests/environment/programs/packageTar.test.ts).
 */
class UnsafePackageError extends Error {
  override readonly name = 'UnsafePackageError';
}

export interface PackageLimits {
  readonly bytes: number;
  readonly entries: number;
}
/** The largest agent known has 400 MB in some thousand files. */
export const PACKAGE_LIMITS: PackageLimits = { bytes: 2 * 1024 ** 3, entries: 100_000 };

const FILE_TYPES: ReadonlySet<string> = new Set(['file', 'contiguous-file']);

/** Path below the package's own folder; null for that folder itself. Throws for a path that leads elsewhere. */
function pathInPackage(name: string): string | null {
  const refuse = (why: string) =>
    new UnsafePackageError(`the package holds the path ${JSON.stringify(name.slice(0, 200))}, which ${why}`);
  if (name.includes('\0')) throw refuse('holds a zero byte');
  if (name.includes('\\')) throw refuse('holds a backslash');
  if (posix.isAbsolute(name)) throw refuse('is absolute');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refuse('leads out of its folder');
  const inside = parts.slice(1);
  if (inside.some((part) => Buffer.byteLength(part) > 255)) throw refuse('has a part that is too long');
  return inside.length === 0 ? null : inside.join('/');
}

type Entry = tar.Extract extends AsyncIterable<infer One> ? One : never;

interface Writing {
  readonly pack: tar.Pack;
  readonly limits: PackageLimits;
  readonly folders: Set<string>;
  bytes: number;
  entries: number;
}

/** A tar of all packages. Reading it fails with UnsafePackageError where one of them cannot be trusted. */
export function programTar(
  packages: readonly ProgramPackage[],
  limits: PackageLimits = PACKAGE_LIMITS,
): tar.Pack {
  const pack = tar.pack();
  const writing: Writing = { pack, limits, folders: new Set(), bytes: 0, entries: 0 };
  const write = async () => {
    for (const one of packages) await writePackage(writing, one);
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  return pack;
}

async function writePackage(writing: Writing, { file, integrity, folder }: ProgramPackage): Promise<void> {
  const hash = createHash('sha512');
  const extract = tar.extract();
  const source = createReadStream(file);
  const unzipped = createGunzip();
  const fail = (error: Error) => extract.destroy(error);
  source.on('data', (chunk) => hash.update(chunk)).on('error', fail);
  const read = new Promise<void>((resolve) => source.on('close', () => resolve()));
  source.pipe(unzipped).on('error', fail).pipe(extract);
  try {
    for await (const entry of extract) await writeEntry(writing, folder, entry);
    // Bytes behind the end of the archive belong to what was hashed.
    source.unpipe(unzipped).resume();
    await read;
  } catch (error) {
    throw error instanceof UnsafePackageError
      ? error
      : new UnsafePackageError(`${file} cannot be unpacked: ${(error as Error).message}`);
  } finally {
    source.destroy();
    unzipped.destroy();
  }
  const found = `sha512-${hash.digest('base64')}`;
  if (found !== integrity)
    throw new UnsafePackageError(
      `${file} is not the package that was added: ${found} instead of ${integrity}`,
    );
}

async function writeEntry(writing: Writing, folder: string, entry: Entry): Promise<void> {
  const { name, type, size = 0, mode = 0 } = entry.header;
  const inside = pathInPackage(name);
  if (inside === null || type === 'directory') {
    entry.resume();
    await once(entry, 'end');
    return;
  }
  if (!FILE_TYPES.has(type ?? 'file'))
    throw new UnsafePackageError(
      `the package holds ${JSON.stringify(name.slice(0, 200))}, which is a ${type}`,
    );
  writing.bytes += size;
  writing.entries += 1;
  if (writing.bytes > writing.limits.bytes || writing.entries > writing.limits.entries)
    throw new UnsafePackageError(
      `the packages are too large to unpack: more than ${writing.limits.bytes} bytes or ${writing.limits.entries} files`,
    );
  const path = `${folder}/${inside}`;
  writeFolders(writing, posix.dirname(path));
  const header = { name: path, size, mode: (mode & 0o111) === 0 ? 0o644 : 0o755, mtime: new Date(0) };
  await new Promise<void>((resolve, reject) => {
    entry.pipe(writing.pack.entry(header, (error) => (error ? reject(error) : resolve())));
  });
}

/** Each folder above a file, once and before it. */
function writeFolders(writing: Writing, folder: string): void {
  if (folder === '.' || writing.folders.has(folder)) return;
  writeFolders(writing, posix.dirname(folder));
  writing.folders.add(folder);
  writing.pack.entry({ name: `${folder}/`, type: 'directory', mode: 0o755, mtime: new Date(0) });
}

const CHUNK = 262_144;

export type ProgramSpools = ReturnType<typeof createProgramSpools>;

export function createProgramSpools() {
  const made = new Map<ProgramVariant, Promise<{ file: FileHandle; bytes: number }>>();
  return {
    /** Rejects with UnsafePackageError where a package cannot be trusted. */
    async ensure(variant: ProgramVariant) {
      const making = made.get(variant) ?? spool(variant);
      made.set(variant, making);
      // A failure may be gone in the next attempt (observed: tests/environment/programs/programSpool.test.ts).
      making.catch(() => made.delete(variant));
      const { file, bytes } = await making;
      return { bytes, read: () => chunksOf(file, bytes) };
    },
    /** Nobody reads any more. */
    async close() {
      const spooled = await Promise.allSettled(made.values());
      made.clear();
      for (const one of spooled) if (one.status === 'fulfilled') await one.value.file.close();
    },
  };
}

async function spool({ packages }: ProgramVariant): Promise<{ file: FileHandle; bytes: number }> {
  const path = join(tmpdir(), `swebatch-program-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
    // Made once and sent often, and the fastest level is nearly as small as the packages.
    const zipped = createGzip({ level: 1 });
    await pipeline(Readable.from(programTar(packages)), zipped, async (parts: AsyncIterable<Buffer>) => {
      for await (const part of parts) await file.appendFile(part);
    });
    return { file, bytes: (await file.stat()).size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Several read at a time, each from the beginning. */
async function* chunksOf(file: FileHandle, bytes: number): AsyncIterable<Buffer> {
  for (let at = 0; at < bytes; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, at);
    if (bytesRead === 0) throw new Error('the unpacked program was cut short');
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
