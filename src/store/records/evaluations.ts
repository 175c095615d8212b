/** Verdict history: rows are appended, never overwritten. */
import type { Outcome } from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all, change, first, insert } from '../query.ts';
import { IS_RESULT } from './trialResults.ts';

export interface EvaluationRow {
  id: number;
  run_id: number;
  trial_id: number | null;
  attempt_id: number | null;
  instance_id: string;
  model: string;
  patch_sha256: string;
  spec_hash: string;
  dialect: string;
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
  'run_id' | 'instance_id' | 'model' | 'patch_sha256' | 'spec_hash' | 'dialect' | 'outcome' | 'source'
> &
  Partial<EvaluationRow>;

export const insertEvaluation = (db: Store, row: NewEvaluation): number => insert(db, 'evaluations', row);

/** The verdict that counts for each trial that has one, keyed by trial. */
export function verdictsOf(db: Store, runId: number): Map<number, EvaluationRow> {
  const rows = all<EvaluationRow>(
    db,
    'SELECT e.* FROM trial_results v JOIN evaluations e ON e.id = v.evaluation_id WHERE v.run_id = ?',
    runId,
  );
  return new Map(rows.map((r) => [r.trial_id!, r]));
}

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

const GRADABLE = `SELECT t.id AS trial_id, f.id AS attempt_id, t.arm_id, t.instance_pk, t.epoch, a.model, f.model_patch,
       coalesce(f.patch_sha256, '') AS patch_sha256, f.work_image
     FROM trials t JOIN attempts f ON f.id = t.final_attempt_id JOIN arms a ON a.id = t.arm_id
     WHERE t.state = 'sealed' AND f.exit_class ${IS_RESULT} AND f.model_patch IS NOT NULL`;

/** Sealed trials whose attempt is a result and left a patch, empty or not. */
export const gradableTrials = (db: Store, runId: number): Gradable[] =>
  all(db, `${GRADABLE} AND t.run_id = ? ORDER BY t.position`, runId);

/** One of them; undefined for a trial that is none. */
export const gradableTrial = (db: Store, runId: number, trialId: number): Gradable | undefined =>
  first(db, `${GRADABLE} AND t.run_id = ? AND t.id = ?`, runId, trialId);

/** What is kept of the work of an attempt, as it goes on; null: nothing any more. */
export const noteWork = (db: Store, attemptId: number, work: string | null): number =>
  change(db, 'UPDATE attempts SET work_image = ? WHERE id = ?', work, attemptId);

/** What is kept of attempts whose results do not count. */
export const abandonedWorks = (db: Store, runId: number): { id: number; work_image: string }[] =>
  all(
    db,
    `SELECT a.id, a.work_image FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE t.run_id = ? AND a.work_image IS NOT NULL AND a.state = 'ended' AND a.exit_class NOT ${IS_RESULT}`,
    runId,
  );

/** What the record has of the work that came from one container; the id of a container is one attempt's alone. */
export const worksOfContainer = (
  db: Store,
  containerId: string,
): { is_result: 0 | 1; work_image: string | null }[] =>
  all(
    db,
    `SELECT a.state = 'ended' AND a.exit_class ${IS_RESULT} AS is_result, a.work_image
     FROM attempts a WHERE a.container_id = ?`,
    containerId,
  );

/** Milliseconds of each grading of a run that ran something. */
export const gradingDurations = (db: Store, runId: number): number[] =>
  all<{ ms: number }>(
    db,
    'SELECT duration_ms AS ms FROM evaluations WHERE run_id = ? AND duration_ms > 0',
    runId,
  ).map(({ ms }) => ms);
