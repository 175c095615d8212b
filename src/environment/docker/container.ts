/** One container: how it is created, what its death means, removal. Facts about Docker live here and nowhere above. */

import { randomBytes } from 'node:crypto';
import { addAbortListener } from 'node:events';
import { posix } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { z } from 'zod';
import { parseDuration, parseSize } from '../../base/text/units.ts';
import {
  archiveOf,
  type Container,
  LONGEST_FILE,
  type OwnConfig,
  tooLong,
  wholeOf,
} from '../container/container.ts';
import { EnvironmentError, REFUSED_OPTION, type StartRequest } from '../environment.ts';
import { keeperEntrypoint } from '../exec/keeper.ts';
import { LABELS, ownerLabels } from '../owner.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { FREED_BY } from '../places/leftovers.ts';
import { PROGRAM_FOLDER } from '../programs/program.ts';
import { QUIET_ENV } from '../quietEnv.ts';
import { NAMES } from './noNetwork.ts';
import type { AmongServices } from './services.ts';

const NANO = 1e9;

interface ContainerOptions {
  readonly config: OwnConfig;
  /** Image id or name to create from: the sealed image where there is one. */
  readonly image: string;
  readonly request: StartRequest;
  readonly quietEnv: boolean;
  readonly capAdd?: readonly string[];
  /** Devices of the engine that the container has. */
  readonly devices?: Docker.DeviceRequest[] | undefined;
  /** Somebody in the container is not root: the image's USER, or the user that the task names. */
  readonly others?: boolean;
  /** Bytes of the storage driver's own quota; 0 where it has none. */
  readonly storageBytes: number;
  readonly programVolume?: string | undefined;
  readonly discard: Discard;
  readonly beforeStart?: ((container: Docker.Container) => Promise<void>) | undefined;
  /** The loopback of noNetwork.ts. */
  readonly ownLoopback?: boolean;
  /** The container's place among services; absent where it has none. */
  readonly place?: AmongServices | undefined;
}

/** Removes a container, now or as soon as the engine does. Never rejects. */
export type Discard = (container: Docker.Container) => Promise<void>;

type SpecOptions = Omit<ContainerOptions, 'request' | 'discard'> & {
  readonly request: Pick<StartRequest, 'owner' | 'instanceId'>;
};

export function containerSpec(options: SpecOptions, name: string): Docker.ContainerCreateOptions {
  const { config, request, place } = options;
  const memory = parseSize(config.memory);
  const lifetime = parseDuration(config.container_timeout);
  const mounts = [
    ...(options.programVolume === undefined ? [] : [programMount(options.programVolume)]),
    ...(place?.mounts ?? []),
  ];
  const env = { ...(options.quietEnv ? QUIET_ENV : {}), ...config.env };
  return {
    name,
    Image: options.image,
    // PID 1 keeps the container: nothing inside can kill it, and it reaps orphans.
    Entrypoint: keeperEntrypoint(lifetime, config.supervisor, options.ownLoopback ? NAMES : undefined),
    Cmd: [],
    // The keeper hears no signal, so a stop need not wait for it.
    StopSignal: 'SIGKILL',
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    Labels: {
      ...ownerLabels(request.owner, request.instanceId, new Date(), name),
      ...(place && { [LABELS.services]: place.services }),
    },
    ...(config.user ? { User: config.user } : {}),
    ...(config.platform ? { platform: config.platform } : {}),
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    Tty: false,
    // The image's own check would run beside the agent, cost an exec each time, and might write into the work tree.
    Healthcheck: { Test: ['NONE'] },
    ...(options.ownLoopback && { NetworkDisabled: true }),
    ...(place && { NetworkingConfig: { EndpointsConfig: place.endpoints } }),
    HostConfig: {
      // An init of the engine's would die with its only child.
      Init: false,
      NetworkMode: config.network,
      ...place?.host,
      // With that a root that is exec'd where the USER is another has no capabilities, and `sudo` of an image has none to give: tests that
      // install something, or remove what the agent owns, failed for it. Root of a container is as much as where everybody is root.
      ...(!options.others && { SecurityOpt: ['no-new-privileges'] }),
      ...(options.capAdd?.length ? { CapAdd: [...options.capAdd] } : {}),
      ...(options.devices ? { DeviceRequests: options.devices } : {}),
      ...(memory > 0 ? { Memory: memory, MemorySwap: memory } : {}),
      ...(config.pids_limit > 0 ? { PidsLimit: config.pids_limit } : {}),
      ...(config.cpus > 0 ? { NanoCpus: Math.round(config.cpus * NANO) } : {}),
      ...(mounts.length > 0 ? { Mounts: mounts } : {}),
      ...(options.storageBytes > 0 ? { StorageOpt: { size: String(options.storageBytes) } } : {}),
    },
  };
}

const programMount = (volume: string): Docker.MountSettings => ({
  Type: 'volume',
  Source: volume,
  Target: PROGRAM_FOLDER,
  ReadOnly: true,
});

/** The limit for a daemon that has locked up; a slow one is the slot's to judge (`run.stall.start_s`), grading has no other limit. */
const START_LIMIT_MS = 600_000;

/** Creates and starts one, and leaves no ghost behind. */
export async function createContainer(docker: Docker, options: ContainerOptions): Promise<Docker.Container> {
  const { request, image, place, config, discard } = options;
  request.signal?.throwIfAborted();
  const name = `swebatch-${request.instanceId.slice(0, 60)}-${randomBytes(6).toString('hex')}`;
  let made: Docker.Container | undefined;
  try {
    made = await daemonAnswer(docker.createContainer(containerSpec(options, name)), START_LIMIT_MS);
    await place?.connect(made);
    await options.beforeStart?.(made);
    await daemonAnswer(made.start(), START_LIMIT_MS);
    return made;
  } catch (error) {
    const { status, text, daemonGone } = readFault(error);
    // An answer that never came may still have made a container: its name is ours alone.
    if (made || status === undefined || status >= 500) await discard(made ?? docker.getContainer(name));
    if (error instanceof EnvironmentError) throw error;
    if (status === 404 && /no such image/i.test(text))
      throw new EnvironmentError('image_missing', `image ${image} vanished: ${text}`, { cause: error });
    if (daemonGone)
      throw new EnvironmentError(
        'daemon_lost',
        `the Docker daemon does not answer: ${text}; start it and resume`,
        { cause: error },
      );
    // Only the image says which users it has, so no check before the run can find this one.
    const noUser = config.user !== undefined && /unable to find (user|group)/i.test(text);
    throw new EnvironmentError(
      'start_failed',
      `the container of ${request.instanceId} did not start: ${text}${noUser ? `; environment.user is "${config.user}": name one that the images have` : ''}`,
      {
        evidence: { image, daemon: text },
        cause: error,
        // T-36: a name that is taken, and an engine that is confused.
        ...(noUser ? { sub: REFUSED_OPTION } : { again: status === 409 || (status ?? 0) >= 500 }),
      },
    );
  }
}

interface LivingContainer {
  readonly docker: Docker;
  readonly container: Docker.Container;
  readonly watch: EngineWatch;
  /** A mark of the watch, from before the container was made. */
  readonly since: number;
}

/** An engine that is away is waited for. */
async function asked<T>({ watch }: LivingContainer, question: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await withDaemonRetry(() => daemonAnswer(question()), [100]);
    } catch (error) {
      if (!readFault(error).daemonGone) throw error;
      await watch.back();
    }
  }
}

/**
 * The list tells it without a lock of the container. Docker 20.10 holds one while it starts a process there, and a command that stops every
 * process stops that one too, before it began: `kill`, `restart` and `rm` still end the container then, until one `inspect` or `top` has
 * waited for the first lock while it holds the second. From that moment on nothing but the death of the stopped `runc init` on the host of
 * the engine frees it. We do not look for that process ourselves: it is in no cgroup of the container yet, and most engines are elsewhere.
 */
async function isRunning(living: LivingContainer): Promise<boolean> {
  const { docker, container } = living;
  const listed = { all: true, filters: { id: [container.id] } };
  const [seen] = await asked(living, () => docker.listContainers(listed));
  return seen?.State === 'running';
}

/** The engine answers, and not about this container. Nothing proves who is to blame: an engine that is slow looks like that too. */
const unansweredError = (id: string, what: string, cause: unknown, evidence: Record<string, unknown> = {}) =>
  new EnvironmentError(
    'died',
    `the engine does not ${what} container ${id}, and gives no reason: ${FREED_BY}`,
    {
      sub: 'unanswered',
      evidence: { ...evidence, container: id, daemon: readFault(cause).text },
      cause,
    },
  );

/** Much for a restart of half a second, also on a machine that is drowning (observed: tests/environment/docker/lockedDaemon.test.ts). */
const RESTART_LIMIT_MS = 30_000;

/** Kills every process in it; its files stay. */
export async function restartContainer(container: Docker.Container): Promise<void> {
  try {
    await withDaemonRetry(() => daemonAnswer(container.restart({ t: 0 }), RESTART_LIMIT_MS));
  } catch (error) {
    throw readFault(error).unanswered ? unansweredError(container.id.slice(0, 12), 'restart', error) : error;
  }
}

/** undefined while the container runs; else the error that ends the attempt. */
export async function deathOf(
  living: LivingContainer,
  lifetimeS: number,
  evidence: Readonly<Record<string, unknown>> = {},
): Promise<EnvironmentError | undefined> {
  const { docker, container, watch, since } = living;
  const id = container.id.slice(0, 12);
  let running: boolean | undefined;
  try {
    running = await isRunning(living);
    if (running) return undefined;
    const { State: state } = await asked(living, () => container.inspect());
    if (state.Running && !state.Paused) return undefined;
    const ranMs = Date.parse(state.FinishedAt) - Date.parse(state.StartedAt);
    const expired = lifetimeS > 0 && state.ExitCode === 0 && ranMs >= lifetimeS * 1000 - 500;
    const sub = expired ? 'expired' : state.OOMKilled ? 'oom' : 'killed';
    const why = expired
      ? `its lifetime of ${lifetimeS} s is over; raise environment.container_timeout`
      : `state ${state.Status}, exit code ${state.ExitCode}`;
    const fromWithin =
      !expired &&
      state.Status === 'exited' &&
      (await endedFromWithin(docker, container.id, Date.parse(state.FinishedAt)));
    // An engine that ends, ends its containers.
    if (sub === 'killed' && !fromWithin && watch.awaySince(since))
      return new EnvironmentError('died', `container ${id} ended with the engine, which was away: ${why}`, {
        sub: 'daemon_lost',
        evidence: { ...evidence, state: { ...state }, container: container.id },
      });
    return new EnvironmentError('died', `container ${id} is not running: ${why}`, {
      sub,
      fromWithin,
      evidence: { ...evidence, state: { ...state }, container: container.id },
    });
  } catch (error) {
    const fault = readFault(error);
    if (fault.status === 404)
      return new EnvironmentError('died', `container ${id} was removed while the agent worked`, {
        sub: 'killed',
        evidence: { ...evidence, state: 'removed', container: container.id },
        cause: error,
      });
    if (fault.unanswered && running !== undefined)
      return unansweredError(id, 'say what became of', error, evidence);
    return new EnvironmentError(
      'died',
      `the Docker daemon does not answer about container ${id}: ${fault.text}`,
      {
        sub: 'daemon_lost',
        evidence: { ...evidence, daemon: fault.text, container: container.id },
        cause: error,
      },
    );
  }
}

const eventSchema = z.object({
  Action: z.string(),
  Actor: z.object({ ID: z.string() }),
  timeNano: z.number(),
});
export type EngineEvent = z.infer<typeof eventSchema>;

/** The engine remembers its last 256 events, whatever they are about. A kill stands milliseconds before the end that it leads to. */
const MEMORY_IS_LONG_BELOW = 200;
const LOOK_BACK_NS = 2e9;
/** The end is told a moment after it happened, on a machine that is drowning much later. Nobody waits longer than until it is told. */
const TOLD_LATE_MS = 30_000;
const NANO_PER_MS = 1e6;

/** A stop, a restart and a removal begin with a kill. */
const BY_REQUEST: ReadonlySet<string> = new Set(['kill', 'pause']);

/**
 * `events` as the engine remembers them, up to the end of the container. False whenever they do not prove it: the end is not among them (the
 * engine was started anew since), or they do not reach back far enough to hold a kill.
 */
export function diedFromWithin(events: readonly EngineEvent[], id: string): boolean {
  const end = events.findLastIndex(({ Action, Actor }) => Actor.ID === id && Action === 'die');
  if (end < 0) return false;
  const reachesBack =
    end < MEMORY_IS_LONG_BELOW || events[0]!.timeNano < events[end]!.timeNano - LOOK_BACK_NS;
  const own = events.slice(0, end).filter(({ Actor }) => Actor.ID === id);
  const life = own.slice(own.findLastIndex(({ Action }) => Action === 'start') + 1);
  return reachesBack && !life.some(({ Action }) => BY_REQUEST.has(Action));
}

/** `finishedAt` by the engine's own clock. */
async function endedFromWithin(docker: Docker, id: string, finishedAt: number): Promise<boolean> {
  if (!(finishedAt > 0)) return false;
  try {
    return diedFromWithin(await daemonAnswer(eventsUntilEnd(docker, id, finishedAt)), id);
  } catch {
    return false;
  }
}

async function eventsUntilEnd(docker: Docker, id: string, finishedAt: number): Promise<EngineEvent[]> {
  const until = (finishedAt + TOLD_LATE_MS) / 1000;
  const stream = (await docker.getEvents({ since: 1, until })) as Readable;
  const events: EngineEvent[] = [];
  try {
    for await (const line of createInterface({ input: stream })) {
      const event = eventSchema.safeParse(line === '' ? undefined : JSON.parse(line));
      if (!event.success) continue;
      events.push(event.data);
      const { Action, Actor, timeNano } = event.data;
      if (Action === 'die' && Actor.ID === id && timeNano >= finishedAt * NANO_PER_MS) break;
    }
  } finally {
    stream.destroy();
  }
  return events;
}

// Files in and out of a container, by the archives of the Engine API.

/** Long for the largest file that goes in; the limit for an engine that has locked up. */
const ARCHIVE_LIMIT_MS = 600_000;

/**
 * Reads an archive from the engine. An archive that is cut short is an error, where a bare pipe waits for ever
 * (observed: tests/environment/docker/archive.test.ts).
 */
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
  if (signal) addAbortListener(signal, () => fail(signal.reason as Error));
  // A reader that has enough ends the stream: of a sparse file of 50 GB an engine sends 50 GB.
  extract.on('close', () => {
    archive.unpipe(extract);
    (archive as Readable).destroy();
  });
  archive.pipe(extract);
  return extract;
}

const MAX_LINKS = 8;
const NOT_THERE = /: not a directory|too many (?:levels of symbolic )?links/i;

export function containerFiles(container: Docker.Container): Pick<Container, 'put' | 'getFile' | 'read'> {
  /** One try; undefined where nothing is there. */
  const archiveAt = async (path: string, signal?: AbortSignal): Promise<tar.Extract | undefined> => {
    signal?.throwIfAborted();
    try {
      return extractArchive(await daemonAnswer(container.getArchive({ path }), ARCHIVE_LIMIT_MS), signal);
    } catch (error) {
      const { status, text } = readFault(error);
      // A file or a loop of links in the place of a folder above it: Docker 20.10 calls that an error of its own.
      if (status === 404 || NOT_THERE.test(text)) return undefined;
      throw error;
    }
  };
  const readFile = async (path: string, links: number): Promise<Uint8Array | undefined> => {
    const archive = await archiveAt(path);
    if (!archive) return undefined;
    let found: { kind: string; link: string; content: Buffer } | undefined;
    for await (const entry of archive) {
      if ((entry.header.size ?? 0) > LONGEST_FILE) throw tooLong(path, LONGEST_FILE);
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
      if (files.length === 0) return;
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
