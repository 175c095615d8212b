/** What the gate said about a run. */

import type { Store } from '../open.ts';
import { change, first, insert } from '../query.ts';
import { armsOf, runByName } from './runs.ts';

export interface GateVerdict {
  readonly verdict: string;
  readonly exitCode: number;
  /** Names of the rules that failed. */
  readonly failed: readonly string[];
}

interface Begun {
  readonly run_id: number;
  readonly arm: string;
  readonly baseline: string | null;
  readonly judged_at: string;
}

/**
 * A gate begins, or the night that it will judge: until it ends, the run is one whose gate was not finished. One that is open already is gone
 * on with. Returns the id of the verdict.
 */
export function beginVerdict(db: Store, of: Begun): number {
  const open = first<{ id: number }>(
    db,
    `SELECT id FROM verdicts WHERE exit_code IS NULL
       AND id = (SELECT max(id) FROM verdicts WHERE run_id = @run_id AND arm = @arm)`,
    of,
  );
  if (open === undefined) return insert(db, 'verdicts', { ...of });
  change(
    db,
    'UPDATE verdicts SET baseline = ?, judged_at = ? WHERE id = ?',
    of.baseline,
    of.judged_at,
    open.id,
  );
  return open.id;
}

/** Whether the gate of a night was begun, or was to follow, and has not ended. */
export const awaitsVerdict = (db: Store, runId: number): boolean =>
  first(
    db,
    `SELECT 1 FROM verdicts WHERE exit_code IS NULL
       AND id IN (SELECT max(id) FROM verdicts WHERE run_id = ? GROUP BY arm)`,
    runId,
  ) !== undefined;

export const endVerdict = (db: Store, id: number, { verdict, exitCode, failed }: GateVerdict): number =>
  change(
    db,
    'UPDATE verdicts SET verdict = ?, exit_code = ?, failed = ? WHERE id = ?',
    verdict,
    exitCode,
    JSON.stringify(failed),
    id,
  );

/** A night that is to be judged: if it stops before its gate, `resume` makes it complete, and it is no baseline until it was judged. */
export function leaveUnjudged(store: Store, name: string): void {
  const run = runByName(store, name);
  if (!run) return;
  const judged_at = new Date().toISOString();
  for (const { name: arm } of armsOf(store, run.id))
    beginVerdict(store, { run_id: run.id, arm, baseline: null, judged_at });
}
