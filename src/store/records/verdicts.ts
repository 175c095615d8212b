/** What the gate said about a run. */
import type { Store } from '../open.ts';
import { change, insert } from '../query.ts';

export interface GateVerdict {
  readonly verdict: string;
  readonly exitCode: number;
  /** Names of the rules that failed. */
  readonly failed: readonly string[];
}

/** A gate begins: until it ends, the run is one whose gate was not finished. Returns the id of the verdict. */
export const beginVerdict = (
  db: Store,
  of: { run_id: number; arm: string; baseline: string | null; judged_at: string },
): number => insert(db, 'verdicts', of);

export const endVerdict = (db: Store, id: number, { verdict, exitCode, failed }: GateVerdict): number =>
  change(
    db,
    'UPDATE verdicts SET verdict = ?, exit_code = ?, failed = ? WHERE id = ?',
    verdict,
    exitCode,
    JSON.stringify(failed),
    id,
  );
