/** Verdict history: rows are appended, never overwritten. First results of trials that ran again, and how gold patches did. */

import type { ExitClass, Outcome } from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all, change, column, first, insert, raw } from '../query.ts';
import { IS_RESULT, newestVerdict, plausibleReward } from './trials.ts';

export interface EvaluationRow {
  id: number;
  run_id: number;
  trial_id: number | null;
  attempt_id: number | null;
  instance_id: string;
  model: string;
  patch_sha256: string;
  spec_hash: string;
  harness: string;
  outcome: Outcome;
  resolved: number | null;
  resolved_strict: number | null;
  /** Between 0 and 1; NULL where the suite gives none. */
  reward: number | null;
  /** JSON: all of them by name. */
  rewards: string | null;
  report: string | null;
  log: Buffer | null;
  apply_method: string | null;
  exit_code: number | null;
  infra_reason: string | null;
  suspicion: string;
  error_message: string | null;
  network: string | null;
  /** JSON: memory_bytes, pids, cpus. */
  limits: string | null;
  image_digest: string | null;
  source: string;
  started_at: string;
  duration_ms: number | null;
}

/** Unknown columns are left out. */
type NewEvaluation = Pick<
  EvaluationRow,
  'run_id' | 'instance_id' | 'model' | 'patch_sha256' | 'spec_hash' | 'harness' | 'outcome' | 'source'
> &
  Partial<EvaluationRow>;

export const insertEvaluation = (db: Store, row: NewEvaluation): number => insert(db, 'evaluations', row);

/** The verdict that counts for each trial that has one, keyed by trial. */
export function verdictsOf(db: Store, runId: number): Map<number, EvaluationRow> {
  const rows = all(db)<EvaluationRow>`
    SELECT e.* FROM trial_results v JOIN evaluations e ON e.id = v.evaluation_id WHERE v.run_id = ${runId}`;
  return new Map(rows.map((r) => [r.trial_id!, r]));
}

export type ShownEvaluation = Omit<
  EvaluationRow,
  'run_id' | 'trial_id' | 'instance_id' | 'model' | 'spec_hash' | 'image_digest'
>;

const EVALUATION =
  raw(`id, attempt_id, harness, outcome, resolved, resolved_strict, ${plausibleReward('evaluations')}, rewards, report, apply_method, exit_code,
  infra_reason, suspicion, error_message, network, source, started_at, duration_ms, patch_sha256`);

export const evaluationsOf = (db: Store, trialId: number): Omit<ShownEvaluation, 'log'>[] =>
  all(db)`SELECT ${EVALUATION} FROM evaluations WHERE trial_id = ${trialId} ORDER BY id`;

export const evaluationById = (db: Store, id: number): ShownEvaluation | undefined =>
  first(db)`SELECT ${EVALUATION}, log FROM evaluations WHERE id = ${id}`;

export interface Gradable {
  trial_id: number;
  attempt_id: number;
  arm_id: number;
  instance_pk: number;
  epoch: number;
  model: string;
  model_patch: string;
  patch_sha256: string;
  /** The container as the agent left it, where it was kept. */
  work_image: string | null;
}

const GRADABLE =
  raw(`SELECT t.id AS trial_id, f.id AS attempt_id, t.arm_id, t.instance_pk, t.epoch, a.model, f.model_patch,
       coalesce(f.patch_sha256, '') AS patch_sha256, f.work_image
     FROM trials t JOIN attempts f ON f.id = t.final_attempt_id JOIN arms a ON a.id = t.arm_id
     WHERE t.state = 'sealed' AND f.exit_class ${IS_RESULT} AND f.model_patch IS NOT NULL`);

/** Sealed trials whose attempt is a result and left a patch, empty or not. */
export const gradableTrials = (db: Store, runId: number): Gradable[] =>
  all(db)`${GRADABLE} AND t.run_id = ${runId} ORDER BY t.position`;

/** One gradable trial; undefined where the trial is not gradable. */
export const gradableTrial = (db: Store, runId: number, trialId: number): Gradable | undefined =>
  first(db)`${GRADABLE} AND t.run_id = ${runId} AND t.id = ${trialId}`;

/** The kept work of an attempt, as it goes on; null: nothing any more. */
export const noteWork = (db: Store, attemptId: number, work: string | null): number =>
  change(db)`UPDATE attempts SET work_image = ${work} WHERE id = ${attemptId}`;

/** The kept work of attempts whose results do not count. */
export const abandonedWorks = (db: Store, runId: number): { id: number; work_image: string }[] =>
  all(db)`SELECT a.id, a.work_image FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE t.run_id = ${runId} AND a.work_image IS NOT NULL AND a.state = 'ended' AND a.exit_class NOT ${raw(IS_RESULT)}`;

/** The work that was kept of the attempts of a run. */
export const worksOf = (db: Store, runId: number): string[] =>
  column(db)`SELECT a.work_image FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE t.run_id = ${runId} AND a.work_image IS NOT NULL`;

/** The recorded work that came from one container; the id of a container is one attempt's alone. `is_open`: a result without a verdict. */
export const worksOfContainer = (
  db: Store,
  containerId: string,
): { is_open: 0 | 1; work_image: string | null }[] =>
  all(db)`SELECT a.state = 'ended' AND a.exit_class ${raw(IS_RESULT)} AND NOT EXISTS (
       SELECT 1 FROM evaluations e WHERE e.attempt_id = a.id AND e.outcome NOT IN ('infra', 'ungradable')) AS is_open, a.work_image
     FROM attempts a WHERE a.container_id = ${containerId}`;

/** Milliseconds of each grading of a run that ran something. */
export const gradingDurations = (db: Store, runId: number): number[] =>
  column(db)`SELECT duration_ms FROM evaluations WHERE run_id = ${runId} AND duration_ms > 0`;

/** The first result of a trial that ran again although it had one. */
export interface FirstResult {
  readonly exitClass: ExitClass;
  readonly patchEmpty: boolean;
  readonly outcome: Outcome | null;
  readonly resolved: boolean | null;
}

/** The first results by trial. The plus keeps SQLite from looking for the number first: it would read an attempt of every trial. */
export function firstResultsOf(db: Store, runId: number): Map<number, FirstResult> {
  type Row = Pick<FirstResult, 'exitClass' | 'outcome'>;
  const rows = all(db)<Row & { trialId: number; patchEmpty: number; resolved: number | null }>`
    SELECT t.id AS trialId, a.exit_class AS exitClass, octet_length(a.model_patch) = 0 AS patchEmpty, e.outcome, e.resolved
    FROM attempts a JOIN trials t ON t.id = a.trial_id LEFT JOIN evaluations e ON e.id = ${raw(newestVerdict('a'))}
    WHERE t.run_id = ${runId} AND a.id <> t.final_attempt_id AND +a.number =
      (SELECT min(b.number) FROM attempts b WHERE b.trial_id = t.id AND b.exit_class ${raw(IS_RESULT)})`;
  return new Map(
    rows.map(({ trialId, patchEmpty, resolved, ...result }) => [
      trialId,
      { ...result, patchEmpty: patchEmpty === 1, resolved: resolved === null ? null : resolved === 1 },
    ]),
  );
}

/** Verdicts of the trials that earlier sittings decided. */
export const gradedSoFar = (db: Store, runId: number): { resolved: number; total: number } =>
  first(db)<{ resolved: number; total: number }>`
    SELECT count(e.id) AS total, coalesce(sum(e.resolved), 0) AS resolved FROM trials t
       JOIN attempts a ON a.id = t.final_attempt_id JOIN evaluations e ON e.id = ${raw(newestVerdict('a'))}
       WHERE t.run_id = ${runId} AND t.state = 'sealed'`!;

/** Instances that were attempted again after a result: no pass@1. */
export const redoneTrials = (db: Store, runId: number): { instanceId: string; arm: string }[] =>
  all(db)<{ instanceId: string; arm: string }>`
    SELECT DISTINCT i.instance_id AS instanceId, m.name AS arm FROM attempts a JOIN trials t ON t.id = a.trial_id
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       WHERE t.run_id = ${runId} AND a.exit_class ${raw(IS_RESULT)} AND a.id <> t.final_attempt_id ORDER BY 1`;

/** The result of an instance's solution here; `untouched`: its tests passed where nobody had done anything. */
export type GoldStanding = 'passes' | 'fails' | 'flaky' | 'untouched';

export interface Calibrated {
  readonly instance_id: string;
  readonly image_digest: string | null;
  readonly spec_hash: string;
  readonly harness: string;
  readonly network: string | null;
  readonly standing: GoldStanding;
  readonly resolved: number;
  readonly evaluations: number;
  readonly last_at: string;
  /** The reason why the last one did not pass; null where the verdict says enough. */
  readonly message: string | null;
}

/** A grading of an end state began in the image of its task. */
const TASK_IMAGE = raw('CASE WHEN a.work_image IS NULL THEN e.image_digest ELSE a.image_digest END');

/**
 * Without evaluations that failed, had no patch or were made elsewhere (imports, regrades). Each set of rules and each network is counted
 * separately, because gold that fails only without the network is not flaky. The newest of an instance comes last.
 */
export function calibration(db: Store): Calibrated[] {
  const rows = all(db)<Omit<Calibrated, 'standing'>>`
    SELECT e.instance_id, ${TASK_IMAGE} AS image_digest, e.spec_hash, e.harness, e.network, sum(e.outcome = 'resolved') AS resolved,
       count(*) AS evaluations, max(e.started_at) AS last_at, e.error_message AS message
     FROM evaluations e LEFT JOIN attempts a ON a.id = e.attempt_id
     WHERE e.model = 'gold' AND e.source = 'native' AND e.outcome NOT IN ('infra', 'ungradable', 'empty_patch')
     GROUP BY e.instance_id, 2, e.spec_hash, e.harness, e.network ORDER BY e.instance_id, last_at`;
  return rows.map((row) => ({
    ...row,
    standing: row.resolved === row.evaluations ? 'passes' : row.resolved === 0 ? 'fails' : 'flaky',
  }));
}

/** The latest standing of each instance. Scores are also shown without those that do not pass. */
export function goldStandings(db: Store): Map<string, Calibrated> {
  const standings = new Map(calibration(db).map((row) => [row.instance_id, row]));
  for (const row of untouched(db)) standings.set(row.instance_id, row);
  return standings;
}

/** Instances whose newest grading without any work passed. By the runs of such arms, because few evaluations are theirs. */
function untouched(db: Store): Calibrated[] {
  const rows = all(db)<Omit<Calibrated, 'standing'> & { outcome: Outcome }>`
    SELECT e.instance_id, e.image_digest, e.spec_hash, e.harness, e.network, sum(e.outcome = 'resolved') AS resolved,
       count(*) AS evaluations, max(e.started_at) AS last_at, e.error_message AS message, e.outcome
     FROM arms a JOIN evaluations e ON e.run_id = a.run_id AND e.model = a.model
     WHERE a.model = 'nop' AND e.source = 'native' GROUP BY e.instance_id`;
  return rows.flatMap(({ outcome, ...row }) =>
    outcome === 'resolved' ? [{ ...row, standing: 'untouched' as const }] : [],
  );
}
