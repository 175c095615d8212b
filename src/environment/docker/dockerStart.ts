/** The way from an image to an environment the agent may use: image, sealed image, container, setup, verification, snapshot. */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import type { LimitFunction } from 'p-limit';
import { parseDuration, parseSize } from '../../base/text/units.ts';
import { type Container, environmentIn, openChannel, ownConfig } from '../container/container.ts';
import { refuseUnlessAllowed, verifySealed } from '../container/sealedHistory.ts';
import { phasesOf, setUp } from '../container/setup.ts';
import type { Environment, HistoryState, StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EnvironmentOptions } from '../environmentKind.ts';
import type { Channel } from '../exec/channel.ts';
import { ownerLabels } from '../owner.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { EnsureImage } from '../places/pullStage.ts';
import type { ProgramVolumes } from '../programs/programVolume.ts';
import { createContainer, type Discard, deathOf } from './container.ts';
import { containerFiles } from './containerFiles.ts';
import { createDiskWatch, type QuotaProbe } from './diskWatch.ts';
import { startRelay } from './relayContainer.ts';
import type { Sealer } from './seal.ts';
import { processStarter } from './startProcess.ts';
import { putBack } from './systemChanges.ts';
import { keepWork } from './workImages.ts';

/** What a program sets when it makes a Docker factory, beside the user's configuration. */
export interface DockerFactoryOptions
  extends Pick<EnvironmentOptions, 'onWarning' | 'watch' | 'quietEnv' | 'snapshot' | 'capAdd' | 'program'> {
  /** dockerode's own options (socketPath, host, port...); default: DOCKER_HOST or the standard socket. */
  readonly docker?: Docker.DockerOptions;
  /** How long an engine is waited for by a factory without a watch of its own; default: half a minute. */
  readonly outageMs?: number;
  /** Who brings images here, with a pull policy of its own; default: this factory, by the configured policy. */
  readonly images?: EnsureImage | undefined;
  /** Containers started ahead of their slot. */
  readonly maxPrepared?: number;
  /** Milliseconds between looks at the size of the writable layer. */
  readonly diskPollMs?: number;
}

/** What all containers of one factory share. */
interface DockerShared {
  readonly docker: Docker;
  readonly config: EnvironmentConfig;
  readonly options: DockerFactoryOptions;
  readonly ensure: EnsureImage;
  readonly starting: LimitFunction;
  readonly sealer: Sealer;
  readonly quotaBytes: QuotaProbe;
  readonly programs: ProgramVolumes;
  readonly watch: EngineWatch;
  readonly discard: Discard;
}

export async function startEnvironment(arm: DockerShared, request: StartRequest): Promise<Environment> {
  const { signal, owner, container: needs } = request;
  const { docker, options, sealer, programs } = arm;
  const phase = phasesOf(request);
  phase('pull');
  const image = await arm.ensure(request.image, { signal });
  const { id, architecture } = image;
  // What the task itself asks for goes before the configuration of its arm.
  const folder =
    needs?.cwd === 'image' ? (await docker.getImage(id).inspect()).Config.WorkingDir || '/' : undefined;
  const config = ownConfig(arm.config, needs, folder);
  const shared = { ...arm, config };
  const notes: string[] = [];
  if (config.platform === undefined && !runsHere(architecture))
    notes.push(`the image is for ${architecture}: it runs emulated, if at all`);
  let history: HistoryState = 'skipped';
  /** Ends the start, unless leaky images are allowed. */
  const unsealed = (reason: string) => {
    history = 'failed';
    notes.push(`history failed: ${reason}`);
    refuseUnlessAllowed(config, request, reason);
  };
  let sealed: Awaited<ReturnType<Sealer['seal']>> | undefined;
  if (config.seal_history) {
    phase('seal');
    // The image is committed from this container: no variable of this run's configuration may be in it for other runs.
    const bare = { ...shared, config: { ...config, env: {} }, options: { ...options, quietEnv: false } };
    sealed = await sealer.seal(image, config, () => openContainer(bare, request, id, []));
    history = sealed.state;
    if (sealed.state === 'failed') unsealed(sealed.reason);
    else if (sealed.state === 'absent') notes.push(`history absent: ${sealed.reason}`);
  }
  const made = sealed?.state === 'sealed' ? sealed : undefined;
  if (options.program) phase('unpack');
  const program = options.program && (await programs.ensure(options.program, image, owner));

  phase('start');
  const { container, channel } = await openContainer(shared, request, made?.image ?? id, notes, program);
  try {
    if (made) {
      phase('verify');
      const verified = await verifySealed(channel.harness, config, made.fingerprint, request.baseCommit);
      notes.push(...verified.notes);
      if (verified.reason !== undefined) unsealed(verified.reason);
    }
    const known = made?.snapshot;
    const snapshot = await setUp(channel, config, request, { snapshot: options.snapshot, known });
    signal?.throwIfAborted();
    const info = {
      kind: 'docker',
      containerId: container.id,
      image: config.image ?? request.image,
      imageDigest: image.digest,
      transport: channel.transport,
      history,
      notes,
    };
    return environmentIn({ container, channel, config, info, snapshot });
  } catch (error) {
    channel.close();
    await container.remove();
    throw error;
  }
}

const HERE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', arm: 'arm' };
const runsHere = (architecture: string) =>
  architecture === '' || HERE[process.arch] === undefined || HERE[process.arch] === architecture;

/** From a container of the other image, which never runs. */
const putBackFrom =
  (
    { docker, ensure, discard }: DockerShared,
    request: StartRequest,
    { image, paths }: NonNullable<StartRequest['putBack']>,
  ) =>
  async (container: Docker.Container): Promise<void> => {
    const { id } = await ensure(image, { signal: request.signal });
    const name = `swebatch-source-${randomBytes(6).toString('hex')}`;
    const Labels = ownerLabels(request.owner, request.instanceId, new Date(), name);
    const source = await daemonAnswer(docker.createContainer({ name, Image: id, Cmd: ['true'], Labels }));
    try {
      await putBack(container, source, paths);
    } finally {
      await discard(source);
    }
  };

const SUPERVISOR_START_MS = 15_000;

interface OpenContainer {
  readonly container: Container & { readonly handle: Docker.Container };
  readonly channel: Channel;
}

/** A started container with a way to run commands in it; removed again when the latter fails. */
async function openContainer(
  shared: DockerShared,
  request: StartRequest,
  image: string,
  notes: string[],
  programVolume?: string,
): Promise<OpenContainer> {
  const { docker, config, options, quotaBytes, watch, discard, starting } = shared;
  const { quietEnv = true, capAdd = [] } = options;
  const beforeStart = request.putBack && putBackFrom(shared, request, request.putBack);
  const spec = { config, image, request, quietEnv, capAdd, programVolume, watch, discard, beforeStart };
  const since = watch.mark();
  const handle = await starting(async () => {
    const storageBytes = await quotaBytes.bytes();
    try {
      return await createContainer(docker, { ...spec, storageBytes });
    } catch (error) {
      if (storageBytes === 0 || !quotaBytes.refused(error)) throw error;
      return createContainer(docker, { ...spec, storageBytes: 0 });
    }
  });
  const lifetimeS = parseDuration(config.container_timeout);
  const relay = { docker, containerId: handle.id, request, starting, watch, discard };
  const container: OpenContainer['container'] = {
    id: handle.id,
    handle,
    watch,
    supervisorMs: SUPERVISOR_START_MS,
    startProcess: processStarter(handle, undefined, watch.suspect),
    ...containerFiles(handle),
    wasCut: (error) => readFault(error).daemonGone,
    death: (evidence) => deathOf({ docker, container: handle, watch, since }, lifetimeS, evidence),
    async restart() {
      await daemonAnswer(handle.restart({ t: 0 }));
    },
    watchDisk: createDiskWatch(handle, parseSize(config.disk), options.diskPollMs),
    listen: (port, onConnection) => startRelay({ ...relay, port, onConnection }),
    keep: () => keepWork(handle),
    remove: () => discard(handle),
  };
  return { container, channel: await openChannel(container, config, notes) };
}
