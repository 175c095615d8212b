// Harbor tasks of several steps: what each step gets from task.toml and its folder, and what is refused.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readInstance, readRowHash } from '../../../src/dataset/dataset.ts';
import { stepsOf } from '../../../src/suites/harbor/harbor.ts';
import { harborTaskOf } from '../../../src/suites/harbor/readTask.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { solutionOf } from '../../../src/suites/suites.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';
import { needsOf } from '../../support/suites.ts';

const IMAGE = '[environment]\ndocker_image = "debian:12"\n';
const TWO = {
  'instruction.md': null,
  'steps/one/instruction.md': 'Do one.\n',
  'steps/one/workdir/setup.sh': 'touch ready\n',
  'steps/two/instruction.md': 'Do two.\n',
  'steps/two/tests/test.sh': '#!/bin/bash\n',
};
const STEPS = '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n';

async function task(toml: string, files: Readonly<Record<string, string | null>> = {}) {
  const folder = harborTask(mkdtempSync(join(tmpdir(), 'steps-')), 'task', {
    'task.toml': toml,
    ...TWO,
    ...files,
  });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  return { folder, row: loaded.dataset.rows[0]!, warnings: loaded.dataset.warnings };
}

describe('steps', () => {
  test('have their instructions, limits, verifiers and gates; what a step does not say is that of the task', async () => {
    const { row, warnings } = await task(`multi_step_reward_strategy = "final"
artifacts = ["/all"]
${IMAGE}cpus = 1
[agent]
timeout_sec = 100
[verifier]
timeout_sec = 30
user = "grader"
env = { A = "1", B = "1" }
[[verifier.collect]]
command = "first"
[[steps]]
name = "one"
min_reward = 0.5
artifacts = ["/own"]
[steps.agent]
timeout_sec = 40
[steps.healthcheck]
command = "test -e ready"
[steps.verifier]
timeout_sec = 20
env = { B = "2" }
[[steps.verifier.collect]]
command = "second"
[[steps]]
name = "two"
min_reward = { reward = 1.0, style = 0.25 }
[steps.verifier.environment]
docker_image = "grader:1"
cpus = 6
`);
    expect(row.refused).toBeUndefined();
    expect(warnings).toEqual([]);
    expect(harborTaskOf(readInstance(row))).toMatchObject({
      strategy: 'final',
      steps: [
        {
          name: 'one',
          instruction: 'Do one.\n',
          agent_timeout_s: 40,
          healthcheck: expect.stringContaining("check 'test -e ready'"),
          min_rewards: { reward: 0.5 },
          artifacts: [{ source: '/all' }, { source: '/own' }],
          verifier: {
            timeout_s: 20,
            user: 'grader',
            env: { A: '1', B: '2' },
            collect: [{ command: 'first' }, { command: 'second' }],
          },
        },
        {
          name: 'two',
          agent_timeout_s: 100,
          min_rewards: { reward: 1, style: 0.25 },
          artifacts: [{ source: '/all' }],
          // Harbor's steps have a limit of 600 s of their own.
          verifier: { timeout_s: 600, separate: { image: 'grader:1', bundled: true, room: { cpus: 6 } } },
        },
      ],
    });
    expect(needsOf(readInstance(row)).processors).toBe(6);
    expect(needsOf(readInstance(row)).container!.lifetimeS).toBeGreaterThan(40 + 20 + 100 + 600);
    expect(readInstance(row).problem_statement).toBe(
      '# Step 1: one\n\nDo one.\n\n# Step 2: two\n\nDo two.\n',
    );
  });

  test('find the images of their verifiers as Harbor does: of the nearest folder or name, the mode of the nearest that says one', async () => {
    const { row } = await task(
      `${IMAGE}[verifier]\nenvironment_mode = "separate"\n${STEPS}[steps.verifier]\nenvironment_mode = "shared"\n`,
      { 'steps/one/tests/Dockerfile': 'FROM debian:12\n' },
    );
    const { steps, builds } = harborTaskOf(readInstance(row));
    expect(steps!.map(({ verifier }) => verifier.separate?.bundled)).toEqual([true, undefined]);
    expect(builds).toEqual([
      { image: steps![0]!.verifier.separate!.image, folder: 'steps/one/tests', timeout_s: 600 },
    ]);
  });

  test('bring files into the work tree, as long as the folder is what it was', async () => {
    const { row, folder } = await task(`${IMAGE}${STEPS}`);
    const [one, two] = stepsOf(readInstance(row))!;
    expect(one!.files().map(({ path }) => path)).toEqual(['setup.sh']);
    expect(two!.files()).toEqual([]);
    writeFileSync(join(folder, 'steps', 'two', 'instruction.md'), 'Do something else.\n');
    expect(() => one!.files()).toThrow('has changed or is gone since the run began');
  });

  test('have solutions, also where the task itself has none', async () => {
    const own = { 'solution/solve.sh': null, 'steps/two/solution/solve.sh': '#!/bin/bash\n' };
    const { row } = await task(`${IMAGE}${STEPS}`, own);
    expect(
      [undefined, 'one', 'two'].map((step) => solutionOf(readInstance(row), step) !== undefined),
    ).toEqual([...[true, false, true]]);
    const { row: without } = await task(`${IMAGE}${STEPS}`, { 'solution/solve.sh': null });
    expect(solutionOf(readInstance(without))).toBeUndefined();
  });

  test('have lists of hosts of their own, where the container has no network of the engine', async () => {
    const { row } = await task(`[environment]
docker_image = "debian:12"
network_mode = "no-network"
[[steps]]
name = "one"
[[steps]]
name = "two"
[steps.agent]
network_mode = "allowlist"
allowed_hosts = ["two.example.com"]
`);
    expect(row.refused).toBeUndefined();
    expect(stepsOf(readInstance(row))!.map(({ networks }) => networks)).toEqual([
      { setup: 'none', agent: 'none' },
      { setup: 'none', agent: { allow: ['two.example.com'] } },
    ]);
    // From its beginning it has the way that the second step needs.
    expect(needsOf(readInstance(row))).toMatchObject({
      container: { network: { allow: [] } },
      opensHosts: true,
    });
    const plain = await task(`${IMAGE}${STEPS}`);
    expect(stepsOf(readInstance(plain.row))!.map(({ networks }) => networks)).toEqual([undefined, undefined]);
  });

  test('count in the hash of the task', async () => {
    const plain = readRowHash((await task(`${IMAGE}${STEPS}`)).row);
    expect(readRowHash((await task(`${IMAGE}${STEPS}`)).row)).toBe(plain);
    for (const path of ['steps/one/workdir/more', 'steps/two/tests/more', 'steps/one/solution/solve.sh'])
      expect(readRowHash((await task(`${IMAGE}${STEPS}`, { [path]: 'x' })).row)).not.toBe(plain);
  });

  test('an empty list is a task of one step', async () => {
    const { row } = await task(`steps = []\n${IMAGE}`, { 'instruction.md': 'Do it.\n' });
    expect(stepsOf(readInstance(row))).toBeUndefined();
    expect(readInstance(row).problem_statement).toBe('Do it.\n');
  });
});

test.each([
  [`${STEPS}`, { 'steps/two/instruction.md': null }, 'it has no steps/two/instruction.md'],
  [`${STEPS}`, { 'tests/test.sh': null }, 'it has neither steps/one/tests/test.sh nor tests/test.sh'],
  [`${STEPS}`, { 'steps/one/trajectory.json': '{}' }, 'steps/one/trajectory.json gives the agent'],
  [`${STEPS}`, { 'steps/two/tests/docker-compose.yaml': '' }, 'steps/two/tests/docker-compose.yaml asks for'],
  ['[[steps]]\nname = "../tests"\n', {}, 'steps.0.name: is no name of a folder'],
  ['[[steps]]\nname = ".."\n', {}, 'steps.0.name: is no name of a folder'],
  ['[[steps]]\nname = "aux.md"\n', {}, 'steps.0.name: is no name of a folder'],
  ['[[steps]]\nname = "one"\n[[steps]]\nname = "ONE"\n', {}, 'steps: have one name twice'],
  ['[[steps]]\nname = "one"\nmin_reward = "much"\n', {}, 'steps.0.min_reward'],
  ['[[steps]]\nname = "one"\n[steps.agent]\nuser = "other"\n', {}, 'step one has another user for its agent'],
  [
    '[[steps]]\nname = "one"\n[steps.agent]\nnetwork_mode = "no-network"\n',
    {},
    'step one has another network for its agent',
  ],
  [
    '[agent]\nnetwork_mode = "allowlist"\n[[steps]]\nname = "one"\n[steps.agent]\nnetwork_mode = "public"\n',
    {},
    'step one has another network for its agent',
  ],
  [
    '[[steps]]\nname = "one"\n[steps.verifier.environment]\nskills_dir = "/s"\n',
    {},
    'a verifier has no agent',
  ],
])('%j with %j is refused: %s', async (toml, files, reason) => {
  const { row } = await task(`${IMAGE}${toml}`, files);
  expect(row.refused).toContain(reason);
});

test('a key that steps do not have is a warning', async () => {
  const { row, warnings } = await task(`${IMAGE}[[steps]]\nname = "one"\ncolour = "red"\n`);
  expect(row.refused).toBeUndefined();
  expect(warnings).toEqual(['task: task.toml has a key that is not known here: steps.0.colour']);
});
