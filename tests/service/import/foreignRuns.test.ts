// report, compare and view on files and folders of other runners: no results root is needed, and none is written.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';

const LOGS = join(import.meta.dirname, 'inspectLogs');

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
