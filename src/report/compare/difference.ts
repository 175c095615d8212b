/** How far two sides are apart, how sure that is, and what a comparison of this size could find. */
import { namedRewards } from '../measure/rewardSummary.ts';
import { isNoSpread, mean, tTest, variance } from '../statistics/means.ts';
import {
  detectableDifference,
  differenceOf,
  expectedTable,
  type McNemarTest,
  mcnemar,
  mcnemarChiSquared,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  type PairedTable,
  waldPaired,
  withinOne,
} from '../statistics/paired.ts';
import { signFlip } from '../statistics/resampling.ts';
import { meanReward, pairedRewards } from '../statistics/rewards.ts';
import { type Matching, type Pair, rateOf, resultOn, type Side, type SideResult } from './side.ts';

/** `epochs`: a side has several, so that an instance counts by its mean. */
export function testDifference(
  { pairs, gains }: Pick<Matching, 'pairs' | 'gains'>,
  table: PairedTable,
  epochs: boolean,
  options: { readonly test: McNemarTest; readonly seed: number },
) {
  const n = gains.length;
  const t = tTest(gains);
  const permutation = epochs ? signFlip(gains, options.seed) : null;
  const { aOnly, bOnly } = table;
  const paired = !epochs && n > 0;
  return {
    difference: n === 0 ? null : epochs ? byMeans(t, gains, pairs) : byPairs(table),
    /** The test that decides, named; the others are for reference. */
    test:
      n === 0
        ? null
        : permutation
          ? { name: `sign-flip permutation (${permutation.method})`, p: permutation.p }
          : {
              name: options.test === 'exact' ? 'exact McNemar' : 'mid-p McNemar',
              p: mcnemar(options.test, aOnly, bOnly),
            },
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

const byPairs = (table: PairedTable) => ({
  points: differenceOf(table),
  interval: newcombe10(table),
  method: 'Newcombe 10' as const,
});

/** Where every instance differs by the same, t would claim certainty: then the table that independent epochs would give. */
function byMeans(t: ReturnType<typeof tTest>, gains: readonly number[], pairs: readonly Pair[]) {
  if (t !== null && !isNoSpread(t.se))
    return { points: mean(gains), interval: withinOne(t.interval), method: 't' as const };
  const table = expectedTable(pairs.map((p) => [rateOf(p.a), rateOf(p.b)]));
  return byPairs({ ...table, neither: table.neither + gains.length - pairs.length });
}

/** `detectable`: the smallest difference this comparison would find in four of five cases; null without a discordant pair. */
export function powerOf(gains: readonly number[], table: PairedTable, epochs: boolean) {
  const n = gains.length;
  if (n < 2) return { detectable: null, discordance: null };
  const discordance = epochs ? null : (table.aOnly + table.bOnly) / n;
  const spread = epochs ? (variance(gains) ?? 0) : (discordance ?? 0);
  return { detectable: spread === 0 ? null : detectableDifference(spread, n), discordance };
}

/** A side without rewards counts by its verdicts. */
const rewardOn = (result: SideResult): number => (result.rewards ? mean(result.rewards) : rateOf(result));

/** `asked`: the instances that both sides were meant to answer. Null where neither side has a reward. */
export function rewardDifference(
  a: Side,
  b: Side,
  pairs: readonly Pair[],
  asked: readonly string[],
  seed: number,
) {
  if (!pairs.some((p) => p.a.rewards ?? p.b.rewards)) return null;
  const both = pairs.map((p) => [rewardOn(p.a), rewardOn(p.b)] as const);
  const over = (results: readonly SideResult[]) =>
    meanReward(
      results.map(rewardOn),
      results.reduce((n, { scores }) => n + scores.length, 0),
    )!;
  const withZeros = (side: Side, id: string) => {
    const result = resultOn(side, id);
    return result && result.scores.length > 0 ? rewardOn(result) : 0;
  };
  const named = namedOf(pairs);
  return {
    a: over(pairs.map((p) => p.a)),
    b: over(pairs.map((p) => p.b)),
    ...pairedRewards(both, seed)!,
    ...(asked.length > pairs.length && {
      missingAsZero: {
        n: asked.length,
        difference: mean(asked.map((id) => withZeros(b, id) - withZeros(a, id))),
      },
    }),
    ...(named.length > 0 && { named }),
  };
}

export type RewardDifference = NonNullable<ReturnType<typeof rewardDifference>> & {
  /** Of the permutation, adjusted over all pairs of a comparison; absent where nothing is tested. */
  readonly pHolm?: number;
};

/** Further rewards, over instances that have them on both sides. */
function namedOf(pairs: readonly Pair[]) {
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
