/**
 * Several engines as places for environments: which have room, which were lost and may be back. A placed trial waits for its own engine, so
 * that its image is made ready where it will be used. Shared by all arms of a run: the slots of an engine are counted once.
 */
import { EnvironmentError, type Place } from '../environment.ts';

export interface PooledEngine {
  readonly name: string;
  /** Environments at one time; 0 means no limit of its own. */
  readonly slots: number;
  /** Resolves while the engine answers. */
  readonly ping: () => Promise<unknown>;
}

interface EngineState {
  readonly name: string;
  readonly active: number;
  readonly lost: boolean;
}

/** What became of a request to drain; `last`: no other engine would take trials. */
export type DrainAnswer =
  | { readonly is: 'draining' | 'already'; readonly active: number }
  | { readonly is: 'unknown' }
  | { readonly is: 'last' };

/** The engine was drained while a place on it was waited for: another one takes it. */
export class EngineDrains extends Error {
  override readonly name = 'EngineDrains';
}

export interface EnginePool {
  /** The engine with fewest places taken in proportion to its slots; `prefer` narrows the choice where it leaves one. */
  choose(prefer?: (host: string) => boolean): Promise<Place>;
  lose(host: string, reason: string): void;
  /** The engine gets no new places; what runs on it goes on. */
  drain(host: string): DrainAnswer;
  alive(): readonly string[];
  drains(host: string): boolean;
  /** Resolves when one of them answers; rejects with their names. */
  anyAnswers(): Promise<unknown>;
  states(): EngineState[];
}

export interface EnginePoolOptions {
  readonly now?: () => number;
  /** An engine that was lost is asked again after this long. */
  readonly retryMs?: number;
  readonly onChange?: (host: string, state: 'lost' | 'back', reason: string) => void;
}

interface Entry {
  readonly engine: PooledEngine;
  /** Chosen for it, entered or not. */
  assigned: number;
  active: number;
  /** When it was found dead; undefined while it is alive. */
  lostAt: number | undefined;
  draining: boolean;
}

const RETRY_MS = 30_000;

export const isLoss = (error: unknown): error is EnvironmentError =>
  error instanceof EnvironmentError && (error.code === 'daemon_lost' || error.sub === 'daemon_lost');

const noneAnswers = (engines: readonly PooledEngine[]): string =>
  `none of the engines answers (${engines.map((e) => e.name).join(', ')})`;

const load = ({ assigned, engine }: Entry) => (engine.slots > 0 ? assigned / engine.slots : assigned);

interface Pool {
  readonly entries: readonly Entry[];
  readonly now: () => number;
  readonly onChange: NonNullable<EnginePoolOptions['onChange']>;
  /** Those who wait for room, or for news of their engine. */
  waiting: (() => void)[];
}

export function createEnginePool(
  engines: readonly PooledEngine[],
  options: EnginePoolOptions = {},
): EnginePool {
  const { now = () => performance.now(), retryMs = RETRY_MS, onChange = () => {} } = options;
  const entries: Entry[] = engines.map((engine) => ({
    engine,
    assigned: 0,
    active: 0,
    lostAt: undefined,
    draining: false,
  }));
  const pool: Pool = { entries, now, onChange, waiting: [] };
  return {
    async choose(prefer = () => true) {
      const wanted = entries.filter((e) => !e.draining);
      await revive(pool, wanted.every((e) => e.lostAt !== undefined) ? 0 : retryMs);
      const alive = entries.filter(takes);
      if (alive.length === 0)
        throw new EnvironmentError(
          'daemon_lost',
          `${noneAnswers(wanted.map((e) => e.engine))}; start one and resume`,
        );
      const preferred = alive.filter((e) => prefer(e.engine.name));
      // Among equals the first named: the sort is stable.
      const [best] = (preferred.length > 0 ? preferred : alive).toSorted((a, b) => load(a) - load(b));
      return placeOn(pool, best!);
    },
    lose(host, reason) {
      const entry = entries.find((e) => e.engine.name === host);
      if (!entry) return;
      if (entry.lostAt === undefined) onChange(host, 'lost', reason);
      entry.lostAt = now();
      wake(pool);
    },
    drain: (host) => drainOne(pool, host),
    drains: (host) => entries.some((e) => e.draining && e.engine.name === host),
    alive: () => entries.filter((e) => e.lostAt === undefined).map((e) => e.engine.name),
    anyAnswers() {
      // One that is drained does not help those who wait.
      const asked = entries.filter((e) => !e.draining).map((e) => e.engine);
      return Promise.any(asked.map((engine) => engine.ping())).catch(() => {
        throw new Error(noneAnswers(asked));
      });
    },
    states: () =>
      entries.map(({ engine, active, lostAt }) => ({
        name: engine.name,
        active,
        lost: lostAt !== undefined,
      })),
  };
}

const takes = ({ lostAt, draining }: Entry): boolean => lostAt === undefined && !draining;

function drainOne(pool: Pool, host: string): DrainAnswer {
  const entry = pool.entries.find((e) => e.engine.name === host);
  if (!entry) return { is: 'unknown' };
  const { active, draining } = entry;
  if (draining) return { is: 'already', active };
  // A lost one counts: it may be back, and a run without any engine would wait for ever.
  if (!pool.entries.some((e) => e !== entry && !e.draining)) return { is: 'last' };
  entry.draining = true;
  wake(pool);
  return { is: 'draining', active };
}

/** Engines that were lost at least so long ago are asked whether they are back. */
async function revive({ entries, now, onChange }: Pool, afterMs: number): Promise<void> {
  const due = entries.filter((e) => e.lostAt !== undefined && now() - e.lostAt >= afterMs);
  await Promise.all(
    due.map(async (entry) => {
      try {
        await entry.engine.ping();
        entry.lostAt = undefined;
        onChange(entry.engine.name, 'back', '');
      } catch {
        entry.lostAt = now();
      }
    }),
  );
}

function placeOn(pool: Pool, entry: Entry): Place {
  const { engine } = entry;
  let entered = false;
  let open = true;
  const hasRoom = () => takes(entry) && (engine.slots === 0 || entry.active < engine.slots);
  entry.assigned += 1;
  return {
    host: engine.name,
    hasRoom,
    async enter(signal) {
      while (!entered) {
        signal?.throwIfAborted();
        if (entry.lostAt !== undefined)
          throw new EnvironmentError('daemon_lost', `the engine ${engine.name} does not answer`);
        if (entry.draining) throw new EngineDrains(`the engine ${engine.name} is drained`);
        if (hasRoom()) {
          entry.active += 1;
          entered = true;
        } else await nextChange(pool, signal);
      }
    },
    release() {
      if (!open) return;
      open = false;
      entry.assigned -= 1;
      if (entered) entry.active -= 1;
      wake(pool);
    },
  };
}

function wake(pool: Pool): void {
  const all = pool.waiting;
  pool.waiting = [];
  for (const resume of all) resume();
}

const nextChange = (pool: Pool, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve) => {
    pool.waiting.push(resume);
    signal?.addEventListener('abort', resume, { once: true });
    function resume() {
      signal?.removeEventListener('abort', resume);
      resolve();
    }
  });
