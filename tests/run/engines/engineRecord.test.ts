// The record says which engines a run had, and which attempt was on which of them.
import { afterEach, describe, expect, test } from 'vitest';
import { createEnginePool } from '../../../src/environment/places/engines/enginePool.ts';
import { recordEngines } from '../../../src/run/places/engineRecord.ts';
import { endLeases, enginesOfRun, hasLeftEngine, leasesOfRun } from '../../../src/store/live/engineLeases.ts';
import type { Store } from '../../../src/store/open.ts';
import { removeRun } from '../../../src/store/records/removeRun.ts';
import { beginAttempt, endAttempt, leaseTrial, trialsOf } from '../../../src/store/records/trials.ts';
import { ending, freshStore, planted } from '../../store/storeFixtures.ts';

const ping = async () => undefined;
let store: Store;
afterEach(() => store.close());

function bench() {
  store = freshStore();
  const run = planted(store);
  const errors: unknown[] = [];
  let now = 0;
  const pool = createEnginePool([{ name: 'a', slots: 2, ping }], { now: () => now });
  const end = recordEngines({
    ...{ store, runId: run.id, pool, isoNow: () => new Date(now).toISOString() },
    onError: (error) => errors.push(error),
  });
  const [trial] = trialsOf(store, run.id);
  const attempt = () => {
    leaseTrial(store, trial!.id, 'me', 0);
    return beginAttempt(store, trial!.id, { startedAt: '', slot: 1, config: '{}' });
  };
  const later = (ms: number) => {
    now += ms;
  };
  return { run, pool, end, errors, trial: trial!, attempt, later };
}
const states = (runId: number) => enginesOfRun(store, runId).map(({ name, state }) => `${name} ${state}`);

describe('engines', () => {
  test('one that joins, is lost, drained or removed is written with when and why; at the end all have left', async () => {
    const { run, pool, end, later } = bench();
    const facts = async () => ({ platform: 'linux/amd64', memoryBytes: 8e9, freeBytes: null });
    pool.join({ name: 'b', slots: 0, ping, labels: { partition: 'long' }, origin: 'file', facts });
    later(1000);
    pool.lose('a', 'connection refused');
    await expect
      .poll(() => enginesOfRun(store, run.id)[1])
      .toMatchObject({
        ...{ name: 'b', slots: 0, labels: '{"partition":"long"}', origin: 'file', state: 'ready' },
        ...{ platform: 'linux/amd64', memory_bytes: 8e9, free_bytes: null },
      });
    expect(enginesOfRun(store, run.id)[0]).toMatchObject({
      ...{ name: 'a', slots: 2, origin: 'config', state: 'lost', reason: 'connection refused' },
      ...{ joined_at: '1970-01-01T00:00:00.000Z', state_at: '1970-01-01T00:00:01.000Z' },
    });
    pool.drain('b', true);
    expect(states(run.id)).toEqual(['a lost', 'b left']);
    pool.join({ name: 'b', slots: 3, ping });
    expect(states(run.id)).toEqual(['a lost', 'b ready']);
    end();
    expect(states(run.id)).toEqual(['a left', 'b left']);
  });

  test('a record that cannot be written is told, and does not stop the pool', () => {
    const { pool, errors } = bench();
    store.exec('DROP TABLE leases; DROP TABLE engines');
    pool.join({ name: 'b', slots: 0, ping });
    expect(errors.length).toBeGreaterThan(0);
    expect(pool.alive()).toEqual(['a', 'b']);
  });
});

describe('leases', () => {
  test('of an attempt that moved and ended are there with how; a grading has none', () => {
    const { run, pool, trial, attempt } = bench();
    const { id, number } = attempt();
    pool.join({ name: 'b', slots: 0, ping });
    const label = `${trial.id}.${number}`;
    pool.lease('a', label)('moved');
    const close = pool.lease('b', label);
    pool.lease('b', 'grade-1')('closed');
    expect(enginesOfRun(store, run.id).map(({ active }) => active)).toEqual([0, 1]);
    close('closed');
    close('lost');
    expect(
      leasesOfRun(store, run.id).map(({ attempt_id, engine, how }) => [attempt_id, engine, how]),
    ).toEqual([
      [id, 'a', 'moved'],
      [id, 'b', 'closed'],
    ]);
    expect(enginesOfRun(store, run.id).map(({ done }) => done)).toEqual([0, 1]);
  });

  test('those of a dead process end with it, and a run that is removed takes its engines along', () => {
    const { run, pool, trial, attempt } = bench();
    pool.lease('a', `${trial.id}.${attempt().number}`);
    endLeases(store, run.id, '2026-01-01T00:00:00.000Z');
    expect(leasesOfRun(store, run.id)).toMatchObject([{ how: 'process_lost' }]);
    removeRun(store, run.id);
    expect(store.prepare('SELECT count(*) AS n FROM engines').get()).toEqual({ n: 0 });
  });

  test('say what an engine that is back may lose: only what has ended, or runs elsewhere', () => {
    const { run, pool, trial, attempt } = bench();
    const { id, number } = attempt();
    const label = `${trial.id}.${number}`;
    const left = (engine: string, of = label) => hasLeftEngine(store, run.id, engine, of);
    // A container that is started ahead has no lease yet.
    expect(left('a')).toBe(false);
    pool.join({ name: 'b', slots: 0, ping });
    const close = pool.lease('b', label);
    expect([left('a'), left('b')]).toEqual([true, false]);
    close('closed');
    endAttempt(store, id, ending('submitted'), 'seal');
    expect([left('a'), left('b')]).toEqual([true, true]);
    for (const foreign of ['', 'grade-1', '1', `${trial.id}.99`, `${trial.id}.${number}; DROP TABLE leases`])
      expect(left('b', foreign)).toBe(false);
  });
});
