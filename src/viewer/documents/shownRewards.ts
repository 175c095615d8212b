/** Rewards as the pages show them: over instances, of trials with a verdict. Absent where no trial has one. */
import { mean } from '../../report/statistics/means.ts';
import {
  meanReward,
  type PairedRewards,
  pairedRewards,
  type RewardMean,
} from '../../report/statistics/rewards.ts';
import type { TrialDocument } from './documents.ts';
import { isScored, type TrialPair } from './pairs.ts';

type Row = Pick<TrialDocument, 'instance_id' | 'verdict'> & { readonly reward?: number | null };

/** The seed of reports, so that page and report print the same p. */
const SEED = 20250301;

const rewardOf = ({ reward, verdict }: Row): number => reward ?? (verdict === 'resolved' ? 1 : 0);
const has = ({ reward }: Row): boolean => reward !== undefined && reward !== null;

export function rewardOfRows(rows: readonly Row[]): RewardMean | undefined {
  const scored = rows.filter(({ verdict }) => verdict === 'resolved' || verdict === 'unresolved');
  if (!scored.some(has)) return undefined;
  const groups = [...Map.groupBy(scored, (row) => row.instance_id).values()];
  return (
    meanReward(
      groups.map((group) => mean(group.map(rewardOf))),
      scored.length,
    ) ?? undefined
  );
}

export function rewardOfPairs(pairs: readonly TrialPair[]): PairedRewards | undefined {
  const scored = pairs.filter(({ a, b }) => isScored(a) && isScored(b));
  if (!scored.some(({ a, b }) => has(a!) || has(b!))) return undefined;
  const groups = [...Map.groupBy(scored, (pair) => pair.instanceId).values()];
  const both = groups.map(
    (group) => [mean(group.map(({ a }) => rewardOf(a!))), mean(group.map(({ b }) => rewardOf(b!)))] as const,
  );
  return pairedRewards(both, SEED) ?? undefined;
}
