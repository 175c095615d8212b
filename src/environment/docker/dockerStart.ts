/** The way from an image to an environment the agent may use: image, sealed image, container, setup, verification, snapshot. */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import type { createSemaphore } from '../../base/async/semaphore.ts';
import { parseDuration, parseSize } from '../../base/text/units.ts';
import type { EnvironmentConfig } from '../config.ts';
import { type Environment, EnvironmentError, type HistoryState, type StartRequest } from '../environment.ts';
import { type Channel, type ContainerControl, createChannel } from '../exec/channel.ts';
import { createPlainExecTransport } from '../exec/plainExec.ts';
import { createSupervisorTransport } from '../exec/supervisor.ts';
import type { Transport } from '../exec/transport.ts';
import type { ImageFacts } from '../images/ensureImage.ts';
import { type GitSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { keepTree, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import { createContainer, deathOf, putFile, removeContainer } from './container.ts';
import type { QuotaProbe } from './diskQuota.ts';
import { createDiskWatch } from './diskWatch.ts';
import { environmentOf } from './dockerEnvironment.ts';
import type { DockerFactoryOptions } from './dockerOptions.ts';
import { type Sealer, type SealRoom, verifySealed } from './seal.ts';

export interface DockerShared {
  readonly docker: Docker;
  readonly config: EnvironmentConfig;
  readonly options: DockerFactoryOptions;
  readonly ensure: (image: string, more?: { signal?: AbortSignal }) => Promise<ImageFacts>;
  readonly starting: ReturnType<typeof createSemaphore>;
  readonly sealer: Sealer;
  readonly quotaBytes: QuotaProbe;
  /** The factory's close waits for what is tracked. */
  track(removal: Promise<unknown>): void;
}

const SUPERVISOR_START_MS = 15_000;

export async function startEnvironment(shared: DockerShared, request: StartRequest): Promise<Environment> {
  const { config, options } = shared;
  const { signal } = request;
  const phase = (name: string) => {
    signal?.throwIfAborted();
    request.onPhase?.(name);
  };

  phase('pull');
  const image = await shared.ensure(request.image, signal ? { signal } : {});
  const notes: string[] = [];
  if (config.platform === undefined && !runsHere(image.architecture))
    notes.push(`the image is for ${image.architecture}: it runs emulated, if at all`);

  const sealed = config.seal_history ? await seal(shared, request, image, phase) : undefined;
  let history: HistoryState = 'skipped';
  if (sealed?.state === 'failed') history = 'failed';
  else if (sealed) history = sealed.state;
  if (sealed && sealed.state !== 'sealed') notes.push(`history ${sealed.state}: ${sealed.reason}`);
  if (sealed?.state === 'failed') refuseUnlessAllowed(config, request, sealed.reason);

  phase('start');
  const place = await openContainer(
    shared,
    request,
    sealed?.state === 'sealed' ? sealed.image : image.id,
    notes,
  );
  const { container, channel, run } = place;
  try {
    if (sealed?.state === 'sealed') {
      phase('verify');
      const verified = await verifySealed(run, config, sealed.fingerprint, request.baseCommit);
      notes.push(...verified.notes);
      if (verified.reason !== undefined) {
        history = 'failed';
        notes.push(`history failed: ${verified.reason}`);
        refuseUnlessAllowed(config, request, verified.reason);
      }
    }
    if (request.startupCommand) {
      phase('setup');
      await runSetup(channel, config, request.startupCommand, signal);
    }
    let snapshot: GitSnapshot | TreeSnapshot | undefined;
    if (options.snapshot ?? true) {
      phase('snapshot');
      const ready = sealed?.state === 'sealed' && !request.startupCommand ? sealed.snapshot : undefined;
      const name = randomBytes(6).toString('hex');
      snapshot =
        ready ??
        (await takeSnapshot(run, config.cwd, name, config.capture_timeout)) ??
        (await keepTree(run, config.cwd, name, config.capture_timeout));
    }
    signal?.throwIfAborted();
    return environmentOf({
      config,
      channel,
      container,
      run,
      snapshot,
      remove: place.remove,
      info: {
        kind: 'docker',
        containerId: container.id,
        image: config.image ?? request.image,
        imageDigest: image.digest,
        transport: channel.transport,
        history,
        notes,
      },
    });
  } catch (error) {
    channel.close();
    await place.remove();
    throw error;
  }
}

const HERE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', arm: 'arm' };
const runsHere = (architecture: string) =>
  architecture === '' || HERE[process.arch] === undefined || HERE[process.arch] === architecture;

function refuseUnlessAllowed(config: EnvironmentConfig, request: StartRequest, reason: string): void {
  if (config.allow_leaky) return;
  throw new EnvironmentError(
    'history_unsealed',
    `the history of ${request.instanceId} could not be sealed: ${reason}. Fix the image, or set environment.allow_leaky (the run is then not submittable)`,
    { evidence: { reason } },
  );
}

async function seal(
  shared: DockerShared,
  request: StartRequest,
  image: ImageFacts,
  phase: (name: string) => void,
) {
  phase('seal');
  return shared.sealer.seal(image, async (): Promise<SealRoom> => {
    // The image is committed from this container: no variable of this run's configuration may be in it for other runs.
    const bare: DockerShared = {
      ...shared,
      config: { ...shared.config, env: {} },
      options: { ...shared.options, quietEnv: false },
    };
    const place = await openContainer(bare, request, image.id, []);
    return {
      container: place.container,
      run: place.run,
      settle: () => place.channel.killAll(),
      close: async () => {
        place.channel.close();
        await place.remove();
      },
    };
  });
}

async function runSetup(
  channel: Channel,
  config: EnvironmentConfig,
  command: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const done = await channel.execute(command, {
    timeoutS: config.start_timeout,
    ...(signal ? { signal } : {}),
  });
  if (done.exitCode === 0) return;
  const tail = done.output.slice(-400).trim();
  throw new EnvironmentError(
    'setup_failed',
    `setup failed (rc ${done.exitCode}): ${[done.exceptionInfo, tail].filter(Boolean).join(' ') || 'no output'}`,
    { evidence: { exitCode: done.exitCode, timedOut: done.timedOut, output: done.output.slice(-2000) } },
  );
}

interface Place {
  readonly container: Docker.Container;
  readonly channel: Channel;
  readonly run: ScriptRunner;
  remove(): Promise<void>;
}

/** A started container with a way to run commands in it; removed again when the latter fails. */
async function openContainer(
  shared: DockerShared,
  request: StartRequest,
  image: string,
  notes: string[],
): Promise<Place> {
  const { docker, config, options, quotaBytes } = shared;
  const spec = { config, image, request, quietEnv: options.quietEnv ?? true, capAdd: options.capAdd ?? [] };
  const create = async () => {
    const storageBytes = await quotaBytes.bytes();
    try {
      return await createContainer(docker, { ...spec, storageBytes });
    } catch (error) {
      if (storageBytes === 0 || !quotaBytes.refused(error)) throw error;
      return createContainer(docker, { ...spec, storageBytes: 0 });
    }
  };
  const container = await shared.starting(create);
  const remove = async () => {
    const removal = removeContainer(container).then((gone) => {
      if (!gone) options.onWarning?.(`container ${container.id.slice(0, 12)} could not be removed`);
    });
    shared.track(removal);
    await removal;
  };
  try {
    const channel = await openChannel(container, config, options.diskPollMs, notes);
    return { container, channel, run: (script, more) => channel.harness(script, more), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function openChannel(
  container: Docker.Container,
  config: EnvironmentConfig,
  diskPollMs: number | undefined,
  notes: string[],
): Promise<Channel> {
  const control: ContainerControl = {
    death: (evidence) => deathOf(container, parseDuration(config.container_timeout), evidence),
    restart: async () => {
      await container.restart({ t: 0 });
    },
    watchDisk: createDiskWatch(container, parseSize(config.disk), diskPollMs),
  };
  const configured = config.start_timeout > 0 ? config.start_timeout * 1000 : Number.POSITIVE_INFINITY;
  let transport: Transport | undefined;
  if (config.supervisor) {
    try {
      transport = await createSupervisorTransport(
        container,
        config.interpreter,
        Math.min(configured, SUPERVISOR_START_MS),
      );
    } catch (error) {
      const death = await control.death({ while: 'starting the supervisor' });
      if (death)
        throw new EnvironmentError('start_failed', death.message, {
          evidence: { ...death.evidence },
          cause: error,
        });
      const text = error instanceof Error ? error.message : String(error);
      notes.push(`plain exec instead of the supervisor: ${text}`);
    }
  }
  transport ??= await createPlainExecTransport(container, config.interpreter, {
    putFile: (path, content) => putFile(container, path, content, 0o644),
  });
  return createChannel(transport, config, control);
}
