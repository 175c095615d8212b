/**
 * Harbor task folders (docs/datasets.md). Their own tests judge the end state of the agent's container, and write a reward. The tests go into a
 * container that is made after the agent's is gone, or beside it between two steps: from the image that its end state was kept as, or from
 * that of the task for a patch from a file.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { sha256 } from '../../base/sha256.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { prompts } from './prompts.ts';
import { type HarborTask, harborTaskOf, readTask } from './readTask.ts';
import { solutionOfTask } from './solution.ts';
import { gradeSteps, type TaskStep, verifierOfStep, workThroughSteps } from './steps.ts';
import { builtImage, TaskFolderError, taskFiles } from './taskFolder.ts';
import { roomNeeds, verification } from './verification.ts';

export const harbor: Suite = {
  folders: { read: (dir) => tasksIn(dir).map(readTask), needed: true },
  prompts,
  refusal: ({ extra }) =>
    extra.harbor === undefined ? String(extra.refused ?? 'its task could not be read') : undefined,
  needs(instance) {
    const task = harborTaskOf(instance);
    const { room, verifier, steps } = task;
    const verifiers = steps?.map((step) => step.verifier) ?? [verifier];
    return {
      container: containerOf(task),
      processors: Math.max(room.cpus ?? 0, ...verifiers.map(({ separate }) => separate?.room.cpus ?? 0)),
      agentS: task.agent.timeout_s,
      toolServers: task.mcp_servers ?? [],
      // Of a task of several steps each end state is kept as it goes on.
      ...(steps ? { keepsEndStates: 'it has several steps, whose end states' } : { endState: true }),
    };
  },
  builds(instance) {
    const { folder, builds } = harborTaskOf(instance);
    return builds.map(({ image, folder: part, timeout_s }) => ({
      image,
      timeoutS: timeout_s,
      files() {
        const files = taskFiles(folder, part);
        if (builtImage(files) === image) return files;
        throw new TaskFolderError(`${part} of ${instance.instance_id} has changed since its image was named`);
      },
    }));
  },
  lead(instance) {
    const steps = stepsOf(instance);
    return steps && ((attempt) => workThroughSteps(steps, attempt));
  },
  solution: solutionOfTask,
  grading,
};

const isTask = (dir: string): boolean => existsSync(join(dir, 'task.toml'));

function tasksIn(dir: string): string[] {
  if (isTask(dir)) return [dir];
  const below = (folder: string) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isFile() && !entry.name.startsWith('.'))
      .map(({ name }) => join(folder, name))
      .sort()
      .filter(isTask);
  const here = below(dir);
  // Repositories of tasks have them below tasks/.
  return here.length > 0 || !existsSync(join(dir, 'tasks')) ? here : below(join(dir, 'tasks'));
}

/** What happens around the agent's work in its container: setup, capture. */
const AROUND_S = 1800;

/** Seconds that agents and verifiers may take while the container is there; undefined for no limit. */
function lifeOf({ agent, steps }: HarborTask): number | undefined {
  if (!steps) return agent.timeout_s;
  // Verifiers of steps run while the container of the agent waits.
  const limits = steps.map(({ agent_timeout_s: limit, verifier }) => limit && limit + verifier.timeout_s);
  return limits.reduce<number | undefined>((sum, one) => sum && one && sum + one + AROUND_S, AROUND_S);
}

function containerOf(task: HarborTask): ContainerNeeds {
  const { workdir, network, room, env, healthcheck, agent } = task;
  const life = lifeOf(task);
  return {
    ...roomNeeds(room),
    cwd: workdir ?? 'image',
    network,
    env,
    user: agent.user,
    lifetimeS: life === undefined ? undefined : life + AROUND_S,
    startupCommand: healthcheck,
  };
}

const SETUP = 'setup.sh';

/** The steps of a task of several: what lies in steps/NAME/workdir goes into the work tree, and its setup.sh runs. */
export function stepsOf(instance: Instance): readonly TaskStep[] | undefined {
  const task = harborTaskOf(instance);
  const { steps, folder, files_sha256 } = task;
  const grading = { instance, task, image: imageOf(instance), specHash: '', harness: 'v5' } as const;
  return steps?.map((step, index) => ({
    name: step.name,
    instruction: step.instruction,
    agentS: step.agent_timeout_s,
    healthcheck: step.healthcheck,
    setup: SETUP,
    files() {
      if (readTask(folder).hash !== files_sha256)
        throw new TaskFolderError(
          `the folder of the task has changed or is gone since the run began: ${folder}`,
        );
      return taskFiles(folder, `steps/${step.name}/workdir`);
    },
    // Nothing follows the last one.
    verify: index < steps.length - 1 ? verifierOfStep({ ...grading, steps }, step) : undefined,
  }));
}

function grading(instance: Instance, { harness = 'v5' }: SpecOptions): PlannedGrading {
  let task: HarborTask;
  try {
    task = harborTaskOf(instance);
  } catch {
    return { ok: false, reason: `${instance.instance_id} cannot be graded: its task could not be read` };
  }
  const { folder: _, ...decides } = task;
  const image = imageOf(instance);
  const specHash = sha256(JSON.stringify([image, decides]));
  const wanted = { instance, task, image, specHash, harness };
  const { steps } = task;
  return {
    ok: true,
    plan: {
      specHash,
      grade: (request) =>
        steps
          ? gradeSteps({ ...wanted, steps }, request)
          : verification({ ...wanted, testFolders: ['tests'], image: request.work ?? image }, request),
    },
  };
}
