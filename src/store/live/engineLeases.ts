/** Engines of a run, and which attempt ran on which of them. */
import type { Store } from '../open.ts';
import { all, change, first } from '../query.ts';

export type EngineOrigin = 'config' | 'file' | 'person';

export interface EngineRow {
  id: number;
  run_id: number;
  name: string;
  slots: number;
  labels: string;
  origin: EngineOrigin;
  joined_at: string;
  state: string;
  state_at: string;
  reason: string | null;
  platform: string | null;
  memory_bytes: number | null;
  free_bytes: number | null;
}

export interface EngineFacts {
  readonly platform: string | null;
  readonly memoryBytes: number | null;
  readonly freeBytes: number | null;
}

type NewEngine = Pick<EngineRow, 'run_id' | 'name' | 'slots' | 'labels' | 'origin' | 'joined_at'>;

/** One that joined before keeps its row and its leases. */
export const joinEngine = (db: Store, row: NewEngine): number =>
  change(
    db,
    `INSERT INTO engines (run_id, name, slots, labels, origin, joined_at, state, state_at)
     VALUES (@run_id, @name, @slots, @labels, @origin, @joined_at, 'ready', @joined_at)
     ON CONFLICT DO UPDATE SET slots = excluded.slots, labels = excluded.labels, origin = excluded.origin,
       joined_at = excluded.joined_at, state = 'ready', state_at = excluded.state_at, reason = NULL`,
    row,
  );

export const setEngineState = (
  db: Store,
  change_: { run: number; name: string; state: string; at: string; reason: string | null },
): number =>
  change(
    db,
    'UPDATE engines SET state = @state, state_at = @at, reason = @reason WHERE run_id = @run AND name = @name',
    change_,
  );

export const setEngineFacts = (db: Store, run: number, name: string, facts: EngineFacts): number =>
  change(
    db,
    `UPDATE engines SET platform = @platform, memory_bytes = @memoryBytes, free_bytes = @freeBytes
     WHERE run_id = @run AND name = @name`,
    { ...facts, run, name },
  );

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
    `INSERT INTO leases (attempt_id, engine_id, began_at)
     SELECT a.id, e.id, @at FROM attempts a, engines e
     WHERE a.trial_id = @trial AND a.number = @number AND e.run_id = @run AND e.name = @engine`,
    { ...known, run, engine, at },
  );
}

export function endLease(db: Store, { run, engine, attempt, at }: OnEngine, how: string): number {
  const known = attemptIn(attempt);
  if (!known) return 0;
  return change(
    db,
    `UPDATE leases SET ended_at = @at, how = @how WHERE ended_at IS NULL
     AND attempt_id = (SELECT id FROM attempts WHERE trial_id = @trial AND number = @number)
     AND engine_id = (SELECT id FROM engines WHERE run_id = @run AND name = @engine)`,
    { ...known, run, engine, at, how },
  );
}

/** What a dead process left: its leases have ended with it, and no engine is there for the run. */
export function endLeases(db: Store, run: number, at: string): void {
  change(
    db,
    `UPDATE leases SET ended_at = ?, how = 'process_lost'
     WHERE ended_at IS NULL AND engine_id IN (SELECT id FROM engines WHERE run_id = ?)`,
    at,
    run,
  );
  leaveEngines(db, run, at);
}

export const leaveEngines = (db: Store, run: number, at: string): number =>
  change(
    db,
    `UPDATE engines SET state = 'left', state_at = ?, reason = NULL WHERE run_id = ? AND state <> 'left'`,
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
     AND NOT EXISTS (SELECT 1 FROM leases l JOIN engines e ON e.id = l.engine_id
                     WHERE l.attempt_id = a.id AND l.ended_at IS NULL AND e.name = @engine)`,
    { ...known, run, engine },
  );
  return row?.gone === 1;
}

export interface EngineLine extends EngineRow {
  /** Attempts that are there now. */
  readonly active: number;
  /** Attempts that ran there to an end of their own. */
  readonly done: number;
  /** Attempts that ended because the engine was lost or removed. */
  readonly cut: number;
}

export const enginesOfRun = (db: Store, runId: number): EngineLine[] =>
  all(
    db,
    `SELECT e.*,
       (SELECT count(*) FROM leases l WHERE l.engine_id = e.id AND l.ended_at IS NULL) AS active,
       (SELECT count(*) FROM leases l WHERE l.engine_id = e.id AND l.how = 'closed') AS done,
       (SELECT count(*) FROM leases l WHERE l.engine_id = e.id AND l.how IN ('lost', 'removed', 'process_lost')) AS cut
     FROM engines e WHERE e.run_id = ? ORDER BY e.id`,
    runId,
  );

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
    `SELECT l.attempt_id, e.name AS engine, l.began_at, l.ended_at, l.how
     FROM leases l JOIN engines e ON e.id = l.engine_id WHERE e.run_id = ? ORDER BY l.id`,
    runId,
  );
