/** A stratified sample's estimate for the whole dataset: strata weighted by their true size. */
import { isNoSpread } from './means.ts';
import { CONFIDENCE, type Interval, wilson } from './proportions.ts';

export interface StratumResult {
  readonly key: string;
  /** Instances of the stratum in the dataset. */
  readonly size: number;
  /** Sampled and validly finished. */
  readonly n: number;
  readonly resolved: number;
}

export interface StratifiedEstimate {
  readonly p: number;
  /** Null when a single instance is all there is: its spread is unknown, and 0 would be a claim. */
  readonly se: number | null;
  readonly interval: Interval;
  readonly n: number;
  /** Strata with one instance, pooled for the error. */
  readonly pooled: number;
  readonly strata: readonly (StratumResult & { readonly weight: number })[];
  /** Strata of the dataset with nothing valid in them: the estimate does not speak for them. */
  readonly unseen: readonly string[];
}

interface Seen extends StratumResult {
  readonly weight: number;
}

/**
 * With `finite`, inference is to this dataset alone and the share already seen shrinks the error. A sample spread over many strata has
 * one instance in most of them, which tells no spread: those are pooled for the error (collapsed strata, which errs to the wide side).
 */
export function stratifiedEstimate(
  strata: readonly StratumResult[],
  { finite = true, confidence = CONFIDENCE }: { finite?: boolean; confidence?: number } = {},
): StratifiedEstimate | null {
  const seen = strata.filter((s) => s.n > 0);
  const total = seen.reduce((s, x) => s + x.size, 0);
  if (total === 0) return null;
  const weighted = seen.map((s): Seen => ({ ...s, weight: s.size / total }));
  const p = weighted.reduce((s, x) => s + (x.weight * x.resolved) / x.n, 0);
  // A stratum seen whole has no sampling error left, even when it holds one instance.
  const open = weighted.filter((s) => !(finite && s.n >= s.size));
  const groups = collapse(open);
  const variance = groups?.reduce((sum, s) => sum + varianceOf(s, finite), 0) ?? null;
  const n = seen.reduce((s, x) => s + x.n, 0);
  const se = variance === null ? null : Math.sqrt(variance);
  return {
    p,
    se,
    interval: open.length === 0 ? { low: p, high: p } : intervalOf(p, se, n, confidence),
    n,
    pooled: open.filter((s) => s.n < 2).length,
    strata: weighted,
    unseen: strata.filter((s) => s.n === 0).map((s) => s.key),
  };
}

/** Strata of one instance joined; a single such stratum with the smallest other one. Null when there is but one instance. */
function collapse(open: readonly Seen[]): Seen[] | null {
  const [single, large] = [open.filter((s) => s.n < 2), open.filter((s) => s.n >= 2)];
  if (single.length === 0) return large;
  const rest = large.toSorted((a, b) => a.n - b.n);
  if (single.length > 1) return [join(single), ...rest];
  const [smallest, ...others] = rest;
  return smallest ? [join([...single, smallest]), ...others] : null;
}

const join = (parts: readonly Seen[]): Seen => {
  const weight = parts.reduce((s, x) => s + x.weight, 0);
  const n = parts.reduce((s, x) => s + x.n, 0);
  const rate = parts.reduce((s, x) => s + (x.weight * x.resolved) / x.n, 0) / weight;
  return { key: '', size: parts.reduce((s, x) => s + x.size, 0), n, resolved: rate * n, weight };
};

function varianceOf(s: Seen, finite: boolean): number {
  const rate = s.resolved / s.n;
  const left = finite ? 1 - s.n / s.size : 1;
  return (s.weight ** 2 * left * rate * (1 - rate)) / (s.n - 1);
}

/** Wilson's, with as many instances as the error is worth; where every stratum is all or nothing the formula finds none, as for 0 of 10. */
function intervalOf(p: number, se: number | null, n: number, confidence: number): Interval {
  const share = Math.min(1, p);
  const worth = se === null || isNoSpread(se) ? n : (share * (1 - share)) / se ** 2;
  return wilson(share * worth, worth, confidence);
}
