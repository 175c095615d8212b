/** Several sides: every pair, adjusted by Holm, and an omnibus test before them. */

import { holm } from '../statistics/multiplicity.ts';
import { cochranQ } from '../statistics/paired.ts';
import { type Comparison, compareSides, type SidesOptions } from './compareSides.ts';
import { resultOn, type Side } from './side.ts';

export interface Comparisons {
  readonly sides: readonly string[];
  readonly comparisons: readonly (Comparison & { readonly pHolm: number | null })[];
  /** Over instances validly finished on every side; null with two sides, or with epochs. */
  readonly omnibus: {
    readonly n: number;
    readonly statistic: number;
    readonly df: number;
    readonly p: number;
  } | null;
}

export function compareAll(sides: readonly Side[], options: SidesOptions): Comparisons {
  const pairs = sides.flatMap((a, i) => sides.slice(i + 1).map((b) => compareSides(a, b, options)));
  const tested = pairs.filter((c) => c.test !== null);
  const adjusted = holm(tested.map((c) => c.test!.p));
  const pHolm = new Map(tested.map((c, i) => [c, adjusted[i]!]));
  const rewarded = pairs.filter((c) => c.reward?.permutation);
  const adjustedRewards = holm(rewarded.map((c) => c.reward!.permutation!.p));
  const rewardHolm = new Map(rewarded.map((c, i) => [c, adjustedRewards[i]!]));
  return {
    sides: sides.map((s) => s.label),
    comparisons: pairs.map((c) => ({
      ...c,
      ...(rewardHolm.has(c) && { reward: { ...c.reward!, pHolm: rewardHolm.get(c)! } }),
      pHolm: pHolm.get(c) ?? null,
    })),
    omnibus: omnibusOf(sides),
  };
}

function omnibusOf(sides: readonly Side[]): Comparisons['omnibus'] {
  if (sides.length < 3 || sides.some((s) => s.epochs > 1)) return null;
  const ids = [...new Set(sides.flatMap((s) => [...s.results.keys()]))];
  const rows = ids
    .map((id) => sides.map((s) => resultOn(s, id)))
    .filter((row) => row.every((r) => r !== undefined && r.scores.length > 0))
    .map((row) => row.map((r) => r!.scores[0]!));
  const q = rows.length === 0 ? null : cochranQ(rows);
  return q && { n: rows.length + unnamedBy(sides, ids.length), ...q };
}

/** Leaderboard entries over one dataset: what none of them names, none resolves; it counts, and changes nothing about Q. */
function unnamedBy(sides: readonly Side[], named: number): number {
  const total = sides[0]?.open?.total ?? null;
  return total !== null && sides.every((s) => s.open?.total === total) ? Math.max(0, total - named) : 0;
}
