// The model server dies while a run works, and nobody listens at its address any more. No instance has anything to do with it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { cli, startCli, tempDir } from '../support/cli.ts';
import { type FakeModelServer, startFakeModelServer } from '../support/fakeModelServer.ts';

const bash = (command: string): string => `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\``;
const REPLIES = [bash('echo first'), bash('echo second'), bash('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT')];

interface Bench {
  readonly server: FakeModelServer;
  readonly out: string;
  readonly args: readonly string[];
  query<T>(sql: string): T[];
}

async function bench(instances: number, run: object): Promise<Bench> {
  const root = tempDir('swebatch-dead-');
  const server = await startFakeModelServer({ replies: REPLIES, by: 'history', latencyMs: 20 });
  const dataset = join(root, 'data.jsonl');
  const row = { repo: 'a/a', base_commit: 'a'.repeat(40), problem_statement: 'x', patch: '', test_patch: '' };
  const ids = Array.from({ length: instances }, (_, n) => `a__a-${n + 1}`);
  const rows = ids.map((instance_id) => ({ instance_id, ...row, FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' }));
  writeFileSync(dataset, rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const tree = join(root, 'tree');
  mkdirSync(tree);
  execFileSync('git', ['init', '-q'], { cwd: tree });
  const config = join(root, 'config.json');
  const model = {
    ...{ model_name: 'm', base_url: server.url, prices: 'free' },
    retry: { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2 },
  };
  const environment = { environment_class: 'local', cwd: tree };
  writeFileSync(config, JSON.stringify({ model, environment, run: { retry: { backoff_s: 0 }, ...run } }));
  const out = join(root, 'out');
  return {
    server,
    out,
    args: ['run', '--subset', dataset, '-c', config, '-o', out, '--run-id', 'r', '--progress', 'plain'],
    query<T>(sql: string) {
      using store = openStore(join(out, 'swebatch.db'), { readonly: true });
      return store.prepare(sql).all() as T[];
    },
  };
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
    const again = await startFakeModelServer({ replies: REPLIES, by: 'history', port });
    const resumed = await cli(['resume', 'r', '-o', out, '--progress', 'plain']);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(
      query('SELECT DISTINCT exit_reason FROM attempts a JOIN trials t ON t.final_attempt_id = a.id'),
    ).toEqual([{ exit_reason: 'submitted' }]);
    await again.close();
  },
  60_000,
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
  const again = await startFakeModelServer({ replies: REPLIES, by: 'history', port });
  const ended = await running.done;
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stderr).toMatch(/resumed|goes on|ended well/);
  expect(query("SELECT count(*) AS n FROM trials WHERE state = 'sealed'")).toEqual([{ n: 4 }]);
  await again.close();
}, 60_000);
