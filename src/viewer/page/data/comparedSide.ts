/** One side of a comparison, and what it scored. */
import type { TrialDocument } from '../../documents/documents.ts';
import { isScored } from '../../documents/pairs.ts';
import { rewardOfRows } from '../../documents/shownRewards.ts';

/** One arm of one run. */
export interface Side {
  readonly key: string;
  readonly run: number;
  readonly runName: string;
  readonly label: string;
  readonly arm: string;
  readonly datasetHash: string;
  readonly configHash: string;
}

export function scoreOf(rows: readonly TrialDocument[]) {
  const scored = rows.filter(isScored);
  const reward = rewardOfRows(rows);
  const nanos = rows.flatMap((row) => (row.money.costNano === null ? [] : [row.money.costNano]));
  return {
    planned: rows.length,
    graded: scored.length,
    resolved: scored.filter((row) => row.verdict === 'resolved').length,
    reward,
    money: {
      costNano: nanos.length === 0 ? null : nanos.reduce((sum, one) => sum + one, 0),
      unknownCalls: rows.reduce((sum, row) => sum + row.money.unknownCalls, 0),
    },
  };
}
