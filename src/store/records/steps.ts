/** What an attempt did, row by row as it happens: messages, model calls, commands, phases. Each write is one small transaction. */
import { durably, guarded, type Store, statement } from '../open.ts';
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

export interface CallBegan {
  attempt_id: number;
  step: number;
  try: number;
  started_at: string;
  model_asked: string;
  estimate_nano: number | null;
}

/** The row exists before the request leaves, so that a crash, or a power cut, shows which calls may have been billed. */
export function beginCall(db: Store, call: CallBegan): number {
  const write = () => insert(db, 'model_calls', { ...call, state: 'in_flight' });
  // What is free need not wait for the disk.
  return call.estimate_nano === 0 ? write() : durably(db, write);
}

export interface CallEnded {
  state: 'ok' | 'failed' | 'aborted';
  latency_ms: number;
  status_code: number | null;
  error_code: string | null;
  error_message: string | null;
  model_answered: string | null;
  response_id: string | null;
  fingerprint: string | null;
  finish_reason: string | null;
  usage: string | null;
  input_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  price_version: string | null;
  cost_nano: number | null;
  provider_cost_nano: number | null;
  request_bytes: number | null;
  notes: string;
}

const END_CALL_COLUMNS = [
  'state',
  'latency_ms',
  'status_code',
  'error_code',
  'error_message',
  'model_answered',
  'response_id',
  'fingerprint',
  'finish_reason',
  'usage',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'price_version',
  'cost_nano',
  'provider_cost_nano',
  'request_bytes',
  'notes',
] as const satisfies readonly (keyof CallEnded)[];
const END_CALL_SQL = `UPDATE model_calls SET ${END_CALL_COLUMNS.map((c) => `${c} = @${c}`).join(', ')} WHERE id = @id`;

export function endCall(db: Store, id: number, call: CallEnded): void {
  guarded(db, () => statement(db, END_CALL_SQL).run({ ...call, id }));
}

/** A call whose attempt ended before its answer came. */
export const loseCall = (db: Store, id: number): void => {
  guarded(db, () =>
    statement(
      db,
      `UPDATE model_calls SET state = 'aborted', notes = '["possibly billed: the attempt ended before the answer was there"]'
       WHERE id = ? AND state = 'in_flight'`,
    ).run(id),
  );
};

/** Calls of dead processes: their state says so from now on, their cost stays unknown. */
export function abandonCalls(db: Store, attemptId: number): number {
  return guarded(
    db,
    () =>
      statement(
        db,
        `UPDATE model_calls SET state = 'aborted', notes = '["possibly billed: the process died before the answer was recorded"]'
         WHERE attempt_id = ? AND state = 'in_flight'`,
      ).run(attemptId).changes,
  );
}

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

export function beginPhase(
  db: Store,
  row: { attempt_id: number; seq: number; name: string; offset_ms: number },
): void {
  insert(db, 'phases', row);
}

/** What a trial waited for its slot before the attempt began: it lies before the attempt's clock and counts against nothing. */
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
