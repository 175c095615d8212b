/**
 * Requests of people to a run that works, the answers, and the state that the process writes down of itself. Every change is a compare-and-set: a
 * request is carried out at most once.
 */
import { z } from 'zod';
import type { Store } from '../open.ts';
import { all, change, first, insert } from '../query.ts';

type ControlState = 'open' | 'taken' | 'done' | 'refused' | 'withdrawn';

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
  first(db)`SELECT * FROM controls WHERE id = ${id}`;

/** The controls in the order in which they were asked. */
export const unansweredControls = (db: Store, runId: number, state: 'open' | 'taken'): ControlRow[] =>
  all(db)`
    SELECT * FROM controls WHERE run_id = ${runId} AND state IN ('open', 'taken') AND state = ${state} ORDER BY id`;

/** False when it was withdrawn in the meantime. */
export const takeControl = (db: Store, id: number): boolean =>
  change(db)`UPDATE controls SET state = 'taken' WHERE id = ${id} AND state = 'open'` === 1;

export const answerControl = (
  db: Store,
  id: number,
  answered: { readonly state: 'done' | 'refused'; readonly answer: string; readonly at: string },
): boolean =>
  change(db)`
    UPDATE controls SET state = ${answered.state}, answer = ${answered.answer}, answered_at = ${answered.at}
    WHERE id = ${id} AND state IN ('open', 'taken')` === 1;

/** The asker waits no more. False when the process has taken the request. */
export const withdrawControl = (db: Store, id: number, at: string): boolean =>
  change(db)`
    UPDATE controls SET state = 'withdrawn', answered_at = ${at} WHERE id = ${id} AND state = 'open'` === 1;

// Facts that the process of a run would know alone, for people who look on. The newest state only.

const count = z.number().min(0);
const limit = z.number().nullable();

const liveStateSchema = z.object({
  slots: count,
  models: z.array(
    z.object({
      arm: z.string(),
      inFlight: count,
      waiting: count,
      blockedMs: count,
      rateLimited: count,
      limit,
      rpm: limit.optional(),
      tpm: limit.optional(),
    }),
  ),
});
export type LiveState = z.infer<typeof liveStateSchema>;

export const writeLiveState = (db: Store, runId: number, atMs: number, state: LiveState): number =>
  change(db)`
    INSERT INTO live_states (run_id, at_ms, data) VALUES (${runId}, ${atMs}, ${JSON.stringify(state)})
     ON CONFLICT DO UPDATE SET at_ms = excluded.at_ms, data = excluded.data`;

/** Null where there is none, and for a row that another program wrote. */
export function readLiveState(db: Store, runId: number): LiveState | null {
  const row = first(db)<{ data: string }>`SELECT data FROM live_states WHERE run_id = ${runId}`;
  try {
    return row ? liveStateSchema.parse(JSON.parse(row.data)) : null;
  } catch {
    return null;
  }
}
