/**
 * The result of each trial: the final attempt, the verdict that counts, the cost. Listings, reports, comparisons and exports read the view
 * trial_results; its two rules are also here, for queries about other attempts.
 */
import {
  type ExitClass,
  type ExitReason,
  type Outcome,
  type PatchSource,
  type PatchState,
  SEALED_CLASSES,
} from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all } from '../query.ts';
import { knownCost } from './modelCalls.ts';

export type TrialState = 'pending' | 'leased' | 'running' | 'sealed';

/** A row of the view. */
export interface TrialResultRow {
  trial_id: number;
  run_id: number;
  run: string;
  arm: string;
  model: string;
  instance_id: string;
  repo: string;
  difficulty: string;
  epoch: number;
  state: TrialState;
  weight: number;
  position: number;
  attempt_id: number | null;
  /** The number of that attempt. */
  attempts: number | null;
  exit_reason: ExitReason | null;
  exit_class: ExitClass | null;
  exit_status: string | null;
  not_run_reason: string | null;
  steps: number | null;
  elapsed_ms: number | null;
  working_ms: number | null;
  patch_source: PatchSource | null;
  patch_state: PatchState | null;
  patch_sha256: string | null;
  suspicion: string | null;
  oom_kills: number | null;
  evaluation_id: number | null;
  outcome: Outcome | null;
  resolved: number | null;
  resolved_strict: number | null;
  grade_suspicion: string | null;
}

/** A reward outside of 0 to 1 is none: somebody else's number, or a broken record. */
export const plausibleReward = (evaluation: string): string =>
  `CASE WHEN typeof(${evaluation}.reward) IN ('real', 'integer') AND ${evaluation}.reward BETWEEN 0 AND 1 THEN ${evaluation}.reward END AS reward`;

/** SQL for the id of the evaluation that counts: the newest about the patch of the attempt. */
export const newestVerdict = (trial: string, attempt: string): string =>
  `(SELECT max(v.id) FROM evaluations v WHERE v.trial_id = ${trial}.id AND v.patch_sha256 = ${attempt}.patch_sha256)`;

/** SQL: the exit class is that of a result. */
export const IS_RESULT = `IN (${[...SEALED_CLASSES].map((name) => `'${name}'`).join(', ')})`;

const LISTED = [
  'trial_id',
  'arm',
  'model',
  'instance_id',
  'repo',
  'difficulty',
  'epoch',
  'state',
  'attempt_id',
  'exit_reason',
  'exit_class',
  'not_run_reason',
  'outcome',
  'resolved',
  'steps',
  'elapsed_ms',
] as const satisfies readonly (keyof TrialResultRow)[];

/** A trial in listings. `cost_nano` is that of the final attempt, null when a part is unknown. */
export type TrialLine = Pick<TrialResultRow, (typeof LISTED)[number]> & { cost_nano: number | null };

export const trialLines = (db: Store, runId: number): TrialLine[] =>
  all(
    db,
    `SELECT ${LISTED.map((column) => `v.${column}`).join(', ')},
       ${knownCost('v.attempt_id')} AS cost_nano
     FROM trial_results v WHERE v.run_id = ? ORDER BY v.position`,
    runId,
  );
