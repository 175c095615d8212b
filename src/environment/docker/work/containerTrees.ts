/** Many files in and out of a container at once, each by one archive of the Engine API. */
import { posix } from 'node:path';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { FilesTooLargeError, type PlacedFile } from '../../environment.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../../places/dockerFault.ts';
import { extractArchive, putArchive, wholeOf } from '../containerFiles.ts';

const ARCHIVE_LIMIT_MS = 600_000;

export async function putFiles(container: Docker.Container, files: readonly PlacedFile[]): Promise<void> {
  if (files.length === 0) return;
  const pack = tar.pack();
  const whole = wholeOf(pack);
  for (const { path, content, mode } of files)
    pack.entry({ name: posix.normalize(path).slice(1), mode }, Buffer.from(content));
  pack.finalize();
  await putArchive(container, await whole);
}

export async function getFiles(
  container: Docker.Container,
  path: string,
  maxBytes: number,
): Promise<PlacedFile[]> {
  const get = () => daemonAnswer(container.getArchive({ path }), ARCHIVE_LIMIT_MS);
  const archive = await withDaemonRetry(get).catch((error: unknown) => {
    if (readFault(error).status === 404) return undefined;
    throw error;
  });
  if (!archive) return [];
  const above = posix.dirname(posix.normalize(path));
  const files: PlacedFile[] = [];
  let left = maxBytes;
  const extract = extractArchive(archive);
  // Read to the end also when it is too much: leaving the loop early would destroy the stream under the pipe.
  for await (const entry of extract) {
    const { name, type, size = 0, mode = 0o644 } = entry.header;
    left -= size;
    if (type !== 'file' || left < 0) {
      entry.resume();
      continue;
    }
    files.push({ path: posix.join(above, posix.normalize(`/${name}`)), content: await wholeOf(entry), mode });
  }
  if (left < 0) throw new FilesTooLargeError(`${path} holds more than ${Math.floor(maxBytes / 2 ** 20)} MB`);
  return files;
}
