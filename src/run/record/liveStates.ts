/** Writes down what `swebatch top` shows and no table of the record has. */

import type { EnginePool } from '../../environment/places/engines/enginePool.ts';
import { type LiveState, writeLiveState } from '../../store/live/controls.ts';
import type { Store } from '../../store/open.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { ArmRuntime } from '../arms.ts';
import { readControl } from '../control/controlRequest.ts';
import type { RunEvents } from '../events.ts';

const EVERY_MS = 2000;

export interface LiveStatePorts {
  readonly store: Store;
  readonly run: Pick<RunRow, 'id'>;
  readonly config: { readonly workers: number };
  readonly arms: readonly ArmRuntime[];
  readonly pool: Pick<EnginePool, 'states'> | undefined;
  readonly events: RunEvents;
}

/** Returns what ends it. A state that cannot be written is left out: it is only looked at. */
export function keepLiveState(ports: LiveStatePorts): () => void {
  const { store, run, config, arms, pool, events } = ports;
  let slots = config.workers;
  let last = '';
  events.on((event) => {
    if (event.type !== 'control' || !event.done || event.command !== 'workers') return;
    const asked = readControl('workers', event.argument);
    if (asked.command === 'workers') slots = asked.value;
  });
  const write = () => {
    const models = arms.flatMap(({ row, modelFactory }) => {
      const load = modelFactory.load?.();
      if (!load) return [];
      const { inFlight, waiting, blockedMs, rateLimited, limit, rpm, tpm } = load;
      const kept = { ...(rpm !== undefined && { rpm }), ...(tpm !== undefined && { tpm }) };
      return [{ arm: row.name, inFlight, waiting, blockedMs, rateLimited, limit, ...kept }];
    });
    const state: LiveState = { slots, engines: pool?.states() ?? [], models };
    const text = JSON.stringify(state);
    if (text === last) return;
    last = text;
    try {
      writeLiveState(store, run.id, Date.now(), state);
    } catch {
      // The record says it itself when it cannot be written.
    }
  };
  write();
  const timer = setInterval(write, EVERY_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    // What ended within the last interval is not shown as work for ever.
    write();
  };
}
