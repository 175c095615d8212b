// Rewards of several steps as one, and the gate between them: as harbor itself computes them (tests/support/python/harborSteps.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { imagesOfWork } from '../../../src/grading/gradingFrame.ts';
import { combinedRewards, gateFailure, keptSteps } from '../../../src/suites/harbor/steps.ts';

type Pairs = readonly (readonly [string, number])[];
interface Case {
  readonly strategy: 'mean' | 'final' | null;
  readonly steps: readonly (Pairs | null)[];
  readonly expected: Pairs | null;
  readonly least: number | Readonly<Record<string, number>>;
  readonly stops: boolean;
}

const { cases } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'harborSteps.json'), 'utf8'),
) as { cases: Case[] };
const rewardsOf = (pairs: Pairs | null) => (pairs === null ? null : Object.fromEntries(pairs));

describe('against harbor 0.25.0', () => {
  test('the mean and the last of 240 random trials are the same to the last bit', () => {
    expect(cases).toHaveLength(240);
    for (const one of cases) {
      const combined = combinedRewards(one.strategy ?? 'mean', one.steps.map(rewardsOf));
      const pairs = combined && Object.entries(combined).toSorted(([a], [b]) => (a < b ? -1 : 1));
      expect(pairs, JSON.stringify(one)).toEqual(one.expected);
    }
    // Cases that a plain sum gets wrong are among them.
    expect(cases.filter(({ expected }) => expected?.some(([, value]) => value > 1e14))).not.toEqual([]);
  });

  test('a gate stops where harbor stops', () => {
    for (const one of cases) {
      const least = typeof one.least === 'number' ? { reward: one.least } : one.least;
      const failed = gateFailure(rewardsOf(one.steps.at(-1) ?? null), least);
      expect(failed !== undefined, JSON.stringify(one)).toBe(one.stops);
    }
    expect(new Set(cases.map(({ stops }) => stops))).toEqual(new Set([true, false]));
  });
});

test('a gate says what was missing, and how much', () => {
  expect(gateFailure(null, { reward: 0 })).toBe('it has no reward "reward", and 0 is the least to go on');
  expect(gateFailure({ reward: 1, style: 0.25 }, { reward: 1, style: 0.5 })).toBe(
    'its reward "style" is 0.25, and 0.5 is the least to go on',
  );
  // A name that every object has is no reward.
  expect(gateFailure({ reward: 1 }, { toString: 0 })).toContain('it has no reward "toString"');
});

test('kept work is the name of one image, or a list of steps', () => {
  expect(imagesOfWork('swebatch.internal/work:abc')).toEqual(['swebatch.internal/work:abc']);
  const steps = [
    { step: 'a', image: 'x:1', verdict: { any: 1 } },
    { step: 'b', image: null },
  ];
  expect(keptSteps(JSON.stringify(steps))).toEqual(steps);
  expect(imagesOfWork(JSON.stringify(steps))).toEqual(['x:1']);
  expect(imagesOfWork('[]')).toEqual([]);
});
