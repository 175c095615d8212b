/**
 * A container of any engine: a thing in which one may exec, copy in and copy out, and which can be removed. An engine brings a driver; how
 * commands run in it and how it becomes the environment of an agent is the same for all of them.
 */

import { posix } from 'node:path';
import tar from 'tar-stream';
import { isAllowList } from '../../base/allowList.ts';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { errorText } from '../../base/text/errorText.ts';
import { parseDuration } from '../../base/text/units.ts';
import { completeEnvironment } from '../capabilities.ts';
import {
  type CapturedPatch,
  type CaptureOptions,
  type Doorway,
  type Environment,
  EnvironmentError,
  type EnvironmentInfo,
  FilesTooLargeError,
  isLoss,
  type PlacedFile,
  type ReasonNotKept,
  type StartRequest,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { type Channel, createChannel } from '../exec/channel.ts';
import { createPlainExecTransport } from '../exec/plainExec.ts';
import { createSupervisorTransport } from '../exec/supervisor.ts';
import { NO_ANSWER } from '../exec/supervisorSession.ts';
import type { ContainerControl, StartProcess, Transport } from '../exec/transport.ts';
import { diffSnapshot, type GitSnapshot } from '../patch/capture.ts';
import { diffTrees, type ReadFolder, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { shellScript } from '../shellScript.ts';
import { unameVars } from '../uname.ts';

export type Death = ContainerControl['death'];

/** The work of an engine's driver. Files are named by absolute paths inside. */
export interface Container extends ContainerControl {
  readonly id: string;
  /** The watch of the container's engine. */
  readonly watch: Pick<EngineWatch, 'mark' | 'awaySince'>;
  readonly startProcess: StartProcess;
  /** The capabilities of the container's environment: `as`, `keep`, `beside` and `listen` are never called where they lack them. */
  readonly capabilities: Environment['capabilities'];
  /** How processes are started as another user; undefined where those of `startProcess` run as that user. */
  as(user: string): Promise<StartProcess | undefined>;
  /** How long a supervisor may take to answer at first; when a longer wait has no answer either, plain exec serves. */
  readonly supervisorMs: number;
  /** Whether the engine dropped the connection, which says nothing about the image. */
  wasCut(error: unknown): boolean;
  put(files: readonly (PlacedFile & { readonly uid?: number })[]): Promise<void>;
  /** Undefined where nothing is there. */
  getFile(path: string): Promise<Uint8Array | undefined>;
  /**
   * The path as an archive, whose names begin with the last part of the path. `read` begins again when the engine was away meanwhile.
   * Undefined where nothing is there.
   */
  read<T>(
    path: string,
    read: (archive: tar.Extract) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T | undefined>;
  readonly listen: Environment['listen'];
  /** The file system as an image. */
  keep(kept: CaptureOptions): Promise<string>;
  /** The engine's own answer. Null where nobody asks: to be able to answer costs a command at the start. */
  readonly unkept: Environment['unkept'] | null;
  readonly systemChanges: Environment['systemChanges'];
  /** How processes are started for somebody else. */
  beside(putBack: StartRequest['putBack']): Promise<Pick<Container, 'startProcess' | 'as'>>;
  readonly watchWrites: Environment['watchWrites'];
  readonly putBack: Environment['putBack'];
  /** Logs of the services beside the container. */
  readonly serviceLogs: Environment['serviceLogs'];
  /** Never rejects. */
  remove(): Promise<void>;
}

export interface Channels {
  /** The channel of the container's user, for our own scripts. */
  readonly own: Channel;
  /** The channel of the agent, where that is another user. */
  readonly worker?: Channel | undefined;
}

/** Removes the container when no command can be started in it. `worker`: the agent's user, where the task names one. */
export async function openChannels(
  container: Container,
  config: EnvironmentConfig,
  notes: string[],
  worker?: string,
): Promise<Channels> {
  let own: Channel | undefined;
  try {
    own = await openChannel(container, config, notes);
    return {
      own,
      worker: worker === undefined ? undefined : await channelAs(worker, container, config, own),
    };
  } catch (error) {
    own?.close();
    await container.remove();
    throw error;
  }
}

/** Commands go by a supervisor inside, or by one exec each where that cannot run. */
async function openChannel(
  container: Container,
  config: EnvironmentConfig,
  notes: string[],
): Promise<Channel> {
  const transport =
    (config.supervisor ? await supervise(container, config, notes) : undefined) ??
    (await createPlainExecTransport(container.startProcess, config.interpreter, putScript(container)));
  return createChannel(transport, config, container);
}

/**
 * Commands as another user, each by a process of the engine's: nothing of ours runs as that user between them. Undefined where the container's
 * own run as that user.
 */
export async function channelAs(
  user: string,
  container: Container,
  config: EnvironmentConfig,
  own: Pick<Channel, 'reset'>,
): Promise<Channel | undefined> {
  try {
    const startProcess = await container.as(user);
    if (!startProcess) return undefined;
    const transport = await createPlainExecTransport(startProcess, config.interpreter, putScript(container));
    const { restart } = container;
    return createChannel(transport, config, {
      ...container,
      restart:
        restart &&
        (async () => {
          own.reset();
          await restart();
        }),
    });
  } catch (error) {
    const death = await container.death({ while: `starting a command as ${user}` });
    if (death || isLoss(error)) throw death ?? error;
    throw new EnvironmentError(
      'start_failed',
      `no command can be started as the user ${user}, whom the task names: ${errorText(error)}`,
      { cause: error },
    );
  }
}

const putScript = (container: Pick<Container, 'put'>) => (path: string, content: string, uid: number) =>
  container.put([{ path, content: Buffer.from(content), mode: 0o644, uid }]);

/**
 * A supervisor that cannot run says so, as a rule at once: only a machine that is drowning makes a second try that long
 * (observed: tests/environment/lateSupervisor.test.ts).
 */
const LAST_TRY = 4;

/** Undefined, with a note why, where the container is alive and cannot run a supervisor. */
async function supervise(
  container: Container,
  config: EnvironmentConfig,
  notes: string[],
  again = true,
): Promise<Transport | undefined> {
  const configured = config.start_timeout > 0 ? config.start_timeout * 1000 : Number.POSITIVE_INFINITY;
  try {
    const timeoutMs = Math.min(
      configured,
      again ? container.supervisorMs : container.supervisorMs * LAST_TRY,
    );
    return await createSupervisorTransport(container.startProcess, config.interpreter, timeoutMs);
  } catch (error) {
    const text = errorText(error);
    const death = await container.death({ while: 'starting the supervisor', error: text });
    if (death?.sub === 'daemon_lost') throw death;
    if (death)
      throw new EnvironmentError('start_failed', death.message, {
        evidence: { ...death.evidence },
        cause: error,
      });
    if (again && (text.endsWith(NO_ANSWER) || container.wasCut(error)))
      return supervise(container, config, notes, false);
    notes.push(`plain exec instead of the supervisor: ${text}`);
    return undefined;
  }
}

/** A started container behind the Environment contract, which the agent and the runner hold. */
export async function environmentIn(
  container: Container,
  { own, worker }: Channels,
  config: EnvironmentConfig,
  snapshot: GitSnapshot | TreeSnapshot | undefined,
  info: EnvironmentInfo,
): Promise<Environment> {
  const { watch, capabilities, unkept } = container;
  let closing: Promise<void> | undefined;
  const doorways: Doorway[] = [];
  const names = unkept && (await seenInside(own, 'names')).names;
  // Processes of another user, as of the ENTRYPOINT, are not the agent's and go on.
  const { execute, killAll } = worker ?? own;
  const others = new Map<string, Promise<Channel>>();
  const channelOf = (user: string): Promise<Channel> => {
    const known = others.get(user) ?? channelAs(user, container, config, own).then((other) => other ?? own);
    others.set(user, known);
    known.catch(() => others.delete(user));
    return known;
  };
  /** Work that fails because the container is gone rejects with its death. */
  const orDeath = async <T>(work: Promise<T>, what = 'moving a file'): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw (await container.death({ while: what })) ?? error;
    }
  };
  const readFolder: ReadFolder = async (folder, read, signal) =>
    (await container.read(folder, read, signal)) ?? missing(folder);
  const capture = async ({ running = false, beside = [] }: CaptureOptions): Promise<CapturedPatch> => {
    const limits = { timeoutS: config.capture_timeout, maxBytes: config.max_patch_bytes, beside };
    if (!running) await killAll();
    return snapshot!.kind === 'copy'
      ? orDeath(diffTrees(readFolder, snapshot!, config.cwd, limits))
      : diffSnapshot(own.harness, snapshot!, config.cwd, limits, (path) =>
          container.getFile(path).then((content) => content ?? missing(path)),
        );
  };
  return completeEnvironment({
    info,
    capabilities,
    execute,
    as: (user) => ({
      execute: async (command, options) => (await channelOf(user)).execute(command, options),
    }),
    templateVars: () => ({
      ...unameVars(),
      cwd: config.cwd,
      timeout: config.timeout,
      interpreter: config.interpreter,
      env: config.env,
      image: info.image,
      environment_class: info.kind,
      system: 'Linux',
    }),
    async capturePatch(kept = {}) {
      if (!snapshot)
        return { patch: new Uint8Array(0), state: 'invalid', warnings: ['no start snapshot was taken'] };
      const since = watch.mark();
      try {
        return await capture(kept);
      } catch (error) {
        // The engine was away and the container outlived that: its work is still there.
        if (isLoss(error) || !watch.awaySince(since)) throw error;
        return capture(kept);
      }
    },
    putFile: (path, content, mode = 0o644) =>
      orDeath(
        posix.isAbsolute(path)
          ? container.put([{ path, content: Buffer.from(content), mode }])
          : Promise.reject(new Error(`putFile needs an absolute path, got ${path}`)),
      ),
    getFile: (path) => orDeath(container.getFile(path).then((content) => content ?? missing(path))),
    putFiles: async (files) => (files.length > 0 ? orDeath(container.put(files)) : undefined),
    getFiles: (path, maxBytes, whole) => orDeath(filesAt(container, path, maxBytes, whole)),
    putBack: (image, path) => orDeath(container.putBack(image, path)),
    watchWrites: (folders) => orDeath(container.watchWrites(folders)),
    serviceLogs: container.serviceLogs,
    async keepWork(kept = {}) {
      if (!kept.running) await killAll();
      return orDeath(container.keep(kept), 'keeping the work');
    },
    unkept: async () =>
      unkept
        ? ((await orDeath(unkept(), 'looking at what can be kept')) ?? unkeptInside(own, names ?? ''))
        : undefined,
    systemChanges: () => orDeath(container.systemChanges(), 'listing what was changed'),
    leftRunning: own.left,
    async beside(putBack) {
      const started = await orDeath(container.beside(putBack), 'opening it for a verifier');
      // The agent may have reached the supervisor.
      const { startProcess } = started;
      const transport = await createPlainExecTransport(
        startProcess,
        config.interpreter,
        putScript(container),
      );
      const same: Container = {
        ...{ ...container, ...started, unkept: null, remove: async () => {} },
        capabilities: { ...capabilities, canKeepWork: false, worksBeside: false },
      };
      const channels = { own: createChannel(transport, config, same) };
      const told = { ...info, transport: transport.name };
      return { ...(await environmentIn(same, channels, config, undefined, told)), runsBeside: true };
    },
    async listen(port, onConnection) {
      const doorway = await orDeath(container.listen(port, onConnection), 'opening a port');
      // A doorway that comes after the end is closed.
      if (closing !== undefined) await doorway.close();
      doorways.push(doorway);
      return doorway;
    },
    close() {
      closing ??= (async () => {
        own.close();
        worker?.close();
        for (const other of others.values())
          void other.then((channel) => channel.close()).catch(() => undefined);
        await Promise.all(doorways.map((doorway) => doorway.close()));
        await container.remove().catch(() => undefined);
      })();
      return closing;
    },
  });
}

const UNKEPT = shellScript('unkept.sh', import.meta.url);
const UNKEPT_LIMIT_S = 60;

/** The word of a script inside: an agent that silences it hides its own work. `only`: the names alone. */
async function seenInside(own: Channel, only = ''): Promise<{ names: string; memory: string[] }> {
  const { output, code } = await own.harness(UNKEPT, { timeoutS: UNKEPT_LIMIT_S, env: { ONLY: only } });
  const lines = code === 0 ? output.split('\n') : [];
  const after = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  return { names: after('names')[0] ?? '', memory: after('memory') };
}

/** `names`: the files of names as they were before anybody worked there. */
async function unkeptInside(own: Channel, names: string): Promise<ReasonNotKept | undefined> {
  const now = await seenInside(own);
  const what = [
    ...(now.names === names || now.names === '' ? [] : ['/etc/hosts, /etc/hostname or /etc/resolv.conf']),
    ...(now.memory.length === 0 ? [] : [`memory (${now.memory.join(', ')})`]),
  ];
  return what.length === 0
    ? undefined
    : { why: `what is changed in ${what.join(' and in ')} is in no image of its container`, never: false };
}

/** The open folders of a task and those above them, so that a link or a file of the image becomes a folder. */
export const openFolders = ({ openFolders: paths = [] }: ContainerNeeds = {}): PlacedFile[] => {
  const above = paths
    .map((path) => posix.dirname(path))
    .filter((path) => path !== '/' && !paths.includes(path));
  const folder = (path: string, mode: number) => ({ path, mode, content: NOTHING, kind: 'folder' }) as const;
  return [
    ...[...new Set(above)].map((path) => folder(path, 0o755)),
    ...paths.map((path) => folder(path, 0o777)),
  ];
};

/** Files as an archive that is extracted at the root. */
export async function archiveOf(files: Parameters<Container['put']>[0]): Promise<Buffer> {
  const pack = tar.pack();
  const whole = wholeOf(pack);
  for (const { path, content, mode, uid, kind, target } of files) {
    const entry = { name: posix.normalize(path).slice(1), mode, ...(uid !== undefined && { uid }) };
    if (kind === undefined) pack.entry(entry, Buffer.from(content));
    else if (kind === 'folder') pack.entry({ ...entry, type: 'directory' });
    else if (kind === 'link') pack.entry({ ...entry, type: 'symlink', linkname: target! });
    else pack.entry({ ...entry, type: 'link', linkname: target!.slice(1) });
  }
  pack.finalize();
  return whole;
}

export async function wholeOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) if (Buffer.isBuffer(part)) parts.push(part);
  return Buffer.concat(parts);
}

function missing(path: string): never {
  throw Object.assign(new Error(`no file ${path} in the container`), { code: 'ENOENT' });
}

/** The limit of one file that is read whole. */
export const LONGEST_FILE = 512 * 2 ** 20;
export const tooLong = (path: string, mostBytes: number): FilesTooLargeError =>
  new FilesTooLargeError(`${path} holds more than ${Math.floor(mostBytes / 2 ** 20)} MB`);

const KINDS: Readonly<Record<string, NonNullable<PlacedFile['kind']>>> = {
  directory: 'folder',
  symlink: 'link',
  link: 'hardlink',
};
const NOTHING = new Uint8Array(0);
/** A name, a folder and a link need no bytes, and many of them are as much as a file. */
const NAME_BYTES = 512;

async function filesAt(
  container: Container,
  path: string,
  maxBytes: number,
  whole = false,
): Promise<PlacedFile[]> {
  const above = posix.dirname(posix.normalize(path));
  const inside = (name: string) => posix.join(above, posix.normalize(`/${name}`)).replace(/\/$/, '');
  const read = async (archive: tar.Extract) => {
    const files: PlacedFile[] = [];
    let left = maxBytes;
    for await (const entry of archive) {
      const { name, type, size = 0, mode = 0o644, linkname = '' } = entry.header;
      const kind = whole ? KINDS[type ?? ''] : undefined;
      left -= kind ? NAME_BYTES : size;
      if (left < 0) throw tooLong(path, maxBytes);
      if (type === 'file') files.push({ path: inside(name), content: await wholeOf(entry), mode });
      else entry.resume();
      if (kind)
        files.push({
          ...{ path: inside(name), content: NOTHING, mode, kind },
          ...(kind !== 'folder' && { target: kind === 'link' ? linkname : inside(linkname) }),
        });
    }
    return files;
  };
  return (await container.read(path, read)) ?? [];
}

/** The configuration of one container, whose network is the engine's. */
export type OwnConfig = EnvironmentConfig & { readonly network: string };

/** `imageFolder`: the folder of `cwd: image`. A container that reaches hosts of a list has no network of the engine's. */
export function ownConfig(
  configured: EnvironmentConfig,
  needs: ContainerNeeds | undefined,
  imageFolder = '/',
): OwnConfig {
  const config = { ...configured, network: isAllowList(configured.network) ? 'none' : configured.network };
  if (!needs) return config;
  const { cwd, user, network, openNetwork, memoryMb, cpus, diskMb, env, lifetimeS } = needs;
  const named = openNetwork ?? config.network;
  const open = named === 'none' ? 'bridge' : named;
  return {
    ...config,
    ...(cwd !== undefined && { cwd: cwd === 'image' ? imageFolder : cwd }),
    ...(user !== undefined && { user: user === 'image' ? undefined : user }),
    ...(network !== undefined && { network: network === 'public' ? open : 'none' }),
    ...(memoryMb !== undefined && { memory: `${memoryMb}m` }),
    ...(cpus !== undefined && { cpus }),
    ...(diskMb !== undefined && { disk: `${diskMb}m` }),
    ...(env !== undefined && { env: { ...config.env, ...env } }),
    ...(lifetimeS !== undefined && { container_timeout: longer(config.container_timeout, lifetimeS) }),
  };
}

/** The longer of two limits; 0 is no limit. */
function longer(configured: string | number, asked: number): string | number {
  const seconds = parseDuration(configured);
  return seconds === 0 || seconds >= asked ? configured : asked;
}
