// The one error rate of a night: its parts by hand, by exact sums, and at their limits.
import { describe, expect, test } from 'vitest';
import {
  chanceOfFall,
  chanceOfFallOfMeans,
  confirmedError,
  fewestLosses,
  fisherP,
  infraError,
  lossP,
  NIGHT_ERROR,
  resultsOfARock,
  rocksError,
} from '../../../src/report/statistics/nightTests.ts';

test('the parts of the error are the whole: half for the paired test, and a fiftieth for a night in the record', () => {
  const parts = [confirmedError, rocksError, infraError].map((of) => of(NIGHT_ERROR));
  expect(parts.reduce((sum, part) => sum + part, NIGHT_ERROR / 2 + NIGHT_ERROR / 50)).toBeCloseTo(
    NIGHT_ERROR,
    12,
  );
});

describe('the confirmed test', () => {
  test('is the sign test', () => {
    expect(lossP(0, 0)).toBe(1);
    expect(lossP(7, 0)).toBeCloseTo(1 / 128, 14);
    // scipy.stats.binomtest(9, 10, 0.5, alternative='greater')
    expect(lossP(9, 1)).toBeCloseTo(0.0107421875, 14);
    expect(lossP(1, 9)).toBeCloseTo(0.9990234375, 14);
  });
  test('needs seven losses at a quarter of .05', () => {
    expect(fewestLosses(confirmedError(NIGHT_ERROR))).toBe(7);
    expect(lossP(7, 0)).toBeLessThan(confirmedError(NIGHT_ERROR));
    expect(lossP(6, 0)).toBeGreaterThan(confirmedError(NIGHT_ERROR));
  });
});

describe('a rock', () => {
  const worst = (h: number, f: number) => {
    let most = 0;
    for (let p = 0; p <= 1; p += 1e-4) most = Math.max(most, p ** h * (1 - p) ** f);
    return most;
  };
  test('has so many results that no chance whatever breaks n of them more often than allowed', () => {
    for (const n of [1, 20, 50, 100, 500])
      for (const failures of [2, 4, 6]) {
        const h = resultsOfARock(n, failures, 0.0125);
        expect(n * worst(h, failures)).toBeLessThanOrEqual(0.0125 + 1e-9);
        expect(n * worst(h - 1, failures)).toBeGreaterThan(0.0125 - 1e-6);
      }
  });
  test('the lengths that the documentation names', () => {
    const lengths = (failures: number) => [20, 50, 100, 500].map((n) => resultsOfARock(n, failures, 0.0125));
    expect([lengths(4), lengths(2)]).toEqual([
      [8, 10, 12, 19],
      [29, 46, 65, 147],
    ]);
  });
});

describe('how often chance alone exceeds a limit', () => {
  test('for one epoch it is a sum over the pairs that differ', () => {
    // Two differ among 10: both must have fallen for a drop of more than 10 %.
    expect(chanceOfFall(2, 10, 0.1)).toBeCloseTo(0.25, 14);
    expect(chanceOfFall(2, 10, 0)).toBeCloseTo(0.25, 14);
    expect(chanceOfFall(1, 10, 0)).toBeCloseTo(0.5, 14);
    // A drop of exactly the limit does not exceed it.
    expect(chanceOfFall(3, 10, 0.3)).toBe(0);
    expect(chanceOfFall(3, 10, 0.29)).toBeCloseTo(0.125, 14);
    expect(chanceOfFall(0, 10, 0)).toBe(0);
  });
  test('for means over epochs it is near that of the pairs', () => {
    const xs = Array.from({ length: 400 }, (_, i) => (i < 60 ? (i % 2 ? 1 : -1) : 0));
    const se = Math.sqrt(60 / 399 / 400);
    expect(chanceOfFallOfMeans(0, se, xs.length, 0.03)).toBeCloseTo(chanceOfFall(60, 400, 0.03), 1);
    expect(chanceOfFallOfMeans(0, 0, 10, 0.1)).toBe(0);
  });
});

test("Fisher's exact test, as scipy.stats.fisher_exact(..., alternative='greater')", () => {
  // [[3, 1], [1, 3]] (the lady and the tea): .242857; [[6, 0], [29, 65]]: .001362
  expect(fisherP(3, 4, 4, 8)).toBeCloseTo(0.2428571429, 9);
  expect(fisherP(6, 35, 6, 100)).toBeCloseTo(0.0013616, 6);
  expect(fisherP(0, 35, 6, 100)).toBeCloseTo(1, 12);
});
