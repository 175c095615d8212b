/** How long attempts took, over all runs of a results root: what the scheduler expects the next ones to take. */
import type { Store } from '../open.ts';
import { all, change } from '../query.ts';
import { IS_RESULT } from './trialResults.ts';

export interface PastDuration {
  readonly instanceId: string;
  readonly model: string;
  readonly repo: string;
  readonly seconds: number;
}

/** Final attempts that are a result. A trial that an outage ended after two seconds says nothing about how long the work takes. */
export function pastDurations(db: Store): PastDuration[] {
  return all<PastDuration>(
    db,
    `SELECT i.instance_id AS instanceId, m.model AS model, i.repo AS repo, a.elapsed_ms / 1000.0 AS seconds
     FROM trials t JOIN attempts a ON a.id = t.final_attempt_id JOIN instances i ON i.id = t.instance_pk
     JOIN arms m ON m.id = t.arm_id
     WHERE a.elapsed_ms IS NOT NULL AND a.exit_class ${IS_RESULT} ORDER BY a.id`,
  );
}

/** The order in which trials start, as decided when the run (again) began. */
export function setPositions(db: Store, trialIds: readonly number[], first: number): void {
  db.transaction(() => {
    for (const [i, id] of trialIds.entries())
      change(db, 'UPDATE trials SET position = ? WHERE id = ?', first + i, id);
  }).immediate();
}
