/** The image of the relay: one file, given to the engine as an archive. No registry and no build is needed. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { readFault, withDaemonRetry } from '../places/dockerFault.ts';
import { relayProgram } from '../relay/relayProgram.ts';

const REPOSITORY = 'swebatch-relay';

const made = new WeakMap<Docker, Promise<string>>();

/** The name of the image, which is on the engine then. */
export function relayImage(docker: Docker): Promise<string> {
  let image = made.get(docker);
  if (!image) {
    image = ensureRelayImage(docker);
    made.set(docker, image);
    image.catch(() => made.delete(docker));
  }
  return image;
}

async function ensureRelayImage(docker: Docker): Promise<string> {
  const { Arch: architecture } = await withDaemonRetry(() => docker.version());
  const program = relayProgram(architecture);
  const tag = createHash('sha256').update(program).digest('hex').slice(0, 16);
  const name = `${REPOSITORY}:${tag}`;
  if (await isThere(docker, name)) return name;
  const pack = tar.pack();
  pack.entry({ name: 'relay', mode: 0o555 }, program);
  pack.finalize();
  const answer = await docker.importImage(Readable.from(pack), { repo: REPOSITORY, tag });
  // The answer is a log of the import, whose end is the end of the import.
  for await (const _ of answer as AsyncIterable<unknown>);
  if (await isThere(docker, name)) return name;
  throw new Error(`the engine did not take the image ${name}`);
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
