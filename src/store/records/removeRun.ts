/** Removes a run and everything that was recorded of it: one whose import failed, or one that a person deletes. */
import { guarded, type Store } from '../open.ts';

const ATTEMPTS = 'SELECT id FROM attempts WHERE trial_id IN (SELECT id FROM trials WHERE run_id = @run)';
const STEPS = [
  'leases',
  'messages',
  'model_calls',
  'commands',
  'phases',
  'program_calls',
  'attempt_sums',
  'attempt_ledger',
  'attempt_phases',
];

/** From the leaves to the root, so that no row refers to a deleted one. */
const STATEMENTS = [
  'DELETE FROM verdicts WHERE run_id = @run',
  'DELETE FROM evaluations WHERE run_id = @run',
  'DELETE FROM events WHERE run_id = @run',
  'DELETE FROM live_states WHERE run_id = @run',
  'DELETE FROM controls WHERE run_id = @run',
  ...STEPS.map((table) => `DELETE FROM ${table} WHERE attempt_id IN (${ATTEMPTS})`),
  "UPDATE trials SET final_attempt_id = NULL, state = 'pending' WHERE run_id = @run",
  `DELETE FROM attempts WHERE id IN (${ATTEMPTS})`,
  ...['trials', 'instances', 'arms'].map((table) => `DELETE FROM ${table} WHERE run_id = @run`),
  'DELETE FROM runs WHERE id = @run',
];

export function removeRun(db: Store, runId: number): void {
  const work = db.transaction(() => {
    for (const sql of STATEMENTS) db.prepare(sql).run({ run: runId });
  });
  guarded(db, () => work.immediate());
}
