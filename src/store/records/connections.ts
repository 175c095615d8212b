/** Connections of containers that reach the hosts of a list, as the proxy saw them. */
import type { Store } from '../open.ts';
import { all, change, insert } from '../query.ts';
import { inTurn } from '../writing.ts';

export interface ConnectionRow {
  phase: string;
  via: string;
  /** '' where none could be read; '*' for those that are counted together. */
  host: string;
  port: number;
  outcome: 'allowed' | 'refused' | 'failed';
  reason: string | null;
  bytes_in: number;
  bytes_out: number;
  started_at: string;
  duration_ms: number;
  /** The number of connections that the row stands for. */
  count: number;
}

type NewConnection = Omit<ConnectionRow, 'count'> & { readonly attempt_id: number };

export const insertConnection = (db: Store, row: NewConnection): number =>
  inTurn(db, () => insert(db, 'connections', row));

/** The rest of a program that asks without end: one row for each phase and outcome, whatever the hosts were. */
export const countConnection = (db: Store, row: NewConnection): number =>
  inTurn(db, () => {
    const { attempt_id, phase, outcome, bytes_in, bytes_out, duration_ms } = row;
    const counted = change(db)`
      UPDATE connections SET count = count + 1, bytes_in = bytes_in + ${bytes_in}, bytes_out = bytes_out + ${bytes_out},
        duration_ms = duration_ms + ${duration_ms}
      WHERE attempt_id = ${attempt_id} AND phase = ${phase} AND outcome = ${outcome} AND host = '*'`;
    return counted > 0 ? counted : insert(db, 'connections', { ...row, host: '*', port: 0, reason: null });
  });

/** The same host with the same outcome in one phase is one line, in the order in which they first ended. */
export interface ConnectionLine
  extends Pick<ConnectionRow, 'phase' | 'host' | 'port' | 'outcome' | 'reason' | 'count'> {
  bytesIn: number;
  bytesOut: number;
}

export const connectionLinesOf = (db: Store, attemptId: number): ConnectionLine[] =>
  all(db)<ConnectionLine>`
    SELECT phase, host, port, outcome, CASE outcome WHEN 'allowed' THEN NULL ELSE reason END AS reason,
      sum(count) AS count, sum(bytes_in) AS bytesIn, sum(bytes_out) AS bytesOut
    FROM connections WHERE attempt_id = ${attemptId} GROUP BY 1, 2, 3, 4, 5 ORDER BY min(id)`;

/** The connections in the order in which they ended. */
export const connectionsOf = (db: Store, attemptId: number): ConnectionRow[] =>
  all(db)<ConnectionRow>`
    SELECT phase, via, host, port, outcome, reason, bytes_in, bytes_out, started_at, duration_ms, count
    FROM connections WHERE attempt_id = ${attemptId} ORDER BY id`;
