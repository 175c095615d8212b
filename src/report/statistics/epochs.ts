/** Independent repeats: pass@k, pass^k, and the two kinds of noise that are always confused. */

import { isNoSpread, mean, standardError, sum, variance } from './means.ts';
import { type Interval, wilson } from './proportions.ts';

/** Chance that at least one of k draws from n tries with c successes succeeds; null when fewer than k were scored. */
export function passAtK(n: number, c: number, k: number): number | null {
  if (n < k) return null;
  if (n - c < k) return 1;
  let allFail = 1;
  for (let i = 0; i < k; i++) allFail *= (n - c - i) / (n - i);
  return 1 - allFail;
}

/** Chance that all k succeed (tau-bench). */
export function passHatK(n: number, c: number, k: number): number | null {
  if (n < k) return null;
  let all = 1;
  for (let i = 0; i < k; i++) all *= Math.max(0, c - i) / (n - i);
  return all;
}

/** Fewer instances show their own spread too badly for it to narrow an interval: with five it held 91 % for 95. */
const FEWEST_TO_NARROW = 10;

/**
 * For the mean of shares over instances: Wilson's interval with as many instances as their spread is worth. A t interval is Wald's in other
 * clothes: it leaves [0, 1], is too short near the ends and a point where all instances did the same (5 of 5 as [100, 100]). Instances that
 * agree in all their epochs give what one epoch gives; epochs that differ narrow it, to at most their number. Null for none.
 */
export function shareInterval(xs: readonly number[], trials: number): Interval | null {
  const n = xs.length;
  if (n === 0) return null;
  const m = Math.min(1, mean(xs));
  const se = standardError(xs);
  const worth =
    se === null || isNoSpread(se) || n < FEWEST_TO_NARROW
      ? n
      : Math.min(Math.max(trials, n), Math.max(n, (m * (1 - m)) / se ** 2));
  return wilson(m * worth, worth);
}

/** `items[i]`: scores of instance i over its scored epochs. */
export function epochEstimate(items: readonly (readonly number[])[]) {
  const scored = items.filter((item) => item.length > 0);
  if (scored.length === 0) return null;
  const means = scored.map(mean);
  const se = standardError(means);
  return {
    /** Instances with at least one scored epoch: the sample size, however many epochs there were. */
    n: scored.length,
    mean: mean(means),
    /** For other instances of the same kind. */
    interval: shareInterval(means, sum(scored.map((item) => item.length)))!,
    /** If other instances of the same kind had been drawn. Null for fewer than two instances, and where all are equal: no spread was seen. */
    newInstances: se === null || isNoSpread(se) ? null : { se },
    /** If the same instances were run again. Null unless some instance has two scored epochs. */
    sameInstances: sameInstanceNoise(scored),
  };
}

export type EpochEstimate = NonNullable<ReturnType<typeof epochEstimate>>;

/** `se`: of a mean over as many epochs as were run. `oneEpochSd`: of a mean over one, how far two nights differ by chance alone. */
function sameInstanceNoise(scored: readonly (readonly number[])[]) {
  const repeated = scored.filter((item) => item.length >= 2);
  if (repeated.length === 0) return null;
  const within = repeated.map((item) => variance(item)!);
  const epochs = mean(repeated.map((item) => item.length));
  const withinVariance = mean(within);
  const oneEpochSd = Math.sqrt(withinVariance / scored.length);
  return { se: oneEpochSd / Math.sqrt(epochs), oneEpochSd, withinVariance, n: repeated.length };
}

/** Both, for every k that all counted instances can give; instances with fewer scored epochs are left out, never padded. */
export function passTable(items: readonly { n: number; c: number }[], maxK: number) {
  const row = (k: number) => {
    const enough = items.filter((item) => item.n >= k);
    if (enough.length === 0) return [];
    const trials = sum(enough.map((item) => item.n));
    const over = (of: typeof passAtK) => {
      const xs = enough.map((item) => of(item.n, item.c, k)!);
      return { mean: mean(xs), se: standardError(xs), interval: shareInterval(xs, trials)!, n: xs.length };
    };
    return [{ k, passAtK: over(passAtK), passHatK: over(passHatK) }];
  };
  return Array.from({ length: maxK }, (_, i) => i + 1).flatMap(row);
}
