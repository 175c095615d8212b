/**
 * Harbor tasks: their own tests judge the end state of the agent's container, and write a reward. The tests go into a container that is made
 * after the agent's is gone: from the image that its end state was kept as, or from that of the task for a patch from a file.
 */
import type { ContainerNeeds } from '../../../base/containerNeeds.ts';
import { sha256 } from '../../../base/sha256.ts';
import { type Instance, imageOf } from '../../../dataset/instance.ts';
import { type HarborTask, harborTaskOf } from '../../../dataset/kinds/harbor/harborTask.ts';
import { HARBOR, readTask } from '../../../dataset/kinds/harbor/readTask.ts';
import { taskFiles } from '../../../dataset/kinds/harbor/taskFiles.ts';
import type { Environment, PlacedFile } from '../../../environment/environment.ts';
import { applyPatch, PATCH_PATH } from '../../applyPatch.ts';
import type { RunLog } from '../../createRunLog.ts';
import type { SpecOptions } from '../../specs/spec.ts';
import { type Ending, type EvaluationResult, type GradingFrame, inFreshContainer } from '../gradingFrame.ts';
import type { GradingKind, KindGradeRequest, PlannedGrading } from '../gradingKind.ts';
import { collect, runCollectCommands } from './collectArtifacts.ts';
import { TEST_SCRIPT, TESTS, verify } from './verifyTask.ts';

interface Grading {
  readonly instance: Instance;
  readonly task: HarborTask;
  readonly request: KindGradeRequest;
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

/** Files of tests/ as they were when the run began; undefined when the folder has changed or is gone. */
function testsOf({ folder, files_sha256 }: HarborTask): PlacedFile[] | undefined {
  const now = readTask(folder);
  if (now.refused !== undefined || now.hash !== files_sha256) return undefined;
  return taskFiles(folder, 'tests').map(({ path, content, executable }) => ({
    ...{ path: `${TESTS}/${path}`, content, mode: executable ? 0o755 : 0o644 },
  }));
}

/** A prediction from a file: its patch is all that is known of the work. */
async function applied(
  environment: Environment,
  log: RunLog,
  { instance, request }: Grading,
): Promise<Ending | undefined> {
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

const verification = ({ instance, task, request }: Grading, tests: readonly PlacedFile[] | undefined) => ({
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
    return verify(environment, log, verification(grading, tests));
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
    const ready = verification(grading, separate.bundled ? undefined : tests);
    await environment.putFiles?.(given);
    return verify(environment, log, ready);
  });
}

function grade(
  instance: Instance,
  task: HarborTask,
  specHash: string,
  request: KindGradeRequest,
  dialect: GradingFrame['dialect'],
) {
  const frame: GradingFrame = {
    ...{
      instanceId: instance.instance_id,
      image: request.work ?? imageOf(instance),
      container: workNeeds(task),
    },
    ...{ script: TEST_SCRIPT, dialect, specHash, request, runs: true },
  };
  const grading = { instance, task, request, frame };
  const tests = testsOf(task);
  if (!tests)
    return inFreshContainer({ ...frame, runs: false }, async () => ({ outcome: 'ungradable' })).then(
      (result) => ({
        ...result,
        outcome: 'ungradable' as const,
        errorMessage: `${instance.instance_id}: the folder of its task has changed or is gone since the run began: ${task.folder}`,
      }),
    );
  const { separate } = task.verifier;
  return separate ? inOwnContainer(grading, separate, tests) : inSharedContainer(grading, tests);
}

function planHarbor(instance: Instance, { dialect = 'v5' }: SpecOptions): PlannedGrading {
  let task: HarborTask;
  try {
    task = harborTaskOf(instance);
  } catch {
    return { ok: false, reason: `${instance.instance_id} cannot be graded: its task could not be read` };
  }
  const { folder: _, ...decides } = task;
  const specHash = sha256(JSON.stringify([imageOf(instance), decides]));
  return {
    ok: true,
    plan: { specHash, grade: (request) => grade(instance, task, specHash, request, dialect) },
  };
}

export const harborGrading: GradingKind = { name: HARBOR, plan: planHarbor };
