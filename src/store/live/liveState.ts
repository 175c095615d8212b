/** What a process that works on a run would know alone, for those who look on. The newest state only. */
import { z } from 'zod';
import type { Store } from '../open.ts';
import { change, first } from '../query.ts';

const count = z.number().min(0);
const limit = z.number().nullable();

const liveStateSchema = z.object({
  slots: count,
  engines: z.array(z.object({ name: z.string(), active: count, lost: z.boolean() })),
  models: z.array(
    z.object({
      arm: z.string(),
      inFlight: count,
      waiting: count,
      blockedMs: count,
      rateLimited: count,
      limit,
      rpm: limit.optional(),
      tpm: limit.optional(),
    }),
  ),
});
export type LiveState = z.infer<typeof liveStateSchema>;

export const writeLiveState = (db: Store, runId: number, atMs: number, state: LiveState): number =>
  change(
    db,
    `INSERT INTO live_states (run_id, at_ms, data) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET at_ms = excluded.at_ms, data = excluded.data`,
    runId,
    atMs,
    JSON.stringify(state),
  );

/** Null where there is none, and for a row that another program wrote. */
export function readLiveState(db: Store, runId: number): LiveState | null {
  const row = first<{ data: string }>(db, 'SELECT data FROM live_states WHERE run_id = ?', runId);
  try {
    return row ? liveStateSchema.parse(JSON.parse(row.data)) : null;
  } catch {
    return null;
  }
}
