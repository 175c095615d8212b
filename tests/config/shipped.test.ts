// Every configuration that ships loads, renders and is found by its name.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { BUILT_IN_CONFIGS, PACKAGE_CONFIGS } from '../../src/config/readConfig.ts';
import { readTextFile } from './readTextFile.ts';

const load = (spec: string) => loadConfig({ specs: [spec], readFile: readTextFile, cwd: '/nowhere' });
const names = readdirSync(PACKAGE_CONFIGS).filter((f) => f.endsWith('.yaml'));

test('the eight are here', () => {
  expect(names.sort()).toEqual([
    'agents.yaml',
    'default.yaml',
    'demo-agents.yaml',
    'demo-skill.yaml',
    'demo.yaml',
    'nightly.yaml',
    'swebench-text.yaml',
    'swebench.yaml',
  ]);
});
test('the message for an unknown name lists them', () => {
  expect(BUILT_IN_CONFIGS.map((name) => `${name}.yaml`).toSorted()).toEqual(names.toSorted());
  expect(() => load('nope.yaml')).toThrow(
    /looked for \/nowhere\/nope\.yaml, .*\/configs\/nope\.yaml\. Built in are default, demo, /,
  );
});
test.each(names)('%s loads without a warning, by its name with and without ending [M-42]', (name) => {
  const loaded = load(name.replace('.yaml', ''));
  expect(loaded.warnings).toEqual([]);
  expect(loaded.config).toEqual(load(name).config);
  expect(loaded.config.environment.network).toBe('none');
});
test('without -c it is default.yaml, which uses bash blocks', () => {
  const loaded = loadConfig({ specs: [], base: 'default', readFile: readTextFile, cwd: '/nowhere' });
  expect(loaded.files.map((f) => f.path.split('/').at(-1))).toEqual(['default.yaml']);
  expect(loaded.config.agent.protocol).toBe('bash-block');
});
test('protocols and limits are what the names promise', () => {
  expect(load('swebench').config.agent.protocol).toBe('tool-call');
  expect(load('swebench-text').config.agent.protocol).toBe('bash-block');
  expect(load('demo').config.agent.step_limit).toBe(15);
  const nightly = load('nightly').config;
  expect(nightly.model.retry.max_retries).toBeGreaterThan(3);
  expect(nightly.run.cost_limit).toBeGreaterThan(0);
  expect(nightly.agent.wall_time_limit_seconds).toBeLessThan(3 * 3600);
});
test('agents compares three of them on one model, each in its own protocol', () => {
  const { arms } = load('agents');
  expect(arms.map(({ name, agent, model }) => [name, agent.agent_class, model.dialect])).toEqual([
    ['mini', 'default', 'chat'],
    ['codex', 'codex', 'responses'],
    ['claude-code', 'claude-code', 'messages'],
  ]);
});
test('none of them holds a path of a machine', () => {
  for (const name of names)
    expect(readFileSync(`${PACKAGE_CONFIGS}/${name}`, 'utf8')).not.toMatch(/\/work\/|\/home\//);
});
