// `swebatch import` of a folder whose first trajectory is damaged: nothing of what the others say is lost.
import { mkdirSync, writeFileSync } from 'node:fs';
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
