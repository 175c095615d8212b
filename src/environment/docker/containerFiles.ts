/** Files in and out of a container, by the archives of the Engine API. */
import { posix } from 'node:path';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { archiveOf, type Container, wholeOf } from '../container/container.ts';
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

const MAX_LINKS = 8;

export function containerFiles(container: Docker.Container): Pick<Container, 'put' | 'getFile' | 'read'> {
  /** Once; undefined where nothing is there. */
  const archiveAt = async (path: string, signal?: AbortSignal): Promise<tar.Extract | undefined> => {
    signal?.throwIfAborted();
    try {
      return extractArchive(await daemonAnswer(container.getArchive({ path }), ARCHIVE_LIMIT_MS), signal);
    } catch (error) {
      if (readFault(error).status === 404) return undefined;
      throw error;
    }
  };
  const readFile = async (path: string, links: number): Promise<Uint8Array | undefined> => {
    const archive = await archiveAt(path);
    if (!archive) return undefined;
    let found: { kind: string; link: string; content: Buffer } | undefined;
    // Read to the end: leaving the loop early would destroy the stream under the pipe.
    for await (const entry of archive) {
      const content = await wholeOf(entry);
      found ??= { kind: entry.header.type ?? 'file', link: entry.header.linkname ?? '', content };
    }
    if (found?.kind === 'file') return found.content;
    if (found?.kind !== 'symlink') throw new Error(`${path} is not a file`);
    if (links >= MAX_LINKS) throw new Error(`too many symbolic links at ${path}`);
    return readFile(posix.resolve(posix.dirname(path), found.link), links + 1);
  };
  return {
    async put(files) {
      const archive = await archiveOf(files);
      const extract = () => daemonAnswer(container.putArchive(archive, { path: '/' }), ARCHIVE_LIMIT_MS);
      try {
        await extract();
      } catch (error) {
        if (!readFault(error).daemonGone) throw error;
        // A removed container also looks like this: the engine answers before it has read the archive, and hangs up.
        await withDaemonRetry(() => daemonAnswer(container.inspect()));
        await extract();
      }
    },
    getFile: (path) => withDaemonRetry(() => readFile(path, 0)),
    read: (path, read, signal) =>
      withDaemonRetry(async () => {
        const archive = await archiveAt(path, signal);
        return archive && read(archive);
      }),
  };
}
