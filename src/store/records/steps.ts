/** What an attempt did, row by row as it happens: messages, commands, phases. Each write is one small transaction. */
import { guarded, type Store, statement } from '../open.ts';
import { insert } from './runs.ts';

export interface MessageRow {
  attempt_id: number;
  seq: number;
  role: string;
  content: string;
  data: string;
  created_at: string;
}

export function insertMessage(db: Store, row: MessageRow): void {
  insert(db, 'messages', row);
}

export const messagesOf = (db: Store, attemptId: number): MessageRow[] =>
  statement(db, 'SELECT * FROM messages WHERE attempt_id = ? ORDER BY seq').all(attemptId) as MessageRow[];

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

export function linkCommand(db: Store, commandId: number, messageSeq: number): void {
  guarded(db, () =>
    statement(db, 'UPDATE commands SET message_seq = ? WHERE id = ?').run(messageSeq, commandId),
  );
}

export const commandsOf = (db: Store, attemptId: number): (CommandRow & { id: number })[] =>
  statement(db, 'SELECT * FROM commands WHERE attempt_id = ? ORDER BY step, idx, id').all(
    attemptId,
  ) as (CommandRow & { id: number })[];

export interface PhaseRow {
  attempt_id: number;
  seq: number;
  name: string;
  offset_ms: number;
  duration_ms: number | null;
}

export function beginPhase(db: Store, row: Omit<PhaseRow, 'duration_ms'>): void {
  insert(db, 'phases', row);
}

/** How long a trial waited for its slot before the attempt began. The time lies before the attempt's clock and counts against no limit. */
export function recordQueue(db: Store, attemptId: number, waitedMs: number): void {
  insert(db, 'phases', {
    attempt_id: attemptId,
    seq: -1,
    name: 'queue',
    offset_ms: -waitedMs,
    duration_ms: waitedMs,
  });
}

export function endPhase(db: Store, attemptId: number, seq: number, durationMs: number): void {
  guarded(db, () =>
    statement(db, 'UPDATE phases SET duration_ms = ? WHERE attempt_id = ? AND seq = ?').run(
      durationMs,
      attemptId,
      seq,
    ),
  );
}
