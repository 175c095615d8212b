/**
 * Rewards between 0 and 1: a mean over instances with its interval, and the paired difference of two sides with two tests that assume no shape.
 */
import { shareInterval } from './epochs.ts';
import { mean } from './means.ts';
import { differenceOfMeans, gainsOf, mcnemarExact } from './paired.ts';
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

/** Five signs that agree have p = .0625. */
const FEWEST_TO_TEST = 6;

/** Rewards of A and of B on the same instance. Null for no pair. */
export function pairedRewards(pairs: readonly (readonly [a: number, b: number])[], seed: number) {
  if (pairs.length === 0) return null;
  const gains = gainsOf(pairs);
  const better = gains.filter((gain) => gain > 0).length;
  const worse = gains.filter((gain) => gain < 0).length;
  const enough = better + worse >= FEWEST_TO_TEST;
  return {
    n: pairs.length,
    /** B minus A. */
    ...differenceOfMeans(pairs),
    /** Instances with more and with less reward on B, and the exact two-sided binomial test of them. */
    sign: { better, worse, p: enough ? mcnemarExact(better, worse) : null },
    /** Null, as the p above, where fewer than six instances differ: no order of their signs would be rare enough to say anything. */
    permutation: enough ? signFlip(gains, seed) : null,
  };
}
