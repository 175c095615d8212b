/** The rewards of several steps as one, and the gate between steps: the rules are Harbor's, to the last bit. Pure. */

export type Rewards = Readonly<Record<string, number>>;
export type Strategy = 'mean' | 'final';

/** As Python adds floats since 3.12: with what rounding lost, by Neumaier. */
function pythonSum(values: readonly number[]): number {
  let sum = 0;
  let lost = 0;
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return lost !== 0 && Number.isFinite(lost) ? sum + lost : sum;
}

const rewardNamed = (rewards: Rewards, name: string): number | undefined =>
  Object.hasOwn(rewards, name) ? rewards[name] : undefined;

/**
 * Of the steps that ran, in their order; null for a step whose verifier gave none. `final` takes the last as it is. `mean` takes the mean of
 * each name over the steps that have rewards; a name that one of them lacks counts as 0 there.
 */
export function combinedRewards(strategy: Strategy, steps: readonly (Rewards | null)[]): Rewards | null {
  if (strategy === 'final') return steps.at(-1) ?? null;
  const given = steps.filter((rewards) => rewards !== null);
  const names = new Set(given.flatMap(Object.keys));
  if (names.size === 0) return null;
  const mean = (name: string) =>
    pythonSum(given.map((rewards) => rewardNamed(rewards, name) ?? 0)) / given.length;
  // A name may be that of a property which every object has.
  return Object.fromEntries([...names].map((name) => [name, mean(name)]));
}

/** Why the steps that follow are not begun; undefined where they are. A reward that is missing is below every limit. */
export function gateFailure(rewards: Rewards | null, least: Rewards): string | undefined {
  for (const [name, limit] of Object.entries(least)) {
    const reward = rewards === null ? undefined : rewardNamed(rewards, name);
    if (reward === undefined) return `it has no reward "${name}", and ${limit} is the least to go on`;
    if (reward < limit) return `its reward "${name}" is ${reward}, and ${limit} is the least to go on`;
  }
  return undefined;
}
