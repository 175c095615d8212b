/** The way from an image to an environment the agent may use: image, sealed image, container, setup, verification, snapshot. */
import type { Environment, HistoryState, StartRequest } from '../environment.ts';
import { ownConfig } from '../ownConfig.ts';
import type { GitSnapshot, ScriptRunner } from '../patch/capture.ts';
import type { TreeSnapshot } from '../patch/treeSnapshot.ts';
import type { ImageFacts } from '../places/pullStage.ts';
import { refuseUnlessAllowed, verifySealed } from '../start/sealedHistory.ts';
import { pictureOf, runSetup, setupsOf } from '../start/setup.ts';
import { environmentOf } from './dockerEnvironment.ts';
import { type DockerShared, type OpenContainer, openContainer } from './openContainer.ts';
import type { SealResult, SealRoom } from './seal.ts';

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
  if (result.state === 'failed') refuseUnlessAllowed(shared.config, request, result.reason);
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
  refuseUnlessAllowed(shared.config, request, verified.reason);
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
  return pictureOf(run, config);
}

const HERE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', ia32: '386', arm: 'arm' };
const runsHere = (architecture: string) =>
  architecture === '' || HERE[process.arch] === undefined || HERE[process.arch] === architecture;
