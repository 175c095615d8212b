/** The way from an image to an environment the agent may use: image, sealed image, container, setup, verification, snapshot. */
import { randomBytes } from 'node:crypto';
import { type Environment, EnvironmentError, type HistoryState, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import type { ImageFacts } from '../images/ensureImage.ts';
import { ownConfig } from '../ownConfig.ts';
import { type GitSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { keepTree, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import { environmentOf } from './dockerEnvironment.ts';
import { type DockerShared, type OpenContainer, openContainer } from './openContainer.ts';
import { type SealResult, type SealRoom, verifySealed } from './seal.ts';

/** One start, with what it finds out on its way. */
interface Start {
  readonly shared: DockerShared;
  readonly request: StartRequest;
  readonly notes: string[];
  history: HistoryState;
  /** Tells the next phase; throws when the start was aborted. */
  phase(name: string): void;
}

export async function startEnvironment(arm: DockerShared, request: StartRequest): Promise<Environment> {
  const { signal } = request;
  const phase = (name: string) => {
    signal?.throwIfAborted();
    request.onPhase?.(name);
  };
  phase('pull');
  const image = await arm.ensure(request.image, { signal });
  const shared = await ownShared(arm, request, image);
  const { config } = shared;
  const start: Start = { shared, request, notes: [], history: 'skipped', phase };
  if (config.platform === undefined && !runsHere(image.architecture))
    start.notes.push(`the image is for ${image.architecture}: it runs emulated, if at all`);
  const sealed = config.seal_history ? await sealedImage(start, image) : undefined;
  const programVolume = await volumeOfProgram(start, image);

  phase('start');
  const opened = await openContainer(shared, request, sealed?.image ?? image.id, start.notes, programVolume);
  try {
    if (sealed) await verifyHistory(start, opened, sealed);
    for (const command of setupsOf(request)) {
      phase('setup');
      await runSetup(opened.channel, config, command, signal);
    }
    const snapshot = await startSnapshot(start, opened.run, sealed);
    signal?.throwIfAborted();
    return environmentOf({
      ...opened,
      watch: shared.watch,
      config,
      snapshot,
      info: {
        kind: 'docker',
        containerId: opened.container.id,
        image: config.image ?? request.image,
        imageDigest: image.digest,
        transport: opened.channel.transport,
        history: start.history,
        notes: start.notes,
      },
    });
  } catch (error) {
    opened.channel.close();
    await opened.remove();
    throw error;
  }
}

/** What the task itself asks for goes before the configuration of its arm. */
async function ownShared(
  shared: DockerShared,
  { container }: StartRequest,
  image: ImageFacts,
): Promise<DockerShared> {
  if (!container) return shared;
  const folder =
    container.cwd === 'image'
      ? (await shared.docker.getImage(image.id).inspect()).Config.WorkingDir || '/'
      : undefined;
  return { ...shared, config: ownConfig(shared.config, container, folder) };
}

/** The task's own waits until what its image starts is ready; the configured one may build on that. */
const setupsOf = ({ container, startupCommand }: StartRequest): string[] =>
  [container?.startupCommand ?? '', startupCommand ?? ''].filter((command) => command !== '');

async function volumeOfProgram(
  { shared, request, phase }: Start,
  image: ImageFacts,
): Promise<string | undefined> {
  const { program } = shared.options;
  if (!program) return undefined;
  phase('unpack');
  return shared.programs.ensure(program, image, request.owner);
}

type Sealed = Extract<SealResult, { state: 'sealed' }>;

/** undefined where there is no history, or where leaky images are allowed. */
async function sealedImage(start: Start, image: ImageFacts): Promise<Sealed | undefined> {
  start.phase('seal');
  const { shared, request } = start;
  const result = await shared.sealer.seal(image, shared.config, () => openSealRoom(shared, request, image));
  start.history = result.state;
  if (result.state === 'sealed') return result;
  start.notes.push(`history ${result.state}: ${result.reason}`);
  if (result.state === 'failed') refuseUnlessAllowed(start, result.reason);
  return undefined;
}

async function openSealRoom(
  shared: DockerShared,
  request: StartRequest,
  image: ImageFacts,
): Promise<SealRoom> {
  // The image is committed from this container: no variable of this run's configuration may be in it for other runs.
  const bare: DockerShared = {
    ...shared,
    config: { ...shared.config, env: {} },
    options: { ...shared.options, quietEnv: false },
  };
  const { container, run, channel, remove } = await openContainer(bare, request, image.id, []);
  return {
    container,
    run,
    settle: () => channel.killAll(),
    close: async () => {
      channel.close();
      await remove();
    },
  };
}

async function verifyHistory(start: Start, { run }: OpenContainer, sealed: Sealed): Promise<void> {
  start.phase('verify');
  const { notes, shared, request } = start;
  const verified = await verifySealed(run, shared.config, sealed.fingerprint, request.baseCommit);
  notes.push(...verified.notes);
  if (verified.reason === undefined) return;
  start.history = 'failed';
  notes.push(`history failed: ${verified.reason}`);
  refuseUnlessAllowed(start, verified.reason);
}

async function startSnapshot(
  { shared, request, phase }: Start,
  run: ScriptRunner,
  sealed: Sealed | undefined,
): Promise<GitSnapshot | TreeSnapshot | undefined> {
  const { config, options } = shared;
  if (options.snapshot === false) return undefined;
  // A copy of everything is no snapshot.
  if (config.cwd === '/') return undefined;
  phase('snapshot');
  if (sealed?.snapshot && setupsOf(request).length === 0) return sealed.snapshot;
  const name = randomBytes(6).toString('hex');
  return (
    (await takeSnapshot(run, config.cwd, name, config.capture_timeout)) ??
    (await keepTree(run, config.cwd, name, config.capture_timeout))
  );
}

const HERE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', arm: 'arm' };
const runsHere = (architecture: string) =>
  architecture === '' || HERE[process.arch] === undefined || HERE[process.arch] === architecture;

function refuseUnlessAllowed({ shared, request }: Start, reason: string): void {
  if (shared.config.allow_leaky) return;
  throw new EnvironmentError(
    'history_unsealed',
    `the history of ${request.instanceId} could not be sealed: ${reason}. Fix the image, or set environment.allow_leaky (the run is then not submittable)`,
    { evidence: { reason } },
  );
}

async function runSetup(
  channel: Channel,
  config: EnvironmentConfig,
  command: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const done = await channel.execute(command, {
    timeoutS: config.start_timeout,
    signal,
  });
  if (done.exitCode === 0) return;
  const tail = done.output.slice(-400).trim();
  throw new EnvironmentError(
    'setup_failed',
    `setup failed (rc ${done.exitCode}): ${[done.exceptionInfo, tail].filter(Boolean).join(' ') || 'no output'}`,
    { evidence: { exitCode: done.exitCode, timedOut: done.timedOut, output: done.output.slice(-2000) } },
  );
}
