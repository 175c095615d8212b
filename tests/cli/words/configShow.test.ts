// `config show`: every value with the file or the words that set it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';

interface Row {
  path: string;
  value: unknown;
  from: string;
}

async function shown(args: string[], cwd = tempDir()): Promise<Row[]> {
  const said = await cli(['config', 'show', '--json', ...args], { cwd });
  expect(said.stderr).toBe('');
  return JSON.parse(said.stdout);
}

test('a value names its file, its -c, the command line, or that it is a default or derived', async () => {
  const cwd = tempDir();
  writeFileSync(join(cwd, 'mine.yaml'), 'agent:\n  step_limit: 9\n  cost_limit: 1\n');
  const rows = await shown(
    ['-c', 'swebench', '-c', 'mine.yaml', '-c', 'agent.cost_limit=2', '-m', 'gpt-5.4', '--all'],
    cwd,
  );
  const from = (path: string) => rows.find((row) => row.path === path);
  expect(from('agent.step_limit')).toEqual({
    path: 'agent.step_limit',
    value: 9,
    from: join(cwd, 'mine.yaml'),
  });
  expect(from('agent.cost_limit')).toMatchObject({ value: 2, from: '-c agent.cost_limit=2' });
  expect(from('model.model_name')).toMatchObject({ value: 'gpt-5.4', from: 'command line' });
  expect(from('model.dialect')).toMatchObject({ value: 'responses', from: 'derived' });
  expect(from('run.epochs')).toMatchObject({ value: 1, from: 'default' });
  expect(from('agent.instance_template')!.from).toMatch(/configs.swebench\.yaml$/);
});

test('without --all there are no defaults', async () => {
  const rows = await shown(['-m', 'gpt-5.4']);
  expect(rows.length).toBeGreaterThan(3);
  expect(rows.map(({ from }) => from)).not.toContain('default');
});

test('of several arms, what differs stands once for each', async () => {
  const rows = await shown(['-m', 'gpt-5.4', '-m', 'openrouter/qwen/qwen3-coder']);
  const names = rows.filter(({ path }) => path.endsWith(': model.model_name'));
  expect(names.map(({ value }) => value)).toEqual(['gpt-5.4', 'openrouter/qwen/qwen3-coder']);
  expect(rows.filter(({ path }) => path === 'agent.step_limit')).toHaveLength(1);
});

test('a mistake in the configuration is said as a run would say it', async () => {
  const said = await cli(['config', 'show', '-c', 'agent.step_limt=3'], { cwd: tempDir() });
  expect(said.code).toBe(2);
  expect(said.stderr).toContain('did you mean agent.step_limit?');
});
