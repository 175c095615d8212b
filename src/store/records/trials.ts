/**
 * Trials and attempts: the state machine. pending -> leased -> running -> sealed; a trial that must run again goes back to pending.
 * Every change is a compare-and-set, so the first terminal state of an attempt wins whatever arrives later.
 */

import {
  COUNTED_CLASSES,
  type ExitClass,
  type ExitReason,
  exitClassOf,
  type Outcome,
  type PatchSource,
  type PatchState,
} from '../../outcome.ts';
import { type Store, safeSum } from '../open.ts';
import { all, assignments, cell, change, first, insert, raw } from '../query.ts';
import { durably, together } from '../writing.ts';
import { costWithoutCalls, knownCost, sumAttempt } from './modelCalls.ts';

type TrialState = 'pending' | 'leased' | 'running' | 'sealed';

export interface TrialRow {
  id: number;
  run_id: number;
  arm_id: number;
  instance_pk: number;
  epoch: number;
  position: number;
  state: TrialState;
  lease_owner: string | null;
  lease_at_ms: number | null;
  final_attempt_id: number | null;
  not_run_reason: string | null;
}

export interface AttemptRow {
  id: number;
  trial_id: number;
  number: number;
  state: 'running' | 'ended';
  slot: number | null;
  started_at: string;
  ended_at: string | null;
  exit_reason: ExitReason | null;
  exit_class: ExitClass | null;
  exit_detail: string | null;
  exit_status: string | null;
  error_message: string | null;
  error_evidence: string | null;
  submission: Buffer | null;
  captured_patch: Buffer | null;
  patch_source: PatchSource | null;
  patch_state: PatchState | null;
  model_patch: string | null;
  patch_sha256: string | null;
  steps: number;
  container_id: string | null;
  image_digest: string | null;
  history: string | null;
  transport: string | null;
  oom_kills: number;
  elapsed_ms: number | null;
  working_ms: number | null;
  suspicion: string;
  notes: string;
  config: string | null;
}

export const trialsOf = (db: Store, runId: number): TrialRow[] =>
  all(db)`SELECT * FROM trials WHERE run_id = ${runId} ORDER BY position`;

export const trialById = (db: Store, id: number): TrialRow | undefined =>
  first(db)`SELECT * FROM trials WHERE id = ${id}`;

export const attemptById = (db: Store, id: number): AttemptRow | undefined =>
  first(db)`SELECT * FROM attempts WHERE id = ${id}`;

export const attemptsOf = (db: Store, trialId: number): AttemptRow[] =>
  all(db)`SELECT * FROM attempts WHERE trial_id = ${trialId} ORDER BY number`;

/** The number of times that infrastructure has ended an attempt of the trial after a model had been asked. */
export const infraAttemptsWithCalls = (db: Store, trialId: number): number =>
  cell(db)<number>`
    SELECT count(*) AS n FROM attempts a WHERE a.trial_id = ${trialId} AND a.state = 'ended' AND a.exit_class = 'infra'
     AND EXISTS (SELECT 1 FROM model_calls c WHERE c.attempt_id = a.id)`;

/** The number of ended attempts of the trial that carry a flag of this rule. */
export const attemptsFlagged = (db: Store, trialId: number, rule: string): number =>
  cell(db)<number>`SELECT count(*) AS n FROM attempts a WHERE a.trial_id = ${trialId} AND a.state = 'ended'
     AND EXISTS (SELECT 1 FROM json_each(a.suspicion) f WHERE json_extract(f.value, '$.rule') = ${rule})`;

/** Takes a pending trial for `owner`; false when another process was faster. */
export const leaseTrial = (db: Store, trialId: number, owner: string, nowMs: number): boolean =>
  change(db)`
    UPDATE trials SET state = 'leased', lease_owner = ${owner}, lease_at_ms = ${nowMs}, not_run_reason = NULL WHERE id = ${trialId} AND state = 'pending'` ===
  1;

export const heartbeat = (db: Store, runId: number, owner: string, nowMs: number): number =>
  change(db)`
    UPDATE trials SET lease_at_ms = ${nowMs} WHERE run_id = ${runId} AND lease_owner = ${owner} AND state IN ('leased', 'running')`;

/** When the process of each run last said that it works on something, by run id, in milliseconds since 1970. */
export function lastSigns(db: Store): ReadonlyMap<number, number> {
  const rows = all(db)<{ run_id: number; at: number | null }>`
    SELECT run_id, max(lease_at_ms) AS at FROM trials WHERE state IN ('leased', 'running') GROUP BY run_id`;
  return new Map(rows.flatMap(({ run_id, at }) => (at === null ? [] : [[run_id, at] as const])));
}

/** The number that the next attempt of a trial will have. */
export const nextAttemptNumber = (db: Store, trialId: number): number =>
  cell(db)<number>`SELECT coalesce(max(number), 0) + 1 AS next FROM attempts WHERE trial_id = ${trialId}`;

/** Begins the next attempt of a leased trial and returns its id and number. */
export function beginAttempt(
  db: Store,
  trialId: number,
  facts: { startedAt: string; slot: number; config: string },
): { id: number; number: number } {
  return together(db, () => {
    const number = nextAttemptNumber(db, trialId);
    const id = insert(db, 'attempts', {
      trial_id: trialId,
      number,
      state: 'running',
      slot: facts.slot,
      started_at: facts.startedAt,
      config: facts.config,
    });
    const leased = change(db)`
      UPDATE trials SET state = 'running' WHERE id = ${trialId} AND state = 'leased'`;
    if (leased !== 1) throw new Error(`trial ${trialId} was not leased when its attempt began`);
    return { id, number };
  });
}

/** Facts known once the environment is up. */
export const noteEnvironment = (
  db: Store,
  attemptId: number,
  facts: Pick<AttemptRow, 'container_id' | 'image_digest' | 'history' | 'transport'>,
): number => change(db)`UPDATE attempts SET ${assignments(facts)} WHERE id = ${attemptId}`;

/** The columns that the end of an attempt adds to its row; a column that is left out keeps its default, and the class follows from the reason. */
export interface AttemptEnd
  extends Partial<Pick<AttemptRow, 'exit_detail' | 'exit_status' | 'error_message' | 'error_evidence'>>,
    Partial<Pick<AttemptRow, 'patch_source' | 'patch_state' | 'model_patch' | 'steps' | 'oom_kills'>>,
    Partial<Pick<AttemptRow, 'elapsed_ms' | 'working_ms' | 'suspicion' | 'notes'>> {
  readonly ended_at: string;
  readonly exit_reason: ExitReason;
  readonly submission?: Uint8Array | null;
  readonly captured_patch?: Uint8Array | null;
  readonly work_image?: string | null;
  readonly patch_sha256: string;
}

/** 'seal': the result stands. 'again': the trial is pending once more. 'not_run': pending, and the attempt says nothing about it. */
export type Settlement = 'seal' | 'again' | 'not_run';

/**
 * Ends an attempt and settles its trial in one durable transaction. Returns false, changing nothing, when the attempt had already ended.
 */
/** `also` is written with it or not at all. */
export function endAttempt(
  db: Store,
  attemptId: number,
  end: AttemptEnd,
  then: Settlement,
  also: () => void = () => {},
): boolean {
  const blob = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes) : null);
  const row = {
    ...end,
    state: 'ended',
    exit_class: exitClassOf(end.exit_reason),
    submission: blob(end.submission),
    captured_patch: blob(end.captured_patch),
  };
  const work = db.transaction(() => {
    const ended = change(db)`
      UPDATE attempts SET ${assignments(row)} WHERE id = ${attemptId} AND state = 'running'`;
    if (ended !== 1) return false;
    const kept = then === 'not_run' ? null : attemptId;
    change(db)`
      UPDATE trials SET state = ${then === 'seal' ? 'sealed' : 'pending'}, final_attempt_id = ${kept},
        not_run_reason = ${kept === null ? end.exit_reason : null}, lease_owner = NULL, lease_at_ms = NULL
      WHERE id = (SELECT trial_id FROM attempts WHERE id = ${attemptId})`;
    sumAttempt(db, attemptId);
    also();
    return true;
  });
  // The row that ends an attempt must survive a power cut.
  return durably(db, () => (db.inTransaction ? work() : work.immediate()));
}

/** Returns a leased trial that never began an attempt to pending. */
export const releaseTrial = (db: Store, trialId: number): number =>
  change(db)`
    UPDATE trials SET state = 'pending', lease_owner = NULL, lease_at_ms = NULL, not_run_reason = NULL WHERE id = ${trialId} AND state = 'leased'`;

/** Marks everything still pending with why it was not run (budget_stopped, auth_failed, cancelled). */
export const markNotRun = (db: Store, runId: number, reason: string): number =>
  change(db)`UPDATE trials SET not_run_reason = ${reason} WHERE run_id = ${runId} AND state = 'pending'`;

/** Marks a pending trial that is not wanted any more. */
export const leaveOutTrial = (db: Store, trialId: number): number =>
  change(db)`UPDATE trials SET not_run_reason = 'cancelled' WHERE id = ${trialId} AND state = 'pending'`;

/** Sends sealed trials back to pending; their attempts stay. */
export function reopenTrials(db: Store, trialIds: readonly number[]): void {
  together(db, () => {
    for (const id of trialIds)
      change(db)`
        UPDATE trials SET state = 'pending', not_run_reason = NULL WHERE id = ${id} AND state = 'sealed'`;
  });
}

/** Trials that a dead process left leased or running. */
export const abandonedTrials = (db: Store, runId: number): TrialRow[] =>
  all(db)`
    SELECT * FROM trials WHERE run_id = ${runId} AND state IN ('leased', 'running') ORDER BY position`;

/** Trials without any ended attempt. */
export const trialsNeverEnded = (
  db: Store,
  runId: number,
): { instance_id: string; arm: string; epoch: number }[] =>
  all(db)`
    SELECT i.instance_id, r.name AS arm, t.epoch FROM trials t JOIN instances i ON i.id = t.instance_pk JOIN arms r ON r.id = t.arm_id
     WHERE t.run_id = ${runId} AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.state = 'ended') ORDER BY t.position`;

/** Attempts of a trial that were running when their process ended. */
export const runningAttempts = (db: Store, trialId: number): { id: number }[] =>
  all(db)`SELECT id FROM attempts WHERE trial_id = ${trialId} AND state = 'running'`;

/**
 * Counts trials of a run by the class of their final attempt; 'not_run' without one, and for a reopened trial that has not run again.
 * The sum is the number of planned trials.
 */
export function classCounts(db: Store, runId: number): Map<string, number> {
  const rows = all(db)<{ class: string; n: number }>`
    SELECT CASE WHEN t.state IN ('leased', 'running') THEN 'running' WHEN f.id IS NULL THEN 'not_run'
       WHEN t.state = 'pending' AND f.exit_class ${raw(IS_RESULT)} THEN 'not_run' ELSE f.exit_class END AS class, count(*) AS n
     FROM trials t LEFT JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = ${runId} GROUP BY 1`;
  return new Map(rows.map((r) => [r.class, r.n]));
}

/** Processes that the memory limit killed, and the trials whose final attempts they were in. */
export const oomKillsOf = (db: Store, runId: number): { kills: number; trials: number } =>
  first(db)<{ kills: number; trials: number }>`
    SELECT coalesce(sum(f.oom_kills), 0) AS kills, count(*) AS trials
    FROM trials t JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = ${runId} AND f.oom_kills > 0`!;

// The result of each trial: the final attempt, the verdict that counts, the cost. Listings, reports, comparisons and exports read the view
// trial_results; its two rules are also here, for queries about other attempts.

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

/** SQL for the id of the evaluation that counts: the newest about the patch of the attempt of trial `t`. */
export const newestVerdict = (attempt: string): string =>
  `(SELECT max(v.id) FROM evaluations v WHERE v.trial_id = t.id AND v.patch_sha256 = ${attempt}.patch_sha256)`;

/** SQL: a trial `t` with its final attempt `f` and the verdict `e` that counts, where there are any. */
export const WITH_RESULT = `trials t LEFT JOIN attempts f ON f.id = t.final_attempt_id LEFT JOIN evaluations e ON e.id = ${newestVerdict('f')}`;

/** SQL: the exit class is that of a result. */
export const IS_RESULT = `IN (${[...COUNTED_CLASSES].map((name) => `'${name}'`).join(', ')})`;

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

const LINES = raw(`SELECT ${LISTED.map((column) => `v.${column}`).join(', ')},
    CASE WHEN EXISTS (SELECT 1 FROM attempt_sums k WHERE k.attempt_id = v.attempt_id)
      THEN (SELECT CASE WHEN coalesce(sum(l.unknown_calls), 0) > 0 THEN NULL ELSE coalesce(${safeSum('l.cost_nano')}, ${costWithoutCalls('v.attempt_id')}) END
        FROM attempt_ledger l WHERE l.attempt_id = v.attempt_id)
      ELSE ${knownCost('v.attempt_id')} END AS cost_nano
  FROM trial_results v`);

export const trialLines = (db: Store, runId: number): TrialLine[] =>
  all(db)`${LINES} WHERE v.run_id = ${runId} ORDER BY v.position`;

export const trialLinesOf = (db: Store, runId: number, instanceId: string): TrialLine[] =>
  all(db)`${LINES} WHERE v.run_id = ${runId} AND v.instance_id = ${instanceId} ORDER BY v.position`;

/** The time of an attempt in any run of the results root, for the scheduler's estimates. */
export interface PastDuration {
  readonly instanceId: string;
  readonly model: string;
  readonly repo: string;
  readonly seconds: number;
}

/** Only final attempts that are a result: the time of a trial that an outage ended does not count. */
export function pastDurations(db: Store): PastDuration[] {
  return all(db)<PastDuration>`
    SELECT i.instance_id AS instanceId, m.model AS model, i.repo AS repo, a.elapsed_ms / 1000.0 AS seconds
     FROM trials t JOIN attempts a ON a.id = t.final_attempt_id JOIN instances i ON i.id = t.instance_pk
     JOIN arms m ON m.id = t.arm_id
     WHERE a.elapsed_ms IS NOT NULL AND a.exit_class ${raw(IS_RESULT)} ORDER BY a.id`;
}

/** Records the order in which trials start. */
export function setPositions(db: Store, trialIds: readonly number[], first: number): void {
  together(db, () => {
    for (const [i, id] of trialIds.entries())
      change(db)`UPDATE trials SET position = ${first + i} WHERE id = ${id}`;
  });
}
