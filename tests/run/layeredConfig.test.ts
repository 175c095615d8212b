// A file of `-c` lies over the default unless it brings an agent; what replaces the default is told, and what is missing then is refused.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agentLine, agentOrigins } from '../../src/run/plan/agentOrigins.ts';
import { findingsOf } from '../../src/run/plan/checks.ts';
import { planFacts } from '../../src/run/plan/planFacts.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
import { tempDir } from '../support/cli.ts';

const folder = tempDir();
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return name;
};
const resolve = (...config: string[]) =>
  resolveConfig({ config, models: ['scripted:m'] }, { cwd: folder, env: {} });
const line = async (...config: string[]) => (await agentOrigins(resolve(...config), folder)).map(agentLine);
const refused = async (...config: string[]) =>
  (await findingsOf('configuration', 'run', planFacts(resolve(...config), { cwd: folder, env: {} }))).flatMap(
    ({ ok, here, what, detail, fix }) => (ok || here ? [] : [`${what}: ${detail}; ${fix}`]),
  );

const ADDRESS = file(
  'address.yaml',
  'model: {base_url: "http://127.0.0.1:1/v1", prices: {input: 1, output: 2}}\n',
);
const MINI = file(
  'mini.yaml',
  'agent: {system_template: You fix code., instance_template: "{{ task }}", step_limit: 7}\n',
);

test('a file of an address and prices keeps the prompt and the limits of the default', () => {
  const [plain] = resolve().arms;
  const [withFile] = resolve(ADDRESS).arms;
  const [withKeys] = resolve(
    'model.base_url="http://127.0.0.1:1/v1"',
    'model.prices={"input":1,"output":2}',
  ).arms;
  expect(withFile).toEqual(withKeys);
  expect(withFile!.agent).toEqual(plain!.agent);
  expect(withFile!.agent.step_limit).toBe(100);
  expect(resolve(ADDRESS).hash).toBe(
    resolve('model.base_url="http://127.0.0.1:1/v1"', 'model.prices={"input":1,"output":2}').hash,
  );
});

test('one that asks for tool calls is laid over the configuration whose prompt asks for them', () => {
  const { arms, warnings } = resolve(file('calls.yaml', 'agent: {protocol: tool-call}\n'));
  expect(arms[0]!.agent.instance_template).toContain('call the tool `bash`');
  expect(warnings).toEqual([]);
});

test('the line of the plan says where prompt, limits and protocol came from', async () => {
  expect(await line(ADDRESS, 'agent.cost_limit=9')).toEqual([
    'prompt, 100 steps, bash-block (default.yaml) · $9 (-c agent.cost_limit=9) · no time limit (built in)',
  ]);
  expect(resolve(ADDRESS).replacedBy).toBeNull();
  expect(await line(ADDRESS, MINI)).toEqual([
    'prompt, 7 steps (mini.yaml) · $3, no time limit, bash-block (built in)',
  ]);
  expect(resolve(ADDRESS, MINI).replacedBy).toBe(join(folder, MINI));
  expect(await line(file('codex.yaml', 'agent: {agent_class: codex@0.169.0}\n'))).toEqual([
    'prompt, no time limit (built in) · 100 steps, $3 (default.yaml)',
  ]);
});

test('a template that the agent needs and nothing names is refused', async () => {
  const half = file('half.yaml', 'agent: {instance_template: "{{ task }}"}\n');
  expect(await refused(half)).toEqual([
    expect.stringMatching(
      /^prompt of arm \S+: nothing names agent\.system_template, and \S*half\.yaml replaces the default configuration.*; name agent\.system_template there too, or /,
    ),
  ]);
  expect(await refused(file('two.yaml', 'agent: {compat: mini-swe-agent-2}\n'))).toEqual([
    expect.stringContaining('nothing names agent.system_template and agent.instance_template'),
  ]);
  expect(await refused(half, 'agent.system_template=You fix code.')).toEqual([]);
  // The code of version 1 has both.
  expect(await refused(file('one.yaml', 'agent: {compat: mini-swe-agent-1}\n'))).toEqual([]);
  const arms = 'arms:\n- {name: a}\n- {name: b, agent: {instance_template: "{{ task }}"}}\n';
  expect(await refused(file('arms.yaml', arms))).toHaveLength(2);
});
