/** The money ledger: one row for every HTTP attempt, begun before the request leaves and ended before its answer is used. */
import { durably, type Store } from '../open.ts';
import { all, assignments, change, insert } from '../query.ts';
import { safeSum } from '../safeSum.ts';

export interface ModelCallRow {
  id: number;
  attempt_id: number;
  step: number;
  try: number;
  /** What it was for, beside the agent's own turns. */
  label: string | null;
  /** Which call of an installed program it is a try of; null for the built-in agent. */
  call: number | null;
  state: 'in_flight' | 'ok' | 'failed' | 'aborted';
  started_at: string;
  latency_ms: number | null;
  status_code: number | null;
  error_code: string | null;
  error_message: string | null;
  model_asked: string;
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
  estimate_nano: number | null;
  request_bytes: number | null;
  notes: string;
  /** A reply that broke the rules of its dialect, as it came. */
  unreadable: string | null;
}

export type CallBegan = Pick<
  ModelCallRow,
  'attempt_id' | 'step' | 'try' | 'started_at' | 'model_asked' | 'estimate_nano'
> &
  Partial<Pick<ModelCallRow, 'label' | 'call'>>;

/** The row of a finished call. */
export type EndedCallRow = ModelCallRow & { state: 'ok' | 'failed' | 'aborted' };

/** What the end of a call adds to its row. */
export type CallEnded = Omit<EndedCallRow, 'id' | keyof CallBegan>;

/** Money and tokens of several calls. `costNano` null: nothing is known; `unknownCalls` > 0: a lower bound. */
export interface LedgerSums {
  readonly calls: number;
  readonly costNano: number | null;
  readonly unknownCalls: number;
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** A call that has ended without a known cost; the view attempt_costs counts the same. */
export const costUnknown = (call: string): string =>
  `${call}.state <> 'in_flight' AND ${call}.cost_nano IS NULL`;

/**
 * SQL for the cost of an attempt, NULL when a part is unknown. Read from an index: the view attempt_costs would be added up for the whole
 * database.
 */
export const knownCost = (attempt: string): string =>
  `CASE WHEN EXISTS (SELECT 1 FROM model_calls u WHERE u.attempt_id = ${attempt} AND ${costUnknown('u')}) THEN NULL
     ELSE coalesce((SELECT ${safeSum('k.cost_nano')} FROM model_calls k WHERE k.attempt_id = ${attempt}), 0) END`;

/** Select list of the token counts of LedgerSums; `sum` says how a column becomes one number. */
export const tokenSums = (sum: (column: string) => string): string =>
  ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning']
    .map((kind) => {
      const column = `${kind.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)}_tokens`;
      return `coalesce(${sum(column)}, 0) AS ${kind}Tokens`;
    })
    .join(', ');

/** Recorded before the request is sent, so that after a crash or a power cut the record shows which calls may have been billed. */
export function beginCall(db: Store, call: CallBegan): number {
  const write = () => insert(db, 'model_calls', { ...call, state: 'in_flight' });
  // A free call need not wait for the disk.
  return call.estimate_nano === 0 ? write() : durably(db, write);
}

export const endCall = (db: Store, id: number, call: CallEnded): number =>
  change(db, `UPDATE model_calls SET ${assignments(call)} WHERE id = @id`, { ...call, id });

/** A call whose attempt ended before its answer came. */
export const loseCall = (db: Store, id: number): number =>
  lose(db, 'id = ?', id, 'the attempt ended before the answer was there');

/** Marks calls of dead processes; their cost stays unknown. Returns how many there were. */
export const abandonCalls = (db: Store, attemptId: number): number =>
  lose(db, 'attempt_id = ?', attemptId, 'the process died before the answer was recorded');

const lose = (db: Store, which: string, id: number, why: string): number =>
  change(
    db,
    `UPDATE model_calls SET state = 'aborted', notes = '["possibly billed: ${why}"]' WHERE ${which} AND state = 'in_flight'`,
    id,
  );

export const endedCalls = (db: Store, attemptId: number): EndedCallRow[] =>
  all(db, `SELECT * FROM model_calls WHERE attempt_id = ? AND state <> 'in_flight' ORDER BY id`, attemptId);
