// T-57: 500 instances x 40 steps x 20 KB at 50 slots against a local server. Memory stays flat, the loop stays free, `ls` answers.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';

const INSTANCES = 500;
const STEPS = 40;

/** In a process of its own: this one is the model server, and has its hands full. */
const ASKER = `
  const { spawnSync } = require('node:child_process');
  const [bin, root] = process.argv.slice(1);
  setInterval(() => {
    const began = performance.now();
    const { status } = spawnSync(process.execPath, [bin, 'ls', '-o', root], { stdio: 'ignore' });
    if (status === 0) console.log(performance.now() - began);
  }, 3000);
`;

test('500 instances of 40 steps with 20 KB observations at 50 slots [T-37, T-57]', async () => {
  const dir = tempDir('swebatch-scale-');
  const server = await startFakeModelServer({
    replies: ['```bash\nhead -c 20000 /dev/zero | tr "\\0" x\n```'],
    keepBodies: false,
  });
  const dataset = join(dir, 'data.jsonl');
  const rows = Array.from({ length: INSTANCES }, (_, i) =>
    JSON.stringify({
      instance_id: `s__s-${i}`,
      base_commit: '0'.repeat(40),
      image: 'swebatch-test/base:1',
      problem_statement: 'x',
    }),
  );
  writeFileSync(dataset, rows.join('\n'));
  const config = join(dir, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      agent: { step_limit: STEPS, cost_limit: 0 },
      environment: { seal_history: false, memory: '128m', pull: 'never' },
      model: { model_name: 'fake', base_url: server.url, prices: 'free' },
      run: { workers: 50, breaker: { empty_patches: 0 } },
    }),
  );
  const out = join(dir, 'monitor.json');
  const bin = join(REPO, 'dist', 'cli', 'bin.js');
  const child = spawn(
    process.execPath,
    [
      '--import',
      join(REPO, 'scripts/bench/monitor.mjs'),
      bin,
      'run',
      '--subset',
      dataset,
      '-c',
      config,
      '-o',
      join(dir, 'out'),
      '--run-id',
      's',
      '--progress',
      'none',
    ],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, SWEBATCH_BENCH_OUT: out, OPENAI_API_KEY: 'none' },
    },
  );
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const asker = spawn(process.execPath, ['-e', ASKER, bin, join(dir, 'out')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  asker.stdout.on('data', (part: Buffer) => {
    said += part.toString();
  });
  const code = await ended;
  const answers = said.trim().split('\n').map(Number);
  asker.kill();
  expect(answers.length).toBeGreaterThan(20);
  await server.close();
  expect(code).toBe(0);
  const db = new Database(join(dir, 'out', 'swebatch.db'), { readonly: true });
  expect(db.prepare(`SELECT count(*) AS n FROM trials WHERE state = 'sealed'`).get()).toEqual({
    n: INSTANCES,
  });
  expect(db.prepare(`SELECT count(*) AS n FROM model_calls WHERE state = 'ok'`).get()).toEqual({
    n: INSTANCES * STEPS,
  });
  db.close();
  const seen = JSON.parse(readFileSync(out, 'utf8')) as {
    peak_rss_mb: number;
    loop_p99_ms: number;
    rss_mb: number[];
  };
  const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / list.length;
  const fifth = Math.floor(seen.rss_mb.length / 5);
  const early = mean(seen.rss_mb.slice(fifth, 2 * fifth));
  const late = mean(seen.rss_mb.slice(-fifth));
  answers.sort((a, b) => a - b);
  const typical = answers[answers.length >> 1]!;
  console.log({ ...seen, rss_mb: undefined, early, late, ls_ms: [typical, answers.at(-1)] });
  expect(seen.peak_rss_mb).toBeLessThan(400);
  expect(late).toBeLessThan(early * 1.1 + 10);
  expect(typical).toBeLessThan(300);
  expect(seen.loop_p99_ms).toBeLessThan(200);
});
