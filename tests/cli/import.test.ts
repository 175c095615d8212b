// `swebatch import` of folders that are damaged, or that name what they should not: nothing is lost, and nothing is written elsewhere.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';

test('model and configuration come from a trajectory that has them, and the damaged one is part of the run', async () => {
  const home = tempDir();
  const write = (id: string, text: string): void => {
    mkdirSync(join(home, 'mini', id), { recursive: true });
    writeFileSync(join(home, 'mini', id, `${id}.traj.json`), text);
  };
  write('a__a-1', '{"info": {');
  write(
    'a__a-2',
    JSON.stringify({
      info: {
        exit_status: 'Submitted',
        submission: 'diff --git a/x b/x\n',
        model_stats: { instance_cost: 0.5, api_calls: 1 },
        mini_version: '2.4.6',
        config: {
          agent: { system_template: 'the system', instance_template: '{{ task }}', step_limit: 77 },
          model: { model_name: 'org/model' },
          environment: {},
        },
      },
      messages: [],
      trajectory_format: 'mini-swe-agent-1.1',
      instance_id: 'a__a-2',
    }),
  );
  const out = join(home, 'out');
  const imported = await cli(['import', join(home, 'mini'), '-o', out, '--run-id', 'theirs']);
  expect(imported.code, imported.stderr).toBe(0);
  expect(imported.stderr).toMatch(/a__a-1\.traj\.json cannot be read/);
  expect(imported.stderr).toContain('imported 2 instances');
  const trials = JSON.parse((await cli(['ls', 'theirs', '-o', out, '--json'])).stdout) as {
    instance_id: string;
    exit_reason: string;
    model: string;
  }[];
  expect(trials.map((t) => [t.instance_id, t.exit_reason, t.model])).toEqual([
    ['a__a-1', 'cancelled', 'org/model'],
    ['a__a-2', 'submitted', 'org/model'],
  ]);
  const config = await cli(['export', 'theirs', 'config', '-o', out]);
  expect(config.stdout).toContain('system_template: the system');
  expect(config.stdout).toContain('step_limit: 77');
});

test('an id that leaves the results root is refused with file and line, by every verb that reads it; nothing is written', async () => {
  const home = tempDir();
  mkdirSync(join(home, 'preds'));
  const file = join(home, 'preds', 'all_preds.jsonl');
  const row = { model_name_or_path: 'm', model_patch: 'diff --git a/x b/x\n' };
  const rows = ['a__a-1', '../../../../escaped'].map((instance_id) =>
    JSON.stringify({ ...row, instance_id }),
  );
  writeFileSync(file, `${rows.join('\n')}\n`);
  const dataset = join(home, 'preds', 'rows.jsonl');
  writeFileSync(dataset, '{"instance_id": "a__a-1", "problem_statement": "p", "base_commit": "0"}\n');
  const says = `${file}: line 2: instance_id "../../../../escaped" must be 1 to 128 of`;
  for (const args of [
    ['import', join(home, 'preds'), '-o', join(home, 'out')],
    ['compare', file, file, '-o', join(home, 'out')],
    ['evaluate', file, '--subset', dataset, '-o', join(home, 'out')],
  ]) {
    const { code, stderr } = await cli(args);
    expect([args[0], code, stderr]).toEqual([args[0], 2, expect.stringContaining(says)]);
  }
  expect(readdirSync(home)).toEqual(['preds']);
});

test.each(['.', '..', '../..'])(
  'the files of a run that is imported from %s lie in the results root',
  async (source) => {
    const home = tempDir();
    mkdirSync(join(home, 'mini', 'inner', 'deep'), { recursive: true });
    writeFileSync(
      join(home, 'mini', 'preds.json'),
      JSON.stringify({ 'a__a-1': { model_name_or_path: 'm', model_patch: 'diff --git a/x b/x\n' } }),
    );
    const cwd = join(home, 'mini', ...{ '.': [], '..': ['inner'], '../..': ['inner', 'deep'] }[source]!);
    const out = join(home, 'out');
    const { code, stderr } = await cli(['import', source, '-o', out], { cwd });
    expect(code, stderr).toBe(0);
    expect(readdirSync(home).sort()).toEqual(['mini', 'out']);
    expect(readdirSync(out)).toContain('mini');
  },
);

test('a dataset whose row names no image ends every verb with its line; nothing is asked for and nothing starts', async () => {
  const home = tempDir();
  const rows = [{ image: 'ok/image' }, { image: '127.0.0.1:9/../../x' }].map((more, i) =>
    JSON.stringify({ instance_id: `a__a-${i}`, problem_statement: 'p', base_commit: '0', ...more }),
  );
  const file = join(home, 'rows.jsonl');
  writeFileSync(file, rows.join('\n'));
  const { code, stderr } = await cli(['run', '--subset', file, '-m', 'scripted:x', '-o', join(home, 'out')]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`${file} line 2 (a__a-1): image "127.0.0.1:9/../../x"`),
  ]);
  expect(readdirSync(home)).toEqual(['rows.jsonl']);
});

test('an id that would turn the text of a terminal around is refused in signs', async () => {
  const home = tempDir();
  const id = 'a__a-\u202egnp\u009b2J\u001b[2J';
  writeFileSync(
    join(home, 'preds.json'),
    JSON.stringify([{ instance_id: id, model_name_or_path: 'm', model_patch: '' }]),
  );
  const { code, stderr, stdout } = await cli([
    'import',
    join(home, 'preds.json'),
    '-o',
    join(home, 'results'),
  ]);
  expect(code).toBe(2);
  expect(stderr + stdout).toContain('‹U+202E›');
  expect(stderr + stdout).not.toMatch(/[\u202e\u009b\u001b]/);
});
