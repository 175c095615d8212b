// A Docker daemon that goes away under a run, through the whole program.
import { afterEach, describe, expect, test } from 'vitest';
import { type CuttableDaemon, cuttableDaemon } from '../support/cuttableDaemon.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import {
  type Bench,
  bash,
  containersOf,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
} from './support.ts';

const available = await dockerAvailable();
let bench: Bench;
let daemon: CuttableDaemon | undefined;
afterEach(async () => {
  daemon?.close();
  await bench?.close();
});

const IDS = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
const attempts = () =>
  bench.query<{ exit_reason: string; exit_detail: string | null; container_id: string }>(
    'SELECT exit_reason, exit_detail, container_id FROM attempts ORDER BY id',
  );

/** Resolves when as many containers of the run as `count` are in the command with `marker`. */
async function allRunning(runId: string, marker: string, count: number): Promise<void> {
  for (;;) {
    const tops = await Promise.all(
      containersOf(runId).map((id) =>
        docker
          .getContainer(id)
          .top()
          .catch(() => ({ Processes: [] as string[][] })),
      ),
    );
    const busy = tops.filter(({ Processes }) =>
      (Processes as string[][]).some((process) => process.join(' ').includes(marker)),
    );
    if (busy.length === count) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.skipIf(!available)('a daemon that goes away', () => {
  const begin = async (stall = {}, more = {}) => {
    const working = [bash('sleep 271828'), ...GOOD];
    bench = await faultBench({
      scripts: Object.fromEntries(IDS.map((id) => [id, working])),
      config: { workers: 4, stall, ...more },
      environment: { timeout: 120 },
    });
    daemon = cuttableDaemon();
    const running = bench.start(bench.id, [], { DOCKER_HOST: `unix://${daemon.path}` });
    await allRunning(bench.id, '271828', 4);
    return { running, daemon };
  };

  test('T-35 for a moment: four attempts go on in their containers, nothing is made twice', async () => {
    const { running, daemon } = await begin();
    daemon.refuse(true);
    daemon.cut();
    setTimeout(() => daemon.refuse(false), 1000);
    const result = await running.done;
    expect(result.stderr).toContain('complete');
    expect(result.code).toBe(0);
    expect(attempts().map((a) => a.exit_reason)).toEqual(Array(4).fill('submitted'));
    expect(new Set(attempts().map((a) => a.container_id)).size).toBe(4);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-35 for twelve seconds, in the middle of everything: all end as without it, and no retry is used', async () => {
    const working = [bash('sleep 271828'), ...GOOD];
    bench = await faultBench({
      scripts: { ...Object.fromEntries(IDS.map((id) => [id, GOOD])), 'a__a-1': working },
      config: { workers: 2, retry: { attempts: 1, backoff_s: 0 } },
      environment: { timeout: 120 },
    });
    daemon = cuttableDaemon();
    const running = bench.start(bench.id, [], { DOCKER_HOST: `unix://${daemon.path}` });
    await allRunning(bench.id, '271828', 1);
    daemon.refuse(true);
    daemon.cut();
    const back = daemon;
    setTimeout(() => back.refuse(false), 12_000);
    const result = await running.done;
    expect(result.stderr).toContain('complete');
    expect(attempts().map((a) => a.exit_reason)).toEqual(Array(4).fill('submitted'));
    expect(result.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-35 while it is away two interrupts end the run at once, and nothing is charged to a trial', async () => {
    const { running, daemon } = await begin({}, { stop_grace_s: 3 });
    daemon.refuse(true);
    daemon.cut();
    await running.said('paused: the container engine does not answer');
    const began = performance.now();
    running.process.kill('SIGINT');
    await running.said('Again: capture');
    running.process.kill('SIGINT');
    const result = await running.done;
    expect(result.code).toBe(130);
    // run.stop_grace_s, and not the hour that the engine is waited for.
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(attempts().map((a) => a.exit_reason)).toEqual(Array(4).fill('cancelled'));
    expect(bench.trials(bench.id).map((t) => t.state)).toEqual(Array(4).fill('pending'));
    for (const id of IDS) bench.server.setScript(id, GOOD);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('T-35 for good: the attempts are lost, the run says so, and goes on when it is back', async () => {
    const { running, daemon } = await begin({ engine_s: 5 });
    daemon.refuse(true);
    daemon.cut();
    const result = await running.done;
    expect(result.code).toBe(3);
    expect(result.stderr).toMatch(/paused: the container engine does not answer .* wait for it, up to 5 s/);
    expect(result.stderr).toContain('it was waited for 5 s (run.stall.engine_s)');
    expect(attempts().filter((a) => a.exit_reason === 'submitted')).toEqual([]);
    expect(attempts()[0]).toMatchObject({ exit_reason: 'env_died', exit_detail: 'daemon_lost' });
    for (const id of IDS) bench.server.setScript(id, GOOD);
    const resumed = await bench.resume(bench.id, ['--retry', 'infra']);
    expect(resumed.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });
});
