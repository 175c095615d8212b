/** The event stream of a run, with sequence numbers: what a viewer follows and a notifier reads. */
import type { Store } from '../open.ts';
import { insert } from '../query.ts';

export interface EventRow {
  seq: number;
  run_id: number;
  at: string;
  type: string;
  data: string;
}

export const insertEvent = (db: Store, runId: number, at: string, type: string, data: object): number =>
  insert(db, 'events', { run_id: runId, at, type, data: JSON.stringify(data) });
