/** Writes down what becomes of the engines of a run, and which attempt is on which of them. */
import type { EnginePool, PooledEngine } from '../../environment/places/engines/enginePool.ts';
import {
  beginLease,
  endLease,
  joinEngine,
  leaveEngines,
  setEngineFacts,
  setEngineState,
} from '../../store/live/engineLeases.ts';
import type { Store } from '../../store/open.ts';

export interface EngineRecordPorts {
  readonly store: Store;
  readonly runId: number;
  readonly pool: Pick<EnginePool, 'follow'>;
  readonly isoNow: () => string;
  /** The record cannot be written. */
  readonly onError: (error: unknown) => void;
}

/** Returns what ends it: no engine is there for the run after that. */
export function recordEngines({ store, runId: run, pool, isoNow, onError }: EngineRecordPorts): () => void {
  const write = (work: () => unknown): void => {
    try {
      work();
    } catch (error) {
      onError(error);
    }
  };
  const engines = new Map<string, PooledEngine>();
  const askFacts = async (name: string): Promise<void> => {
    const facts = await engines
      .get(name)
      ?.facts?.()
      .catch(() => undefined);
    if (facts) write(() => setEngineFacts(store, run, name, facts));
  };
  write(() => leaveEngines(store, run, isoNow()));
  pool.follow({
    joined(engine) {
      const { name, slots, labels = {}, origin = 'config' } = engine;
      engines.set(name, engine);
      const row = { run_id: run, name, slots, labels: JSON.stringify(labels), origin, joined_at: isoNow() };
      write(() => joinEngine(store, row));
      void askFacts(name);
    },
    changed(name, state, reason) {
      const why = reason === '' ? null : reason;
      write(() => setEngineState(store, { run, name, state, at: isoNow(), reason: why }));
    },
    back: (name) => void askFacts(name),
    leased: (engine, attempt) => write(() => beginLease(store, { run, engine, attempt, at: isoNow() })),
    released: (engine, attempt, how) =>
      write(() => endLease(store, { run, engine, attempt, at: isoNow() }, how)),
  });
  return () => write(() => leaveEngines(store, run, isoNow()));
}
