// Connections in the record: one row each, without secrets, and a bound for who asks without end.
import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/base/text/redact.ts';
import type { EgressConnection } from '../../../src/environment/environment.ts';
import { connectionRecord } from '../../../src/run/record/connectionRecord.ts';
import { StorageError } from '../../../src/store/open.ts';
import { connectionsOf } from '../../../src/store/records/connections.ts';
import { removeRun } from '../../../src/store/records/runs.ts';
import * as trials from '../../../src/store/records/trials.ts';
import { freshStore, planted } from '../../store/storeFixtures.ts';

const KEY = 'canary-0123456789';
const connection = (more: Partial<EgressConnection> = {}): EgressConnection => ({
  ...{ phase: 'agent', via: 'connect', host: 'a.example.com', port: 443, outcome: 'allowed', reason: null },
  ...{ bytesIn: 10, bytesOut: 2, startedAt: 0, durationMs: 3 },
  ...more,
});

function attempt() {
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trials.trialsOf(store, run.id);
  trials.leaseTrial(store, trial!.id, 'me', 1);
  const { id } = trials.beginAttempt(store, trial!.id, { startedAt: 'now', slot: 1, config: '{}' });
  const errors: unknown[] = [];
  const redactor = createRedactor([{ name: 'KEY', value: KEY }]);
  const record = connectionRecord({ store, redactor }, id, (error) => errors.push(error));
  return { store, run, id, record, errors };
}

test('each is a row, and a secret in the name of a host is in none', () => {
  const { store, id, record } = attempt();
  record(connection());
  record(
    connection({ host: `${KEY}.evil.com`, outcome: 'refused', reason: `${KEY}.evil.com is not on the list` }),
  );
  const rows = connectionsOf(store, id);
  expect(rows).toMatchObject([
    { host: 'a.example.com', bytes_in: 10, bytes_out: 2, count: 1, started_at: '1970-01-01T00:00:00.000Z' },
    { outcome: 'refused', count: 1 },
  ]);
  expect(JSON.stringify(rows)).not.toContain(KEY);
});

test('of a program that asks without end only the number is kept, by phase and outcome', () => {
  const { store, id, record } = attempt();
  for (let i = 0; i < 2000; i += 1) record(connection());
  for (let i = 0; i < 50; i += 1)
    record(connection({ host: `${i}.evil.com`, outcome: 'refused', reason: 'no' }));
  record(connection());
  record(connection({ phase: 'verifier' }));
  const rows = connectionsOf(store, id);
  expect(rows).toHaveLength(2003);
  expect(rows.slice(2000)).toMatchObject([
    { phase: 'agent', host: '*', outcome: 'refused', reason: null, count: 50, bytes_in: 500 },
    { phase: 'agent', host: '*', outcome: 'allowed', count: 1 },
    { phase: 'verifier', host: '*', outcome: 'allowed', count: 1 },
  ]);
});

test('they go with their run', () => {
  const { store, run, id, record } = attempt();
  record(connection());
  removeRun(store, run.id);
  expect(connectionsOf(store, id)).toEqual([]);
});

test('a record that cannot be written is told to whoever ends the attempt, and throws at no socket', () => {
  const { store, record, errors } = attempt();
  store.exec('DROP TABLE connections');
  record(connection());
  expect(errors).toEqual([expect.any(StorageError)]);
});
