/** Slots, counts and the last hour of a run that works, from its record. The viewer reads once a second, so of 50,000 trials only sums are read. */
import { type Store, safeSum } from '../open.ts';
import { all, cell, column, first, raw } from '../query.ts';
import type { RunRow } from '../records/runs.ts';
import { IS_RESULT, WITH_RESULT } from '../records/trials.ts';

export interface SlotRow {
  attempt: number;
  trial: number;
  instance_id: string;
  arm: string;
  epoch: number;
  slot: number | null;
  started_at: string;
  /** Messages of the assistant so far: `attempts.steps` is written at the end only. */
  steps: number;
  phase: string | null;
  phase_offset_ms: number | null;
  cost_nano: number | null;
}

export const slotsAtWork = (db: Store, runId: number): SlotRow[] =>
  all(db)`
    SELECT a.id AS attempt, t.id AS trial, i.instance_id, ar.name AS arm, t.epoch, a.slot, a.started_at,
      (SELECT count(*) FROM messages m WHERE m.attempt_id = a.id AND m.role = 'assistant') AS steps,
      p.name AS phase, p.offset_ms AS phase_offset_ms,
      (SELECT ${raw(safeSum('c.cost_nano'))} FROM model_calls c WHERE c.attempt_id = a.id) AS cost_nano
    FROM trials t JOIN attempts a ON a.trial_id = t.id AND a.state = 'running'
    JOIN arms ar ON ar.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
    LEFT JOIN phases p ON p.attempt_id = a.id AND p.seq = (SELECT max(q.seq) FROM phases q WHERE q.attempt_id = a.id)
    WHERE t.run_id = ${runId} ORDER BY a.slot, a.id`;

interface LiveCounts {
  readonly planned: number;
  readonly sealed: number;
  readonly graded: number;
  readonly resolved: number;
  /** Results without a verdict. */
  readonly toGrade: number;
  readonly arms: number;
  readonly epochs: number;
  /** Characters of the longest names. */
  readonly idWidth: number;
  readonly armWidth: number;
}

export const liveCounts = (db: Store, runId: number): LiveCounts =>
  first(db)<LiveCounts>`
    SELECT count(*) AS planned, coalesce(sum(t.state = 'sealed'), 0) AS sealed, count(e.outcome) AS graded,
      coalesce(sum(e.resolved = 1), 0) AS resolved,
      coalesce(sum(t.state = 'sealed' AND e.outcome IS NULL AND f.exit_class ${raw(IS_RESULT)}), 0) AS toGrade,
      count(DISTINCT t.arm_id) AS arms, coalesce(max(t.epoch), 1) AS epochs,
      coalesce(max(length(i.instance_id)), 0) AS idWidth, coalesce(max(length(ar.name)), 0) AS armWidth
    FROM ${raw(WITH_RESULT)} JOIN arms ar ON ar.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
    WHERE t.run_id = ${runId}`!;

/** The times that sealed trials took. */
export const sealedDurations = (db: Store, runId: number): number[] =>
  column(db)`
    SELECT f.elapsed_ms FROM trials t JOIN attempts f ON f.id = t.final_attempt_id
    WHERE t.run_id = ${runId} AND t.state = 'sealed' AND f.elapsed_ms IS NOT NULL`;

const HOUR_MS = 3_600_000;

/** Attempts that ended in the hour before the newest end, or since the run began, and what they cost; null before any has ended. */
export function lastHour(
  db: Store,
  { id, created_at }: Pick<RunRow, 'id' | 'created_at'>,
): { readonly ended: number; readonly nano: number; readonly ms: number } | null {
  const newest = cell(db)<string | null>`
    SELECT max(a.ended_at) FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.run_id = ${id}`;
  const end = Date.parse(newest ?? '');
  const since = Math.max(Date.parse(created_at), end - HOUR_MS);
  // A record of another program may hold any text for a time.
  if (!(end > since)) return null;
  const { ended, nano } = first(db)<{ ended: number; nano: number }>`
    SELECT count(DISTINCT a.id) AS ended, coalesce(${raw(safeSum('c.cost_nano'))}, 0) AS nano
    FROM trials t JOIN attempts a ON a.trial_id = t.id LEFT JOIN model_calls c ON c.attempt_id = a.id
    WHERE t.run_id = ${id} AND a.ended_at > ${new Date(since).toISOString()}`!;
  return ended > 0 ? { ended, nano, ms: end - since } : null;
}
