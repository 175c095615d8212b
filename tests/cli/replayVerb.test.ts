// `swebatch replay` over several files: the named JSON, exit codes, and files that cannot be played among others that can.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';

const body = (content: string) => ({
  id: 'r',
  created: 1763500000,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
  usage: { prompt_tokens: 10, completion_tokens: 5, cost: 0.5 },
});
const submits = '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat p\n```';
const recording = (id: string, said = submits) => ({
  info: {
    exit_status: 'Submitted',
    submission: 'diff\n',
    model_stats: { instance_cost: 0.5, api_calls: 1 },
    mini_version: '1.17.5',
    config: {
      agent: { system_template: 'system', instance_template: 'task: {{ task }}' },
      model: { model_name: 'm' },
      environment: {},
    },
  },
  messages: [
    { role: 'system', content: 'system', timestamp: 1 },
    { role: 'user', content: 'task: fix', timestamp: 2 },
    { role: 'assistant', content: said, timestamp: 3, extra: { response: body(submits) } },
    { role: 'user', content: 'diff\n', timestamp: 4 },
  ],
  trajectory_format: 'mini-swe-agent-1',
  instance_id: id,
});

let folder: string;
const path = (name: string) => join(folder, `${name}.traj.json`);
beforeAll(() => {
  folder = tempDir();
  writeFileSync(path('good'), JSON.stringify(recording('a__a-1')));
  writeFileSync(path('changed'), JSON.stringify(recording('a__a-2', submits.replace('cat p', 'cat q'))));
  // What version 1 leaves where no container came up.
  const never = { ...recording('a__a-3'), messages: [] };
  writeFileSync(path('never'), JSON.stringify({ ...never, info: { ...never.info, config: undefined } }));
  writeFileSync(path('torn'), '{"info": {');
});

describe('swebatch replay', () => {
  test('--json is an array with the named fields, and what is told beside them', async () => {
    const { code, stdout, stderr } = await cli(['replay', path('good'), '--check', '--json']);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      {
        file: path('good'),
        instance_id: 'a__a-1',
        messages: { equal: 4, total: 4 },
        exit_status_equal: true,
        submission_equal: true,
        cost_equal: true,
        elided: 0,
        differences: [],
      },
    ]);
  });

  test('a reply that is not what the provider sent differs, and --check fails for it', async () => {
    const { code, stdout } = await cli(['replay', path('changed'), '--check']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/DIFFERS +a__a-2 3\/4 messages/);
    expect(stdout).toContain('at 2: differs at character');
  });

  test('files that cannot be played are told, and do not hide what the others came to', async () => {
    const all = await cli(['replay', folder, '--check', '--json']);
    expect(all.code).toBe(1);
    const rows = JSON.parse(all.stdout) as { file: string; cost_equal: boolean; problem?: string }[];
    expect(rows.map((r) => [r.file, r.cost_equal, r.problem !== undefined])).toEqual([
      [path('changed'), true, false],
      [path('good'), true, false],
      [path('never'), false, true],
      [path('torn'), false, true],
    ]);
    expect(rows[2]!.problem).toContain('a__a-3: the trajectory has no messages');
    expect(rows[3]!.problem).toContain('is not a trajectory');
    const told = await cli(['replay', path('good'), path('torn')]);
    expect(told.code).toBe(2);
    expect(told.stdout).toMatch(/equal +a__a-1[\s\S]*UNREAD/);
    expect(told.stderr).toContain('1 of 2 trajectories replay equal');
  });

  test('alone such a file is a wrong argument', async () => {
    const { code, stderr } = await cli(['replay', path('torn')]);
    expect(code).toBe(2);
    expect(stderr).toContain('is not a trajectory');
  });
});
