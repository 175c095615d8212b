/** Of a run on several engines: which attempt ran on which of them, and until when. */
import type { Store } from '../open.ts';
import { all, change, first, raw } from '../query.ts';

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

/** SQL for the attempt, with its trial; none for gradings. */
const attemptOf = ({ run, attempt }: Pick<OnEngine, 'run' | 'attempt'>) => {
  const { trial, number } = attemptIn(attempt) ?? { trial: null, number: null };
  return raw(
    'attempts a JOIN trials t ON t.id = a.trial_id WHERE a.trial_id = ? AND a.number = ? AND t.run_id = ?',
    ...[trial, number, run],
  );
};

export const beginLease = (db: Store, on: OnEngine): number => change(db)`
  INSERT INTO leases (attempt_id, engine, began_at) SELECT a.id, ${on.engine}, ${on.at} FROM ${attemptOf(on)}`;

export const endLease = (db: Store, on: OnEngine, how: string): number => change(db)`
  UPDATE leases SET ended_at = ${on.at}, how = ${how} WHERE ended_at IS NULL AND engine = ${on.engine}
  AND attempt_id = (SELECT a.id FROM ${attemptOf(on)})`;

/** What a dead process left: its leases have ended with it. */
export const endLeases = (db: Store, run: number, at: string): number => change(db)`
  UPDATE leases SET ended_at = ${at}, how = 'process_lost' WHERE ended_at IS NULL AND ${ofRun(run)}`;

const ofRun = (run: number) =>
  raw(
    'attempt_id IN (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?)',
    run,
  );

/** The record proves that a container of this attempt has nothing to do on the engine any more. */
export const hasLeftEngine = (db: Store, run: number, engine: string, attempt: string): boolean =>
  first(db)<{ gone: number }>`
    SELECT a.state = 'ended' OR EXISTS (SELECT 1 FROM leases l WHERE l.attempt_id = a.id) AS gone
    FROM ${attemptOf({ run, attempt })}
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.attempt_id = a.id AND l.ended_at IS NULL AND l.engine = ${engine})`
    ?.gone === 1;

export interface LeaseRow {
  readonly attempt_id: number;
  readonly engine: string;
  readonly began_at: string;
  readonly ended_at: string | null;
  readonly how: string | null;
}

/** In the order in which the attempts of the run came onto engines. */
export const leasesOfRun = (db: Store, runId: number): LeaseRow[] =>
  all(db)`SELECT attempt_id, engine, began_at, ended_at, how FROM leases WHERE ${ofRun(runId)} ORDER BY id`;
