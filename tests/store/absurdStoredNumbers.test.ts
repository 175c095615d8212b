// Rows and files with numbers that cannot be: the verbs that read work, and `import` writes "unknown" in their place.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { writeBundle } from '../../src/viewer/bundle.ts';
import { recordRun } from '../report/recordedRun.ts';
import { cli, tempDir } from '../support/cli.ts';
import { nested } from '../support/foreign/worstText.ts';

const MOST = '9223372036854775807';
/** More than a JavaScript number holds exactly. */
const MOST_MS = '9007199254740993';

function absurdDatabase(): string {
  const out = tempDir();
  const db = openStore(join(out, 'swebatch.db'));
  recordRun(db, {
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    happened: () => [
      { outcome: 'resolved', resolved: true, patch: 'p', messages: [{ role: 'user', content: 'c' }] },
    ],
  });
  const tokens = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'].map(
    (k) => `${k}_tokens = ${MOST}`,
  );
  db.exec(`UPDATE model_calls SET ${tokens.join(', ')}, cost_nano = ${MOST}, estimate_nano = ${MOST},
    latency_ms = ${MOST}, request_bytes = ${MOST}`);
  db.exec(`UPDATE attempts SET elapsed_ms = ${MOST_MS}, working_ms = ${MOST_MS}, steps = ${MOST}`);
  db.exec(`UPDATE evaluations SET duration_ms = ${MOST}`);
  db.exec(`INSERT INTO phases (attempt_id, seq, name, offset_ms, duration_ms)
    SELECT id, s.column1, 'model', 0, ${MOST} FROM attempts, (VALUES (0), (1)) s`);
  // A second call of the same attempt: its sum is the one that ends a query.
  const columns = (db.pragma('table_info(model_calls)') as { name: string }[]).map((c) => c.name);
  const others = columns.filter((name) => name !== 'id').join(', ');
  db.exec(`INSERT INTO model_calls (${others}) SELECT ${others} FROM model_calls`);
  db.close();
  return out;
}

test('verbs that read work on a database with absurd rows', async () => {
  const out = absurdDatabase();
  for (const args of [
    ['ls'],
    ['ls', 'r1'],
    ['ls', 'r1', '--json'],
    ['show', 'r1', 'a__a-1'],
    ['report', 'r1'],
    ['report', 'r1', '--json'],
    ['report', 'r1', '--format', 'html'],
    ['compare', 'r1', 'r1'],
    ['export', 'r1', 'csv'],
    ['verify', 'r1'],
  ]) {
    const { code, stderr } = await cli([...args, '-o', out]);
    expect(stderr, args.join(' ')).not.toMatch(/overflow|RangeError|Invalid time/);
    // The patch of this record has a hash of its own making: `verify` says so, and that is all it says.
    expect([args, code === 0 || args[0] === 'verify' || stderr]).toEqual([args, true]);
  }
  const pageDir = tempDir();
  writeFileSync(join(pageDir, 'index.html'), '<meta name="swebatch-mode" content="live">');
  expect(writeBundle(out, join(out, 'bundle'), { pageDir }).files).toBeGreaterThan(5);
});

test('import takes what cannot be as unknown, with a note', async () => {
  const home = tempDir();
  const reply = (content: string, usage: string, more = '') =>
    `{"role": "assistant", "content": "${content}", "timestamp": 1e300, "extra": {"response": {"id": "r", "choices": [], "usage": ${usage}}${more}}}`;
  const messages = [
    '{"role": "user", "content": "go", "timestamp": 1}',
    reply('a', '{"prompt_tokens": 1e15, "completion_tokens": -5}', ', "cost": 9.3e9'),
    reply('b', `{"prompt_tokens": 10, "completion_tokens": 1.5, "more": ${nested(5000)}}`, ', "cost": -1'),
    reply('c', '{"prompt_tokens": 10, "completion_tokens": 2}', ', "cost": 0.25'),
    '{"role": "exit", "content": "", "timestamp": 1700000000}',
  ];
  const info = `{"exit_status": "Submitted", "submission": "diff --git a/x b/x\\n", "model_stats": {"instance_cost": 1e300, "api_calls": 1e300},
    "mini_version": "2.4.6", "config": {"agent": {}, "model": {"model_name": "org/model"}, "environment": {"deep": ${nested(5000)}}}}`;
  mkdirSync(join(home, 'mini'));
  writeFileSync(
    join(home, 'mini', 'a__a-1.traj.json'),
    `{"info": ${info}, "messages": [${messages.join(',')}], "trajectory_format": "mini-swe-agent-1.1", "instance_id": "a__a-1"}`,
  );
  const out = join(home, 'out');
  const imported = await cli(['import', join(home, 'mini'), '-o', out]);
  expect(imported.code, imported.stderr).toBe(0);
  const db = openStore(join(out, 'swebatch.db'), { readonly: true });
  const calls = db
    .prepare(
      'SELECT input_tokens AS i, output_tokens AS o, cost_nano AS c, notes FROM model_calls ORDER BY id',
    )
    .all() as { i: number | null; o: number | null; c: number | null; notes: string }[];
  expect(calls.map(({ i, o, c }) => [i, o, c])).toEqual([
    [null, null, null],
    [10, null, null],
    [10, 2, 250_000_000],
  ]);
  expect(calls[0]!.notes).toContain('prompt_tokens 1000000000000000 cannot be');
  expect(calls[0]!.notes).toContain('cost 9300000000 cannot be');
  expect(db.prepare('SELECT elapsed_ms AS ms, steps FROM attempts').get()).toEqual({ ms: null, steps: 3 });
  expect(db.prepare('SELECT notes FROM attempts').pluck().get()).toContain('cost 1e+300 cannot be');
  db.close();
  expect((await cli(['verify', 'mini', '-o', out])).code).toBe(0);
});
