/** Two sides by their rewards, over the matched instances. */
import { namedRewards } from '../measure/rewardSummary.ts';
import { mean } from '../statistics/means.ts';
import { meanReward, type PairedRewards, pairedRewards, type RewardMean } from '../statistics/rewards.ts';
import { type Pair, rateOf } from './matching.ts';
import { resultOn, type Side, type SideResult } from './side.ts';

export interface RewardDifference extends PairedRewards {
  readonly a: RewardMean;
  readonly b: RewardMean;
  /** Of the permutation, adjusted over all pairs of a comparison; absent where nothing is tested. */
  readonly pHolm?: number;
  /** Every missing result counted as 0; absent where none is missing. */
  readonly missingAsZero?: { readonly n: number; readonly difference: number };
  /** Further rewards, over instances that have them on both sides. Absent where there is none. */
  readonly named?: readonly {
    readonly name: string;
    readonly n: number;
    readonly a: number;
    readonly b: number;
    readonly difference: number;
  }[];
}

/** A side without rewards counts by its verdicts. */
const rewardOn = (result: SideResult): number => (result.rewards ? mean(result.rewards) : rateOf(result));

/** `asked`: the instances that both sides were meant to answer. Null where neither side has a reward. */
export function rewardDifference(
  sides: { readonly a: Side; readonly b: Side },
  pairs: readonly Pair[],
  asked: readonly string[],
  seed: number,
): RewardDifference | null {
  if (!pairs.some(({ a, b }) => a.rewards ?? b.rewards)) return null;
  const both = pairs.map(({ a, b }) => [rewardOn(a), rewardOn(b)] as const);
  const trials = (which: 'a' | 'b') => pairs.reduce((n, pair) => n + pair[which].scores.length, 0);
  const named = namedOf(pairs);
  return {
    a: meanReward(
      both.map(([a]) => a),
      trials('a'),
    )!,
    b: meanReward(
      both.map(([, b]) => b),
      trials('b'),
    )!,
    ...pairedRewards(both, seed)!,
    ...(asked.length > pairs.length && { missingAsZero: missingAsZero(sides, asked) }),
    ...(named.length > 0 && { named }),
  };
}

function missingAsZero({ a, b }: { readonly a: Side; readonly b: Side }, asked: readonly string[]) {
  const of = (side: Side, id: string) => {
    const result = resultOn(side, id);
    return result && result.scores.length > 0 ? rewardOn(result) : 0;
  };
  return { n: asked.length, difference: mean(asked.map((id) => of(b, id) - of(a, id))) };
}

function namedOf(pairs: readonly Pair[]): NonNullable<RewardDifference['named']> {
  const found = new Map<string, (readonly [number, number])[]>();
  for (const { a, b } of pairs) {
    const [left, right] = [namedRewards(a.named ?? []), namedRewards(b.named ?? [])];
    for (const [name, value] of left)
      if (right.has(name)) found.set(name, [...(found.get(name) ?? []), [value, right.get(name)!]]);
  }
  return [...found].map(([name, values]) => {
    const [a, b] = [mean(values.map(([x]) => x)), mean(values.map(([, y]) => y))];
    return { name, n: values.length, a, b, difference: b - a };
  });
}
