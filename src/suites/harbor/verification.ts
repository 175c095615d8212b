/** One verification: in the agent's end state, or in a container of its own that gets the files the task names. */
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import type { Instance } from '../../dataset/instance.ts';
import { type Environment, FilesTooLargeError, type PlacedFile } from '../../environment/environment.ts';
import { applyPatch, PATCH_PATH } from '../../grading/applyPatch.ts';
import {
  type EvaluationResult,
  type GradeRequest,
  type GradingEnd,
  type GradingFrame,
  inFreshContainer,
  type RunLog,
} from '../../grading/gradingFrame.ts';
import type { HarborTask } from './harborTask.ts';
import { readTask } from './readTask.ts';
import { taskFiles } from './taskFolder.ts';
import { asUser, TEST_SCRIPT, TESTS_FOLDER, verify } from './verifyTask.ts';

interface Grading {
  readonly instance: Instance;
  readonly task: HarborTask;
  readonly request: GradeRequest;
  readonly frame: GradingFrame;
}

const PATCH_TIMEOUT_S = 600;
/** Beside the tests: the start, the collection, the files. */
const AROUND_S = 1800;

const roomNeeds = ({ cpus, memory_mb, storage_mb }: HarborTask['room']): ContainerNeeds => ({
  ...(cpus !== undefined && { cpus }),
  ...(memory_mb !== undefined && { memoryMb: memory_mb }),
  ...(storage_mb !== undefined && { diskMb: storage_mb }),
});

/** Where the agent's end state is: as it worked, with the network of the verifier. */
function workNeeds({ workdir, room, env, verifier }: HarborTask): ContainerNeeds {
  const { network, separate, timeout_s } = verifier;
  return {
    ...{ ...roomNeeds(room), env, cwd: workdir ?? 'image', lifetimeS: timeout_s + AROUND_S },
    network: separate ? 'none' : network,
  };
}

/** Files of the folders of tests as they were when the run began, the later ones over the earlier; undefined when the task has changed or is gone. */
function testsOf({ folder, files_sha256 }: HarborTask, folders: readonly string[]): PlacedFile[] | undefined {
  const now = readTask(folder);
  if (now.refused !== undefined || now.hash !== files_sha256) return undefined;
  const files = folders.flatMap((part) => taskFiles(folder, part));
  const placed = files.map(({ path, content, executable }) => ({
    ...{ path: `${TESTS_FOLDER}/${path}`, content, mode: executable ? 0o755 : 0o644 },
  }));
  return [...new Map(placed.map((file) => [file.path, file])).values()];
}

/** A prediction from a file: its patch is all that is known of the work. */
async function applied(
  environment: Environment,
  log: RunLog,
  { instance, request }: Grading,
): Promise<GradingEnd | undefined> {
  const { patch, work, signal } = request;
  if (work !== undefined || patch === null || patch === '') return undefined;
  await environment.putFile(PATCH_PATH, patch);
  const { cwd } = environment.templateVars();
  const at = { cwd: typeof cwd === 'string' ? cwd : '/', timeoutS: PATCH_TIMEOUT_S, signal };
  const done = await applyPatch(environment, { dialect: 'v5', ...at });
  if (done.method !== null) return undefined;
  const { instance_id } = instance;
  log.info(`the patch of ${instance_id} does not apply:\n${done.output}`);
  return {
    outcome: 'apply_failed',
    errorMessage: `${instance_id}: the patch does not apply. Last output: ${done.output.trim().slice(-2000)}`,
  };
}

const verifierRun = ({ instance, task, request }: Grading, tests: readonly PlacedFile[] | undefined) => ({
  ...{ instanceId: instance.instance_id, tests, env: task.verifier.env, patch: request.patch },
  user: task.verifier.user,
  ...{ timeoutS: task.verifier.timeout_s, signal: request.signal },
});

const inSharedContainer = (grading: Grading, tests: readonly PlacedFile[]): Promise<EvaluationResult> =>
  inFreshContainer(grading.frame, async (environment, log) => {
    const failed = await applied(environment, log, grading);
    if (failed) return failed;
    const { task, instance, request } = grading;
    if (task.verifier.collect.length > 0)
      await runCollectCommands(environment, log, {
        ...{ task, instanceId: instance.instance_id, signal: request.signal },
      });
    return verify(environment, log, verifierRun(grading, tests));
  });

/** Two containers, one after the other: the verifier never sees the agent's. */
async function inOwnContainer(
  grading: Grading,
  separate: NonNullable<HarborTask['verifier']['separate']>,
  tests: readonly PlacedFile[],
): Promise<EvaluationResult> {
  const { task, instance, request, frame } = grading;
  let files: readonly PlacedFile[] | undefined;
  const collecting = await inFreshContainer(frame, async (environment, log) => {
    const failed = await applied(environment, log, grading);
    if (failed) return failed;
    const found = await collect(environment, log, {
      ...{ task, instanceId: instance.instance_id, signal: request.signal },
    });
    if (!found.ok) return found.ending;
    files = found.files;
    return { outcome: 'unresolved' };
  });
  if (!files) return collecting;
  const given = files;
  const { network, timeout_s } = task.verifier;
  const container = {
    ...{ ...roomNeeds(separate.room), env: separate.env, cwd: separate.workdir ?? 'image', network },
    lifetimeS: timeout_s + AROUND_S,
  };
  return inFreshContainer({ ...frame, image: separate.image, container }, async (environment, log) => {
    const ready = verifierRun(grading, separate.bundled ? undefined : tests);
    await environment.putFiles?.(given);
    return verify(environment, log, ready);
  });
}

export interface Wanted {
  readonly instance: Instance;
  /** With the verifier and the artifacts that count. */
  readonly task: HarborTask;
  /** Below the task, in the order in which they are put in. */
  readonly testFolders: readonly string[];
  /** Where it begins: the agent's end state, else the task's own image. */
  readonly image: string;
  readonly specHash: string;
  readonly dialect: GradingFrame['dialect'];
}

export const verifierFrame = (
  { instance, task, image, specHash, dialect }: Omit<Wanted, 'testFolders'>,
  request: GradeRequest,
): GradingFrame => ({
  ...{ instanceId: instance.instance_id, image, container: workNeeds(task) },
  ...{ script: TEST_SCRIPT, dialect, specHash, request, runs: true },
});

/** A grading that cannot begin. */
export async function ungradable(frame: GradingFrame, errorMessage: string): Promise<EvaluationResult> {
  const nothing = await inFreshContainer({ ...frame, runs: false }, async () => ({ outcome: 'ungradable' }));
  return { ...nothing, outcome: 'ungradable', errorMessage };
}

export function verification(wanted: Wanted, request: GradeRequest): Promise<EvaluationResult> {
  const { instance, task, testFolders } = wanted;
  const frame = verifierFrame(wanted, request);
  const grading = { instance, task, request, frame };
  const tests = testsOf(task, testFolders);
  if (!tests)
    return ungradable(
      frame,
      `${instance.instance_id}: the folder of its task has changed or is gone since the run began: ${task.folder}`,
    );
  const { separate } = task.verifier;
  return separate ? inOwnContainer(grading, separate, tests) : inSharedContainer(grading, tests);
}

// What a verifier of its own gets from the agent's container: the files that the task names, after its own commands have made them.

/** Always collected, as Harbor does. */
const ARTIFACTS = '/logs/artifacts';
const MAX_BYTES = 512 * 2 ** 20;

type Collected =
  | { readonly ok: true; readonly files: readonly PlacedFile[] }
  | { readonly ok: false; readonly ending: GradingEnd };

interface Collecting {
  readonly task: HarborTask;
  readonly instanceId: string;
  readonly signal?: AbortSignal | undefined;
}

const isLeftOut = (path: string, source: string, exclude: readonly string[]): boolean => {
  const below = path.slice(source.length).split('/').filter(Boolean);
  return exclude.some((name) => below.includes(name.replace(/^\.\//, '')));
};

/** The commands of `[[verifier.collect]]`, in the container that the agent left. */
async function runCollectCommands(
  environment: Environment,
  log: RunLog,
  { task, instanceId, signal }: Collecting,
): Promise<void> {
  await environment.execute(`mkdir -p ${ARTIFACTS} && chmod 777 ${ARTIFACTS}`, { cwd: '/', signal });
  for (const { command, timeout_s, user } of task.verifier.collect) {
    const done = await environment.execute(asUser(command, user), { timeoutS: timeout_s, signal });
    // The verifier judges what is there: Harbor goes on too.
    if (done.exitCode !== 0)
      log.warn(
        `a collect command of ${instanceId} ended with ${done.exitCode}: ${done.output.slice(-400).trim()}`,
      );
  }
}

async function collect(environment: Environment, log: RunLog, collecting: Collecting): Promise<Collected> {
  const { task, instanceId } = collecting;
  await runCollectCommands(environment, log, collecting);
  const wanted = [{ source: ARTIFACTS, exclude: [] as string[] }, ...task.artifacts];
  const files = new Map<string, PlacedFile>();
  try {
    for (const { source, exclude } of wanted)
      for (const file of (await environment.getFiles?.(source, MAX_BYTES)) ?? [])
        if (!isLeftOut(file.path, source, exclude)) files.set(file.path, file);
  } catch (error) {
    if (!(error instanceof FilesTooLargeError)) throw error;
    // Whoever worked in the container chose that.
    const errorMessage = `${instanceId}: ${error.message}, which is more than a verifier is given`;
    return {
      ok: false,
      ending: { outcome: 'invalid', resolved: false, resolvedStrict: false, errorMessage },
    };
  }
  log.info(
    `${files.size} files of ${instanceId} go to its verifier: ${[...files.keys()].slice(0, 20).join(', ')}`,
  );
  return { ok: true, files: [...files.values()] };
}
