// What a Harbor task wants of the machine that runs it: variables, a judge, GPUs.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withVariables } from '../../../src/base/hostVariables.ts';
import { configSchema } from '../../../src/config/configSchema.ts';
import { readInstance } from '../../../src/dataset/dataset.ts';
import { containerSpec } from '../../../src/environment/docker/container.ts';
import { deviceRequests } from '../../../src/environment/docker/gpus.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { engineInfo } from '../../../src/environment/places/engineInfo.ts';
import { checkDataset } from '../../../src/run/datasets.ts';
import { refusalsOf, type TaskFacts } from '../../../src/run/plan/checks.ts';
import { taskFacts } from '../../../src/run/plan/refusedTasks.ts';
import { readEnv } from '../../../src/suites/harbor/taskToml.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { needsOf } from '../../../src/suites/suites.ts';
import { tempDir } from '../../support/cli.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const IMAGE = '[environment]\ndocker_image = "debian:12"\n';

async function datasetOf(toml: string) {
  const loaded = await loadDataset(join(harborTask(tempDir('wants-'), 'task', { 'task.toml': toml })));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded));
  return loaded.dataset;
}

const NO_FACTS: TaskFacts = { run: [], engine: [], machine: [], arm: [], grader: [] };

const rowOf = async (toml: string) => (await datasetOf(toml)).rows[0]!;

// The fullmatch of harbor/utils/env.py 0.25.0: what holds more than a template is what it says.
test.each([
  ['literal', 'literal', undefined],
  [`\${A}`, undefined, 'A'],
  [`\${A:-b}`, 'b', 'A'],
  [`\${A:-}`, '', 'A'],
  [`\${A:-\${B}}`, `\${B}`, 'A'],
  [`http://\${A}/v1`, `http://\${A}/v1`, undefined],
  [`\${A} `, `\${A} `, undefined],
  ['$A', '$A', undefined],
])('%j is known as %j, and wants %j', (value, known, wanted) => {
  const { env, variables } = readEnv({ KEY: value });
  expect([env.KEY, variables?.KEY]).toEqual([known, wanted]);
});

test('a value that is given goes over a default, and what is not given is not there', () => {
  const needs = { env: { B: 'two', C: 'c' }, variables: { A: 'X', B: 'Y' } };
  expect(withVariables(needs, { Y: 'y' })).toEqual({ env: { B: 'y', C: 'c' } });
  expect(withVariables(needs, undefined)).toEqual({ env: { B: 'two', C: 'c' } });
});

test('what a task wants is refused by name where nobody gives it', async () => {
  const dataset = await datasetOf(`${IMAGE}env = { A = "\${A_KEY}", B = "\${B_KEY:-b}" }
[verifier]
env = { K = "\${ANTHROPIC_API_KEY}", U = "\${OPENAI_BASE_URL:-x}" }
[solution]
env = { S = "\${S_KEY}" }
`);
  const row = dataset.rows[0]!;
  expect(needsOf(readInstance(row)).container).toMatchObject({
    env: { B: 'b' },
    variables: { A: 'A_KEY', B: 'B_KEY' },
  });
  const check = await checkDataset({ ...dataset, rows: [row] });
  expect([check.gradable, check.wants]).toEqual([
    1,
    { 'suite.env=A_KEY': 1, 'suite.judge': 1, 'suite.env=S_KEY': 1 },
  ]);
  const { agent, environment, model } = configSchema.parse({});
  const why = async (facts: Partial<TaskFacts>) => {
    const [one] = await refusalsOf(row, { ...NO_FACTS, ...facts });
    return one?.why;
  };
  const refusal = async (suite: unknown, agent_class: string, env = {}) => {
    const arms = [{ name: 'a', agent: { ...agent, agent_class }, environment, model }];
    const { suite: given, grading } = configSchema.parse({ suite });
    const facts = await taskFacts([row], { suite: given, arms, grading }, { env, cwd: '/' });
    return why({ machine: facts.machine });
  };
  const judge =
    'verifier.env.K wants $ANTHROPIC_API_KEY, to ask a model as its judge: name it in suite.judge, for example suite.judge.model_name=NAME; your key stays here';
  expect(await refusal({}, 'nop')).toBe(
    `environment.env.A wants $A_KEY of this machine: allow it with suite.env=A_KEY; ${judge}`,
  );
  const allowed = { env: 'A_KEY, S_KEY', judge: { model_name: 'm' } };
  expect(await refusal(allowed, 'nop')).toBe(
    'environment.env.A wants $A_KEY, which suite.env allows and which is not set: export A_KEY=...',
  );
  expect(await refusal(allowed, 'nop', { A_KEY: '' })).toBeUndefined();
  expect(await refusal({ ...allowed, env: ['A_KEY'] }, 'oracle', { A_KEY: 'a' })).toMatch(
    /solution\.env\.S wants \$S_KEY/,
  );
  // Who names the variable itself gives the tests the key itself.
  expect(
    await refusal({ env: 'A_KEY,ANTHROPIC_API_KEY' }, 'nop', { A_KEY: 'a', ANTHROPIC_API_KEY: 'k' }),
  ).toBeUndefined();
});

test('GPUs are asked of an engine that has them, and refused before anything starts where it has none', async () => {
  const row = await rowOf(`${IMAGE}gpus = 2\ngpu_types = ["H100"]\n`);
  expect(row.refused).toBeUndefined();
  expect(needsOf(readInstance(row))).toMatchObject({ gpus: 2, container: { gpus: 2 } });
  const engine = (info: object) => ({ info: async () => info, version: async () => ({}) }) as never;
  const gpusOf = async (info: object) => {
    const found = await engineInfo(engine(info));
    return found.ok ? found : expect.fail(found.message);
  };
  const none = await gpusOf({ Runtimes: { runc: {} } });
  const nvidia = await gpusOf({ Runtimes: { runc: {}, nvidia: {} } });
  const device = (ID: string) => ({ Source: 'cdi', ID });
  const one = {
    DiscoveredDevices: [
      device('nvidia.com/gpu=0'),
      device('nvidia.com/gpu=GPU-1'),
      device('nvidia.com/gpu=all'),
      device('x.com/net=0'),
    ],
  };
  const cdi = await gpusOf(one);
  expect([none.gpus, nvidia.gpus, cdi.gpus]).toEqual([[], 'any', ['nvidia.com/gpu=0']]);
  const refused = (facts: typeof none) => refusalsOf(row, { ...NO_FACTS, engine: [facts] });
  expect(await refused(nvidia)).toEqual([]);
  expect(await refused(none)).toMatchObject([{ check: 'gpus', why: expect.stringContaining('names none') }]);
  expect(await refused(cdi)).toMatchObject([{ why: 'it asks for 2 GPUs, and the engine names 1' }]);

  const requests = await deviceRequests(engine({ Runtimes: { nvidia: {} } }), 2);
  const request = {
    instanceId: 'i',
    owner: { run: 'r', attempt: '1.1', pid: 1, pidStart: '1', bootId: 'b', host: 'h' },
  };
  const spec = containerSpec(
    {
      config: { ...environmentConfigSchema.parse({}), network: 'none' },
      image: 'i',
      request,
      quietEnv: false,
      storageBytes: 0,
      devices: requests,
    },
    'name',
  );
  expect(spec.HostConfig!.DeviceRequests).toEqual([{ Driver: 'nvidia', Count: 2, Capabilities: [['gpu']] }]);
  expect(await deviceRequests(engine(one), 1)).toEqual([{ Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=0'] }]);
});
