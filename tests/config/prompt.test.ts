// The prompt asks for what the protocol takes: chosen where nobody set it, said where somebody did.
import { describe, expect, test } from 'vitest';
import { runOptionsOf } from '../../src/cli/flags/runFlags.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
import { readTextFile } from './readTextFile.ts';

const load = (specs: string[], files: Record<string, string> = {}) =>
  loadConfig({ specs, readFile: (path) => files[path] ?? readTextFile(path), cwd: '/w' });
const OWN = '/w/own.yaml';

test('without a file, agent.protocol=tool-call takes the prompt that asks for tool calls', () => {
  const args = {
    output: 'o',
    redoExisting: false,
    allowConfigChange: false,
    dryRun: true,
    online: false,
  } as const;
  const resolve = (...config: string[]) =>
    resolveConfig(runOptionsOf({ ...args, progress: 'none', json: false, config, model: ['m'] }), {
      cwd: process.cwd(),
      env: process.env,
    });
  const { arms, warnings, files } = resolve('agent.protocol=tool-call', 'agent.step_limit=7');
  expect(arms[0]!.agent.instance_template).toContain('call the tool `bash`');
  expect(arms[0]!.agent.instance_template).not.toContain('```bash');
  expect(arms[0]!.agent.step_limit).toBe(7);
  expect(warnings).toEqual([]);
  expect(files.map((f) => f.path.split('/').at(-1))).toEqual(['swebench.yaml']);
  const blocks = resolve('agent.step_limit=7');
  expect(blocks.arms[0]!.agent.instance_template).toContain('```bash');
});

test('a file without a prompt gets the default one of its protocol', () => {
  const prompt = (protocol: string) =>
    load(['own'], { [OWN]: `agent: {protocol: ${protocol}}` }).config.agent.instance_template;
  expect(prompt('tool-call')).toContain('call of the tool bash');
  expect(prompt('tool-call')).not.toContain('backticks');
  expect(prompt('bash-block')).toContain('triple backticks');
});

describe('a prompt that was written for the other protocol is said', () => {
  const own = { [OWN]: 'agent: {instance_template: "do {{ task }}"}' };
  test('when a later layer changes the protocol', () => {
    expect(load(['default', 'agent.protocol=tool-call']).warnings).toEqual([
      expect.stringMatching(
        /^agent\.protocol: tool-call, but agent\.instance_template \(.*default\.yaml\) was written for bash-block;.*swebench\.yaml$/,
      ),
    ]);
    expect(load(['swebench', 'agent.protocol=bash-block']).warnings[0]).toContain('swebench-text.yaml');
  });
  test('in an arm', () => {
    const arms = 'arms=[{"name":"a"},{"name":"b","agent":{"protocol":"tool-call"}}]';
    expect(load(['own', arms], own).warnings).toEqual([expect.stringContaining('arms[1]: agent.protocol')]);
  });
  test('and not when it is set with the protocol or after it', () => {
    expect(load(['own', 'agent.step_limit=1'], own).warnings).toEqual([]);
    expect(load(['agent.protocol=tool-call', 'own'], own).warnings).toEqual([]);
    expect(
      load(['default', 'agent.protocol=tool-call', 'agent.instance_template={{ task }}']).warnings,
    ).toEqual([]);
  });
});
