// Signals: once stops starting, twice captures and cleans up, the run is always resumable; a closed stdout is harmless.
import { execFileSync, spawn } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import { BIN, REPO } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import {
  type Bench,
  bash,
  CANARY,
  containersOf,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
} from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const SLOW = [bash('echo work >> README.md'), bash('sleep 15'), ...GOOD];

describe.skipIf(!docker)('signals', () => {
  test('one SIGINT lets the running finish, starts nothing more, and exits 130 [M-66, T-52]', async () => {
    bench = await faultBench({ config: { workers: 1 } });
    const running = bench.start(bench.id, ['-w', '1']);
    await bench.server.waitForRequests(1);
    running.process.kill('SIGINT');
    const result = await running.done;
    expect(result.code).toBe(130);
    expect(result.stderr).toMatch(/nothing new is started, running instances finish. Again: capture/);
    const done = bench.trials(bench.id).filter((t) => t.exit_reason === 'submitted').length;
    expect(done).toBeGreaterThanOrEqual(1);
    expect(done).toBeLessThan(4);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expect(bench.server.requests.length).toBe(12);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('a second SIGTERM captures the work, removes the containers and exits 143 [M-66, T-52]', async () => {
    const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
    bench = await faultBench({ scripts: Object.fromEntries(ids.map((id) => [id, SLOW])) });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(4);
    running.process.kill('SIGTERM');
    await running.said('Again: capture');
    running.process.kill('SIGTERM');
    const result = await running.done;
    expect(result.code).toBe(143);
    expect(containersOf(bench.id)).toEqual([]);
    // Whichever two were running.
    const stopped = bench.trials(bench.id).find((t) => t.exit_reason !== null);
    expect(stopped).toMatchObject({ exit_reason: 'cancelled', exit_class: 'cancelled', state: 'pending' });
    const captured = bench.query<{ patch: string }>(
      `SELECT CAST(captured_patch AS TEXT) AS patch FROM attempts WHERE exit_reason = 'cancelled'`,
    );
    expect(captured[0]!.patch).toContain('+work');
    for (const id of ids) bench.server.setScript(id, GOOD);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('SIGHUP and a reader that goes away change nothing [T-52]', async () => {
    bench = await faultBench();
    const child = spawn(process.execPath, [BIN, ...bench.args(bench.id, '--json')], {
      cwd: REPO,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, FAKE_KEY: 'sk-canary-7Q2x/9vLw+Zk41TmR8' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    child.stderr.destroy();
    await bench.server.waitForRequests(1);
    child.kill('SIGHUP');
    const code = await new Promise((resolve) => child.on('exit', resolve));
    expect(code).toBe(0);
    await expectSound(bench, bench.id, 4);
  });

  test('T-52 a third press exits at once; the next start removes the containers and goes on', async () => {
    const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
    bench = await faultBench({
      scripts: Object.fromEntries(ids.map((id) => [id, [bash('trap "" TERM; sleep 30'), ...GOOD]])),
    });
    const running = bench.start(bench.id);
    await running.said(/trials to do/);
    await bench.server.waitForRequests(2);
    running.process.kill('SIGINT');
    await running.said('Again: capture');
    running.process.kill('SIGINT');
    await running.said('Again: exit at once');
    running.process.kill('SIGINT');
    const result = await running.done;
    expect(result.code).toBe(130);
    for (const id of ids) bench.server.setScript(id, GOOD);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('T-52 a reader that takes one line and goes, with stdin closed and no terminal, ends nothing', async () => {
    bench = await faultBench();
    const line = [process.execPath, BIN, ...bench.args(bench.id, '--json')]
      .map((word) => `'${word}'`)
      .join(' ');
    // The exit code is that of the program, not of head.
    const child = spawn('bash', ['-c', `set -o pipefail; ${line} 2>&1 <&- | head -1`], {
      cwd: REPO,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, FAKE_KEY: CANARY },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const code = await new Promise((resolve) => child.on('exit', resolve));
    expect(code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4);
  });
});

describe.skipIf(!docker)('containers of others', () => {
  test('clean leaves the containers of a live run alone', async () => {
    bench = await faultBench({ scripts: { 'a__a-1': SLOW } });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(3);
    const mine = containersOf(bench.id).length;
    expect(mine).toBeGreaterThan(0);
    execFileSync(process.execPath, [BIN, 'clean'], { stdio: 'ignore' });
    expect(containersOf(bench.id).length).toBeGreaterThan(0);
    running.process.kill('SIGINT');
    running.process.kill('SIGINT');
    await running.done;
  });
});
