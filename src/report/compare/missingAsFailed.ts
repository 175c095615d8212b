/** The sensitivity of a comparison to who fell out: the same question with every missing result, and every missing epoch, counted as a failure. */

import { mean, tTest } from '../statistics/means.ts';
import {
  differenceOf,
  type McNemarTest,
  mcnemar,
  newcombe10,
  type PairedTable,
} from '../statistics/paired.ts';
import type { Interval } from '../statistics/proportions.ts';
import { signFlip } from '../statistics/resampling.ts';
import { withinOne } from './difference.ts';
import { resultOn, type Side, type SideResult } from './side.ts';

export interface Sensitivity {
  readonly n: number;
  readonly points: number;
  readonly interval: Interval | null;
  readonly p: number;
}

/** `ids`: those that both sides were meant to answer. `unnamedNeither`: further ones that neither resolved. */
export function missingAsFailed(
  a: Side,
  b: Side,
  ids: readonly string[],
  unnamedNeither: number,
  { test, seed }: { readonly test: McNemarTest; readonly seed: number },
): Sensitivity | null {
  const n = ids.length + unnamedNeither;
  if (n === 0) return null;
  const rates = ids.map((id) => [rateOf(resultOn(a, id)!, a), rateOf(resultOn(b, id)!, b)] as const);
  if (a.epochs > 1 || b.epochs > 1) {
    const d = [...rates.map(([x, y]) => y - x), ...Array<number>(unnamedNeither).fill(0)];
    const interval = tTest(d)?.interval;
    return {
      n,
      points: mean(d),
      interval: interval ? withinOne(interval) : null,
      p: signFlip(d, seed).p,
    };
  }
  const count = (x: number, y: number) => rates.filter(([p, q]) => p === x && q === y).length;
  const table: PairedTable = {
    both: count(1, 1),
    aOnly: count(0, 1),
    bOnly: count(1, 0),
    neither: count(0, 0) + unnamedNeither,
  };
  return {
    n,
    points: differenceOf(table),
    interval: newcombe10(table),
    p: mcnemar(test, table.aOnly, table.bOnly),
  };
}

const rateOf = (result: SideResult, side: Side): number =>
  result.scores.filter(Boolean).length / Math.max(side.epochs, result.scores.length);
