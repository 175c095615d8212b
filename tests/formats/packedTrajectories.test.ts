// A run writes a trajectory of more than 1 MB compressed: whoever reads trajectories reads it like the plain file.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { exportRun, exportTrajectories } from '../../src/run/record/exportRun.ts';
import { runById } from '../../src/store/records/runs.ts';
import { openMemory, recordRun } from '../report/recordedRun.ts';
import { cli, tempDir } from '../support/cli.ts';

const LONG = 'a line of output that an agent saw\n'.repeat(40_000);

test('above 1 MB a run writes the compressed file alone, and one that was asked for is plain, with the same bytes', async () => {
  const db = openMemory();
  const id = recordRun(db, {
    ids: ['a__a-1', 'a__a-2'],
    happened: (instance) => [
      { patch: 'diff\n', messages: [{ role: 'user', content: instance === 'a__a-1' ? LONG : 'short' }] },
    ],
  });
  const dir = tempDir();
  const target = { store: db, run: runById(db, id)!, dir, version: '0' };
  await exportRun(target);
  const names = (instance: string) => readdirSync(join(dir, 'trajectories', instance));
  expect(names('a__a-1')).toEqual(['a__a-1.traj.json.gz']);
  expect(names('a__a-2')).toEqual(['a__a-2.traj.json']);
  const packed = gunzipSync(readFileSync(join(dir, 'trajectories', 'a__a-1', 'a__a-1.traj.json.gz')));
  expect(packed.length).toBeGreaterThan(1024 * 1024);
  await exportTrajectories(target);
  expect(names('a__a-1')).toEqual(['a__a-1.traj.json']);
  expect(readFileSync(join(dir, 'trajectories', 'a__a-1', 'a__a-1.traj.json'))).toEqual(packed);
  await exportRun(target);
  expect(names('a__a-1')).toEqual(['a__a-1.traj.json.gz']);
});

const body = (content: string) => ({
  id: 'r',
  created: 1763500000,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
  usage: { prompt_tokens: 10, completion_tokens: 5, cost: 0.5 },
});
const submits = '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat p\n```';
const recorded = (id: string) => ({
  info: {
    exit_status: 'Submitted',
    submission: 'diff\n',
    model_stats: { instance_cost: 0.5, api_calls: 1 },
    mini_version: '1.17.5',
    config: {
      agent: { system_template: LONG.trim(), instance_template: 'task: {{ task }}' },
      model: { model_name: 'm' },
      environment: {},
    },
  },
  messages: [
    { role: 'system', content: LONG.trim(), timestamp: 1 },
    { role: 'user', content: 'task: fix', timestamp: 2 },
    { role: 'assistant', content: submits, timestamp: 3, extra: { response: body(submits) } },
    { role: 'user', content: 'diff\n', timestamp: 4 },
  ],
  trajectory_format: 'mini-swe-agent-1',
  instance_id: id,
});

const verdict = (resolved: boolean) => ({
  ...{ patch_is_None: false, patch_exists: true, patch_successfully_applied: true, resolved },
  tests_status: {},
});

describe('a folder of mini-swe-agent with compressed trajectories', () => {
  let home: string;
  const ids = ['a__a-1', 'a__a-2'];
  beforeAll(() => {
    home = tempDir();
    for (const [folder, suffix] of [
      ['plain', ''],
      ['packed', '.gz'],
    ] as const)
      for (const id of ids) {
        mkdirSync(join(home, folder, id), { recursive: true });
        const text = Buffer.from(JSON.stringify(recorded(id)));
        writeFileSync(join(home, folder, id, `${id}.traj.json${suffix}`), suffix ? gzipSync(text) : text);
        const graded = join(home, folder, 'logs', 'run_evaluation', 'r', 'm', id);
        mkdirSync(graded, { recursive: true });
        writeFileSync(join(graded, 'report.json'), JSON.stringify({ [id]: verdict(id === 'a__a-1') }));
      }
  });
  const run = (...args: string[]) => cli(args, { cwd: home, env: { XDG_CACHE_HOME: join(home, 'cache') } });

  test('is imported with the same trials and the same conversation', async () => {
    for (const folder of ['plain', 'packed']) {
      const { code, stderr } = await run('import', folder, '-o', 'imported', '--run-id', folder);
      expect(code, stderr).toBe(0);
      expect(stderr).toContain('imported 2 instances');
    }
    const shown = async (folder: string) => {
      const lines = JSON.parse((await run('ls', folder, '-o', 'imported', '--json')).stdout) as object[];
      const { messages } = JSON.parse(
        (await run('show', folder, 'a__a-1', '-o', 'imported', '--json')).stdout,
      ) as { messages: object[] };
      return { lines: lines.map((line) => ({ ...line, trial_id: 0, attempt_id: 0 })), messages };
    };
    const packed = await shown('packed');
    expect(packed).toEqual(await shown('plain'));
    expect(packed.lines).toHaveLength(2);
    expect(packed.messages[0]).toMatchObject({ content: LONG.trim() });
  });

  test('is replayed: its files one by one, and as a folder', async () => {
    const file = join('packed', 'a__a-1', 'a__a-1.traj.json.gz');
    const one = await run('replay', file, '--check', '--json');
    expect(one.code, one.stderr).toBe(0);
    expect(JSON.parse(one.stdout)).toMatchObject([{ file, messages: { equal: 4, total: 4 } }]);
    const all = await run('replay', 'packed', '--check', '--json');
    expect(all.code, all.stderr).toBe(0);
    expect((JSON.parse(all.stdout) as { file: string }[]).map((row) => row.file)).toEqual(
      ids.map((id) => join('packed', id, `${id}.traj.json.gz`)),
    );
    writeFileSync(join(home, 'torn.traj.json.gz'), gzipSync('{}').subarray(0, 12));
    const torn = await run('replay', 'torn.traj.json.gz');
    expect(torn.code).toBe(2);
    expect(torn.stderr + torn.stdout).toContain('torn.traj.json.gz cannot be read');
  });

  test('is compared with the plain folder: the same instances, on both sides', async () => {
    const { code, stdout, stderr } = await run('compare', 'plain', 'packed', '--json');
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/packed: read as a folder of mini-swe-agent: 2 instances/);
    const { not_comparable } = JSON.parse(stdout) as {
      not_comparable: { instance_id: string; missing_in: string }[];
    };
    // Their reports hold no test, so that neither side has a verdict.
    expect(not_comparable.map((one) => [one.instance_id, one.missing_in])).toEqual(
      ids.map((id) => [id, 'both']),
    );
  });

  test('is viewed with its conversations', async () => {
    const { code, stderr } = await run('view', 'packed', '--bundle', 'page');
    expect(code, stderr).toBe(0);
    const data = join(home, 'page', 'data', 'attempts');
    expect(existsSync(data)).toBe(true);
    const texts = readdirSync(data, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.json') || name.endsWith('.gz'))
      .map((name) => {
        const bytes = readFileSync(join(data, name));
        return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
      });
    expect(texts.some((text) => text.includes('a line of output that an agent saw'))).toBe(true);
  });
});
