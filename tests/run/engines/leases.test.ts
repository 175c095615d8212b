// The record says which attempt was on which of several engines.
import { afterEach, describe, expect, test } from 'vitest';
import { createEnginePool } from '../../../src/environment/places/enginePool.ts';
import { recordLeases } from '../../../src/run/places/sittingEngines.ts';
import { endLeases, hasLeftEngine, leasesOfRun } from '../../../src/store/live/leases.ts';
import type { Store } from '../../../src/store/open.ts';
import { removeRun } from '../../../src/store/records/runs.ts';
import { beginAttempt, endAttempt, leaseTrial, trialsOf } from '../../../src/store/records/trials.ts';
import { ending, freshStore, planted } from '../../store/storeFixtures.ts';

const ping = async () => undefined;
let store: Store;
afterEach(() => store.close());

function bench() {
  store = freshStore();
  const run = planted(store);
  const errors: unknown[] = [];
  const pool = createEnginePool(['a', 'b'].map((name) => ({ name, slots: 2, ping })));
  recordLeases(pool, {
    ...{ store, run, isoNow: () => '1970-01-01T00:00:00.000Z' },
    onError: (error) => errors.push(error),
  });
  const [trial] = trialsOf(store, run.id);
  const attempt = () => {
    leaseTrial(store, trial!.id, 'me', 0);
    return beginAttempt(store, trial!.id, { startedAt: '', slot: 1, config: '{}' });
  };
  return { run, pool, errors, trial: trial!, attempt };
}

describe('leases', () => {
  test('of an attempt that moved and ended are there with how; a grading has none', () => {
    const { run, pool, trial, attempt } = bench();
    const { id, number } = attempt();
    const label = `${trial.id}.${number}`;
    pool.lease('a', label)('moved');
    const close = pool.lease('b', label);
    pool.lease('b', 'grade-1')('closed');
    expect(leasesOfRun(store, run.id).map(({ how }) => how)).toEqual(['moved', null]);
    close('closed');
    close('lost');
    expect(
      leasesOfRun(store, run.id).map(({ attempt_id, engine, how }) => [attempt_id, engine, how]),
    ).toEqual([
      [id, 'a', 'moved'],
      [id, 'b', 'closed'],
    ]);
  });

  test('those of a dead process end with it, and a run that is removed takes them along', () => {
    const { run, pool, trial, attempt } = bench();
    pool.lease('a', `${trial.id}.${attempt().number}`);
    endLeases(store, run.id, '2026-01-01T00:00:00.000Z');
    expect(leasesOfRun(store, run.id)).toMatchObject([{ how: 'process_lost' }]);
    removeRun(store, run.id);
    expect(store.prepare('SELECT count(*) AS n FROM leases').get()).toEqual({ n: 0 });
  });

  test('that cannot be written are told, and do not stop the pool', () => {
    const { pool, errors, trial, attempt } = bench();
    const label = `${trial.id}.${attempt().number}`;
    store.exec('DROP TABLE leases');
    pool.lease('a', label)('closed');
    expect(errors).toHaveLength(2);
    expect(pool.alive()).toEqual(['a', 'b']);
  });

  test('say what an engine that is back may lose: only what has ended, or runs elsewhere', () => {
    const { run, pool, trial, attempt } = bench();
    const { id, number } = attempt();
    const label = `${trial.id}.${number}`;
    const left = (engine: string, of = label) => hasLeftEngine(store, run.id, engine, of);
    // A container that is started ahead has no lease yet.
    expect(left('a')).toBe(false);
    const close = pool.lease('b', label);
    expect([left('a'), left('b')]).toEqual([true, false]);
    close('closed');
    endAttempt(store, id, ending('submitted'), 'seal');
    expect([left('a'), left('b')]).toEqual([true, true]);
    for (const foreign of ['', 'grade-1', '1', `${trial.id}.99`, `${trial.id}.${number}; DROP TABLE leases`])
      expect(left('b', foreign)).toBe(false);
  });
});
