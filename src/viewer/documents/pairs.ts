/** What trials scored, and two runs (or arms) on the same instances: who resolved what, and what cannot be compared. */
import { mean } from '../../report/statistics/means.ts';
import type { PairedTable } from '../../report/statistics/paired.ts';
import { meanReward, pairedRewards, type RewardMean } from '../../report/statistics/rewards.ts';
import type { TrialDocument } from './documents.ts';

export interface TrialPair {
  readonly instanceId: string;
  readonly epoch: number;
  readonly a: TrialDocument | undefined;
  readonly b: TrialDocument | undefined;
}

export const pairKeyOf = (row: Pick<TrialDocument, 'instance_id' | 'epoch'>): string =>
  `${row.instance_id} ${row.epoch}`;

const isScored = (row: TrialDocument | undefined): row is TrialDocument =>
  row?.verdict === 'resolved' || row?.verdict === 'unresolved';

export function pairsOf(a: readonly TrialDocument[], b: readonly TrialDocument[]): TrialPair[] {
  const left = new Map(a.map((row) => [pairKeyOf(row), row]));
  const right = new Map(b.map((row) => [pairKeyOf(row), row]));
  const keys = new Set([...left.keys(), ...right.keys()]);
  return [...keys].map((key) => {
    const row = (left.get(key) ?? right.get(key))!;
    return { instanceId: row.instance_id, epoch: row.epoch, a: left.get(key), b: right.get(key) };
  });
}

export function summarizePairs(pairs: readonly TrialPair[]) {
  const scored = pairs.filter((pair) => isScored(pair.a) && isScored(pair.b));
  const said = (pair: TrialPair) => `${pair.a!.verdict === 'resolved'} ${pair.b!.verdict === 'resolved'}`;
  const onlyA = scored.filter((pair) => said(pair) === 'true false');
  const onlyB = scored.filter((pair) => said(pair) === 'false true');
  const table: PairedTable = {
    both: scored.filter((pair) => said(pair) === 'true true').length,
    aOnly: onlyA.length,
    bOnly: onlyB.length,
    neither: scored.filter((pair) => said(pair) === 'false false').length,
  };
  /** Missing on a side, or without a verdict there: never counted as a failure. */
  const apart = pairs.filter((pair) => !(isScored(pair.a) && isScored(pair.b)));
  return { table, onlyA, onlyB, apart };
}

/** Rewards as the pages show them: over instances, of trials with a verdict. Absent where no trial has one. */
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

export function rewardOfPairs(pairs: readonly TrialPair[]) {
  const scored = pairs.filter(({ a, b }) => isScored(a) && isScored(b));
  if (!scored.some(({ a, b }) => has(a!) || has(b!))) return undefined;
  const groups = [...Map.groupBy(scored, (pair) => pair.instanceId).values()];
  const both = groups.map(
    (group) => [mean(group.map(({ a }) => rewardOf(a!))), mean(group.map(({ b }) => rewardOf(b!)))] as const,
  );
  return pairedRewards(both, SEED) ?? undefined;
}

export type RowsScore = ReturnType<typeof scoreOfRows>;

export function scoreOfRows(rows: readonly TrialDocument[]) {
  const scored = rows.filter(isScored);
  const nanos = rows.flatMap((row) => row.money.costNano ?? []);
  return {
    planned: rows.length,
    graded: scored.length,
    resolved: scored.filter((row) => row.verdict === 'resolved').length,
    reward: rewardOfRows(rows),
    money: {
      costNano: nanos.length === 0 ? null : nanos.reduce((sum, one) => sum + one, 0),
      unknownCalls: rows.reduce((sum, row) => sum + row.money.unknownCalls, 0),
    },
  };
}
