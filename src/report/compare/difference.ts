/** How far two sides are apart, how sure that is, and what a comparison of this size could find. */
import { namedRewards } from '../measure/rewardSummary.ts';
import { isNoSpread, mean, type TTest, tTest, variance } from '../statistics/means.ts';
import {
  detectableDifference,
  differenceOf,
  type McNemarTest,
  mcnemar,
  mcnemarChiSquared,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  type PairedTable,
  waldPaired,
} from '../statistics/paired.ts';
import type { Interval } from '../statistics/proportions.ts';
import { type Permutation, signFlip } from '../statistics/resampling.ts';
import { meanReward, type PairedRewards, pairedRewards, type RewardMean } from '../statistics/rewards.ts';
import { type Matching, type Pair, rateOf, resultOn, type Side, type SideResult } from './side.ts';

interface Difference {
  readonly points: number;
  readonly interval: Interval | null;
  readonly method: 'Newcombe 10' | 't';
}

export interface TestedDifference {
  readonly difference: Difference | null;
  /** The test that decides, named; the others are for reference. */
  readonly test: { readonly name: string; readonly p: number } | null;
  readonly reference: {
    readonly exact: number | null;
    readonly midP: number | null;
    readonly chiSquared: { readonly statistic: number; readonly p: number } | null;
    readonly wald: Interval | null;
    readonly t: TTest | null;
    readonly permutation: Permutation | null;
  };
}

/** `epochs`: a side has several, so that an instance counts by its mean. */
export function testDifference(
  { pairs, gains }: Matching,
  table: PairedTable,
  epochs: boolean,
  options: { readonly test: McNemarTest; readonly seed: number },
): TestedDifference {
  const n = gains.length;
  const t = tTest(gains);
  const permutation = epochs ? signFlip(gains, options.seed) : null;
  const { aOnly, bOnly } = table;
  const paired = !epochs && n > 0;
  return {
    difference: n === 0 ? null : epochs ? byMeans(t, gains, pairs) : byPairs(table),
    test: n === 0 ? null : decide(options.test, table, permutation),
    reference: {
      exact: paired ? mcnemarExact(aOnly, bOnly) : null,
      midP: paired ? mcnemarMidP(aOnly, bOnly) : null,
      chiSquared: epochs ? null : mcnemarChiSquared(aOnly, bOnly),
      wald: paired ? waldPaired(table) : null,
      t,
      permutation,
    },
  };
}

const byPairs = (table: PairedTable): Difference => ({
  points: differenceOf(table),
  interval: newcombe10(table),
  method: 'Newcombe 10',
});

/** Where every instance differs by the same, t would claim certainty: then the table that independent epochs would give. */
function byMeans(t: TTest | null, gains: readonly number[], pairs: readonly Pair[]): Difference {
  if (t === null || isNoSpread(t.se)) {
    const part = (of: (x: number, y: number) => number) =>
      pairs.reduce((s, p) => s + of(rateOf(p.a), rateOf(p.b)), 0);
    return byPairs({
      both: part((x, y) => x * y),
      aOnly: part((x, y) => (1 - x) * y),
      bOnly: part((x, y) => x * (1 - y)),
      neither: part((x, y) => (1 - x) * (1 - y)) + gains.length - pairs.length,
    });
  }
  return { points: mean(gains), interval: withinOne(t.interval), method: 't' };
}

/** A difference of shares ends at one, however few instances there are. */
export const withinOne = ({ low, high }: Interval): Interval => ({
  low: Math.max(-1, low),
  high: Math.min(1, high),
});

function decide(
  test: McNemarTest,
  { aOnly, bOnly }: PairedTable,
  permutation: Permutation | null,
): TestedDifference['test'] {
  if (permutation) return { name: `sign-flip permutation (${permutation.method})`, p: permutation.p };
  return { name: test === 'exact' ? 'exact McNemar' : 'mid-p McNemar', p: mcnemar(test, aOnly, bOnly) };
}

export interface Power {
  /** Smallest difference this comparison would find in four of five cases; null without a discordant pair. */
  readonly detectable: number | null;
  readonly discordance: number | null;
}

export function powerOf(gains: readonly number[], table: PairedTable, epochs: boolean): Power {
  const n = gains.length;
  if (n < 2) return { detectable: null, discordance: null };
  const discordance = epochs ? null : (table.aOnly + table.bOnly) / n;
  const spread = epochs ? (variance(gains) ?? 0) : (discordance ?? 0);
  return { detectable: spread === 0 ? null : detectableDifference(spread, n), discordance };
}

export interface RewardDifference extends PairedRewards {
  readonly a: RewardMean;
  readonly b: RewardMean;
  /** Of the permutation, adjusted over all pairs of a comparison; absent where nothing is tested. */
  readonly pHolm?: number;
  /** Every missing result counted as 0; absent where none is missing. */
  readonly missingAsZero?: { readonly n: number; readonly difference: number };
  /** Further rewards, over instances that have them on both sides. Absent where there is none. */
  readonly named?: readonly {
    readonly name: string;
    readonly n: number;
    readonly a: number;
    readonly b: number;
    readonly difference: number;
  }[];
}

/** A side without rewards counts by its verdicts. */
const rewardOn = (result: SideResult): number => (result.rewards ? mean(result.rewards) : rateOf(result));

/** `asked`: the instances that both sides were meant to answer. Null where neither side has a reward. */
export function rewardDifference(
  sides: { readonly a: Side; readonly b: Side },
  pairs: readonly Pair[],
  asked: readonly string[],
  seed: number,
): RewardDifference | null {
  if (!pairs.some(({ a, b }) => a.rewards ?? b.rewards)) return null;
  const both = pairs.map(({ a, b }) => [rewardOn(a), rewardOn(b)] as const);
  const trials = (which: 'a' | 'b') => pairs.reduce((n, pair) => n + pair[which].scores.length, 0);
  const named = namedOf(pairs);
  return {
    a: meanReward(
      both.map(([a]) => a),
      trials('a'),
    )!,
    b: meanReward(
      both.map(([, b]) => b),
      trials('b'),
    )!,
    ...pairedRewards(both, seed)!,
    ...(asked.length > pairs.length && { missingAsZero: missingAsZero(sides, asked) }),
    ...(named.length > 0 && { named }),
  };
}

function missingAsZero({ a, b }: { readonly a: Side; readonly b: Side }, asked: readonly string[]) {
  const of = (side: Side, id: string) => {
    const result = resultOn(side, id);
    return result && result.scores.length > 0 ? rewardOn(result) : 0;
  };
  return { n: asked.length, difference: mean(asked.map((id) => of(b, id) - of(a, id))) };
}

function namedOf(pairs: readonly Pair[]): NonNullable<RewardDifference['named']> {
  const found = new Map<string, (readonly [number, number])[]>();
  for (const { a, b } of pairs) {
    const [left, right] = [namedRewards(a.named ?? []), namedRewards(b.named ?? [])];
    for (const [name, value] of left)
      if (right.has(name)) found.set(name, [...(found.get(name) ?? []), [value, right.get(name)!]]);
  }
  return [...found].map(([name, values]) => {
    const [a, b] = [mean(values.map(([x]) => x)), mean(values.map(([, y]) => y))];
    return { name, n: values.length, a, b, difference: b - a };
  });
}
