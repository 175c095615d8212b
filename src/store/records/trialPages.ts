/** Trials as pages show them, each with its newest attempt. Safe beside a run that writes. */
import type { Store } from '../open.ts';
import { all, cell, first, raw } from '../query.ts';
import type { InstanceRow, RunRow } from './runs.ts';
import {
  type AttemptRow,
  newestVerdict,
  plausibleReward,
  type TrialResultRow,
  type TrialRow,
  WITH_RESULT,
} from './trials.ts';

/** A trial with its newest attempt, which may still run, or may not be a result, until the trial is sealed. */
export interface ShownTrial
  extends Omit<
      TrialResultRow,
      'trial_id' | 'attempt_id' | 'attempts' | 'run' | 'patch_sha256' | 'evaluation_id'
    >,
    Pick<AttemptRow, 'exit_detail' | 'history'> {
  trial: number;
  attempt: number | null;
  /** Attempts made. */
  attempts: number;
  attempt_state: AttemptRow['state'] | null;
  started_at: string | null;
  ended_at: string | null;
  patch_chars: number | null;
  /** NULL where the suite gives none. */
  reward: number | null;
}

// A trial that is not sealed shows its newest attempt, so that a live table shows steps and cost.
const TRIAL =
  raw(`SELECT t.id AS trial, t.run_id, i.instance_id, i.repo, i.difficulty, i.weight, a.name AS arm, a.model, t.epoch, t.position,
  t.state, t.not_run_reason, f.id AS attempt, (SELECT count(*) FROM attempts x WHERE x.trial_id = t.id) AS attempts,
  f.state AS attempt_state, f.started_at, f.ended_at, f.exit_reason, f.exit_class, f.exit_status, f.exit_detail, f.elapsed_ms,
  CASE WHEN f.state = 'running' THEN (SELECT count(*) FROM messages m WHERE m.attempt_id = f.id AND m.role = 'assistant') ELSE f.steps END AS steps,
  f.working_ms, f.patch_source, f.patch_state, length(f.model_patch) AS patch_chars, f.history, f.oom_kills, f.suspicion,
  e.outcome, e.resolved, e.resolved_strict, ${plausibleReward('e')}, e.suspicion AS grade_suspicion
FROM trials t
JOIN arms a ON a.id = t.arm_id
JOIN instances i ON i.id = t.instance_pk
LEFT JOIN attempts f ON f.id = CASE WHEN t.state = 'sealed' THEN t.final_attempt_id
  ELSE (SELECT max(x.id) FROM attempts x WHERE x.trial_id = t.id) END
LEFT JOIN evaluations e ON e.id = ${newestVerdict('f')}`);

/** Trials are chosen before they are joined: a page of a large run would join all its trials first. */
const onPage = (runId: number, limit: number, offset: number) =>
  raw(
    't.id IN (SELECT id FROM trials WHERE run_id = ? ORDER BY position, id LIMIT ? OFFSET ?)',
    runId,
    limit,
    offset,
  );

export const trialsOnPage = (db: Store, runId: number, limit: number, offset: number): ShownTrial[] =>
  all(db)`${TRIAL} WHERE ${onPage(runId, limit, offset)} ORDER BY t.position, t.id`;

/** How each instance of a page of trials begins to say what is to be done. */
export const taskBeginnings = (db: Store, runId: number, limit: number, offset: number) =>
  all(db)<{ trial: number; begins: unknown }>`
    SELECT t.id AS trial, CASE WHEN json_valid(i.row) THEN substr(json_extract(i.row, '$.problem_statement'), 1, 600) END AS begins
    FROM trials t JOIN instances i ON i.id = t.instance_pk
    WHERE ${onPage(runId, limit, offset)}`;

export const trialsPlanned = (db: Store, runId: number): number =>
  cell(db)`SELECT count(*) FROM trials WHERE run_id = ${runId}`;

export const hasVerdict = (db: Store, runId: number): boolean =>
  first(db)`SELECT 1 FROM ${raw(WITH_RESULT)} WHERE t.run_id = ${runId} AND e.id IS NOT NULL LIMIT 1` !==
  undefined;

export const trialsOfInstance = (db: Store, instanceId: string) =>
  all(db)<ShownTrial & { run: string; created_at: string }>`
    SELECT h.*, r.name AS run, r.created_at FROM (${TRIAL} WHERE i.instance_id = ${instanceId}) h JOIN runs r ON r.id = h.run_id ORDER BY r.id, h.arm, h.epoch`;

type TrialHead = Pick<RunRow, 'imported'> &
  Pick<InstanceRow, 'image' | 'row'> &
  Pick<TrialRow, 'final_attempt_id'>;

export const trialHead = (db: Store, trialId: number) =>
  first(db)<ShownTrial & TrialHead & { run: string }>`
    SELECT h.*, r.name AS run, r.imported, o.final_attempt_id, p.image, p.row FROM (${TRIAL} WHERE t.id = ${trialId}) h
      JOIN runs r ON r.id = h.run_id JOIN trials o ON o.id = h.trial JOIN instances p ON p.id = o.instance_pk`;

/** All of a run; `at`: when it ended. */
export const attemptEnds = (db: Store, runId: number) =>
  all(db)<{ id: number; at: string | null }>`
    SELECT a.id, a.ended_at AS at FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.run_id = ${runId} ORDER BY a.id`;
