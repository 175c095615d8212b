/** How long attempts took in all runs of a results root, for the scheduler's estimates. */
import type { Store } from '../open.ts';
import { all, change } from '../query.ts';
import { IS_RESULT } from './trialResults.ts';

export interface PastDuration {
  readonly instanceId: string;
  readonly model: string;
  readonly repo: string;
  readonly seconds: number;
}

/** Only final attempts that are a result: the time of a trial that an outage ended does not count. */
export function pastDurations(db: Store): PastDuration[] {
  return all<PastDuration>(
    db,
    `SELECT i.instance_id AS instanceId, m.model AS model, i.repo AS repo, a.elapsed_ms / 1000.0 AS seconds
     FROM trials t JOIN attempts a ON a.id = t.final_attempt_id JOIN instances i ON i.id = t.instance_pk
     JOIN arms m ON m.id = t.arm_id
     WHERE a.elapsed_ms IS NOT NULL AND a.exit_class ${IS_RESULT} ORDER BY a.id`,
  );
}

/** Records the order in which trials start. */
export function setPositions(db: Store, trialIds: readonly number[], first: number): void {
  db.transaction(() => {
    for (const [i, id] of trialIds.entries())
      change(db, 'UPDATE trials SET position = ? WHERE id = ?', first + i, id);
  }).immediate();
}
