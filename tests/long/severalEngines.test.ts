// Two engines that go away together for longer than one of them alone is waited for.
import { describe, expect, test } from 'vitest';
import { type Bench, bash, containersOf, expectSound, faultBench, GOOD } from '../faults/support.ts';
import { cuttableDaemon } from '../support/cuttableDaemon.ts';
import { docker, dockerAvailable } from '../support/docker.ts';

const IDS = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
const attempts = (bench: Bench) =>
  bench.query<{ exit_reason: string; exit_detail: string | null }>(
    'SELECT exit_reason, exit_detail FROM attempts ORDER BY id',
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
    if (tops.filter(({ Processes }) => JSON.stringify(Processes).includes(marker)).length === count) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.skipIf(!(await dockerAvailable()))('all engines away for a minute', () => {
  test('trials wait as for one engine, and no retry is used', async () => {
    const both = [cuttableDaemon(), cuttableDaemon()];
    const bench = await faultBench({
      scripts: Object.fromEntries(IDS.map((id) => [id, [bash('sleep 271828'), ...GOOD]])),
      config: { workers: 2, retry: { attempts: 1, backoff_s: 0 } },
      environment: { timeout: 120, hosts: both.map(({ path }) => ({ host: `unix://${path}`, slots: 1 })) },
    });
    try {
      const running = bench.start(bench.id);
      await allRunning(bench.id, '271828', 2);
      for (const id of IDS) bench.server.setScript(id, GOOD);
      for (const each of both) {
        each.refuse(true);
        each.cut();
      }
      setTimeout(() => both.map((each) => each.refuse(false)), 60_000);
      const result = await running.done;
      expect(result.stderr).toMatch(/paused: .*none of the engines answers/);
      expect(result.stderr).toContain('resumed: ');
      expect(result.code, result.stderr).toBe(0);
      expect(bench.trials(bench.id).map((t) => t.state)).toEqual(Array(4).fill('sealed'));
      expect(attempts(bench).filter((a) => a.exit_reason === 'submitted')).toHaveLength(4);
      for (const lost of attempts(bench).filter((a) => a.exit_reason !== 'submitted'))
        expect(lost).toMatchObject({ exit_reason: 'env_died', exit_detail: 'daemon_lost' });
      await expectSound(bench, bench.id, 4, [result]);
    } finally {
      for (const each of both) each.close();
      await bench.close();
    }
  }, 200_000);
});
