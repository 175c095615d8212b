// The model server dies while a run works, and nobody listens at its address any more. No instance has anything to do with it.
import { expect, test } from 'vitest';
import { localRun, THREE_REPLIES } from '../run/localRun.ts';
import { cli, startCli } from '../support/cli.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';

async function bench(instances: number, run: object, patienceS = 0) {
  const server = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history', latencyMs: 20 });
  const retry = { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2, max_retry_after_s: patienceS };
  const model = { model_name: 'm', base_url: server.url, retry };
  return { server, ...localRun({ instances, model, run: { retry: { backoff_s: 0 }, ...run } }) };
}

const ATTEMPTS = 'SELECT count(*) AS n, max(exit_reason) AS reason FROM attempts GROUP BY trial_id';

test.each([
  ['of one slot', 2, 1],
  ['of as many slots as instances', 3, 3],
  ['of the only instance', 1, 1],
])(
  'a server that is gone for good holds the run %s; nothing is decided, and resume does it all',
  async (_what, instances, workers) => {
    const { server, out, args, query } = await bench(instances, {
      workers,
      breaker: { probe_after_s: 0.1, max_probes: 2 },
    });
    const running = startCli(args);
    await server.waitForRequests(2);
    await server.close();
    const ended = await running.done;
    expect(ended.code, ended.stderr).toBe(3);
    expect(ended.stderr).toMatch(/paused/);
    expect(
      query(
        "SELECT 1 FROM trials WHERE state = 'sealed' AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = final_attempt_id AND a.exit_reason = 'submitted')",
      ),
    ).toEqual([]);
    for (const { n } of query<{ n: number }>(ATTEMPTS)) expect(n).toBeLessThanOrEqual(4);
    const port = Number(new URL(server.url).port);
    const again = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history', port });
    const resumed = await cli(['resume', 'r', '-o', out, '--progress', 'plain']);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(
      query('SELECT DISTINCT exit_reason FROM attempts a JOIN trials t ON t.final_attempt_id = a.id'),
    ).toEqual([{ exit_reason: 'submitted' }]);
    await again.close();
  },
);

test('a server that comes back is found by the probe, and every instance is done in one sitting', async () => {
  const { server, args, query } = await bench(4, {
    workers: 2,
    breaker: { probe_after_s: 0.1, max_probes: 1000 },
  });
  const running = startCli(args);
  await server.waitForRequests(2);
  await server.close();
  await running.said('paused');
  await running.said('probe failed too');
  const port = Number(new URL(server.url).port);
  const again = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history', port });
  const ended = await running.done;
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stderr).toMatch(/resumed|goes on|ended well/);
  expect(query("SELECT count(*) AS n FROM trials WHERE state = 'sealed'")).toEqual([{ n: 4 }]);
  await again.close();
});

test('one that comes back while it is waited for costs no attempt, and no step is bought twice', async () => {
  const { server, args, query } = await bench(3, { workers: 3 }, 600);
  const running = startCli(args);
  // Each has had an answer: it has a conversation to lose.
  await server.waitForRequests(4);
  await server.close();
  const failed = () =>
    query<{ n: number }>("SELECT count(*) AS n FROM model_calls WHERE state = 'failed'")[0]!.n;
  await expect.poll(failed, { timeout: 60_000 }).toBeGreaterThan(8);
  const port = Number(new URL(server.url).port);
  const again = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history', port });
  const ended = await running.done;
  expect(ended.code, ended.stderr).toBe(0);
  const paid = "SELECT count(*) AS n FROM model_calls WHERE state = 'ok' GROUP BY attempt_id";
  expect(query(paid)).toEqual(Array(3).fill({ n: 3 }));
  await again.close();
});

test('a server that answers nothing at all is away: nothing is decided, and resume does it all', async () => {
  const nothing = { content: '', usage: null };
  const server = await startFakeModelServer({ scripts: { default: [nothing] } });
  const retry = { base_delay_ms: 1, max_delay_ms: 5, max_retries: 1 };
  const { out, args, query } = localRun({
    instances: 8,
    model: { model_name: 'm', base_url: server.url, retry },
    run: { workers: 2, retry: { backoff_s: 0 }, breaker: { probe_after_s: 0.1, max_probes: 2 } },
  });
  const ended = await cli(args);
  expect(ended.code, ended.stderr).toBe(3);
  expect(ended.stderr).toMatch(/paused.*answers nothing/);
  expect(query("SELECT 1 FROM trials WHERE state = 'sealed'")).toEqual([]);
  const port = Number(new URL(server.url).port);
  await server.close();
  const again = await startFakeModelServer({ replies: THREE_REPLIES, by: 'history', port });
  const resumed = await cli(['resume', 'r', '-o', out, '--progress', 'plain']);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(query("SELECT count(*) AS n FROM trials WHERE state = 'sealed'")).toEqual([{ n: 8 }]);
  await again.close();
});
