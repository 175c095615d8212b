/** Trials that were tried again although they already had a result: what the first result was, and which instances they are. */
import type Database from 'better-sqlite3';
import type { ExitClass, Outcome } from '../../outcome.ts';
import { IS_RESULT, newestVerdict } from './trialResults.ts';

type Db = Database.Database;

const ATTEMPTS = 'attempts a JOIN trials t ON t.id = a.trial_id';

export interface FirstResult {
  readonly exitClass: ExitClass;
  readonly patchEmpty: boolean;
  readonly outcome: Outcome | null;
  readonly resolved: boolean | null;
}

const FIRST_RESULTS = `SELECT t.id AS trial_id, a.exit_class, a.model_patch = '' AS patch_empty, e.outcome, e.resolved
  FROM ${ATTEMPTS} LEFT JOIN evaluations e ON e.id = ${newestVerdict('t', 'a')}
  WHERE t.run_id = ? AND a.id <> t.final_attempt_id AND a.number =
    (SELECT min(b.number) FROM attempts b WHERE b.trial_id = t.id AND b.exit_class ${IS_RESULT})`;

interface FirstRow {
  trial_id: number;
  exit_class: ExitClass;
  patch_empty: number;
  outcome: Outcome | null;
  resolved: number | null;
}

/** By trial. */
export const firstResultsOf = (db: Db, runId: number): Map<number, FirstResult> =>
  new Map(
    (db.prepare(FIRST_RESULTS).all(runId) as FirstRow[]).map((row) => [
      row.trial_id,
      {
        exitClass: row.exit_class,
        patchEmpty: row.patch_empty === 1,
        outcome: row.outcome,
        resolved: row.resolved === null ? null : row.resolved === 1,
      },
    ]),
  );

/** Instances that were attempted again after a result: no pass@1. */
export const redoneTrials = (db: Db, runId: number): { instanceId: string; arm: string }[] =>
  db
    .prepare(
      `SELECT DISTINCT i.instance_id AS instanceId, m.name AS arm FROM ${ATTEMPTS}
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       WHERE t.run_id = ? AND a.exit_class ${IS_RESULT} AND a.id <> t.final_attempt_id ORDER BY 1`,
    )
    .all(runId) as { instanceId: string; arm: string }[];
