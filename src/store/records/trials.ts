/**
 * Trials and attempts: the state machine. pending -> leased -> running -> sealed; a trial that must run again goes back to pending.
 * Every change is a compare-and-set, so the first terminal state of an attempt wins whatever arrives later.
 */
import type { ExitClass, ExitReason, PatchSource, PatchState } from '../../outcome.ts';
import { durably, guarded, type Store, statement } from '../open.ts';
import { insert } from './runs.ts';
import { IS_RESULT, type TrialState } from './trialResults.ts';

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
  statement(db, 'SELECT * FROM trials WHERE run_id = ? ORDER BY position').all(runId) as TrialRow[];

export const trialById = (db: Store, id: number): TrialRow | undefined =>
  statement(db, 'SELECT * FROM trials WHERE id = ?').get(id) as TrialRow | undefined;

export const attemptById = (db: Store, id: number): AttemptRow | undefined =>
  statement(db, 'SELECT * FROM attempts WHERE id = ?').get(id) as AttemptRow | undefined;

export const attemptsOf = (db: Store, trialId: number): AttemptRow[] =>
  statement(db, 'SELECT * FROM attempts WHERE trial_id = ? ORDER BY number').all(trialId) as AttemptRow[];

/** How often infrastructure has ended an attempt of the trial after a model had been asked. */
export const infraAttemptsWithCalls = (db: Store, trialId: number): number =>
  (
    statement(
      db,
      `SELECT count(*) AS n FROM attempts a WHERE a.trial_id = ? AND a.state = 'ended' AND a.exit_class = 'infra'
       AND EXISTS (SELECT 1 FROM model_calls c WHERE c.attempt_id = a.id)`,
    ).get(trialId) as { n: number }
  ).n;

/** Takes a pending trial for `owner`; false when another process was faster. */
export function leaseTrial(db: Store, trialId: number, owner: string, nowMs: number): boolean {
  return guarded(
    db,
    () =>
      statement(
        db,
        `UPDATE trials SET state = 'leased', lease_owner = ?, lease_at_ms = ?, not_run_reason = NULL WHERE id = ? AND state = 'pending'`,
      ).run(owner, nowMs, trialId).changes === 1,
  );
}

export function heartbeat(db: Store, runId: number, owner: string, nowMs: number): void {
  guarded(db, () =>
    statement(
      db,
      `UPDATE trials SET lease_at_ms = ? WHERE run_id = ? AND lease_owner = ? AND state IN ('leased', 'running')`,
    ).run(nowMs, runId, owner),
  );
}

/** When the process of each run last said that it works on something, by run id, in milliseconds since 1970. */
export function lastSigns(db: Store): ReadonlyMap<number, number> {
  const rows = statement(
    db,
    `SELECT run_id, max(lease_at_ms) AS at FROM trials WHERE state IN ('leased', 'running') GROUP BY run_id`,
  ).all() as { run_id: number; at: number | null }[];
  return new Map(rows.flatMap(({ run_id, at }) => (at === null ? [] : [[run_id, at] as const])));
}

/** The number that the next attempt of a trial will have. */
export const nextAttemptNumber = (db: Store, trialId: number): number =>
  (
    statement(db, 'SELECT coalesce(max(number), 0) + 1 AS next FROM attempts WHERE trial_id = ?').get(
      trialId,
    ) as { next: number }
  ).next;

/** Begins the next attempt of a leased trial and returns its id and number. */
export function beginAttempt(
  db: Store,
  trialId: number,
  facts: { startedAt: string; slot: number; config: string },
): { id: number; number: number } {
  const work = db.transaction(() => {
    const number = nextAttemptNumber(db, trialId);
    const id = insert(db, 'attempts', {
      trial_id: trialId,
      number,
      state: 'running',
      slot: facts.slot,
      started_at: facts.startedAt,
      config: facts.config,
    });
    const changed = statement(
      db,
      `UPDATE trials SET state = 'running' WHERE id = ? AND state = 'leased'`,
    ).run(trialId).changes;
    if (changed !== 1) throw new Error(`trial ${trialId} was not leased when its attempt began`);
    return { id, number };
  });
  return guarded(db, () => work.immediate());
}

/** Facts known once the environment is up. */
export function noteEnvironment(
  db: Store,
  attemptId: number,
  facts: { containerId: string | null; imageDigest: string | null; history: string; transport: string },
): void {
  guarded(db, () =>
    statement(
      db,
      'UPDATE attempts SET container_id = @containerId, image_digest = @imageDigest, history = @history, transport = @transport WHERE id = @attemptId',
    ).run({ ...facts, attemptId }),
  );
}

export interface AttemptEnd {
  readonly endedAt: string;
  readonly exitReason: ExitReason;
  readonly exitClass: ExitClass;
  readonly exitDetail: string | null;
  readonly exitStatus: string | null;
  readonly errorMessage: string | null;
  readonly errorEvidence: string | null;
  readonly submission: Uint8Array | null;
  readonly capturedPatch: Uint8Array | null;
  /** These three are null only for an imported result whose patch nobody kept. */
  readonly patchSource: PatchSource | null;
  readonly patchState: PatchState | null;
  readonly modelPatch: string | null;
  readonly patchSha256: string;
  readonly steps: number;
  readonly oomKills: number;
  readonly elapsedMs: number | null;
  readonly workingMs: number | null;
  readonly suspicion: string;
  readonly notes: string;
}

const END_SQL = `UPDATE attempts SET state = 'ended', ended_at = @endedAt, exit_reason = @exitReason, exit_class = @exitClass,
  exit_detail = @exitDetail, exit_status = @exitStatus, error_message = @errorMessage, error_evidence = @errorEvidence,
  submission = @submission, captured_patch = @capturedPatch, patch_source = @patchSource, patch_state = @patchState,
  model_patch = @modelPatch, patch_sha256 = @patchSha256, steps = @steps, oom_kills = @oomKills, elapsed_ms = @elapsedMs,
  working_ms = @workingMs, suspicion = @suspicion, notes = @notes WHERE id = @id AND state = 'running'`;

/** 'seal': the result stands. 'again': the trial is pending once more. 'not_run': pending, and the attempt says nothing about it. */
export type Settlement = 'seal' | 'again' | 'not_run';

/**
 * Ends an attempt and settles its trial in one durable transaction. Returns false, changing nothing, when the attempt had already ended.
 */
export function endAttempt(db: Store, attemptId: number, end: AttemptEnd, then: Settlement): boolean {
  const work = db.transaction(() => {
    const blob = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes));
    const changed = statement(db, END_SQL).run({
      ...end,
      submission: blob(end.submission),
      capturedPatch: blob(end.capturedPatch),
      id: attemptId,
    }).changes;
    if (changed !== 1) return false;
    settleTrial(db, attemptId, end, then);
    return true;
  });
  // The row that ends an attempt must survive a power cut.
  return durably(db, () => (db.inTransaction ? work() : work.immediate()));
}

function settleTrial(db: Store, attemptId: number, end: AttemptEnd, then: Settlement): void {
  statement(
    db,
    `UPDATE trials SET state = ?, final_attempt_id = ?, not_run_reason = ?, lease_owner = NULL, lease_at_ms = NULL
     WHERE id = (SELECT trial_id FROM attempts WHERE id = ?)`,
  ).run(
    then === 'seal' ? 'sealed' : 'pending',
    then === 'not_run' ? null : attemptId,
    then === 'not_run' ? end.exitReason : null,
    attemptId,
  );
}

/** Puts a leased trial back that never began an attempt. */
export function releaseTrial(db: Store, trialId: number, notRunReason: string | null): void {
  guarded(db, () =>
    statement(
      db,
      `UPDATE trials SET state = 'pending', lease_owner = NULL, lease_at_ms = NULL, not_run_reason = ? WHERE id = ? AND state = 'leased'`,
    ).run(notRunReason, trialId),
  );
}

/** Marks everything still pending with why it was not run (budget_stopped, auth_failed, cancelled). */
export function markNotRun(db: Store, runId: number, reason: string): number {
  return guarded(
    db,
    () =>
      statement(db, `UPDATE trials SET not_run_reason = ? WHERE run_id = ? AND state = 'pending'`).run(
        reason,
        runId,
      ).changes,
  );
}

/** Sends sealed trials back to pending; their attempts stay. */
export function reopenTrials(db: Store, trialIds: readonly number[]): void {
  const work = db.transaction(() => {
    for (const id of trialIds)
      statement(
        db,
        `UPDATE trials SET state = 'pending', not_run_reason = NULL WHERE id = ? AND state = 'sealed'`,
      ).run(id);
  });
  guarded(db, () => work.immediate());
}

/** Trials that a dead process left leased or running. */
export const abandonedTrials = (db: Store, runId: number): TrialRow[] =>
  statement(
    db,
    `SELECT * FROM trials WHERE run_id = ? AND state IN ('leased', 'running') ORDER BY position`,
  ).all(runId) as TrialRow[];

/** Trials that no attempt has ever ended for, as far as the record knows. */
export const trialsNeverEnded = (
  db: Store,
  runId: number,
): { instance_id: string; arm: string; epoch: number }[] =>
  statement(
    db,
    `SELECT i.instance_id, r.name AS arm, t.epoch FROM trials t JOIN instances i ON i.id = t.instance_pk JOIN arms r ON r.id = t.arm_id
     WHERE t.run_id = ? AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.state = 'ended') ORDER BY t.position`,
  ).all(runId) as { instance_id: string; arm: string; epoch: number }[];

/** Running attempts of a trial whose process is gone, with the calls that may have been billed unseen. */
export function runningAttempts(
  db: Store,
  trialId: number,
): { id: number; number: number; inFlight: number }[] {
  return statement(
    db,
    `SELECT a.id, a.number, (SELECT count(*) FROM model_calls c WHERE c.attempt_id = a.id AND c.state = 'in_flight') AS inFlight
     FROM attempts a WHERE a.trial_id = ? AND a.state = 'running'`,
  ).all(trialId) as { id: number; number: number; inFlight: number }[];
}

/**
 * Trials of a run by class of their final attempt; 'not_run' where there is none, and where a decided trial was asked for once more and
 * has not run yet. The sum is what was planned.
 */
export function classCounts(db: Store, runId: number): Map<string, number> {
  const rows = statement(
    db,
    `SELECT CASE WHEN t.state IN ('leased', 'running') THEN 'running' WHEN f.id IS NULL THEN 'not_run'
       WHEN t.state = 'pending' AND f.exit_class ${IS_RESULT} THEN 'not_run' ELSE f.exit_class END AS class, count(*) AS n
     FROM trials t LEFT JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = ? GROUP BY 1`,
  ).all(runId) as { class: string; n: number }[];
  return new Map(rows.map((r) => [r.class, r.n]));
}
