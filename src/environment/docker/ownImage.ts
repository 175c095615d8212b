/** Images that hold one program of ours and nothing else, on an engine. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { ownProgram } from '../ownProgram.ts';
import { readFault, withDaemonRetry } from '../places/dockerFault.ts';

type ProgramName = Parameters<typeof ownProgram>[0];

const made = new WeakMap<Docker, Map<ProgramName, Promise<string>>>();

/** The name of the image, which is on the engine then. The program is /NAME in it. */
export function ownImage(docker: Docker, name: ProgramName): Promise<string> {
  const images = made.get(docker) ?? new Map<ProgramName, Promise<string>>();
  made.set(docker, images);
  let image = images.get(name);
  if (!image) {
    image = ensure(docker, name);
    images.set(name, image);
    image.catch(() => images.delete(name));
  }
  return image;
}

async function ensure(docker: Docker, name: ProgramName): Promise<string> {
  const { Arch: architecture } = await withDaemonRetry(() => docker.version());
  const program = ownProgram(name, architecture);
  const repo = `swebatch-${name}`;
  const tag = createHash('sha256').update(program).digest('hex').slice(0, 16);
  const image = `${repo}:${tag}`;
  if (await isThere(docker, image)) return image;
  const pack = tar.pack();
  pack.entry({ name, mode: 0o555 }, program);
  pack.finalize();
  const answer = await docker.importImage(Readable.from(pack), { repo, tag });
  // The answer is a log of the import, whose end is the end of the import.
  for await (const _ of answer as AsyncIterable<unknown>);
  if (await isThere(docker, image)) return image;
  throw new Error(`the engine did not take the image ${image}`);
}

async function isThere(docker: Docker, name: string): Promise<boolean> {
  try {
    await withDaemonRetry(() => docker.getImage(name).inspect());
    return true;
  } catch (error) {
    if (readFault(error).status === 404) return false;
    throw error;
  }
}
