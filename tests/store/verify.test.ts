// verify: each invariant is really looked at. A record that is fine, and then the same with one thing wrong.
import { expect, test } from 'vitest';
import type { Store } from '../../src/store/open.ts';
import { beginCall, endCall } from '../../src/store/records/modelCalls.ts';
import * as trials from '../../src/store/records/trials.ts';
import { verifyRun } from '../../src/store/verifyRun.ts';
import { ending, freshStore, planted } from './storeFixtures.ts';

function finished() {
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trials.trialsOf(store, run.id);
  for (const [reason, then] of [
    ['env_died', 'again'],
    ['submitted', 'seal'],
  ] as const) {
    trials.leaseTrial(store, trial!.id, 'me', 1);
    const { id } = trials.beginAttempt(store, trial!.id, { startedAt: 'now', slot: 1, config: '{}' });
    const call = { attempt_id: id, step: 1, try: 0, started_at: 'now', model_asked: 'm', estimate_nano: 1 };
    endCall(store, beginCall(store, call), {
      state: 'ok',
      latency_ms: 1,
      status_code: 200,
      error_code: null,
      error_message: null,
      model_answered: 'm',
      response_id: null,
      fingerprint: null,
      finish_reason: 'stop',
      usage: null,
      input_tokens: 1,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 1,
      reasoning_tokens: 0,
      price_version: 'v',
      cost_nano: 1,
      provider_cost_nano: null,
      request_bytes: 1,
      notes: '[]',
      unreadable: null,
    });
    trials.endAttempt(store, id, ending(reason), then);
  }
  return { store, run };
}

const broken = (store: Store, run: ReturnType<typeof planted>): string[] =>
  verifyRun(store, run)
    .checks.filter((c) => !c.ok)
    .map((c) => c.name);

test('a run that was recorded as it should be', () => {
  const { store, run } = finished();
  expect(broken(store, run)).toEqual([]);
});

test.each([
  [`UPDATE attempts SET exit_class = 'agent' WHERE number = 1`, /class and exit reason fit/],
  [`UPDATE attempts SET exit_reason = 'made_up' WHERE number = 1`, /class and exit reason fit/],
  ['UPDATE trials SET final_attempt_id = 1', /sealed by its newest attempt/],
  [
    `UPDATE attempts SET exit_reason = 'cancelled', exit_class = 'cancelled' WHERE number = 2`,
    /never by one/,
  ],
  [`UPDATE attempts SET model_patch = 'another' WHERE number = 2`, /patch has the hash/],
  ['UPDATE model_calls SET cost_nano = NULL WHERE id = 2', /has a cost, or a note/],
  [`UPDATE model_calls SET state = 'in_flight' WHERE id = 1`, /still in flight/],
  [
    'PRAGMA foreign_keys = OFF; UPDATE model_calls SET attempt_id = 99 WHERE id = 1',
    /another one refers to is there/,
  ],
  ['UPDATE trials SET final_attempt_id = NULL', /exactly one final attempt/],
  ['UPDATE attempts SET number = 7 WHERE number = 1', /numbered 1, 2, 3/],
] as const)('%s [T-65]', (sql, named) => {
  const { store, run } = finished();
  store.exec(sql);
  expect(broken(store, run).join('\n')).toMatch(named);
});

/** A call of a program whose answer is message 0 of the first attempt. */
function withProgramCall() {
  const { store, run } = finished();
  store.exec(`UPDATE model_calls SET call = 0 WHERE attempt_id = 1`);
  store.exec(`INSERT INTO messages VALUES (1, 0, 'assistant', 'hi', '{}', 'now', NULL, NULL, NULL)`);
  store.exec(
    `INSERT INTO program_calls VALUES (1, 0, 1, NULL, 'main', 'chat', 'generate', 'm', 0, 0, 'whole', 200, '{}', x'', x'', NULL)`,
  );
  return { store, run };
}

test('a run of a program that was recorded as it should be', () => {
  const { store, run } = withProgramCall();
  expect(broken(store, run)).toEqual([]);
});

test.each([
  ['UPDATE model_calls SET call = NULL', /call of a program is in the ledger/],
  [`UPDATE messages SET role = 'user'`, /is a message of the model/],
  ['DELETE FROM messages', /is a message of the model/],
] as const)('of a program: %s', (sql, named) => {
  const { store, run } = withProgramCall();
  store.exec(sql);
  expect(broken(store, run).join('\n')).toMatch(named);
});
