// What is written down of an ended attempt's calls and phases says the same as the calls and phases themselves, whatever happens to them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../src/store/open.ts';
import { all, insert, raw } from '../../src/store/query.ts';
import { attemptRecord } from '../../src/store/records/attemptBodies.ts';
import { endCall } from '../../src/store/records/modelCalls.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { imagesOfRun, removeRun } from '../../src/store/records/runs.ts';
import {
  beginAttempt,
  endAttempt,
  leaseTrial,
  trialLines,
  trialsOf,
} from '../../src/store/records/trials.ts';
import { ending, freshStore, planted } from './storeFixtures.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-sums-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const AT = '2026-01-01T00:00:00.000Z';
const USAGE = JSON.stringify({ cache_creation: { ephemeral_1h_input_tokens: 7 } });

function call(store: Store, attempt_id: number, more: Record<string, unknown> = {}): number {
  return insert(store, 'model_calls', {
    ...{ attempt_id, step: 1, try: 1, state: 'ok', started_at: AT, model_asked: 'm', model_answered: 'm-2' },
    ...{
      input_tokens: 10,
      cache_read_tokens: 5,
      cache_write_tokens: 9,
      output_tokens: 3,
      reasoning_tokens: 1,
    },
    ...{ cost_nano: 100, price_version: 'p1', usage: USAGE, ...more },
  });
}

/** Two ended attempts with calls of every kind, one of them without a call, and one trial that is still running. */
function recorded(path: string): { store: Store; run: number; attempts: number[] } {
  const store = freshStore(path);
  const run = planted(store, { ids: ['a__a-1', 'a__a-2', 'a__a-3'] });
  const attempts = trialsOf(store, run.id).map((trial, i) => {
    leaseTrial(store, trial.id, 'o', 0);
    const { id } = beginAttempt(store, trial.id, { startedAt: AT, slot: 1, config: '{}' });
    for (const [seq, name] of ['queue', 'model', 'exec', 'model'].entries())
      insert(store, 'phases', { attempt_id: id, seq, name, offset_ms: seq - 1, duration_ms: 10 * seq });
    if (i === 1) return id;
    call(store, id);
    call(store, id, { model_answered: null, state: 'failed', cost_nano: null, usage: 'no json' });
    call(store, id, { model_asked: 'n', price_version: 'p2', cost_nano: 9_007_199_254_740_000 });
    return id;
  });
  for (const id of attempts.slice(0, 2))
    endAttempt(store, id, ending('submitted', { patch_sha256: 'x' }), 'seal');
  return { store, run: run.id, attempts };
}

const written = (store: Store) =>
  all(store)<{ attempt_id: number }>`SELECT * FROM attempt_sums`.map((r) => r.attempt_id);
const shown = (store: Store, run: number) => {
  const { costs, ledger, phases } = loadRunData(store, run)!;
  return { costs, ledger, phases };
};

test('a report is the same with and without what was written down', () => {
  const path = join(dir, 'swebatch.db');
  const { store, run, attempts } = recorded(path);
  expect(written(store)).toEqual(attempts.slice(0, 2));
  const before = shown(store, run);
  expect(before.costs.map((c) => [c.calls, c.costNano, c.unknownCalls, c.inputTokens])).toEqual([
    [3, 9_007_199_254_740_100, 1, 30],
    [0, 0, 0, 0],
    [3, 9_007_199_254_740_100, 1, 30],
  ]);
  expect(
    before.ledger.map((l) => [
      l.model,
      l.calls,
      l.failedCalls,
      l.cacheWrite1hTokens,
      l.asked,
      l.priceVersions,
    ]),
  ).toEqual([
    ['m', 2, 2, 0, [], ['p1']],
    ['m-2', 4, 0, 28, ['m', 'n'], ['p1', 'p2']],
  ]);
  expect(before.phases).toEqual([
    { arm: 'default', name: 'model', totalMs: 120, attempts: 3 },
    { arm: 'default', name: 'exec', totalMs: 60, attempts: 3 },
  ]);
  store.exec('DELETE FROM attempt_sums');
  expect(shown(store, run)).toEqual(before);
});

test('a call that changes after the end of its attempt counts as it is then', () => {
  const { store, run, attempts } = recorded(':memory:');
  const [late] = all(store)<{
    id: number;
  }>`SELECT id FROM model_calls WHERE attempt_id = ${attempts[0]} ORDER BY id`;
  endCall(store, late!.id, { state: 'ok', cost_nano: 5 } as Parameters<typeof endCall>[2]);
  expect(written(store)).toEqual([attempts[1]]);
  expect(shown(store, run).costs[0]!.costNano).toBe(9_007_199_254_740_005);
});

test('listings and trajectories know the cost of an attempt from its own calls; images only of trials that are left', () => {
  const { store, run, attempts } = recorded(':memory:');
  expect(trialLines(store, run).map((line) => line.cost_nano)).toEqual([null, 0, 0]);
  expect(attempts.map((id) => attemptRecord(store, id)!.costNano)).toEqual([
    9_007_199_254_740_100, 0, 9_007_199_254_740_100,
  ]);
  store.prepare(`UPDATE attempts SET image_digest = 'sha256:1' WHERE id = ?`).run(attempts[0]);
  expect([...imagesOfRun(store, run)]).toEqual([['i', ['sha256:1']]]);
  store.exec(
    `UPDATE trials SET state = 'sealed', final_attempt_id = ${attempts[2]} WHERE final_attempt_id IS NULL`,
  );
  expect([...imagesOfRun(store, run)]).toEqual([]);
});

test('a removed run leaves nothing written down', () => {
  const { store, run } = recorded(':memory:');
  removeRun(store, run);
  for (const table of ['attempt_sums', 'attempt_ledger', 'attempt_phases'])
    expect(all(store)`SELECT * FROM ${raw(table)}`).toEqual([]);
});
