/** Means and paired differences with t intervals, and what clustering by repository would say about them. */
import { CONFIDENCE } from './proportions.ts';
import { studentCritical, studentP } from './special.ts';

export const sum = (xs: readonly number[]): number => xs.reduce((s, x) => s + x, 0);
export const mean = (xs: readonly number[]): number => sum(xs) / xs.length;

/** Unbiased; null for fewer than two values, because a spread of 0 would read as certainty. */
export function variance(xs: readonly number[]): number | null {
  if (xs.length < 2) return null;
  const m = mean(xs);
  return xs.reduce((s, x) => s + (x - m) ** 2, 0) / (xs.length - 1);
}

export function standardError(xs: readonly number[]): number | null {
  const v = variance(xs);
  return v === null ? null : Math.sqrt(v / xs.length);
}

/** A spread that is rounding only: means over epochs are not exact. An interval made of it would claim certainty. */
export const isNoSpread = (se: number): boolean => se < 1e-12;

/** One-sample t of differences (or of item means against 0). */
export function tTest(xs: readonly number[]) {
  const se = standardError(xs);
  return se === null ? null : tFrom(mean(xs), se, xs.length, xs.length - 1);
}

function tFrom(m: number, se: number, n: number, df: number) {
  const t = se === 0 ? (m === 0 ? 0 : Math.sign(m) * Number.POSITIVE_INFINITY) : m / se;
  const half = studentCritical(1 - CONFIDENCE, df) * se;
  const p = Number.isFinite(t) ? studentP(t, df) : 0;
  return { n, mean: m, se, t, df, p, interval: { low: m - half, high: m + half } };
}

/** CR1. A sensitivity only: with few unbalanced clusters it is biased down and can flip a verdict. */
export function clustered(xs: readonly number[], clusterOf: readonly string[]) {
  const groups = [...Map.groupBy(xs.keys(), (i) => clusterOf[i]!).values()].map((ids) =>
    ids.map((i) => xs[i]!),
  );
  const n = xs.length;
  const count = groups.length;
  if (n < 2 || count < 2) return null;
  const m = mean(xs);
  const squares = sum(groups.map((g) => sum(g.map((x) => x - m)) ** 2));
  const se = Math.sqrt((count / (count - 1)) * squares) / n;
  const total = sum(xs);
  const without = groups.map((g) => (total - sum(g)) / (n - g.length));
  return {
    clusters: count,
    /** 1 / sum of squared shares: what unbalanced clusters are worth. */
    effective: 1 / sum(groups.map((g) => (g.length / n) ** 2)),
    test: tFrom(m, se, n, count - 1),
    /** Range of the mean when each cluster in turn is left out. */
    leaveOneOut: { low: Math.min(...without), high: Math.max(...without) },
  };
}

/** Nearest rank with interpolation (type 7), as numpy's default. Null for no values. */
export function quantile(xs: readonly number[], q: number): number | null {
  if (xs.length === 0) return null;
  const sorted = xs.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}
