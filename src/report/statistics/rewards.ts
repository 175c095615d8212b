/**
 * Rewards between 0 and 1: a mean over instances with its interval, and the paired difference of two sides with two tests that assume no shape.
 */
import { shareInterval } from './epochs.ts';
import { isNoSpread, mean, tTest } from './means.ts';
import { mcnemarExact, newcombe10 } from './paired.ts';
import type { Interval } from './proportions.ts';
import { type Permutation, signFlip } from './resampling.ts';

export interface RewardMean {
  /** Instances. */
  readonly n: number;
  readonly mean: number;
  /** Wilson's, as for shares: rewards between 0 and 1 spread less than verdicts do, so it is never too short. */
  readonly interval: Interval;
}

/** `trials`: how many results the values are means of. Null for no value. */
export function meanReward(values: readonly number[], trials: number): RewardMean | null {
  const interval = shareInterval(values, trials);
  return interval && { n: values.length, mean: mean(values), interval };
}

export interface PairedRewards {
  readonly n: number;
  /** B minus A. */
  readonly difference: number;
  /** Null for a single instance. */
  readonly interval: Interval | null;
  readonly method: 't' | 'Newcombe 10';
  /** Instances with more and with less reward on B, and the exact two-sided binomial test of them. */
  readonly sign: { readonly better: number; readonly worse: number; readonly p: number | null };
  /** Both p are null where fewer than six instances differ: no order of their signs would be rare enough to say anything. */
  readonly permutation: Permutation | null;
}

/** Means over epochs differ in their last bits. */
const SAME = 1e-12;
/** Five signs that agree have p = .0625. */
const FEWEST_TO_TEST = 6;
/** Fewer differences than this show their own spread too badly for a t interval. */
const FEWEST_FOR_T = 10;

/** Rewards of A and of B on the same instance. Null for no pair. */
export function pairedRewards(
  pairs: readonly (readonly [a: number, b: number])[],
  seed: number,
): PairedRewards | null {
  if (pairs.length === 0) return null;
  const gains = pairs.map(([a, b]) => (Math.abs(b - a) < SAME ? 0 : b - a));
  const better = gains.filter((gain) => gain > 0).length;
  const worse = gains.filter((gain) => gain < 0).length;
  const enough = better + worse >= FEWEST_TO_TEST;
  return {
    ...{ n: pairs.length, difference: mean(gains), ...intervalOf(pairs, gains, better + worse) },
    sign: { better, worse, p: enough ? mcnemarExact(better, worse) : null },
    permutation: enough ? signFlip(gains, seed) : null,
  };
}

/** Where few instances differ, the table that independent yes-or-no results of these chances would give: it is wider, and claims no certainty. */
function intervalOf(
  pairs: readonly (readonly [number, number])[],
  gains: readonly number[],
  differing: number,
): Pick<PairedRewards, 'interval' | 'method'> {
  const t = tTest(gains);
  if (t !== null && differing >= FEWEST_FOR_T && !isNoSpread(t.se)) {
    const { low, high } = t.interval;
    return { interval: { low: Math.max(-1, low), high: Math.min(1, high) }, method: 't' };
  }
  const part = (of: (a: number, b: number) => number) => pairs.reduce((s, [a, b]) => s + of(a, b), 0);
  const table = {
    both: part((a, b) => a * b),
    aOnly: part((a, b) => (1 - a) * b),
    bOnly: part((a, b) => a * (1 - b)),
    neither: part((a, b) => (1 - a) * (1 - b)),
  };
  return { interval: pairs.length < 2 ? null : newcombe10(table), method: 'Newcombe 10' };
}
