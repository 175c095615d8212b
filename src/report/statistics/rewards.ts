/**
 * Rewards between 0 and 1: a mean over instances with its interval, and the paired difference of two sides with two tests that assume no shape.
 */
import { shareInterval } from './epochs.ts';
import { isNoSpread, mean, tTest } from './means.ts';
import { expectedTable, mcnemarExact, newcombe10, withinOne } from './paired.ts';
import { signFlip } from './resampling.ts';

/**
 * `trials`: how many results the values are means of. Null for no value. Wilson's interval, as for shares: rewards between 0 and 1 spread less
 * than verdicts do, so it is never too short.
 */
export function meanReward(values: readonly number[], trials: number) {
  const interval = shareInterval(values, trials);
  return interval && { n: values.length, mean: mean(values), interval };
}

export type RewardMean = NonNullable<ReturnType<typeof meanReward>>;

/** Means over epochs differ in their last bits. */
const SAME = 1e-12;
/** Five signs that agree have p = .0625. */
const FEWEST_TO_TEST = 6;
/** Fewer differences than this show their own spread too badly for a t interval. */
const FEWEST_FOR_T = 10;

/** Rewards of A and of B on the same instance. Null for no pair. */
export function pairedRewards(pairs: readonly (readonly [a: number, b: number])[], seed: number) {
  if (pairs.length === 0) return null;
  const gains = pairs.map(([a, b]) => (Math.abs(b - a) < SAME ? 0 : b - a));
  const better = gains.filter((gain) => gain > 0).length;
  const worse = gains.filter((gain) => gain < 0).length;
  const enough = better + worse >= FEWEST_TO_TEST;
  return {
    n: pairs.length,
    /** B minus A. */
    difference: mean(gains),
    ...intervalOf(pairs, gains, better + worse),
    /** Instances with more and with less reward on B, and the exact two-sided binomial test of them. */
    sign: { better, worse, p: enough ? mcnemarExact(better, worse) : null },
    /** Null, as the p above, where fewer than six instances differ: no order of their signs would be rare enough to say anything. */
    permutation: enough ? signFlip(gains, seed) : null,
  };
}

/** Where few instances differ, the table that independent yes-or-no results of these chances would give: it is wider, and claims no certainty. */
function intervalOf(
  pairs: readonly (readonly [number, number])[],
  gains: readonly number[],
  differing: number,
) {
  const t = tTest(gains);
  if (t !== null && differing >= FEWEST_FOR_T && !isNoSpread(t.se)) {
    return { interval: withinOne(t.interval), method: 't' as const };
  }
  return {
    interval: pairs.length < 2 ? null : newcombe10(expectedTable(pairs)),
    method: 'Newcombe 10' as const,
  };
}
