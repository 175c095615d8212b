/** A stratified sample's estimate for the whole dataset: strata weighted by their true size. */
import { isNoSpread } from './means.ts';
import { type Interval, wilson } from './proportions.ts';

export interface StratumResult {
  readonly key: string;
  /** Instances of the stratum in the dataset. */
  readonly size: number;
  /** Sampled and validly finished. */
  readonly n: number;
  readonly resolved: number;
}

type Seen = StratumResult & { readonly weight: number };

/**
 * Above this share of the dataset for a single instance, while others stand for less, an interval covers too seldom (91 % for 95 where one of 12
 * instances stands for 46 %).
 */
const TOO_MUCH_FOR_ONE = 0.25;

/**
 * With `finite`, inference is to this dataset alone and the share already seen shrinks the error. A sample spread over many strata has
 * one instance in most of them, which tells no spread: those are pooled for the error (collapsed strata, which errs to the wide side).
 */
export function stratifiedEstimate(strata: readonly StratumResult[], { finite = true } = {}) {
  const seen = strata.filter((s) => s.n > 0);
  const total = seen.reduce((s, x) => s + x.size, 0);
  if (total === 0) return null;
  const weighted = seen.map((s): Seen => ({ ...s, weight: s.size / total }));
  const p = weighted.reduce((s, x) => s + (x.weight * x.resolved) / x.n, 0);
  // A stratum seen whole has no sampling error left, even when it holds one instance.
  const open = weighted.filter((s) => !(finite && s.n >= s.size));
  const groups = collapse(open);
  const variance = groups?.reduce((sum, group) => sum + varianceOf(group, finite), 0) ?? null;
  const n = seen.reduce((s, x) => s + x.n, 0);
  const se = variance === null ? null : Math.sqrt(variance);
  return {
    p,
    /** Null when a single instance is all there is: its spread is unknown, and 0 would be a claim. */
    se,
    /** Null where one instance stands for so much of the dataset that no interval holds. */
    interval:
      open.length === 0
        ? { low: p, high: p }
        : isLopsided(weighted, n)
          ? null
          : intervalOf(p, se, n, 1 / spreadOfWeights(open, finite)),
    n,
    /** Strata with one instance, pooled for the error. */
    pooled: open.filter((s) => s.n < 2).length,
    strata: weighted,
    /** Strata of the dataset with nothing valid in them: the estimate does not speak for them. */
    unseen: strata.filter((s) => s.n === 0).map((s) => s.key),
  };
}

const isLopsided = (strata: readonly Seen[], n: number): boolean => {
  const most = Math.max(...strata.map((s) => s.weight / s.n));
  return most > TOO_MUCH_FOR_ONE && most > 1.5 / n;
};

/** Strata of one instance together; a single such stratum with the smallest other one. Null when there is but one instance. */
function collapse(open: readonly Seen[]): Seen[][] | null {
  const [single, large] = [open.filter((s) => s.n < 2), open.filter((s) => s.n >= 2)];
  const rest = large.toSorted((a, b) => a.n - b.n).map((s) => [s]);
  if (single.length === 0) return rest;
  if (single.length > 1) return [single, ...rest];
  const [smallest, ...others] = rest;
  return smallest ? [[...single, ...smallest], ...others] : null;
}

/** The variance that weights alone make of 1: an instance that stands for many counts with the square of its share. */
const spreadOfWeights = (strata: readonly Seen[], finite: boolean): number =>
  strata.reduce((s, x) => s + (x.weight ** 2 * (finite ? 1 - x.n / x.size : 1)) / x.n, 0);

/** One variance for the whole group, which each stratum of it enters with its own weight. */
function varianceOf(group: readonly Seen[], finite: boolean): number {
  const weight = group.reduce((s, x) => s + x.weight, 0);
  const n = group.reduce((s, x) => s + x.n, 0);
  // A sum of shares may end a bit above one, and a variance below nothing has no root.
  const rate = Math.min(1, group.reduce((s, x) => s + (x.weight * x.resolved) / x.n, 0) / weight);
  return ((rate * (1 - rate) * n) / (n - 1)) * spreadOfWeights(group, finite);
}

/**
 * Wilson's, with as many instances as the error is worth; where every stratum is all or nothing the formula finds none, as for 0 of 10. `most`:
 * how many instances of a plain sample the sample is worth by its weights alone. A few instances a stratum cannot show that strata differ less.
 */
function intervalOf(p: number, se: number | null, n: number, most: number): Interval {
  const share = Math.min(1, p);
  const worth = Math.min(se === null || isNoSpread(se) ? n : (share * (1 - share)) / se ** 2, most);
  return wilson(share * worth, worth);
}
