/** The Docker driver: one container an attempt, from its image to its removal. */

import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import type { Services } from '../../base/services.ts';
import { plural } from '../../base/text/numbers.ts';
import { formatSize, parseDuration, parseSize } from '../../base/text/units.ts';
import {
  type Channels,
  type Container,
  channelAs,
  type OwnConfig,
  openChannels,
  openFolders,
  ownConfig,
} from '../container/container.ts';
import {
  createContainerFactory,
  type Driver,
  type FactoryParts,
  type OpenedContainer,
} from '../container/containerFactory.ts';
import { refuseUnlessAllowed, sealInside } from '../container/sealedHistory.ts';
import { phasesOf } from '../container/setup.ts';
import { createEgressDoor, type EgressDoor, type EgressWays, reachedByProxy } from '../egress/egressDoor.ts';
import {
  type Doorway,
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type HistoryState,
  isLoss,
  type StartRequest,
  type SystemChanges,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EnvironmentOptions } from '../environmentKind.ts';
import { HARNESS } from '../exec/channel.ts';
import type { StartProcess } from '../exec/transport.ts';
import { ownerLabels, WORK_LABELS } from '../owner.ts';
import { engineClient } from '../places/chosenEngine.ts';
import { daemonAnswer, ifThere, readFault, withDaemonRetry } from '../places/dockerFault.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { EnsureImage, ImageFacts } from '../places/imageJobs.ts';
import { createFactoryPulls } from '../places/imageService.ts';
import {
  discardWork,
  FREED_BY,
  removalOf,
  servicesLabel,
  servicesOfWork,
  workLabels,
} from '../places/leftovers.ts';
import { createProgramVolumes, type ProgramVolumes } from '../programs/programVolume.ts';
import { createRelayLine } from '../relay/relayLine.ts';
import { containerFiles, createContainer, type Discard, deathOf, restartContainer } from './container.ts';
import {
  createDiskWatch,
  createQuotaProbe,
  lookAtLayer,
  type QuotaProbe,
  takenBytes,
  writtenBytes,
} from './diskWatch.ts';
import { docker as dockerKind } from './docker.ts';
import { deviceRequests } from './gpus.ts';
import {
  entryLabel,
  entryOf,
  type ImageEntry,
  type RunningEntry,
  sameUser,
  startEntry,
} from './imageEntry.ts';
import { createLoopbackProbe } from './noNetwork.ts';
import { attachedTo, createOwnContainer } from './ownImage.ts';
import { commitContainer, createSealer, type Sealer } from './seal.ts';
import { joinServices, type RunningServices, startServices } from './services.ts';
import { createDemux, processStarter } from './startProcess.ts';
import { emptyFiles, layOver, putBack, readChanges, systemChangesOf } from './systemChanges.ts';
import { startWatch } from './writeWatch.ts';

export interface DockerFactory extends EnvironmentFactory {
  readonly docker: Docker;
}

/** The limit of a caller that has no watch of its own. */
const SHORT_OUTAGE_MS = 30_000;

/** The connection to the engine was cut, whatever the container did meanwhile. */
const cutOff = (error: unknown): boolean =>
  readFault(error).daemonGone ||
  isLoss(error) ||
  (error instanceof EnvironmentError &&
    (readFault(error.cause).daemonGone || (error.code === 'died' && error.evidence.while === HARNESS)));

export function createDockerFactory(
  config: EnvironmentConfig,
  options: DockerFactoryOptions = {},
): DockerFactory {
  const docker = engineClient(options.docker);
  const factory = createContainerFactory({
    ...options,
    kind: 'docker',
    ping: () => docker.ping(),
    outageMs: SHORT_OUTAGE_MS,
    driver: (parts) => dockerDriver(docker, config, options, parts),
  });
  return { ...factory, docker };
}

function dockerDriver(
  docker: Docker,
  config: EnvironmentConfig,
  options: DockerFactoryOptions,
  { watch, discard: removed, inTurn }: FactoryParts,
): Driver {
  const pulls = createFactoryPulls(docker, {
    pull: config.pull,
    platform: config.platform,
    stallMs: config.pull_timeout * 1000,
  });
  const ensureNamed = options.images ?? pulls.ensure;
  const discard: Discard = (container) => {
    const id = container.id.slice(0, 12);
    return removed({
      name: `container ${id}`,
      remove: () => removalOf(container),
      byHand: `docker rm -f ${id}`,
      freedBy: FREED_BY,
    });
  };
  const parked = new Set<RunningServices>();
  const dismiss: DockerShared['dismiss'] = ({ name, remove }) =>
    removed({
      name,
      remove: async () => ((await remove()) ? 'gone' : 'refused'),
      byHand: `docker rm -f $(docker ps -aq --filter label=${servicesLabel(name)})`,
    });
  const shared: DockerShared = {
    docker,
    config,
    options,
    ensure: (image, asks) => ensureNamed(config.image ?? image, asks),
    ensureNamed,
    parked,
    dismiss,
    watch,
    discard,
    inTurn,
    sealer: createSealer(docker),
    programs: createProgramVolumes(docker, discard),
    quotaBytes: createQuotaProbe(docker, config.disk),
    hasLoopback: createLoopbackProbe(docker),
  };
  return {
    open: (request, notes) => openAttempt(shared, request, notes),
    cutOff,
    holdsWork: (image) => holdsWork(docker, image),
    systemChanges: (image) => changesIn(docker, image),
    discardWork: (image) => discardWork(docker, image),
    async close() {
      // Nobody judges what they stayed for any more.
      await Promise.all([...parked].map((services) => dismiss(services)));
      await pulls.close();
    },
  };
}

/** Options of the program that makes a Docker factory, beside the user's configuration. */
export interface DockerFactoryOptions
  extends Pick<
    EnvironmentOptions,
    'onWarning' | 'graceMs' | 'watch' | 'images' | 'quietEnv' | 'snapshot' | 'capAdd' | 'program'
  > {
  /** dockerode's own options (socketPath, host, port...); default: DOCKER_HOST or the standard socket. */
  readonly docker?: Docker.DockerOptions;
  /** Containers started ahead of their slot. */
  readonly maxPrepared?: number;
  /** Milliseconds between looks at the size of the writable layer. */
  readonly diskPollMs?: number;
  /** How the proxy of a list of hosts resolves and connects; default: as this machine does. */
  readonly egress?: EgressWays;
}

/** Parts that all containers of one factory share. */
interface DockerShared<C = EnvironmentConfig> {
  readonly docker: Docker;
  readonly config: C;
  readonly options: DockerFactoryOptions;
  readonly ensure: EnsureImage;
  readonly inTurn: FactoryParts['inTurn'];
  readonly sealer: Sealer;
  readonly quotaBytes: QuotaProbe;
  readonly hasLoopback: ReturnType<typeof createLoopbackProbe>;
  readonly programs: ProgramVolumes;
  readonly watch: EngineWatch;
  readonly discard: Discard;
  /** Gets an image by its own name, whatever `environment.image` says. */
  readonly ensureNamed: EnsureImage;
  /** Services that stay for the verifier of an end state. */
  readonly parked: Set<RunningServices>;
  readonly dismiss: (services: Pick<RunningServices, 'name' | 'remove'>) => Promise<void>;
}

/** A container of the sealed image, beside its services. */
async function openAttempt(
  arm: DockerShared,
  request: StartRequest,
  notes: string[],
): Promise<OpenedContainer> {
  const { signal, owner, container: needs } = request;
  const { docker, options, sealer, programs } = arm;
  const phase = phasesOf(request);
  const image = await arm.ensure(request.image, { signal, waits: () => phase('pull') });
  const { id, architecture } = image;
  // The task's own requests go before the configuration of its arm.
  const facts =
    needs?.cwd === 'image' || needs?.entryArguments
      ? await daemonAnswer(docker.getImage(id).inspect())
      : undefined;
  const folder = facts?.Config.WorkingDir || '/';
  const ofImage = facts && needs?.entryArguments && entryOf(facts);
  const own = ofImage && { ...ofImage, ...(needs.entryProgram && { program: [...needs.entryProgram] }) };
  const runs = own && (own.program.length > 0 || needs.entryAlone);
  const entry = runs ? { own, given: needs.entryArguments ?? [] } : undefined;
  const reached = reachedByProxy(arm.config.network, needs);
  const door =
    reached &&
    (await createEgressDoor(reached, {
      verifies: needs?.verifies === true,
      beside: namesBeside(needs?.services),
      ways: options.egress ?? {},
      onEnd: request.onConnection,
    }));
  const asked = ownConfig(arm.config, needs, folder);
  const config = { ...asked, env: { ...asked.env, ...door?.variables } };
  const shared = { ...arm, config };
  if (config.platform === undefined && !runsHere(architecture))
    notes.push(`the image is for ${architecture}: it runs emulated, if at all`);
  /** Ends the start, unless leaky images are allowed. */
  const unsealed = (reason: string): HistoryState => {
    notes.push(`history failed: ${reason}`);
    refuseUnlessAllowed(config, request, reason);
    return 'failed';
  };
  // Files in a volume are in no image that is made of the container: there each container is sealed for itself.
  const inVolumes = (image.volumes ?? []).length > 0;
  const sealed = config.seal_history && !inVolumes ? await sealedImage(shared, request, image) : undefined;
  let history: HistoryState = sealed?.state ?? 'skipped';
  if (sealed?.state === 'failed') history = unsealed(sealed.reason);
  else if (sealed?.state === 'absent') notes.push(`history absent: ${sealed.reason}`);
  const made = sealed?.state === 'sealed' ? sealed : undefined;
  if (options.program) phase('unpack');
  const program = options.program && (await programs.ensure(options.program, image, owner));

  const startBeside = needs?.services && (await servicesFor(shared, request, needs.services));

  phase('start');
  const from = { ...image, id: made?.image ?? id };
  const beside = await startBeside?.();
  const opened = await openContainer(shared, request, from, notes, {
    program,
    entry,
    beside,
    door,
    worker: needs?.worker,
  }).catch(async (error: unknown) => {
    if (beside) await arm.dismiss(beside);
    throw error;
  });
  const { channels } = opened;
  const container = beside ? withServices(opened.container, beside, arm) : opened.container;
  let entered: RunningEntry | undefined;
  return {
    container,
    channels,
    known: made?.snapshot,
    async ready() {
      await container.put(openFolders(needs));
      await beside?.ready();
      door?.setup();
      await door?.open(container.listen);
      entered = await opened.enter();
      return config;
    },
    async seal() {
      if (made) {
        phase('verify');
        const verified = await sealer.verify(channels.own.harness, config, made, {
          baseCommit: request.baseCommit,
          untouched: !entry && !beside && !request.putBack,
        });
        notes.push(...verified.notes);
        return verified.reason === undefined ? history : unsealed(verified.reason);
      }
      if (!inVolumes) return history;
      phase('seal');
      const asRoot = () => channelAs('0', container, config, channels.own);
      return sealInside(channels.own.harness, config, request, notes, asRoot);
    },
    async check() {
      // By now the ENTRYPOINT had as long as the task's own commands took.
      const failed = await entered?.failure();
      if (failed !== undefined && !entry!.own.worked)
        throw new EnvironmentError(
          'setup_failed',
          `${failed}; start the image by itself to see what it prints`,
        );
      if (failed !== undefined) notes.push(failed);
      await beside?.check();
      const named = config.image ?? request.image;
      return { image: named, imageDigest: image.digest, volumes: volumesOf(image, beside) };
    },
    within(environment) {
      door?.work();
      return door ? door.within(environment) : environment;
    },
  };
}

/** The image is committed from a container of its own: no variable of this run's configuration may be in it for other runs. */
function sealedImage(shared: DockerShared<OwnConfig>, request: StartRequest, image: ImageFacts) {
  const { config, options, sealer } = shared;
  phasesOf(request)('seal');
  const bare = { ...shared, config: { ...config, env: {} }, options: { ...options, quietEnv: false } };
  return sealer.seal(image, config, async () => {
    const { container, channels } = await openContainer(bare, request, image, [], { phase: 'seal' });
    return {
      container,
      channel: channels.own,
      asRoot: () => channelAs('0', container, config, channels.own),
    };
  });
}

const namesBeside = (services: Services | undefined): string[] => [
  ...new Set(services?.containers.flatMap(({ networks }) => networks.flatMap(({ aliases }) => aliases))),
];

/** The way to the services: new ones, whose images are here by then, or those of the end state that the attempt begins in. */
async function servicesFor(
  shared: DockerShared<OwnConfig>,
  request: StartRequest,
  services: Services,
): Promise<() => Promise<RunningServices>> {
  const left = request.image.startsWith(`${WORK_IMAGES}:`)
    ? await servicesOfWork(shared.docker, request.image)
    : undefined;
  if (left !== undefined) return () => joinServices(shared, request, services, left);
  const asks = { signal: request.signal, waits: () => phasesOf(request)('pull') };
  asks.waits();
  const images = new Map<string, string>();
  for (const { image } of services.containers)
    if (!images.has(image)) images.set(image, (await shared.ensureNamed(image, asks)).id);
  return () => startServices(shared, request, services, images);
}

/** The services go with the container, unless a verifier of its end state needs them. */
const withServices = (
  container: Container,
  services: RunningServices,
  { parked, dismiss }: Pick<DockerShared, 'parked' | 'dismiss'>,
): Container => ({
  ...container,
  serviceLogs: services.logs,
  async keep(kept) {
    const image = await container.keep(kept);
    parked.add(services);
    return image;
  },
  async remove() {
    await container.remove();
    if (!parked.has(services)) await dismiss(services);
  },
});

/** Volumes of the image that this container alone has. */
const volumesOf = ({ volumes = [] }: Pick<ImageFacts, 'volumes'>, beside?: RunningServices): string[] =>
  volumes.filter((path) => !beside?.place.mounts.some(({ Target }) => Target === path));

const HERE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', arm: 'arm' };
const runsHere = (architecture: string) =>
  architecture === '' || HERE[process.arch] === undefined || HERE[process.arch] === architecture;

/** A container of another image, which never runs. */
async function withSource<T>(
  { docker, ensure, discard }: DockerShared,
  request: StartRequest,
  image: string,
  use: (source: Docker.Container) => Promise<T>,
): Promise<T> {
  const { id } = await ensure(image, { signal: request.signal, waits: () => request.onPhase?.('pull') });
  const name = `swebatch-source-${randomBytes(6).toString('hex')}`;
  const Labels = ownerLabels(request.owner, request.instanceId, new Date(), name);
  const source = await daemonAnswer(docker.createContainer({ name, Image: id, Cmd: ['true'], Labels }));
  try {
    return await use(source);
  } finally {
    await discard(source);
  }
}

const putBackFrom =
  (
    shared: DockerShared,
    request: StartRequest,
    { image, paths, emptied = [] }: NonNullable<StartRequest['putBack']>,
  ) =>
  async (container: Docker.Container): Promise<void> => {
    if (emptied.length > 0) await emptyFiles(container, emptied);
    if (paths.length > 0)
      await withSource(shared, request, image, (source) => putBack(container, source, paths));
  };

const SUPERVISOR_START_MS = 15_000;

interface OpenContainer {
  readonly container: Container & { readonly handle: Docker.Container };
  readonly channels: Channels;
  /** Starts the ENTRYPOINT, where the task means it to, and waits until that is ready. */
  enter(): Promise<RunningEntry | undefined>;
}

/** A started container with a way to run commands in it; removed again when the latter fails. */
async function openContainer(
  shared: DockerShared<OwnConfig>,
  request: StartRequest,
  image: Pick<ImageFacts, 'id' | 'user' | 'volumes'>,
  notes: string[],
  more: {
    readonly program?: string | undefined;
    readonly entry?: { readonly own: ImageEntry; readonly given: readonly string[] } | undefined;
    readonly beside?: RunningServices | undefined;
    readonly door?: EgressDoor | undefined;
    readonly worker?: string | undefined;
    readonly phase?: string;
  } = {},
): Promise<OpenContainer> {
  const { program: programVolume, entry, beside, door, phase = 'start' } = more;
  const { docker, config, options, quotaBytes, hasLoopback, watch, discard, inTurn } = shared;
  const { quietEnv = true, capAdd = [] } = options;
  const beforeStart = request.putBack && putBackFrom(shared, request, request.putBack);
  const place = beside?.place;
  const gpus = request.container?.gpus ?? 0;
  const devices = gpus > 0 ? await deviceRequests(docker, gpus) : undefined;
  const user = config.user ?? image.user;
  const spec = {
    config,
    devices,
    others: !sameUser(user, 'root') || !sameUser(more.worker, 'root'),
    image: image.id,
    ownLoopback: !place && (await hasLoopback(config.network, user)),
    request,
    quietEnv,
    capAdd,
    programVolume,
    discard,
    beforeStart,
    place,
  };
  const since = watch.mark();
  const handle = await inTurn(request, phase, async () => {
    const storageBytes = await quotaBytes.bytes();
    try {
      return await createContainer(docker, { ...spec, storageBytes });
    } catch (error) {
      if (storageBytes === 0 || !quotaBytes.refused(error)) throw error;
      return createContainer(docker, { ...spec, storageBytes: 0 });
    }
  });
  const lifetimeS = parseDuration(config.container_timeout);
  const starterAs = (user?: string) => processStarter(handle, undefined, watch.suspect, user);
  const startProcess = starterAs();
  let entered: RunningEntry | undefined;
  const enter = async () => {
    entered = entry && (await startEntry(handle, entry.own, entry.given, startProcess));
    return entered;
  };
  const listen: Environment['listen'] = (port, onConnection) =>
    startRelay(shared, handle.id, request, port, onConnection);
  const unkept: Environment['unkept'] = async () => {
    const tooLong = await tooLongToKeep(docker, handle.id, config.disk);
    if (tooLong !== undefined) return { why: tooLong, never: true };
    const volumes = volumesOf(image, beside);
    const why = (what: string) => ({ why: `${what} in no image of its container`, never: false });
    if (volumes.length > 0) return why(`what lies in ${volumes.join(', ')} (VOLUME of its image) is`);
    // Where the program cannot run, nothing is known of them.
    const look = await lookAtLayer(shared, handle, request).catch(() => undefined);
    const files = look?.attributes ?? 0;
    return files > 0 ? why(`access lists or attributes of ${plural(files, 'file')} are`) : undefined;
  };
  const container: OpenContainer['container'] = {
    id: handle.id,
    handle,
    watch,
    capabilities: dockerKind.capabilities,
    supervisorMs: SUPERVISOR_START_MS,
    startProcess,
    async as(user) {
      const { Config } = await withDaemonRetry(() => daemonAnswer(handle.inspect()));
      return sameUser(user, Config.User) ? undefined : starterAs(user);
    },
    ...containerFiles(handle),
    wasCut: (error) => readFault(error).daemonGone,
    death: (evidence) => deathOf({ docker, container: handle, watch, since }, lifetimeS, evidence),
    async restart() {
      await restartContainer(handle);
      // The container's network began anew, and the relay stands in the old one.
      await door?.open(listen);
      await enter();
    },
    watchDisk: createDiskWatch(
      takenBytes(shared, handle, request, parseSize(config.disk)),
      parseSize(config.disk),
      options.diskPollMs,
    ),
    listen,
    async keep({ running = false }) {
      const lent = [...Object.keys(door?.variables ?? {}), ...AGENTS_ALONE];
      const image = await keepWork(docker, handle, { lent, running, disk: config.disk, cwd: config.cwd });
      // The ENTRYPOINT was ended with everything of its user, and a next step of the task may need it.
      if (!running && !(await entered?.runs())) await enter();
      return image;
    },
    // A row is graded by its patch.
    unkept: request.container && !request.container.verifies ? unkept : null,
    systemChanges: () => changesBy(docker, handle),
    async beside(back) {
      if (back) await putBackFrom(shared, request, back)(handle);
      const { Image } = await withDaemonRetry(() => daemonAnswer(handle.inspect()));
      const { Config } = await withDaemonRetry(() => daemonAnswer(docker.getImage(Image).inspect()));
      const named = request.container?.user ?? 'image';
      const user = named === 'image' ? Config.User || '0' : named;
      const env = AGENTS_ALONE.map((name) => ofImage(Config.Env, name));
      const judge =
        (start: StartProcess): StartProcess =>
        (argv, more) =>
          start(argv, { ...more, env: [...env, ...(more?.env ?? [])] });
      return {
        startProcess: judge(starterAs(user)),
        as: async (other) => (sameUser(other, user) ? undefined : judge(starterAs(other))),
      };
    },
    watchWrites: (folders) => startWatch(shared, handle, request, { folders, workdir: config.cwd }),
    serviceLogs: async () => [],
    putBack: (other, path) => withSource(shared, request, other, (source) => layOver(handle, source, path)),
    async remove() {
      await door?.close();
      await discard(handle);
    },
  };
  return { container, channels: await openChannels(container, config, notes, more.worker), enter };
}

// A port inside of a container without network. A second container shares its network namespace and nothing else: the agent can connect to
// the relay there, and can neither see nor end it. The connections come out over the relay's attached streams.

/** `containerId`: the container whose loopback gets the port. */
async function startRelay(
  shared: DockerShared<OwnConfig>,
  containerId: string,
  request: StartRequest,
  port: number,
  onConnection: (connection: Duplex) => void,
): Promise<Doorway> {
  const { docker, inTurn, discard } = shared;
  try {
    // The attempt's phase by then is that of its program.
    return await inTurn(request, 'program', async () => {
      const reach = { NetworkMode: `container:${containerId}` };
      const of = { args: [String(port)], user: '65534:65534', reach };
      const container = await createOwnContainer(docker, 'relay', request, of);
      try {
        return await attachRelay(shared, container, port, onConnection);
      } catch (error) {
        await discard(container);
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

async function attachRelay(
  { watch, discard }: DockerShared,
  container: Docker.Container,
  port: number,
  onConnection: (connection: Duplex) => void,
): Promise<Doorway> {
  const stream = await attachedTo(container);
  const since = watch.mark();
  const line = createRelayLine({
    port,
    onConnection,
    stream,
    async loss(message, said, cause) {
      watch.suspect();
      const { away, ...state } = await stateOf(container);
      const sub = away || watch.awaySince(since) ? 'daemon_lost' : 'relay';
      return new EnvironmentError('died', message, { sub, evidence: { ...state, said }, cause });
    },
    remove: () => discard(container),
  });
  const demux = createDemux((type, data) => (type === 2 ? line.stderr(data) : line.stdout(data)));
  stream.on('data', demux);
  stream.on('error', (error: Error) => line.broke(`the stream to the relay broke: ${error.message}`, error));
  for (const event of ['end', 'close']) stream.on(event, () => line.broke('the relay has ended'));
  await daemonAnswer(container.start());
  return line.opened();
}

/** The engine's word on the relay: for the record, so a failure to get it is none. */
async function stateOf(container: Docker.Container): Promise<Record<string, unknown> & { away: boolean }> {
  try {
    const { State: state } = await daemonAnswer(container.inspect());
    return { away: false, relay: container.id, state: { ...state } };
  } catch (error) {
    const { daemonGone, text } = readFault(error);
    return { away: daemonGone, relay: container.id, daemon: text };
  }
}

// The end state of a container, kept as an image on its engine.

/** A large layer on a slow disk. */
const COMMIT_LIMIT_MS = 600_000;

/** Every bash of a verifier would read the file that it names, which an agent may write. */
const AGENTS_ALONE = ['BASH_ENV'];
/** The variable as the image has it, else empty. */
const ofImage = (env: readonly string[] | null | undefined, name: string): string =>
  env?.find((one) => one.startsWith(`${name}=`)) ?? `${name}=`;

/** The limit where environment.disk is 0: more than people keep, and less than the disk of a machine that runs many. */
const LONGEST_KEPT = '100g';

/**
 * Why no image is made of the container, as a clause. An engine writes holes out: of a sparse file of 50 GB that an agent left it wrote zeros
 * until the disk of the machine was full, and every other run there failed (observed: "a sparse file" in dockerFaults.test.ts).
 */
async function tooLongToKeep(docker: Docker, id: string, disk: string): Promise<string | undefined> {
  const most = parseSize(disk) || parseSize(LONGEST_KEPT);
  const bytes = await writtenBytes(docker, id)();
  return bytes > most
    ? `its files are ${formatSize(bytes)} long with their holes, and an image of more than ${formatSize(most)} is not made (environment.disk)`
    : undefined;
}

/** An image may be removed from under its container. */
const imageUnder = (docker: Docker, name: string) =>
  ifThere(withDaemonRetry(() => daemonAnswer(docker.getImage(name).inspect())));

async function changesBy(docker: Docker, container: Docker.Container): Promise<SystemChanges> {
  const { Image } = await daemonAnswer(container.inspect());
  const image = await imageUnder(docker, Image);
  return systemChangesOf(container, image);
}

/** `lent`: variables that were the container's alone. The image has its own again, or empty ones: a commit cannot take one away. */
export async function keepWork(
  docker: Docker,
  container: Docker.Container,
  {
    lent = [],
    running = false,
    disk = '0',
    cwd,
  }: {
    readonly lent?: readonly string[];
    readonly running?: boolean;
    readonly disk?: string;
    readonly cwd?: string;
  } = {},
): Promise<string> {
  const tag = randomBytes(12).toString('hex');
  const { Config, Image, Created } = await daemonAnswer(container.inspect());
  const image = await imageUnder(docker, Image);
  const entry = image && entryOf(image);
  const changes = await systemChangesOf(container, image, cwd);
  const before = (name: string) => ofImage(image?.Config.Env, name);
  // A process could make a file longer between the look and the commit; rootless Podman on cgroup v1 cannot pause it.
  const stands =
    running &&
    (await daemonAnswer(container.pause()).then(
      () => true,
      () => false,
    ));
  try {
    const tooLong = await tooLongToKeep(docker, container.id, disk);
    if (tooLong !== undefined) throw new EnvironmentError('disk_full', tooLong, { fromWithin: true });
    const committed = commitContainer(container, {
      _query: { repo: WORK_IMAGES, tag, comment: 'work of an agent' },
      _body: {
        ...(lent.length > 0 && { Env: lent.map(before) }),
        // The agent's user may be another than the verifier's.
        ...(entry && { User: entry.user }),
        Labels: {
          ...workLabels(container.id, Config.Labels ?? {}),
          [WORK_LABELS.changes]: JSON.stringify(changes),
          [WORK_LABELS.since]: Created,
          ...(entry && { [WORK_LABELS.entry]: entryLabel(entry) }),
        },
      },
    });
    await daemonAnswer(committed, COMMIT_LIMIT_MS);
  } finally {
    if (stands) await daemonAnswer(container.unpause());
  }
  return `${WORK_IMAGES}:${tag}`;
}

const holdsWork = async (docker: Docker, image: string): Promise<boolean> =>
  (await ifThere(daemonAnswer(docker.getImage(image).inspect()))) !== undefined;

async function changesIn(docker: Docker, image: string): Promise<SystemChanges | undefined> {
  const { Config } = await daemonAnswer(docker.getImage(image).inspect());
  return readChanges(Config.Labels?.[WORK_LABELS.changes]);
}
