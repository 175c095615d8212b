// The verdict of a Harbor task on what an agent's commands left, without a run around it. In real containers.
import { readInstance } from '../../src/dataset/dataset.ts';
import { createDockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import type { EnvironmentFactory } from '../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { gradingConfigSchema, gradingEnvironment } from '../../src/grading/gradingConfig.ts';
import type { EvaluationResult } from '../../src/grading/gradingFrame.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { needsOf } from '../../src/suites/suites.ts';
import { tempDir } from './cli.ts';
import { harborTask } from './kinds/harborTask.ts';
import { planGrading } from './suites.ts';

const owner = currentOwner('touched', '1.1');
const AGENTS = environmentConfigSchema.parse({ cwd: '/work', seal_history: false, pull: 'never' });
const GRADERS = {
  ...gradingEnvironment(gradingConfigSchema.parse({ network: 'none' })),
  pull: 'never',
} as const;

export interface Where {
  readonly agents: EnvironmentFactory;
  readonly graders: EnvironmentFactory;
  readonly image: string;
}

/** As after an agent that ran these commands. */
export async function verdictIn(
  { agents, graders, image }: Where,
  commands: string,
  tests: string | Readonly<Record<string, string>>,
  /** More of task.toml. */
  verifier = '',
): Promise<EvaluationResult> {
  const toml = `schema_version = "1.3"\n[environment]\ndocker_image = "${image}"\nworkdir = "/work"\nnetwork_mode = "no-network"\n[verifier]\ntimeout_sec = 60\n${verifier}`;
  const files = typeof tests === 'string' ? { 'tests/test.sh': tests } : tests;
  const folder = harborTask(tempDir(), 'task', { 'task.toml': toml, ...files });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error('the task was not read');
  const instance = readInstance(loaded.dataset.rows[0]!);
  const { openFolders } = needsOf(instance).container!;
  const environment = await agents.start({ instanceId: 'task', image, owner, container: { openFolders } });
  let work: string;
  try {
    await environment.execute(commands);
    work = await environment.keepWork();
  } finally {
    await environment.close();
  }
  try {
    const planned = planGrading(instance, { harness: 'v5' });
    if (!planned.ok) throw new Error(planned.reason);
    const request = { patch: '', work, factory: graders, owner, config: gradingConfigSchema.parse({}) };
    const first = await planned.plan.grade(request);
    return first.repeatAlone ? await planned.plan.grade({ ...request, alone: true }) : first;
  } finally {
    // An engine that others keep busy has taken two minutes for it, which says nothing about the verdict.
    await graders.discardWork(work).catch(() => undefined);
  }
}

export const flags = ({ suspicion }: EvaluationResult) => suspicion.map(({ rule, strict }) => [rule, strict]);

export const closed = async (where: Where | undefined): Promise<void> => {
  await where?.agents.close();
  await where?.graders.close();
};

export const dockerPlace = (image: string): Where => ({
  image,
  agents: createDockerFactory(AGENTS),
  graders: createDockerFactory(GRADERS),
});
