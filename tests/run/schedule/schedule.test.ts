// The order of a sitting, from durations that the database holds, and its record.
import { describe, expect, test } from 'vitest';
import { runConfigSchema } from '../../../src/config/configSchema.ts';
import { expectedSeconds, groupBySharedLayers, scheduleTrials } from '../../../src/run/schedule/schedule.ts';
import type { Store } from '../../../src/store/open.ts';
import { instancesOf, type RunRow } from '../../../src/store/records/runs.ts';
import {
  beginAttempt,
  endAttempt,
  leaseTrial,
  pastDurations,
  trialsOf,
} from '../../../src/store/records/trials.ts';
import { ending, freshStore, planted } from '../../store/storeFixtures.ts';

const IDS = ['a__a-1', 'a__a-2', 'a__a-3'];
const config = (order: string) => runConfigSchema.parse({ order });

function finish(
  store: Store,
  run: RunRow,
  place: number,
  elapsed_ms: number,
  reason: 'submitted' | 'env_died' = 'submitted',
): void {
  const trial = trialsOf(store, run.id)[place]!;
  leaseTrial(store, trial.id, 'me', 1);
  const attempt = beginAttempt(store, trial.id, {
    startedAt: '2026-01-01T00:00:00.000Z',
    slot: 1,
    config: '{}',
  });
  endAttempt(store, attempt.id, ending(reason, { elapsed_ms }), 'seal');
}
const idsOf = (store: Store, run: RunRow, trials: readonly { instance_pk: number }[]) => {
  const names = new Map(instancesOf(store, run.id).map((row) => [row.id, row.instance_id]));
  return trials.map((trial) => names.get(trial.instance_pk));
};

describe('schedule', () => {
  test('longest first by what earlier runs took; outages do not count; the order is recorded', () => {
    const store = freshStore();
    const night = planted(store, { name: 'night-1', ids: IDS });
    finish(store, night, 0, 1_000);
    finish(store, night, 1, 9_000);
    finish(store, night, 2, 500_000, 'env_died');
    expect(pastDurations(store).map((d) => [d.instanceId, d.seconds])).toEqual([
      ['a__a-1', 1],
      ['a__a-2', 9],
    ]);
    const next = planted(store, { name: 'night-2', ids: IDS });
    const toDo = scheduleTrials(store, next, config('longest'), trialsOf(store, next.id));
    // a__a-3 has no valid history: its repository's 75th percentile is 7 s.
    expect(idsOf(store, next, toDo)).toEqual(['a__a-2', 'a__a-3', 'a__a-1']);
    expect(trialsOf(store, next.id).map((t) => t.id)).toEqual(toDo.map((t) => t.id));
    expect(toDo.map((t) => t.position)).toEqual([0, 1, 2]);
  });

  test('trials whose images share layers become neighbours, and that is recorded', () => {
    const store = freshStore();
    const run = planted(store, { ids: IDS });
    const trials = trialsOf(store, run.id);
    const layers = new Map(trials.map((trial, i) => [trial.id, [i === 1 ? 'other' : 'base', `own-${i}`]]));
    const grouped = groupBySharedLayers(store, run, trials, (trial) => layers.get(trial.id)!);
    expect(idsOf(store, run, grouped)).toEqual(['a__a-1', 'a__a-3', 'a__a-2']);
    expect(trialsOf(store, run.id).map((t) => t.id)).toEqual(grouped.map((t) => t.id));
    expect(groupBySharedLayers(store, run, trials, () => [])).toBe(trials);
  });

  test('what starts at a resume stands behind what was started before', () => {
    const store = freshStore();
    const run = planted(store, { ids: IDS });
    finish(store, run, 0, 1_000);
    const pending = trialsOf(store, run.id).filter((t) => t.state === 'pending');
    const toDo = scheduleTrials(store, run, config('shuffle'), pending);
    expect(toDo.map((t) => t.position)).toEqual([1, 2]);
    expect(trialsOf(store, run.id)[0]!.state).toBe('sealed');
  });

  test('what earlier runs let expect is said for each trial, and nothing when there are none', () => {
    const store = freshStore();
    const night = planted(store, { name: 'night-1', ids: IDS });
    expect(expectedSeconds(store, night, trialsOf(store, night.id))).toBeUndefined();
    finish(store, night, 0, 20_000);
    const next = planted(store, { name: 'night-2', ids: ['a__a-1', 'new__n-1'] });
    const expected = expectedSeconds(store, next, trialsOf(store, next.id))!;
    expect(expected.map(([, seconds]) => seconds)).toEqual([20, 20]);
    expect(expected.map(([id]) => id)).toEqual(trialsOf(store, next.id).map((t) => t.id));
  });

  test('dataset order changes nothing', () => {
    const store = freshStore();
    const run = planted(store, { ids: IDS });
    const before = trialsOf(store, run.id);
    expect(scheduleTrials(store, run, config('dataset'), before)).toBe(before);
    expect(trialsOf(store, run.id)).toEqual(before);
  });
});
