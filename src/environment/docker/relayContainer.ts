/**
 * A port inside of a container without network. A second container shares its network namespace and nothing else: the agent can connect to
 * the relay there, and can neither see nor end it. The connections come out over the relay's attached streams.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Duplex, Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { LimitFunction } from 'p-limit';
import tar from 'tar-stream';
import { type Doorway, EnvironmentError, type StartRequest } from '../environment.ts';
import { ownerLabels } from '../owner.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { createRelayLine } from '../relay/relayLine.ts';
import { relayProgram } from '../relay/relayProgram.ts';
import type { Discard } from './container.ts';
import { createDemux } from './startProcess.ts';

interface RelayParts {
  readonly docker: Docker;
  /** The container whose loopback gets the port. */
  readonly containerId: string;
  readonly request: Pick<StartRequest, 'owner' | 'instanceId'>;
  readonly starting: LimitFunction;
  readonly watch: EngineWatch;
  readonly discard: Discard;
  readonly port: number;
  onConnection(connection: Duplex): void;
}

function relaySpec(parts: RelayParts, image: string): Docker.ContainerCreateOptions {
  const { request, containerId, port } = parts;
  const name = `swebatch-relay-${randomBytes(6).toString('hex')}`;
  return {
    name,
    Image: image,
    Entrypoint: ['/relay'],
    Cmd: [String(port)],
    User: '65534:65534',
    Labels: ownerLabels(request.owner, request.instanceId, new Date(), name),
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    // The relay ends with the stream of this process, also when that was killed.
    StdinOnce: true,
    Tty: false,
    HostConfig: {
      NetworkMode: `container:${containerId}`,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      IpcMode: 'none',
      PidsLimit: 8,
      Memory: 268_435_456,
      MemorySwap: 268_435_456,
      // What it carries is in the record; the engine must not write every byte to its own log.
      LogConfig: { Type: 'none', Config: {} },
    },
  };
}

export async function startRelay(parts: RelayParts): Promise<Doorway> {
  const { docker, starting, port } = parts;
  try {
    const image = await relayImage(docker);
    return await starting(async () => {
      const container = await daemonAnswer(docker.createContainer(relaySpec(parts, image)));
      try {
        return await attachRelay(parts, container);
      } catch (error) {
        await parts.discard(container);
        throw error;
      }
    });
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    const { text } = readFault(error);
    throw new EnvironmentError('start_failed', `the relay for port ${port} did not start: ${text}`, {
      evidence: { daemon: text },
      cause: error,
    });
  }
}

async function attachRelay(parts: RelayParts, container: Docker.Container): Promise<Doorway> {
  const stream = (await container.attach({
    hijack: true,
    stream: true,
    stdin: true,
    stdout: true,
    stderr: true,
  })) as Duplex;
  const since = parts.watch.mark();
  const line = createRelayLine({
    port: parts.port,
    onConnection: parts.onConnection,
    stream,
    async loss(message, said, cause) {
      parts.watch.suspect();
      const { away, ...state } = await stateOf(container);
      const sub = away || parts.watch.awaySince(since) ? 'daemon_lost' : 'relay';
      return new EnvironmentError('died', message, { sub, evidence: { ...state, said }, cause });
    },
    remove: () => parts.discard(container),
  });
  const demux = createDemux((type, data) => (type === 2 ? line.stderr(data) : line.stdout(data)));
  stream.on('data', demux);
  stream.on('error', (error: Error) => line.broke(`the stream to the relay broke: ${error.message}`, error));
  for (const event of ['end', 'close']) stream.on(event, () => line.broke('the relay has ended'));
  await daemonAnswer(container.start());
  return line.opened();
}

/** What the engine says of it: for the record, so its own failure is none. */
async function stateOf(container: Docker.Container): Promise<Record<string, unknown> & { away: boolean }> {
  try {
    const { State: state } = await daemonAnswer(container.inspect());
    return { away: false, relay: container.id, state: { ...state } };
  } catch (error) {
    const { daemonGone, text } = readFault(error);
    return { away: daemonGone, relay: container.id, daemon: text };
  }
}

const REPOSITORY = 'swebatch-relay';

const made = new WeakMap<Docker, Promise<string>>();

/** The name of the image, which is on the engine then. */
function relayImage(docker: Docker): Promise<string> {
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
