// Resampling is exact where it can be, seeded where it cannot, and says which.
import { describe, expect, test } from 'vitest';
import { mcnemarExact } from '../../../src/report/statistics/paired.ts';
import { wilson } from '../../../src/report/statistics/proportions.ts';
import {
  bootstraps,
  costPerResolved,
  geometricMeans,
  seeded,
  signFlip,
} from '../../../src/report/statistics/resampling.ts';
import { stratifiedEstimate } from '../../../src/report/statistics/stratified.ts';

const ones = (a: number, b: number, zeros = 0) => [
  ...Array<number>(a).fill(1),
  ...Array<number>(b).fill(-1),
  ...Array<number>(zeros).fill(0),
];

describe('sign-flip permutation', () => {
  test('is the exact McNemar test for differences of one, up to 20 of them', () => {
    for (const [b, c] of [
      [10, 2],
      [5, 5],
      [1, 0],
      [15, 5],
    ] as const) {
      const found = signFlip(ones(b, c, 7), 1);
      expect(found).toMatchObject({ method: 'exact', nonZero: b + c });
      expect(found.p).toBeCloseTo(mcnemarExact(b, c), 10);
    }
  });
  test('samples above 20, near the exact value, and the same for the same seed', () => {
    const found = signFlip(ones(25, 12), 7);
    expect(found).toMatchObject({ method: 'sampled', draws: 10_000, seed: 7 });
    expect(Math.abs(found.p - mcnemarExact(25, 12))).toBeLessThan(0.01);
    expect(signFlip(ones(25, 12), 7)).toEqual(found);
    expect(signFlip(ones(25, 12), 8).p).not.toBe(found.p);
  });
  test('a sampled p is never 0 and no difference is p = 1', () => {
    expect(signFlip(ones(60, 0), 1).p).toBeCloseTo(1 / 10_001, 10);
    expect(signFlip([0, 0], 1)).toMatchObject({ p: 1, method: 'exact' });
  });
  test('rounding of means over epochs does not lose the observed arrangement', () => {
    expect(signFlip([1 / 3, 1 / 3, 2 / 3, -1 / 3], 1).p).toBeCloseTo(8 / 16, 10);
  });
});

describe('bootstrap', () => {
  const ratioOfMeans = (pairs: readonly (readonly [number, number])[]) =>
    bootstraps([geometricMeans(pairs)], 1)[0]!;
  test('the generator is fixed: a stored seed gives stored numbers', () => {
    const random = seeded(42);
    expect([random(), random()].map((x) => x.toFixed(6))).toEqual(['0.601104', '0.448291']);
  });
  test('ratio of geometric means is exact for a constant ratio', () => {
    const found = ratioOfMeans([
      [2, 1],
      [20, 10],
      [0.2, 0.1],
      [8, 4],
      [6, 3],
      [4, 2],
      [0, 5],
    ]);
    expect(found.estimate).toBeCloseTo(2, 12);
    expect(found.interval!.low).toBeCloseTo(2, 12);
    expect(found.interval!.high).toBeCloseTo(2, 12);
    expect(found.n).toBe(6);
  });
  test('its interval covers a known ratio and shrinks with n', () => {
    const random = seeded(3);
    const pairs = (n: number) =>
      Array.from({ length: n }, () => [1.5 * Math.exp(random()), Math.exp(random())] as [number, number]);
    const [small, large] = [ratioOfMeans(pairs(30)), ratioOfMeans(pairs(600))];
    expect(large.interval!.low).toBeLessThan(1.5);
    expect(large.interval!.high).toBeGreaterThan(1.5);
    expect(large.interval!.high - large.interval!.low).toBeLessThan(
      small.interval!.high - small.interval!.low,
    );
  });
  test('fewer than six units have an estimate and no interval', () => {
    const pairs = [1, 2, 3, 4, 5].map((x) => [x, 1] as const);
    expect(ratioOfMeans(pairs)).toMatchObject({ interval: null, n: 5, draws: 0 });
    expect(ratioOfMeans([...pairs, [6, 1]]).interval).not.toBeNull();
  });
  test('few units get wider ends than plain percentiles, many the same', () => {
    const width = (n: number) => {
      const mean = { n, of: (ids: Int32Array) => ids.reduce((s, i) => s + i, 0) / n };
      const { low, high } = bootstraps([mean], 1, 4000)[0]!.interval!;
      return (high - low) / Math.sqrt((n * n - 1) / 12 / n);
    };
    // In standard errors: t(7) is 2.36, times 8/7 for the spread of the resamples.
    expect(width(8)).toBeGreaterThan(4.5);
    expect(width(400)).toBeGreaterThan(3.7);
    expect(width(400)).toBeLessThan(4.2);
  });
  test('cost per resolved: unbounded above when a draw may resolve nothing, undefined when nothing was resolved', () => {
    const rows = [{ cost: 1, resolved: 1 }, ...Array.from({ length: 5 }, () => ({ cost: 3, resolved: 0 }))];
    const found = costPerResolved(rows, 1)!;
    expect(found.estimate).toBe(16);
    expect(found.interval!.low).toBeLessThan(4);
    expect(found.interval!.high).toBe(Number.POSITIVE_INFINITY);
    expect(costPerResolved([rows[1]!, rows[1]!], 1)).toBeNull();
    expect(bootstraps([{ n: 1, of: () => 1 }], 1)).toEqual([null]);
  });
});

describe('stratified estimate', () => {
  const strata = [
    { key: 'easy', size: 60, n: 10, resolved: 9 },
    { key: 'hard', size: 40, n: 10, resolved: 2 },
  ];
  test('weights strata by their size in the dataset', () => {
    const found = stratifiedEstimate(strata)!;
    expect(found.p).toBeCloseTo(0.6 * 0.9 + 0.4 * 0.2, 12);
    const se = Math.sqrt((0.36 * (5 / 6) * 0.9 * 0.1) / 9 + (0.16 * (3 / 4) * 0.2 * 0.8) / 9);
    expect(found.se).toBeCloseTo(se, 12);
    expect(stratifiedEstimate(strata, { finite: false })!.se!).toBeGreaterThan(se);
  });
  test('says which strata it does not speak for; strata of one instance are pooled for the error', () => {
    const found = stratifiedEstimate([...strata, { key: 'rare', size: 5, n: 0, resolved: 0 }])!;
    expect(found.unseen).toEqual(['rare']);
    // One alone is pooled with the smallest other stratum.
    const one = stratifiedEstimate([
      { key: 'easy', size: 60, n: 12, resolved: 9 },
      { key: 'hard', size: 40, n: 10, resolved: 2 },
      { key: 'rare', size: 5, n: 1, resolved: 1 },
    ])!;
    const joined = (40 * 0.2 + 5) / 45;
    const pooled = (joined * (1 - joined) * 11) / 10;
    const variance =
      ((60 / 105) ** 2 * (1 - 12 / 60) * 0.75 * 0.25) / 11 +
      pooled * (((40 / 105) ** 2 * (1 - 10 / 40)) / 10 + (5 / 105) ** 2 * (1 - 1 / 5));
    expect(one).toMatchObject({ pooled: 1 });
    expect(one.p).toBeCloseTo((60 * 0.75 + 40 * 0.2 + 5) / 105, 12);
    expect(one.se!).toBeCloseTo(Math.sqrt(variance), 12);
    // A night of 50 over 40 strata: nearly all have one instance.
    const many = Array.from({ length: 30 }, (_, i) => ({
      key: `s${i}`,
      size: 10,
      n: 1,
      resolved: Number(i < 18),
    }));
    const night = stratifiedEstimate(many)!;
    expect(night.p).toBeCloseTo(0.6, 12);
    expect(night.se!).toBeCloseTo(Math.sqrt((0.9 * 0.6 * 0.4) / 29), 12);
    const alone = stratifiedEstimate([{ key: 'only', size: 9, n: 1, resolved: 1 }])!;
    expect(alone).toMatchObject({ se: null, interval: wilson(1, 1) });
    expect(stratifiedEstimate([...strata, { key: 'rare', size: 1, n: 1, resolved: 1 }])!.se).not.toBeNull();
    expect(stratifiedEstimate([])).toBeNull();
  });
  test('an instance that stands for many counts by its weight; one that stands for nearly half leaves no interval', () => {
    // 12 repositories, one instance each, as SWE-bench Verified gives for a sample of 12: worth 3.9 instances, and not 12.
    const sizes = [231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1];
    const twelve = sizes.map((size, i) => ({ key: `${i}`, size, n: 1, resolved: i % 2 }));
    const found = stratifiedEstimate(twelve)!;
    const left = sizes.reduce((s, size) => s + (size / 500) ** 2 * (1 - 1 / size), 0);
    expect(found.interval).toBeNull();
    // The stratum of one was seen whole: 11 are pooled.
    const rate = (found.p - 1 / 500) / (499 / 500);
    expect(found.se!).toBeCloseTo(Math.sqrt(((rate * (1 - rate) * 11) / 10) * left), 12);
    const two = twelve.map((s) => ({
      ...s,
      n: Math.min(2, s.size),
      resolved: s.resolved && Math.min(2, s.size),
    }));
    const { interval } = stratifiedEstimate(two)!;
    expect(interval!.high - interval!.low).toBeGreaterThan(0.5);
    // Equal shares are a plain sample, however few they are.
    const three = [0, 1, 1].map((resolved, i) => ({ key: `${i}`, size: 9, n: 1, resolved }));
    expect(stratifiedEstimate(three)!.interval).not.toBeNull();
  });
  test('where every stratum is all or nothing the interval is no point', () => {
    const none = [10, 20].map((size, i) => ({ key: `${i}`, size, n: 5, resolved: 0 }));
    expect(stratifiedEstimate(none)).toMatchObject({ p: 0, interval: wilson(0, 10) });
    // The whole dataset was measured: nothing is left to err about.
    const census = [{ key: 'a', size: 5, n: 5, resolved: 3 }];
    expect(stratifiedEstimate(census)!.interval).toEqual({ low: 0.6, high: 0.6 });
  });
});
