/** Trials that ran again although they had a result: their first results, and their instances. */
import type { ExitClass, Outcome } from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all } from '../query.ts';
import { IS_RESULT, newestVerdict } from './trialResults.ts';

const ATTEMPTS = 'attempts a JOIN trials t ON t.id = a.trial_id';

export interface FirstResult {
  readonly exitClass: ExitClass;
  readonly patchEmpty: boolean;
  readonly outcome: Outcome | null;
  readonly resolved: boolean | null;
}

const FIRST_RESULTS = `SELECT t.id AS trialId, a.exit_class AS exitClass, a.model_patch = '' AS patchEmpty, e.outcome, e.resolved
  FROM ${ATTEMPTS} LEFT JOIN evaluations e ON e.id = ${newestVerdict('t', 'a')}
  WHERE t.run_id = ? AND a.id <> t.final_attempt_id AND a.number =
    (SELECT min(b.number) FROM attempts b WHERE b.trial_id = t.id AND b.exit_class ${IS_RESULT})`;

/** By trial. */
export const firstResultsOf = (db: Store, runId: number): Map<number, FirstResult> =>
  new Map(
    all<FirstRow>(db, FIRST_RESULTS, runId).map(({ trialId, patchEmpty, resolved, ...result }) => [
      trialId,
      { ...result, patchEmpty: patchEmpty === 1, resolved: resolved === null ? null : resolved === 1 },
    ]),
  );

type FirstRow = Pick<FirstResult, 'exitClass' | 'outcome'> & {
  readonly trialId: number;
  readonly patchEmpty: number;
  readonly resolved: number | null;
};

/** Verdicts of the trials that earlier sittings decided. */
export const gradedSoFar = (db: Store, runId: number): { resolved: number; total: number } =>
  all<{ resolved: number; total: number }>(
    db,
    `SELECT count(e.id) AS total, coalesce(sum(e.resolved), 0) AS resolved FROM trials t
       JOIN attempts a ON a.id = t.final_attempt_id JOIN evaluations e ON e.id = ${newestVerdict('t', 'a')}
       WHERE t.run_id = ? AND t.state = 'sealed'`,
    runId,
  )[0]!;

/** Instances that were attempted again after a result: no pass@1. */
export const redoneTrials = (db: Store, runId: number): { instanceId: string; arm: string }[] =>
  all<{ instanceId: string; arm: string }>(
    db,
    `SELECT DISTINCT i.instance_id AS instanceId, m.name AS arm FROM ${ATTEMPTS}
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       WHERE t.run_id = ? AND a.exit_class ${IS_RESULT} AND a.id <> t.final_attempt_id ORDER BY 1`,
    runId,
  );
