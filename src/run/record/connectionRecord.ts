/** Connections of containers to the outside, also refused ones: each is written down as it ends. */
import type { Redactor } from '../../base/text/redact.ts';
import type { EgressConnection } from '../../environment/environment.ts';
import type { Store } from '../../store/open.ts';
import { countConnection, insertConnection } from '../../store/records/connections.ts';

/** A program that asks without end does not fill the record: of what comes after them only the number is kept. */
const ROWS = 2000;

/** Names of hosts are words of their askers, and may hold a secret. `onError`: the record is broken. */
export function connectionRecord(
  { store, redactor }: { readonly store: Store; readonly redactor: Redactor },
  attemptId: number,
  onError: (error: unknown) => void,
): (connection: EgressConnection) => void {
  let rows = 0;
  return ({ phase, via, host, port, outcome, reason, bytesIn, bytesOut, startedAt, durationMs }) => {
    rows += 1;
    const write = rows > ROWS ? countConnection : insertConnection;
    try {
      write(store, {
        ...{ attempt_id: attemptId, phase, via, port, outcome },
        host: redactor.text(host),
        reason: reason === null ? null : redactor.text(reason),
        bytes_in: bytesIn,
        bytes_out: bytesOut,
        started_at: new Date(startedAt).toISOString(),
        duration_ms: durationMs,
      });
    } catch (error) {
      onError(error);
    }
  };
}
