/** What people ask of a run that works, and the answers. Every change is a compare-and-set: a request is carried out at most once. */
import type { Store } from '../open.ts';
import { all, change, first, insert } from '../query.ts';

export type ControlState = 'open' | 'taken' | 'done' | 'refused' | 'withdrawn';

export interface ControlRow {
  id: number;
  run_id: number;
  asked_at: string;
  asked_by: string;
  command: string;
  argument: string | null;
  state: ControlState;
  answered_at: string | null;
  answer: string | null;
}

type NewControl = Pick<ControlRow, 'run_id' | 'asked_at' | 'asked_by' | 'command' | 'argument'>;

export const insertControl = (db: Store, row: NewControl): number => insert(db, 'controls', row);

export const controlById = (db: Store, id: number): ControlRow | undefined =>
  first(db, 'SELECT * FROM controls WHERE id = ?', id);

/** In the order in which they were asked. */
export const unansweredControls = (db: Store, runId: number, state: 'open' | 'taken'): ControlRow[] =>
  all(
    db,
    `SELECT * FROM controls WHERE run_id = ? AND state IN ('open', 'taken') AND state = ? ORDER BY id`,
    runId,
    state,
  );

/** False when it was withdrawn in the meantime. */
export const takeControl = (db: Store, id: number): boolean =>
  change(db, `UPDATE controls SET state = 'taken' WHERE id = ? AND state = 'open'`, id) === 1;

export const answerControl = (
  db: Store,
  id: number,
  answered: { readonly state: 'done' | 'refused'; readonly answer: string; readonly at: string },
): boolean =>
  change(
    db,
    `UPDATE controls SET state = @state, answer = @answer, answered_at = @at WHERE id = @id AND state IN ('open', 'taken')`,
    { ...answered, id },
  ) === 1;

/** Nobody waits for it any more. False when the process has taken it. */
export const withdrawControl = (db: Store, id: number, at: string): boolean =>
  change(
    db,
    `UPDATE controls SET state = 'withdrawn', answered_at = ? WHERE id = ? AND state = 'open'`,
    at,
    id,
  ) === 1;
