/** Of a run on several engines: which attempt ran on which of them, and until when. */
import type { Store } from '../open.ts';
import { all, change, first } from '../query.ts';

/** An attempt as containers name it: TRIAL.NUMBER. Null for anything else, gradings for instance. */
function attemptIn(label: string): { trial: number; number: number } | null {
  const found = /^(\d{1,15})\.(\d{1,6})$/.exec(label);
  return found && { trial: Number(found[1]), number: Number(found[2]) };
}

interface OnEngine {
  readonly run: number;
  readonly engine: string;
  /** TRIAL.NUMBER */
  readonly attempt: string;
  readonly at: string;
}

/** Nothing for gradings. */
export function beginLease(db: Store, { run, engine, attempt, at }: OnEngine): number {
  const known = attemptIn(attempt);
  if (!known) return 0;
  return change(
    db,
    `INSERT INTO leases (attempt_id, engine, began_at)
     SELECT a.id, @engine, @at FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE a.trial_id = @trial AND a.number = @number AND t.run_id = @run`,
    { ...known, run, engine, at },
  );
}

export function endLease(db: Store, { run, engine, attempt, at }: OnEngine, how: string): number {
  const known = attemptIn(attempt);
  if (!known) return 0;
  return change(
    db,
    `UPDATE leases SET ended_at = @at, how = @how WHERE ended_at IS NULL AND engine = @engine
     AND attempt_id = (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id
                       WHERE a.trial_id = @trial AND a.number = @number AND t.run_id = @run)`,
    { ...known, run, engine, at, how },
  );
}

const OF_RUN =
  'attempt_id IN (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?)';

/** What a dead process left: its leases have ended with it. */
export const endLeases = (db: Store, run: number, at: string): number =>
  change(
    db,
    `UPDATE leases SET ended_at = ?, how = 'process_lost' WHERE ended_at IS NULL AND ${OF_RUN}`,
    at,
    run,
  );

/** The record proves that a container of this attempt has nothing to do on the engine any more. */
export function hasLeftEngine(db: Store, run: number, engine: string, attempt: string): boolean {
  const known = attemptIn(attempt);
  if (!known) return false;
  const row = first<{ gone: number }>(
    db,
    `SELECT a.state = 'ended' OR EXISTS (SELECT 1 FROM leases l WHERE l.attempt_id = a.id) AS gone
     FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE a.trial_id = @trial AND a.number = @number AND t.run_id = @run
     AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.attempt_id = a.id AND l.ended_at IS NULL AND l.engine = @engine)`,
    { ...known, run, engine },
  );
  return row?.gone === 1;
}

export interface LeaseRow {
  readonly attempt_id: number;
  readonly engine: string;
  readonly began_at: string;
  readonly ended_at: string | null;
  readonly how: string | null;
}

/** In the order in which the attempts of the run came onto engines. */
export const leasesOfRun = (db: Store, runId: number): LeaseRow[] =>
  all(
    db,
    `SELECT attempt_id, engine, began_at, ended_at, how FROM leases WHERE ${OF_RUN} ORDER BY id`,
    runId,
  );
