/** The calls of installed programs. */
import type { Store } from '../open.ts';
import { all, first, insert } from '../query.ts';

export interface ProgramCallRow {
  attempt_id: number;
  call: number;
  step: number;
  label: string | null;
  thread: string;
  dialect: string;
  operation: 'generate' | 'stream' | 'count_tokens';
  model: string;
  first_message: number;
  reply_message: number | null;
  answer: 'whole' | 'cut' | 'refused' | 'error';
  status: number;
  headers: string;
  request: Buffer;
  response: Buffer;
  failure: string | null;
}

/** Without what was said. */
export type ProgramCallFacts = Pick<
  ProgramCallRow,
  'call' | 'step' | 'label' | 'thread' | 'first_message' | 'reply_message' | 'answer' | 'status'
>;

export const insertProgramCall = (db: Store, row: ProgramCallRow): number => insert(db, 'program_calls', row);

export const programCallsOf = (db: Store, attemptId: number): ProgramCallRow[] =>
  all(db, 'SELECT * FROM program_calls WHERE attempt_id = ? ORDER BY call', attemptId);

/** In the order in which they came to their ends. */
export const programCallFacts = (db: Store, attemptId: number): ProgramCallFacts[] =>
  all(
    db,
    `SELECT call, step, label, thread, first_message, reply_message, answer, status FROM program_calls
     WHERE attempt_id = ? ORDER BY rowid`,
    attemptId,
  );

/** The first call of the agent's own turns in a run, or in one arm of it. */
export const firstProgramCall = (
  db: Store,
  runId: number,
  armId: number | null,
): (Pick<ProgramCallRow, 'dialect' | 'model'> & { arm: number }) | undefined =>
  first(
    db,
    `SELECT p.dialect, p.model, t.arm_id AS arm FROM program_calls p JOIN attempts a ON a.id = p.attempt_id JOIN trials t ON t.id = a.trial_id
     WHERE t.run_id = ? AND t.arm_id = ifnull(?, t.arm_id) ORDER BY t.arm_id, p.label IS NOT NULL, p.attempt_id, p.call LIMIT 1`,
    runId,
    armId,
  );
