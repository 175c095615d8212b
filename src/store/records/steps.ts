/** Messages, commands and phases of an attempt, written as they happen, each in a small transaction. */
import type { Store } from '../open.ts';
import { all, change, insert } from '../query.ts';

export interface MessageRow {
  attempt_id: number;
  seq: number;
  role: string;
  content: string;
  data: string;
  created_at: string;
}

export const insertMessage = (db: Store, row: MessageRow): number => insert(db, 'messages', row);

export const messagesOf = (db: Store, attemptId: number): MessageRow[] =>
  all(db, 'SELECT * FROM messages WHERE attempt_id = ? ORDER BY seq', attemptId);

export interface CommandRow {
  attempt_id: number;
  step: number;
  idx: number;
  message_seq: number | null;
  command: string;
  output: Buffer;
  exit_code: number;
  timed_out: number;
  total_bytes: number;
  omitted_bytes: number;
  replaced_bytes: number;
  oom_killed: number;
  transport: string;
  started_at: string;
  duration_ms: number;
}

export const insertCommand = (db: Store, row: CommandRow): number => insert(db, 'commands', row);

export const linkCommand = (db: Store, commandId: number, messageSeq: number): number =>
  change(db, 'UPDATE commands SET message_seq = ? WHERE id = ?', messageSeq, commandId);

export const commandsOf = (db: Store, attemptId: number): (CommandRow & { id: number })[] =>
  all<CommandRow & { id: number }>(
    db,
    'SELECT * FROM commands WHERE attempt_id = ? ORDER BY step, idx, id',
    attemptId,
  );

export interface PhaseRow {
  attempt_id: number;
  seq: number;
  name: string;
  offset_ms: number;
  duration_ms: number | null;
}

export const beginPhase = (db: Store, row: Omit<PhaseRow, 'duration_ms'>): number =>
  insert(db, 'phases', row);

/** How long a trial waited for its slot before the attempt began. The time lies before the attempt's clock and counts against no limit. */
export const recordQueue = (db: Store, attemptId: number, waitedMs: number): number =>
  insert(db, 'phases', {
    attempt_id: attemptId,
    seq: -1,
    name: 'queue',
    offset_ms: -waitedMs,
    duration_ms: waitedMs,
  });

export const endPhase = (db: Store, attemptId: number, seq: number, durationMs: number): number =>
  change(
    db,
    'UPDATE phases SET duration_ms = ? WHERE attempt_id = ? AND seq = ?',
    durationMs,
    attemptId,
    seq,
  );

export interface EventRow {
  seq: number;
  run_id: number;
  at: string;
  type: string;
  data: string;
}

export const insertEvent = (db: Store, runId: number, at: string, type: string, data: object): number =>
  insert(db, 'events', { run_id: runId, at, type, data: JSON.stringify(data) });
