// The order in which trials start, the forecast, and what is said about a partial result.

import { describe, expect, test } from 'vitest';
import {
  biasWarning,
  estimator,
  expectedQuantile,
  orderTrials,
  remainingSeconds,
} from '../../../src/run/schedule/order.ts';
import fc from '../../support/property.ts';

const past = (instanceId: string, model: string, repo: string, seconds: number) => ({
  instanceId,
  model,
  repo,
  seconds,
});
const trial = (instanceId: string, model = 'm', repo = 'r') => ({ instanceId, model, repo });

describe('estimates', () => {
  const estimate = estimator([
    past('a', 'm', 'r', 100),
    past('a', 'm', 'r', 200),
    past('a', 'other', 'r', 1000),
    past('b', 'other', 'r', 50),
    past('z', 'other', 's', 10),
  ]);

  test('come from instance and model, else instance, else repository, else everything', () => {
    expect(estimate(trial('a', 'm'))).toEqual({ seconds: 175, from: 'instance and model' });
    expect(estimate(trial('b', 'm'))).toEqual({ seconds: 50, from: 'instance' });
    expect(estimate(trial('new', 'm', 's'))).toEqual({ seconds: 10, from: 'repository' });
    expect(estimate(trial('new', 'm', 't'))).toEqual({ seconds: 200, from: 'all' });
    expect(estimator([])(trial('x'))).toMatchObject({ from: 'none' });
  });

  test('a quantile interpolates', () => {
    expect([0, 0.25, 0.75, 1].map((q) => expectedQuantile([40, 10, 30, 20], q))).toEqual([
      10, 17.5, 32.5, 40,
    ]);
  });
});

describe('order', () => {
  test('longest first; what has the same estimate keeps its place', () => {
    const history = [past('short', 'm', 'r', 1), past('long', 'm', 'r', 9), past('mid', 'm', 'r', 5)];
    const trials = ['short', 'mid', 'x', 'long', 'y'].map((id) =>
      trial(id, 'm', id.length === 1 ? 'r2' : 'r'),
    );
    // x and y have no history of their own: the 75th percentile of all is 7.
    expect(orderTrials(trials, 'longest', history, 42).map((t) => t.instanceId)).toEqual([
      'long',
      'x',
      'y',
      'mid',
      'short',
    ]);
    expect(orderTrials(trials, 'longest', [], 42)).toEqual(trials);
  });

  test('shuffle keeps the arms of an instance together and depends on the seed alone', () => {
    const trials = ['a', 'b', 'c', 'd', 'e'].flatMap((id) => [trial(id, 'm1'), trial(id, 'm2')]);
    const shuffled = orderTrials(trials, 'shuffle', [], 42);
    for (let i = 0; i < shuffled.length; i += 2)
      expect(shuffled[i]!.instanceId).toBe(shuffled[i + 1]!.instanceId);
    expect(orderTrials(trials.toReversed(), 'shuffle', [], 42).map((t) => t.instanceId)).toEqual(
      shuffled.map((t) => t.instanceId),
    );
    expect(orderTrials(trials, 'shuffle', [], 7)).not.toEqual(shuffled);
  });

  test('every mode is a permutation', () => {
    const trialArb = fc.record({
      instanceId: fc.string(),
      model: fc.constantFrom('m', 'n'),
      repo: fc.constantFrom('r', 's'),
    });
    fc.assert(
      fc.property(
        fc.array(trialArb),
        fc.constantFrom('dataset', 'shuffle', 'longest' as const),
        fc.array(
          fc.record({
            instanceId: fc.string(),
            model: fc.constant('m'),
            repo: fc.constant('r'),
            seconds: fc.nat(),
          }),
        ),
        (trials, mode, history) => {
          const ordered = orderTrials(trials, mode, history, 42);
          expect(new Set(ordered)).toEqual(new Set(trials));
          expect(ordered).toHaveLength(trials.length);
        },
      ),
    );
  });
});

describe('forecast', () => {
  test.each([
    ['one slot does all in turn', [], [10, 20, 30], 1, 60],
    ['two slots share', [], [30, 20, 10], 2, 30],
    ['a running one holds its slot', [{ elapsed: 5, estimate: 25 }], [10, 10], 2, 20],
    ['one that runs over its estimate is not taken as done', [{ elapsed: 100, estimate: 10 }], [], 1, 10],
    ['nothing left', [], [], 4, 0],
  ])('%s', (_, running, waiting, slots, seconds) => {
    expect(remainingSeconds(running, waiting, slots)).toBe(seconds);
  });

  test('is never below the longest, nor below the work over the slots, nor above the sum', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1 }),
        fc.integer({ min: 1, max: 20 }),
        (waiting, slots) => {
          const eta = remainingSeconds([], waiting, slots);
          const sum = waiting.reduce((a, b) => a + b, 0);
          expect(eta).toBeGreaterThanOrEqual(Math.max(...waiting));
          expect(eta).toBeGreaterThanOrEqual(sum / slots - 1e-6);
          expect(eta).toBeLessThanOrEqual(sum);
        },
      ),
    );
  });

  test('longest first is at most a third above the best there can be (Graham), dataset order may be far off', () => {
    const waiting = [1, 1, 1, 1, 1, 1, 1, 1, 8];
    expect(remainingSeconds([], waiting, 2)).toBe(12);
    expect(
      remainingSeconds(
        [],
        waiting.toSorted((a, b) => b - a),
        2,
      ),
    ).toBe(8);
  });
});

test('a partial result under longest first is called a biased sample, a complete one is not', () => {
  expect(biasWarning('longest', 3, 10)).toMatch(/3 of 10.*biased sample.*--order shuffle/);
  expect(biasWarning('longest', 10, 10)).toBeUndefined();
  expect(biasWarning('longest', 0, 10)).toBeUndefined();
  expect(biasWarning('shuffle', 3, 10)).toBeUndefined();
});
