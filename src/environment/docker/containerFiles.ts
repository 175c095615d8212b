/** Files in and out of a container, by the archives of the Engine API. */
import { posix } from 'node:path';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import type { ReadFolder } from '../patch/treeSnapshot.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';

/** Long for the largest file that goes in; for an engine that has locked up. */
const ARCHIVE_LIMIT_MS = 600_000;

/** Reads an archive from the engine; one that is cut short is an error, where a bare pipe would wait for ever. */
export function extractArchive(archive: NodeJS.ReadableStream, signal?: AbortSignal): tar.Extract {
  const extract = tar.extract();
  let whole = false;
  const fail = (error: Error) => {
    if (!whole) extract.destroy(error);
  };
  archive.on('end', () => {
    whole = true;
  });
  archive
    .on('error', fail)
    .on('close', () => fail(Object.assign(new Error('the archive was cut short'), { code: 'ECONNRESET' })));
  signal?.addEventListener('abort', () => fail(signal.reason as Error), { once: true });
  archive.pipe(extract);
  return extract;
}

/** A folder as an archive, read again from its beginning when the daemon was away. */
export const folderReader =
  (container: Docker.Container): ReadFolder =>
  (folder, read, signal) =>
    withDaemonRetry(async () => {
      signal.throwIfAborted();
      return read(extractArchive(await container.getArchive({ path: folder }), signal));
    });

export async function wholeOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) if (Buffer.isBuffer(part)) parts.push(part);
  return Buffer.concat(parts);
}

export async function putFile(
  container: Docker.Container,
  path: string,
  content: Uint8Array | string,
  mode: number,
): Promise<void> {
  if (!posix.isAbsolute(path)) throw new Error(`putFile needs an absolute path, got ${path}`);
  const pack = tar.pack();
  // Extracted at the root, so that missing folders on the way are made.
  pack.entry({ name: posix.normalize(path).slice(1), mode }, Buffer.from(content));
  pack.finalize();
  await putArchive(container, await wholeOf(pack));
}

/** Extracts an archive at the root. */
export async function putArchive(container: Docker.Container, archive: Buffer): Promise<void> {
  const put = () => daemonAnswer(container.putArchive(archive, { path: '/' }), ARCHIVE_LIMIT_MS);
  try {
    await put();
  } catch (error) {
    if (!readFault(error).daemonGone) throw error;
    // A removed container also looks like this: the engine answers before it has read the archive, and hangs up.
    await withDaemonRetry(() => daemonAnswer(container.inspect()));
    await put();
  }
}

const MAX_LINKS = 8;

export async function getFile(container: Docker.Container, path: string): Promise<Uint8Array> {
  const content = await withDaemonRetry(() => readFile(container, path, 0));
  // Thrown here: inside, its code would look like that of an engine whose socket is missing.
  if (!content) throw Object.assign(new Error(`no file ${path} in the container`), { code: 'ENOENT' });
  return content;
}

/** Undefined when there is no such file. */
async function readFile(
  container: Docker.Container,
  path: string,
  links: number,
): Promise<Uint8Array | undefined> {
  let archive: NodeJS.ReadableStream;
  try {
    archive = await daemonAnswer(container.getArchive({ path }), ARCHIVE_LIMIT_MS);
  } catch (error) {
    if (readFault(error).status === 404) return undefined;
    throw error;
  }
  const extract = extractArchive(archive);
  let found: { kind: string; link: string; content: Buffer } | undefined;
  // Read to the end: leaving the loop early would destroy the stream under the pipe.
  for await (const entry of extract) {
    const content = await wholeOf(entry);
    found ??= { kind: entry.header.type ?? 'file', link: entry.header.linkname ?? '', content };
  }
  if (found?.kind === 'file') return found.content;
  if (found?.kind !== 'symlink') throw new Error(`${path} is not a file`);
  if (links >= MAX_LINKS) throw new Error(`too many symbolic links at ${path}`);
  return readFile(container, posix.resolve(posix.dirname(path), found.link), links + 1);
}
