/** Two runs (or arms) on the same instances: who resolved what, and which instances cannot be compared. */
import type { PairedTable } from '../../report/statistics/paired.ts';
import type { TrialDocument } from './documents.ts';

export interface TrialPair {
  readonly instanceId: string;
  readonly epoch: number;
  readonly a: TrialDocument | undefined;
  readonly b: TrialDocument | undefined;
}

export const pairKeyOf = (row: Pick<TrialDocument, 'instance_id' | 'epoch'>): string =>
  `${row.instance_id} ${row.epoch}`;

export const isScored = (row: TrialDocument | undefined): row is TrialDocument =>
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

export interface PairSummary {
  readonly table: PairedTable;
  readonly onlyA: readonly TrialPair[];
  readonly onlyB: readonly TrialPair[];
  /** Missing on a side, or without a verdict there: never counted as a failure. */
  readonly apart: readonly TrialPair[];
}

export function summarizePairs(pairs: readonly TrialPair[]): PairSummary {
  const scored = pairs.filter((pair) => isScored(pair.a) && isScored(pair.b));
  const said = (pair: TrialPair) => `${pair.a!.verdict === 'resolved'} ${pair.b!.verdict === 'resolved'}`;
  const onlyA = scored.filter((pair) => said(pair) === 'true false');
  const onlyB = scored.filter((pair) => said(pair) === 'false true');
  return {
    table: {
      both: scored.filter((pair) => said(pair) === 'true true').length,
      aOnly: onlyA.length,
      bOnly: onlyB.length,
      neither: scored.filter((pair) => said(pair) === 'false false').length,
    },
    onlyA,
    onlyB,
    apart: pairs.filter((pair) => !(isScored(pair.a) && isScored(pair.b))),
  };
}
