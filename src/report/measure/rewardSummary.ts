/** Verdicts that are numbers: the mean reward of the valid trials, over instances. Suites without rewards have none. */
import { mean, sum } from '../statistics/means.ts';
import { meanReward } from '../statistics/rewards.ts';
import type { ScoredTrial } from './score.ts';

/** The one that is `reward` itself. */
const MAIN = 'reward';

/** Of a valid trial. One without a number, such as one whose tests ran out of time, has what its verdict says. */
export const rewardOf = ({ trial, resolved }: Pick<ScoredTrial, 'trial' | 'resolved'>): number =>
  trial.reward ?? (resolved ? 1 : 0);

/** Means by name, over those results that have the name. */
export function namedRewards(
  results: readonly (Readonly<Record<string, number>> | undefined)[],
): Map<string, number> {
  const known = results.filter((rewards) => rewards !== undefined);
  const names = new Set(known.flatMap(Object.keys));
  names.delete(MAIN);
  return new Map(
    [...names].map((name) => [
      name,
      mean(known.flatMap((rewards) => (Object.hasOwn(rewards, name) ? [rewards[name]!] : []))),
    ]),
  );
}

/** Further rewards by name, over the instances that have them. They may be counts of anything, so they have no interval. */
function namedMeans(groups: readonly (readonly ScoredTrial[])[]) {
  const found = new Map<string, number[]>();
  for (const group of groups)
    for (const [name, value] of namedRewards(group.map(({ trial }) => trial.rewards)))
      found.set(name, [...(found.get(name) ?? []), value]);
  return [...found].map(([name, values]) => ({ name, n: values.length, mean: mean(values) }));
}

/** Null where no trial has a reward. */
export function rewardSummary(rows: readonly ScoredTrial[]) {
  const valid = rows.filter((row) => row.valid);
  if (!valid.some(({ trial }) => trial.reward !== undefined)) return null;
  const groups = [...Map.groupBy(valid, (row) => row.instanceId).values()];
  const over = meanReward(
    groups.map((group) => mean(group.map(rewardOf))),
    valid.length,
  )!;
  const missing = rows.length - valid.length;
  const named = namedMeans(groups);
  return {
    ...over,
    /** The mean over all planned trials with 0 for what is missing, as Harbor counts; absent where nothing is missing. */
    ...(missing > 0 && {
      missingAsZero: { missing, mean: sum(valid.map(rewardOf)) / rows.length },
    }),
    ...(named.length > 0 && { named }),
  };
}

export type RewardSummary = NonNullable<ReturnType<typeof rewardSummary>>;
