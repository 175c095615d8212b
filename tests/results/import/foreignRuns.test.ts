// report, compare and view on files and folders of other runners: no results root is needed, and none is written.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareSources } from '../../../src/index.ts';
import { cli, tempDir } from '../../support/cli.ts';

const LOGS = join(import.meta.dirname, '..', '..', 'formats', 'inspectLogs');

function place() {
  const home = tempDir();
  const env = { XDG_CACHE_HOME: join(home, 'cache') };
  cpSync(LOGS, join(home, 'logs'), { recursive: true });
  const trial = (name: string, more: Record<string, unknown>) => {
    mkdirSync(join(home, 'job', name), { recursive: true });
    writeFileSync(
      join(home, 'job', name, 'result.json'),
      JSON.stringify({ agent_info: { name: 'a', model_info: { name: 'm' } }, ...more }),
    );
  };
  const reward = (value: number) => ({ verifier_result: { rewards: { reward: value } } });
  trial('1', { task_name: 'made__made-1', ...reward(1) });
  trial('2', { task_name: 'made__made-2', ...reward(1) });
  trial('3', { task_name: 'made__made-3', exception_info: { exception_type: 'SandboxBuildFailedError' } });
  const evals = { a__m__d: { metrics: [{ mean: 2 / 3 }] } };
  writeFileSync(join(home, 'job', 'result.json'), JSON.stringify({ n_total_trials: 3, stats: { evals } }));
  return { home, run: (...args: string[]) => cli(args, { cwd: home, env }) };
}

test("report says what it read, what is missing, and the other tool's own number", async () => {
  const { home, run } = place();
  const { code, stdout, stderr } = await run('report', 'job', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout).arms[0]).toMatchObject({ planned: 3, valid: 2, resolved: { x: 2, n: 2 } });
  expect(stderr).toMatch(
    /job: read as a job folder of Harbor: 3 instances; 2 of 2 resolved = 100\.0 %; missing 1 .*: made__made-3/,
  );
  expect(stderr).toMatch(
    /Harbor's mean is 0\.667 over 3 trials, because it counts 1 .* 0\.333 more\. Missing here: made__made-3 \(SandboxBuildFailedError\)/,
  );
  expect(existsSync(join(home, 'results'))).toBe(false);
});

test('compare lays a job of Harbor beside a log of Inspect, and a run beside a file', async () => {
  const { run } = place();
  const { code, stdout, stderr } = await run('compare', 'job', 'logs/made.eval', '--json');
  expect(code).toBe(0);
  expect(stderr).toMatch(/job: read as a job folder of Harbor/);
  expect(stderr).toMatch(/made\.eval: read as a log of Inspect: 10 trials of 5 instances/);
  const both = JSON.parse(stdout);
  expect(both.matched).toBe(2);
  expect(both.not_comparable).toContainEqual({ instance_id: 'made__made-3', why: 'infra', missing_in: 'a' });
  await run('import', 'logs/made.json', '--run-id', 'ours');
  const beside = await run('compare', 'ours', 'logs/older.eval');
  expect(beside.stdout).toMatch(/0\.0 pp/);
  expect(beside.code).toBe(0);
});

test('view shows them; a report of another kind than any is refused as before', async () => {
  const { home, run } = place();
  const bundle = await run('view', 'job', '--bundle', 'page');
  expect(bundle.stderr).toMatch(/read as a job folder of Harbor/);
  expect(bundle.code).toBe(0);
  expect(readFileSync(join(home, 'page', 'index.html'), 'utf8')).toMatch(/<html/);
  writeFileSync(join(home, 'x.json'), '{}');
  const none = await run('report', 'x.json');
  expect(none.code).not.toBe(0);
  const broken = await run('report', 'logs/makeLogs.py');
  expect(broken.code).not.toBe(0);
});

test('a path that is nothing known says so, and what its nearest kind is known by', async () => {
  const { home, run } = place();
  mkdirSync(join(home, 'near'));
  writeFileSync(join(home, 'near', 'result.json'), '{"ok": true}');
  writeFileSync(join(home, 'text.md'), 'hello');
  mkdirSync(join(home, 'empty'));
  const verbs = (path: string) => [
    ['report', path],
    ['view', path, '--bundle', 'out'],
    ['compare', 'job', path],
  ];
  for (const words of verbs('near')) {
    const { code, stderr } = await run(...words);
    expect([code, stderr], words.join(' ')).toEqual([
      2,
      expect.stringMatching(/near is a folder, and nothing that is known/),
    ]);
    expect(stderr).toMatch(/nearest kind, for its result\.json, is a job folder of Harbor: .*n_total_trials/);
    expect(stderr).not.toMatch(/start a run|swebatch ls/);
  }
  for (const words of verbs('text.md')) {
    const { code, stderr } = await run(...words);
    expect([code, stderr], words.join(' ')).toEqual([
      2,
      expect.stringMatching(/text\.md is a file, and nothing that is known/),
    ]);
    expect(stderr).toMatch(/SWE-agent's trajectories.*\n.*OpenHands' output\.jsonl.*\n.*Terminal-Bench 1/);
  }
  for (const words of verbs('empty')) expect((await run(...words)).stderr).toMatch(/it holds no files/);
  expect((await run('import', 'near')).stderr).toMatch(/nearest kind, for its result\.json/);
});

const TRAJECTORY = {
  info: {
    model_stats: { instance_cost: 0.1, api_calls: 1 },
    config: { agent: { step_limit: 250 }, model: { model_name: 'm' } },
    ...{ mini_version: '2.4.6', exit_status: 'Submitted', submission: 'diff --git a/f b/f\n' },
  },
  messages: [
    { role: 'system', content: 's' },
    { role: 'user', content: 'u' },
    { role: 'assistant', content: 'I look.', extra: { actions: [{ command: 'ls here' }], timestamp: 1 } },
    { role: 'user', content: '<returncode>0</returncode>\n<output>f</output>' },
    { role: 'exit', content: '', extra: { exit_status: 'Submitted', submission: 'diff --git a/f b/f\n' } },
  ],
  ...{ trajectory_format: 'mini-swe-agent-1.1', instance_id: 'made__made-1' },
};

test('compare --instance lays trajectories of two other runners, or of one and a run, beside each other', async () => {
  const { home, run } = place();
  for (const folder of ['x/out', 'y/out']) {
    mkdirSync(join(home, folder, 'made__made-1'), { recursive: true });
    const file = join(home, folder, 'made__made-1', 'made__made-1.traj.json');
    writeFileSync(file, JSON.stringify(TRAJECTORY));
  }
  const two = await run('compare', 'x/out', 'y/out', '--instance', 'made__made-1');
  expect(two.stderr).toMatch(/x\/out: read as a folder of mini-swe-agent/);
  expect(two.code).toBe(0);
  expect(two.stdout).toContain('x/out');
  expect(two.stdout).toContain('y/out');
  expect(two.stdout).toMatch(/1 the same/);
  expect(existsSync(join(home, 'results'))).toBe(false);

  await run('import', 'x/out', '--run-id', 'ours');
  const mixed = await run('compare', 'ours', 'logs/made.eval@2', '--instance', 'made__made-1', '--json');
  expect(mixed.code).toBe(0);
  expect(JSON.parse(mixed.stdout)).toMatchObject({ instance: 'made__made-1', b: { epoch: 2 } });

  const none = await run('compare', 'x/out', 'logs/made.eval@9', '--instance', 'made__made-1');
  expect([none.code, none.stderr]).toEqual([
    2,
    expect.stringMatching(/made\.eval@9 has no attempt at made__made-1/),
  ]);
  writeFileSync(
    join(home, 'report.json'),
    JSON.stringify({ total_instances: 1, resolved_ids: ['made__made-1'] }),
  );
  const verdicts = await run('compare', 'x/out', 'report.json', '--instance', 'made__made-1');
  expect([verdicts.code, verdicts.stderr]).toEqual([
    2,
    expect.stringMatching(/holds verdicts alone, no trajectories/),
  ]);
});

test('a program compares what the verb compares; what was read is told to it', async () => {
  const { home } = place();
  const told: string[] = [];
  const compared = await compareSources(
    { sides: [join(home, 'job'), join(home, 'logs', 'made.eval')], results: join(home, 'none') },
    { env: { XDG_CACHE_HOME: join(home, 'cache') }, tell: ({ text }) => void told.push(text) },
  );
  expect(compared.comparisons[0]).toMatchObject({ matched: 2 });
  expect(told.join('\n')).toMatch(
    /job: read as a job folder of Harbor[\s\S]*made\.eval: read as a log of Inspect/,
  );
  expect(existsSync(join(home, 'none'))).toBe(false);
});
