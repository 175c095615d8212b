/** Programs of ours on an engine: an image that holds one and nothing else, and a container beside another one that runs it. */
import { createHash, randomBytes } from 'node:crypto';
import { type Duplex, Readable } from 'node:stream';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import type { StartRequest } from '../environment.ts';
import { ownerLabels } from '../owner.ts';
import { ownProgram } from '../ownProgram.ts';
import { daemonAnswer, ifThere, withDaemonRetry } from '../places/dockerFault.ts';

type ProgramName = Parameters<typeof ownProgram>[0];

const made = new WeakMap<Docker, Map<ProgramName, Promise<string>>>();

/** A container, not started, that ends with its attached stream. `reach`: its parts of the other container, and the rights that these take. */
export async function createOwnContainer(
  docker: Docker,
  name: ProgramName,
  { owner, instanceId }: Pick<StartRequest, 'owner' | 'instanceId'>,
  {
    args,
    user,
    reach,
  }: { readonly args: string[]; readonly user: string; readonly reach: Docker.HostConfig },
): Promise<Docker.Container> {
  const called = `swebatch-${name}-${randomBytes(6).toString('hex')}`;
  const spec: Docker.ContainerCreateOptions = {
    name: called,
    Image: await ownImage(docker, name),
    Entrypoint: [`/${name}`],
    Cmd: args,
    User: user,
    Labels: ownerLabels(owner, instanceId, new Date(), called),
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    // The container ends with the stream of this process, also when that was killed.
    StdinOnce: true,
    Tty: false,
    NetworkDisabled: reach.NetworkMode === 'none',
    HostConfig: {
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      IpcMode: 'none',
      PidsLimit: 8,
      Memory: 268_435_456,
      MemorySwap: 268_435_456,
      // The output is for this process; the engine must not write every byte to its own log.
      LogConfig: { Type: 'none', Config: {} },
      ...reach,
    },
  };
  return daemonAnswer(docker.createContainer(spec));
}

/** Before its start, so that nothing that it says is missed. */
export const attachedTo = (container: Docker.Container): Promise<Duplex> =>
  container.attach({
    hijack: true,
    stream: true,
    stdin: true,
    stdout: true,
    stderr: true,
  }) as Promise<Duplex>;

/** The name of the image, which is on the engine then. The program is /NAME in it. */
function ownImage(docker: Docker, name: ProgramName): Promise<string> {
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

const isThere = async (docker: Docker, name: string): Promise<boolean> =>
  (await ifThere(withDaemonRetry(() => docker.getImage(name).inspect()))) !== undefined;
