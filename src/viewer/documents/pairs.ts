/** Two runs (or arms) on the same instances: who resolved what, and which instances cannot be compared. */
import type { PairedTable } from '../../report/statistics/paired.ts';
import type { TrialDocument } from './documents.ts';

export interface Pair {
  readonly instanceId: string;
  readonly epoch: number;
  readonly a: TrialDocument | undefined;
  readonly b: TrialDocument | undefined;
}

export const keyOf = (row: Pick<TrialDocument, 'instance_id' | 'epoch'>): string =>
  `${row.instance_id} ${row.epoch}`;

export const isScored = (row: TrialDocument | undefined): row is TrialDocument =>
  row?.verdict === 'resolved' || row?.verdict === 'unresolved';

export function pairsOf(a: readonly TrialDocument[], b: readonly TrialDocument[]): Pair[] {
  const left = new Map(a.map((row) => [keyOf(row), row]));
  const right = new Map(b.map((row) => [keyOf(row), row]));
  const keys = new Set([...left.keys(), ...right.keys()]);
  return [...keys].map((key) => {
    const row = (left.get(key) ?? right.get(key))!;
    return { instanceId: row.instance_id, epoch: row.epoch, a: left.get(key), b: right.get(key) };
  });
}

export interface PairSummary {
  readonly table: PairedTable;
  readonly onlyA: readonly Pair[];
  readonly onlyB: readonly Pair[];
  /** Missing on a side, or without a verdict there: never counted as a failure. */
  readonly apart: readonly Pair[];
}

export function summarize(pairs: readonly Pair[]): PairSummary {
  const scored = pairs.filter((pair) => isScored(pair.a) && isScored(pair.b));
  const said = (pair: Pair) => `${pair.a!.verdict === 'resolved'} ${pair.b!.verdict === 'resolved'}`;
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
