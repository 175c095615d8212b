/** Two arms on the same instances: the paired difference, of yes and no or of means over epochs, and McNemar's tests. */

import { isNoSpread, mean, sum, tTest } from './means.ts';
import { type Interval, wilson, Z } from './proportions.ts';
import { chiSquared1P, chiSquaredP, halfBinomialCdf, halfBinomialPmf, normalQuantile } from './special.ts';

/** Instances by who resolved them. */
export interface PairedTable {
  readonly both: number;
  readonly aOnly: number;
  readonly bOnly: number;
  readonly neither: number;
}

const totalOf = (t: PairedTable): number => t.both + t.aOnly + t.bOnly + t.neither;
/** A minus B. */
export const differenceOf = (t: PairedTable): number => (t.aOnly - t.bOnly) / totalOf(t);

/** The table of independent yes-or-no results with these chances of A and B on each instance: B is the first of the table. */
function expectedTable(chances: readonly (readonly [a: number, b: number])[]): PairedTable {
  const part = (of: (a: number, b: number) => number) => chances.reduce((s, [a, b]) => s + of(a, b), 0);
  return {
    both: part((a, b) => a * b),
    aOnly: part((a, b) => (1 - a) * b),
    bOnly: part((a, b) => a * (1 - b)),
    neither: part((a, b) => (1 - a) * (1 - b)),
  };
}

/** A difference of shares ends at one, however few instances there are. */
const withinOne = ({ low, high }: Interval): Interval => ({
  low: Math.max(-1, low),
  high: Math.min(1, high),
});

/** Newcombe's method 10 (1998): score intervals of both arms, joined with the corrected correlation between them. */
export function newcombe10(t: PairedTable): Interval {
  const n = totalOf(t);
  // A table of means over epochs is not whole numbers, and its sums may end a bit above n.
  const a = Math.min(n, t.both + t.aOnly);
  const b = Math.min(n, t.both + t.bOnly);
  const [pa, pb] = [a / n, b / n];
  const [wa, wb] = [wilson(a, n), wilson(b, n)];
  const margins = a * (n - a) * b * (n - b);
  const product = t.both * t.neither - t.aOnly * t.bOnly;
  const corrected = product > 0 ? Math.max(product - n / 2, 0) : product;
  const phi = margins === 0 ? 0 : corrected / Math.sqrt(margins);
  const reach = (u: number, v: number) => Math.sqrt(Math.max(0, u * u - 2 * phi * u * v + v * v));
  const difference = pa - pb;
  return {
    low: difference - reach(pa - wa.low, wb.high - pb),
    high: difference + reach(wa.high - pa, pb - wb.low),
  };
}

/** Means over epochs differ in their last bits. */
const SAME = 1e-12;
/** Fewer differences than this show their own spread too badly for a t interval. */
const FEWEST_FOR_T = 10;

/** The gain of B over A on each instance. */
export const gainsOf = (pairs: readonly (readonly [a: number, b: number])[]): number[] =>
  pairs.map(([a, b]) => (Math.abs(b - a) < SAME ? 0 : b - a));

/**
 * B minus A, of numbers between 0 and 1 such as means over epochs. Where few instances differ, or all by the same, the interval is that of the
 * table that independent yes-or-no results of these chances would give: it is wider, and claims no certainty.
 */
export function differenceOfMeans(pairs: readonly (readonly [a: number, b: number])[]) {
  const gains = gainsOf(pairs);
  const difference = mean(gains);
  const t = tTest(gains);
  if (t !== null && gains.filter((gain) => gain !== 0).length >= FEWEST_FOR_T && !isNoSpread(t.se))
    return { difference, interval: withinOne(t.interval), method: 't' as const };
  return {
    difference,
    interval: pairs.length < 2 ? null : newcombe10(expectedTable(pairs)),
    method: 'Newcombe 10' as const,
  };
}

/** For reference only. */
export function waldPaired(t: PairedTable): Interval {
  const n = totalOf(t);
  const d = differenceOf(t);
  const discordant = t.aOnly + t.bOnly;
  const half = (Z * Math.sqrt(discordant - (t.aOnly - t.bOnly) ** 2 / n)) / n;
  return { low: d - half, high: d + half };
}

/** No discordant pair says nothing against equality: p = 1, where other tools divide by zero. */
export function mcnemarExact(aOnly: number, bOnly: number): number {
  const n = aOnly + bOnly;
  return n === 0 ? 1 : Math.min(1, 2 * halfBinomialCdf(Math.min(aOnly, bOnly), n));
}

export function mcnemarMidP(aOnly: number, bOnly: number): number {
  const n = aOnly + bOnly;
  const k = Math.min(aOnly, bOnly);
  if (n === 0) return 1;
  return Math.min(1, 2 * (halfBinomialCdf(k, n) - 0.5 * halfBinomialPmf(k, n)));
}

/** With Edwards' continuity correction. */
export function correctedChiSquared(aOnly: number, bOnly: number): { statistic: number; p: number } {
  const statistic = (Math.abs(aOnly - bOnly) - 1) ** 2 / (aOnly + bOnly);
  return { statistic, p: chiSquared1P(statistic) };
}

/** An approximation that needs 25 discordant pairs, else null. */
export const mcnemarChiSquared = (aOnly: number, bOnly: number): { statistic: number; p: number } | null =>
  aOnly + bOnly < 25 ? null : correctedChiSquared(aOnly, bOnly);

/** Which test decides is fixed before the run: (60, 40) is .0569 by one and .0460 by the other. */
export type McNemarTest = 'exact' | 'mid-p';

export const mcnemar = (test: McNemarTest, aOnly: number, bOnly: number): number =>
  test === 'exact' ? mcnemarExact(aOnly, bOnly) : mcnemarMidP(aOnly, bOnly);

/** Are several arms equal at all? `rows[i][j]`: did arm j resolve instance i. */
export function cochranQ(rows: readonly (readonly boolean[])[]) {
  const k = rows[0]?.length ?? 0;
  if (k < 2) return null;
  const columns = Array.from({ length: k }, (_, j) => rows.filter((r) => r[j]).length);
  const totals = rows.map((r) => r.filter(Boolean).length);
  const all = sum(totals);
  const spread = sum(totals.map((x) => x * (k - x)));
  if (spread === 0) return { statistic: 0, df: k - 1, p: 1 };
  const statistic = ((k - 1) * (k * sum(columns.map((c) => c * c)) - all * all)) / spread;
  return { statistic, df: k - 1, p: chiSquaredP(statistic, k - 1) };
}

/** At 5 %, found with 80 % power. `spread` is the variance of the item difference; for one epoch of yes and no the discordance (b + c) / n. */
export const detectableDifference = (spread: number, n: number): number =>
  (normalQuantile(1 - 0.05 / 2) + normalQuantile(0.8)) * Math.sqrt(spread / n);
