// Golden values: what scipy 1.17.1 gives for the same numbers.
import { describe, expect, test } from 'vitest';
import { holm } from '../../../src/report/compare/compareSides.ts';
import { epochEstimate, passAtK, passHatK, passTable } from '../../../src/report/statistics/epochs.ts';
import { clustered, quantile, standardError, tTest } from '../../../src/report/statistics/means.ts';
import {
  cochranQ,
  correctedChiSquared,
  detectableDifference,
  differenceOf,
  mcnemarChiSquared,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  waldPaired,
} from '../../../src/report/statistics/paired.ts';
import { proportion, wilson } from '../../../src/report/statistics/proportions.ts';
import {
  betaCdf,
  betaQuantile,
  chiSquaredP,
  logGamma,
  normalCdf,
  normalQuantile,
  studentCritical,
  studentP,
} from '../../../src/report/statistics/special.ts';

const near = (found: number, expected: number, digits = 6) => expect(found).toBeCloseTo(expected, digits);

describe('special functions agree with scipy', () => {
  test('normal', () => {
    near(normalCdf(-8) / 6.22096057427174e-16, 1, 9);
    near(normalCdf(-3), 0.0013498980316300957, 14);
    near(normalCdf(0.3), 0.6179114221889526, 14);
    near(normalQuantile(0.975), 1.959963984540054, 12);
    near(normalQuantile(0.8), 0.8416212335729143, 12);
  });
  test('beta and gamma', () => {
    near(betaCdf(0.01, 0.5, 20), SCIPY_BETA[0]!, 12);
    near(betaCdf(0.5, 250, 251), SCIPY_BETA[1]!, 12);
    near(betaQuantile(0.025, 325, 176), SCIPY_BETA[2]!, 12);
    near(logGamma(0.1), 2.252712651734206, 12);
    near(logGamma(1000.5), SCIPY_LOG_GAMMA, 8);
    near(chiSquaredP(7.3, 3), SCIPY_CHI2, 12);
  });
  test('Student t', () => {
    for (const [df, t] of SCIPY_T) near(studentCritical(0.05, df), t, 9);
    near(studentP(studentCritical(0.05, 9), 9), 0.05, 12);
    near(studentP(-1, 9), studentP(1, 9), 14);
  });
});

const SCIPY_T: [number, number][] = [
  [1, 12.706204736174694],
  [3, 3.1824463052837078],
  [9, 2.262157162798205],
  [30, 2.0422724563012378],
  [499, 1.9647293909876886],
];
const SCIPY_BETA = [0.4713699354850154, 0.5178323227766746, 0.6064011333593087];
const SCIPY_LOG_GAMMA = 5908.674175848678;
const SCIPY_CHI2 = 0.06292623645904312;

describe('one proportion', () => {
  const cases: [number, number, [number, number]][] = [
    [0, 10, [0, 0.277533]],
    [3, 10, [0.107791, 0.603222]],
    [10, 10, [0.722467, 1]],
    [7, 20, [0.181192, 0.567146]],
    [23, 50, [0.329697, 0.596011]],
  ];
  test.each(cases)('%i of %i', (x, n, w) => {
    near(wilson(x, n).low, w[0]);
    near(wilson(x, n).high, w[1]);
  });
  test('325 of 500', () => {
    near(wilson(325, 500).low, 0.60719, 5);
    near(wilson(325, 500).high, 0.69052, 5);
  });
  test('nothing measured has no rate and no interval', () => {
    expect(proportion(0, 0)).toEqual({ x: 0, n: 0, p: null, interval: null });
    expect(() => wilson(0, 0)).toThrow(RangeError);
    expect(() => wilson(3, 2)).toThrow(RangeError);
  });
});

describe('McNemar', () => {
  const cases: [number, number, number, number][] = [
    [10, 2, 0.0385742, 0.0224609],
    [25, 12, 0.047031, 0.0335524],
    [60, 40, 0.0568879, 0.0460441],
    [5, 5, 1, 1],
    [1, 0, 1, 0.5],
    [0, 0, 1, 1],
  ];
  test.each(cases)('(%i, %i)', (b, c, exact, midP) => {
    near(mcnemarExact(b, c), exact, 7);
    near(mcnemarMidP(b, c), midP, 7);
    near(mcnemarExact(c, b), exact, 7);
  });
  test('(121, 59) in its tail', () => {
    near(mcnemarExact(121, 59) / 4.43445e-6, 1, 5);
    near(mcnemarMidP(121, 59) / 3.26665e-6, 1, 5);
  });
  test('chi-squared with continuity correction, from 25 discordant pairs on', () => {
    near(mcnemarChiSquared(25, 12)!.statistic, 3.89189, 5);
    near(mcnemarChiSquared(25, 12)!.p, 0.0485197, 7);
    near(mcnemarChiSquared(60, 40)!.statistic, 3.61, 10);
    near(mcnemarChiSquared(60, 40)!.p, 0.0574331, 7);
    expect(mcnemarChiSquared(10, 2)).toBeNull();
    near(correctedChiSquared(10, 2).statistic, 4.08333, 5);
    // erfc(sqrt(49 / 24)); the reference prints .0433083, which differs in the seventh digit.
    near(correctedChiSquared(10, 2).p, 0.04330814281079198, 12);
    expect(mcnemarChiSquared(0, 0)).toBeNull();
  });
});

describe('paired difference', () => {
  const table = (both: number, aOnly: number, bOnly: number, neither: number) => ({
    both,
    aOnly,
    bOnly,
    neither,
  });
  test.each([
    [table(36, 12, 2, 0), 0.2, 0.05693, 0.340428],
    [table(295, 37, 28, 140), 0.018, -0.013793, 0.049753],
    [table(300, 60, 40, 100), 0.04, 0.000733, 0.079149],
  ])('Newcombe 10 for %j', (t, d, low, high) => {
    near(differenceOf(t), d);
    near(newcombe10(t).low, low);
    near(newcombe10(t).high, high);
  });
  test('Wald, for reference', () => {
    near(waldPaired(table(300, 60, 40, 100)).low, 0.000957, 5);
    near(waldPaired(table(300, 60, 40, 100)).high, 0.079043, 5);
  });
  test('no margin to correlate over still gives an interval', () => {
    const i = newcombe10(table(10, 0, 0, 0));
    expect(i.low).toBeLessThan(0);
    expect(i.high).toBeGreaterThan(0);
  });
  test('Cochran Q over three arms', () => {
    const rows = ['110', '100', '111', '000', '110', '101', '100', '010'].map((r) =>
      [...r].map((c) => c === '1'),
    );
    near(cochranQ(rows)!.statistic, 4.0, 9);
    near(cochranQ(rows)!.p, 0.1353352832366127, 9);
    expect(cochranQ([[true, true]])!.p).toBe(1);
  });
});

describe('paired t and clusters', () => {
  const a = [1, 1, 0, 1, 0, 0, 1, 1, 0, 1];
  const b = [1, 0, 0, 1, 0, 0, 0, 1, 0, 0];
  const d = a.map((x, i) => x - b[i]!);
  const repos = [...'aaabbccddd'];
  test('plain', () => {
    const t = tTest(d)!;
    near(t.mean, 0.3);
    near(t.se, 0.152753);
    near(t.t, 1.96396, 5);
    near(t.p, 0.081122, 5); // scipy 1.17.1 itself says 0.08112618884584
    near(t.p, 0.08112618884584076, 12);
    near(t.interval.low, -0.04555);
    near(t.interval.high, 0.64555);
  });
  test('clustered is smaller here and flips the verdict, which is why it is a sensitivity', () => {
    const c = clustered(d, repos)!;
    near(c.test.se, 0.084853);
    near(c.test.t, 3.53553, 5);
    near(c.test.p, 0.038486);
    expect(c.clusters).toBe(4);
    near(c.effective, 1 / (0.09 + 0.04 + 0.04 + 0.09));
    near(c.leaveOneOut.low, 2 / 8);
    near(c.leaveOneOut.high, 3 / 8);
  });
  test('SWE-bench Verified has 3.9 effective clusters', () => {
    const sizes = [231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1];
    const repo = sizes.flatMap((n, i) => Array<string>(n).fill(`r${i}`));
    expect(clustered(Array<number>(500).fill(1), repo)!.effective).toBeCloseTo(3.9, 1);
  });
  test('one value has no standard error, rather than none at all', () => {
    expect(standardError([1])).toBeNull();
    expect(tTest([1])).toBeNull();
    expect(clustered([1, 0], ['a', 'a'])).toBeNull();
  });
  test('equal differences', () => {
    expect(tTest([0, 0, 0])).toMatchObject({ t: 0, p: 1 });
    expect(tTest([1, 1, 1])).toMatchObject({ p: 0 });
  });
  test('quantiles interpolate as numpy does', () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
    near(quantile([1, 2, 3, 4], 0.95)!, 3.85);
    expect(quantile([], 0.5)).toBeNull();
  });
});

describe('pass@k and pass^k', () => {
  test('golden', () => {
    near(passAtK(5, 2, 1)!, 0.4);
    near(passAtK(5, 2, 3)!, 0.9);
    near(passAtK(10, 3, 5)!, 0.9166667, 7);
    near(passHatK(5, 2, 1)!, 0.4);
    near(passHatK(3, 3, 3)!, 1);
    expect(passHatK(5, 2, 3)).toBe(0);
  });
  test('fewer scored epochs than k is unknown, never padded with failures', () => {
    expect(passAtK(2, 1, 3)).toBeNull();
    expect(passHatK(2, 1, 3)).toBeNull();
    const rows = passTable(
      [
        { n: 3, c: 3 },
        { n: 1, c: 0 },
      ],
      3,
    );
    expect(rows.map((r) => r.passAtK.n)).toEqual([2, 1, 1]);
    expect(rows[2]!.passHatK).toEqual({ mean: 1, se: null, interval: wilson(1, 1), n: 1 });
  });
});

describe('epochs', () => {
  test('same-instance noise is apart from new-instance noise', () => {
    const items = [
      [1, 1],
      [0, 0],
      [1, 0],
      [0, 1],
    ];
    const e = epochEstimate(items)!;
    expect(e.n).toBe(4);
    near(e.mean, 0.5);
    near(e.newInstances!.se, Math.sqrt(0.5 / 3 / 4));
    // Unbiased variance of (1, 0) is 1/2; two of four instances have it.
    near(e.sameInstances!.withinVariance, 0.25);
    near(e.sameInstances!.oneEpochSd, 0.25);
    near(e.sameInstances!.se, Math.sqrt(0.25 / 2 / 4));
  });
  test('the published size: sigma² .10 over 500 instances is 1.4 points a night', () => {
    // 100 of 500 instances flip with variance 1/2: mean .10.
    const items = Array.from({ length: 500 }, (_, i) => (i < 100 ? [1, 0] : [1, 1]));
    near(epochEstimate(items)!.sameInstances!.oneEpochSd, 0.014142, 6);
  });
  test('an interval of shares ends at 0 and 1; epochs that agree tell no more than one, others narrow it to at most their number', () => {
    const { interval } = epochEstimate([
      [1, 1],
      [1, 1],
      [1, 1],
      [0, 0],
    ])!;
    expect(interval).toEqual(wilson(3, 4));
    const inside = epochEstimate(Array.from({ length: 40 }, (_, i) => [i % 2, i % 2]))!;
    expect(inside.interval).toEqual(wilson(20, 40));
    // Means 1/4 and 3/4: SE² = 1/16 / 39, so that 40 instances are worth 156 of 160 trials.
    const mixed = epochEstimate(Array.from({ length: 40 }, (_, i) => (i % 2 ? [1, 1, 1, 0] : [1, 0, 0, 0])))!;
    near(mixed.interval.low, wilson(78, 156).low, 9);
    const level = epochEstimate([...Array.from({ length: 39 }, () => [1, 0]), [1, 1]])!;
    near(level.interval.low, wilson(41, 80).low, 9);
    const [row] = passTable(
      [
        { n: 2, c: 2 },
        { n: 2, c: 0 },
        { n: 1, c: 1 },
      ],
      1,
    );
    expect(row!.passAtK).toMatchObject({ n: 3, interval: wilson(2, 3) });
  });
  test('where all instances did the same an interval is Wilson over them, and never ±0', () => {
    const all = (n: number, scores: number[]) => epochEstimate(Array.from({ length: n }, () => scores))!;
    expect(all(5, [1, 1, 1])).toMatchObject({ mean: 1, interval: wilson(5, 5), newInstances: null });
    expect(all(10, [0, 0])).toMatchObject({ mean: 0, interval: wilson(0, 10) });
    // Equal means that floating point does not keep equal.
    const thirds = all(6, [1, 0, 0]);
    near(thirds.interval.low, wilson(2, 6).low, 9);
    near(thirds.interval.high, wilson(2, 6).high, 9);
    const [row] = passTable(
      Array.from({ length: 4 }, () => ({ n: 3, c: 3 })),
      1,
    );
    expect(row!.passAtK.interval).toEqual(wilson(4, 4));
  });
  test('one epoch says nothing about same-instance noise', () => {
    expect(epochEstimate([[1], [0]])!.sameInstances).toBeNull();
    expect(epochEstimate([[1]])!.newInstances).toBeNull();
    expect(epochEstimate([[]])).toBeNull();
  });
});

describe('power', () => {
  test.each([
    [0.1, 4.0],
    [0.15, 4.9],
    [0.2, 5.6],
    [0.25, 6.3],
    [0.3, 6.9],
  ])('n = 500, discordance %f: %f points', (psi, points) => {
    expect(100 * detectableDifference(psi, 500)).toBeCloseTo(points, 1);
  });
  test('a night of 50 cannot see small regressions', () => {
    expect(100 * detectableDifference(0.2, 50)).toBeCloseTo(17.7, 1);
  });
});

describe('several comparisons', () => {
  test('Holm', () => {
    expect(holm([0.01, 0.04, 0.03]).map((p) => Number(p.toFixed(10)))).toEqual([0.03, 0.06, 0.06]);
    expect(holm([0.6, 0.7])).toEqual([1, 1]);
    expect(holm([])).toEqual([]);
  });
});
