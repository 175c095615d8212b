/**
 * Harbor task folders (docs/datasets.md). A task's own tests judge the end state of the agent's container, and write a reward. The tests go into a
 * container that is made after the agent's is gone, or beside it between two steps: from the image that its end state was kept as, or from
 * that of the task for a patch from a file.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Solution } from '../../agent/contract.ts';
import { isAllowList } from '../../base/allowList.ts';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { givenOf } from '../../base/hostVariables.ts';
import { sha256 } from '../../base/sha256.ts';
import { errorFirst } from '../../base/text/errorFirst.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite, SuitePrompts, WantedVariable } from '../suite.ts';
import { placedFiles, TaskFolderError, taskFiles, taskText } from '../taskFiles.ts';
import { recipeOfBuild } from './builds.ts';
import { finishTask, judgedApart } from './endState.ts';
import { harborFiles } from './harborIgnore.ts';
import { type HarborTask, harborTaskOf, readTask } from './readTask.ts';
import { gradeSteps, type TaskStep, verifierOfStep, workThroughSteps } from './steps.ts';
import { hasFile } from './taskFolder.ts';
import { readEnv, readTaskToml } from './taskToml.ts';
import { executeAs, mainNeeds, OPEN_FOLDERS, verification } from './verification.ts';

// The prompt of agents: the instruction of the task as it is, and below it how the container is worked in. There is no repository, and nothing is
// handed in.

const INSTRUCTION = `{{ task }}

How you work

- You are in a container, in {{ cwd }}, and work through its shell. Each command runs in a new shell there: a \`cd\` or an exported
  variable is gone with the next one.
- Nobody answers prompts. Use flags such as -y, print files with sed or head, and write them with a heredoc; editors and pagers
  do not work.
- A command may take {{ timeout }} seconds; start in the background what is to go on. Long output is cut in the middle.
`;

const DONE = `
What counts is the state in which you leave the container; tests that you cannot see judge it. When you are done, say so by a command of
its own:`;

const MARKER = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

const prompts: SuitePrompts = {
  system: 'You are an experienced engineer. You work in a container through its shell.\n',
  instance: {
    'bash-block': `${INSTRUCTION}
Reply in this form, and in no other: a few sentences of thought, then exactly ONE block that starts with \`\`\`bash and holds ONE command
(several can be joined with && or ||). A reply with no block, or with more than one, is not run.
${DONE}

\`\`\`bash
${MARKER}
\`\`\`
`,
    'tool-call': `${INSTRUCTION}
In every reply say in a few sentences what you know now and what comes next, and call the tool \`bash\` at least once.
${DONE}

\`\`\`
${MARKER}
\`\`\`
`,
  },
  program: '{{ task }}',
};

export const harbor: Suite = {
  folders: { read: (dir) => tasksIn(dir).map(readTask), needed: true },
  prompts,
  refusal: ({ extra }) =>
    extra.harbor === undefined ? String(extra.refused ?? 'its task could not be read') : undefined,
  needs(instance) {
    const task = harborTaskOf(instance);
    const { room, verifier, steps, services, network, setup_network } = task;
    const verifiers = steps?.map((step) => step.verifier) ?? [verifier];
    const rooms = [room, ...verifiers.flatMap(({ separate }) => separate?.room ?? [])];
    const beside = services?.containers ?? [];
    return {
      container: containerOf(task),
      processors: Math.max(...rooms.map(({ cpus = 0 }) => cpus), ...beside.map(({ cpus = 0 }) => cpus)),
      memoryMb: Math.max(
        ...rooms.map(({ memory_mb = 0 }) => memory_mb),
        ...beside.map(({ memoryBytes = 0 }) => memoryBytes / 2 ** 20),
      ),
      ...([network, setup_network, ...verifiers.map((one) => one.network)].some(isAllowList) && {
        opensHosts: true,
      }),
      agentS: task.agent.timeout_s,
      toolServers: task.mcp_servers ?? [],
      skillsFolder: task.skills_dir,
      variables: variablesOf(task),
      gpus: Math.max(...rooms.map(({ gpus = 0 }) => gpus)),
      // A task of several steps has each end state kept as it goes on.
      ...(steps
        ? { keepsEndStates: 'it has several steps, whose end states' }
        : { judgedApart: judgedApart(task) }),
    };
  },
  builds(instance) {
    const { folder, builds } = harborTaskOf(instance);
    return builds.map((build) => ({
      image: build.image,
      ...recipeOfBuild(folder, instance.instance_id, build),
    }));
  },
  lead(instance) {
    const steps = stepsOf(instance);
    return steps && ((attempt) => workThroughSteps(steps, attempt));
  },
  solution: solutionOfTask,
  finish: (instance, attempt) =>
    finishTask(harborTaskOf(instance), attempt, grading(instance, { harness: attempt.harness })),
  grading,
};

const namedIn = (
  place: string,
  { env, variables = {} }: Pick<HarborTask, 'env' | 'variables'>,
  reader?: WantedVariable['reader'],
): WantedVariable[] =>
  Object.entries(variables).map(([key, name]) => ({
    name,
    key: `${place}.${key}`,
    hasDefault: Object.hasOwn(env, key),
    ...(reader && { reader }),
  }));

function variablesOf(task: HarborTask): WantedVariable[] {
  const verifiers = task.steps?.map(({ verifier }) => verifier) ?? [task.verifier];
  return [
    ...namedIn('environment.env', task),
    ...(task.services?.containers.flatMap((one) => namedIn(`service ${one.name}: environment`, one)) ?? []),
    ...verifiers.flatMap((verifier) => [
      ...namedIn('verifier.env', verifier, 'verifier'),
      ...(verifier.separate ? namedIn('verifier.environment.env', verifier.separate, 'verifier') : []),
    ]),
    ...namedIn('solution.env', { env: {}, variables: task.solution_variables }, 'solution'),
  ];
}

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

/** Work around the agent's in its container: setup, capture. */
const AROUND_S = 1800;

/** Seconds that agents and verifiers may take while the container is there; undefined for no limit. */
function lifeOf({ agent, steps }: HarborTask): number | undefined {
  if (!steps) return agent.timeout_s;
  // Verifiers of steps run while the container of the agent waits.
  const limits = steps.map(({ agent_timeout_s: limit, verifier }) => limit && limit + verifier.timeout_s);
  return limits.reduce<number | undefined>((sum, one) => sum && one && sum + one + AROUND_S, AROUND_S);
}

function containerOf(task: HarborTask): ContainerNeeds {
  const { network, setup_network, healthcheck, agent, user } = task;
  const life = lifeOf(task);
  return {
    ...mainNeeds(task),
    openFolders: OPEN_FOLDERS,
    network,
    ...(setup_network !== undefined && { setupNetwork: setup_network }),
    user,
    worker: agent.user,
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
    ...(step.network !== undefined && {
      networks: { setup: task.setup_network ?? task.network, agent: step.network },
    }),
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

// The reference solution of a task: solution/solve.sh, run as Harbor's oracle runs it, by the user and in the time of the agent.

const FOLDER = '/solution';
const SCRIPT = 'solve.sh';

/** Of a step its own goes before that of the task. Of no step: whether there is one, which a step alone may bring. */
function solutionOfTask(instance: Instance, step?: string): Solution | undefined {
  const { folder, files_sha256, steps = [] } = harborTaskOf(instance);
  const ofStep = (name: string) => harborFiles(folder, `steps/${name}/solution`);
  const own =
    step === undefined
      ? (steps.map(({ name }) => ofStep(name)).find((files) => hasFile(files, SCRIPT)) ?? [])
      : ofStep(step);
  const files = own.length > 0 ? own : harborFiles(folder, 'solution');
  if (!hasFile(files, SCRIPT)) return undefined;
  return {
    async apply(environment, { timeoutS, signal, variables }) {
      if (readTask(folder).hash !== files_sha256)
        throw new TaskFolderError(
          `the folder of the task has changed or is gone since the run began: ${folder}`,
        );
      const read = readTaskToml(taskText(folder, 'task.toml') ?? '');
      const wanted = readEnv(read.ok ? read.toml.solution.env : {});
      const env = { ...wanted.env, ...givenOf(wanted.variables, variables) };
      // Files that an agent left there in an earlier step are no part of it.
      await executeAs(environment, 'root', `rm -rf ${FOLDER}`, { cwd: '/', signal });
      await environment.putFiles(
        placedFiles(FOLDER, files).map((file) => ({ ...file, mode: file.mode | 0o111 })),
      );
      const done = await environment.execute(`${FOLDER}/${SCRIPT}`, {
        ...{ timeoutS, signal },
        env: { DEBIAN_FRONTEND: 'noninteractive', ...env },
      });
      const tail = errorFirst(done.output, 400);
      const how = done.timedOut
        ? `did not end within ${timeoutS} s`
        : `ended with exit code ${done.exitCode}`;
      return {
        says: `solution/${SCRIPT} ${how}${tail === '' ? '' : `; its last output: ${tail}`}`,
        timedOut: done.timedOut,
      };
    },
  };
}
