/** Writes down what `swebatch top` shows and no table of the record has. */
import { type LiveState, writeLiveState } from '../../store/live/controls.ts';
import type { Run } from '../contract.ts';
import { readControl } from '../control/controlRequest.ts';

const EVERY_MS = 2000;

/** Returns what ends it. A state that cannot be written is left out: it is only looked at. */
export function keepLiveState({ store, row, config, arms, pool, events }: Run): () => void {
  let slots = config.workers;
  let last = '';
  events.on((event) => {
    if (event.type !== 'control' || !event.done || event.command !== 'workers') return;
    const asked = readControl('workers', event.argument);
    if (asked.command === 'workers') slots = asked.value;
  });
  const write = () => {
    const models = [...arms.values()].flatMap(({ row: arm, modelFactory }) => {
      const load = modelFactory.load?.();
      if (!load) return [];
      const { inFlight, waiting, blockedMs, rateLimited, limit, rpm, tpm } = load;
      const kept = { ...(rpm !== undefined && { rpm }), ...(tpm !== undefined && { tpm }) };
      return [{ arm: arm.name, inFlight, waiting, blockedMs, rateLimited, limit, ...kept }];
    });
    const state: LiveState = { slots, engines: pool?.states() ?? [], models };
    const text = JSON.stringify(state);
    if (text === last) return;
    last = text;
    try {
      writeLiveState(store, row.id, Date.now(), state);
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
