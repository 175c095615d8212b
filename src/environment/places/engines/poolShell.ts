/** Holds the state of a pool, and carries out what poolState.ts decides: wakes who waits, ends what runs, tells who follows. */
import { EnvironmentError } from '../../environment.ts';
import {
  EMPTY_POOL,
  type EnginePhase,
  LOST_AFTER_MS,
  type PoolDecision,
  type PoolEvent,
  type PoolState,
  type PoolStep,
  phaseOf,
  poolStep,
} from './poolState.ts';

export interface PooledEngine {
  readonly name: string;
  /** Environments at one time; 0 means no limit of its own. */
  readonly slots: number;
  /** Resolves while the engine answers. */
  readonly ping: () => Promise<unknown>;
  /** What people call it by, beside its name. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Who brought it: the configuration, the file of engines or a person. */
  readonly origin?: 'config' | 'file' | 'person';
  /** What is known of its machine, for those who look on. */
  readonly facts?: () => Promise<EngineMachine>;
}

export interface EngineMachine {
  readonly platform: string | null;
  readonly memoryBytes: number | null;
  readonly freeBytes: number | null;
}

export interface EnginePoolOptions {
  readonly now?: () => number;
  /** An engine that was lost is asked again after this long. */
  readonly retryMs?: number;
  readonly onChange?: (host: string, state: 'lost' | 'back', reason: string) => void;
}

/** `moved`: nothing had run there yet, so the attempt went to another engine. */
export type LeaseEnd = 'closed' | 'lost' | 'removed' | 'moved';

/** Hears what becomes of the engines of a pool. */
export interface PoolListener {
  joined?(engine: PooledEngine): void;
  changed?(host: string, phase: EnginePhase, reason: string): void;
  /** It answers again. */
  back?(host: string): void;
  /** An attempt has its environment there. */
  leased?(host: string, attempt: string): void;
  released?(host: string, attempt: string, how: LeaseEnd): void;
}

/** The place of a trial was taken away while it waited: another engine takes it. */
export class EngineDrains extends Error {
  override readonly name = 'EngineDrains';
}

/** Who waits to enter a place. */
export interface Waiter {
  entered(): void;
  away(error: Error): void;
}

export interface PoolShell {
  readonly now: () => number;
  readonly retryMs: number;
  readonly engines: ReadonlyMap<string, PooledEngine>;
  /** When an engine that was lost was last asked, or failed. */
  readonly asked: Map<string, number>;
  readonly waiters: Map<number, Waiter>;
  readonly listeners: PoolListener[];
  state(): PoolState;
  apply(event: PoolEvent, reason?: string): PoolStep;
  join(engine: PooledEngine): void;
  newTicket(): number;
  endOf(host: string): AbortSignal;
  lease(host: string, attempt: string): (how: LeaseEnd) => void;
}

export function createShell(options: Required<EnginePoolOptions>): PoolShell {
  const engines = new Map<string, PooledEngine>();
  const waiters = new Map<number, Waiter>();
  const listeners: PoolListener[] = [];
  const ends = new Map<string, AbortController>();
  let state = EMPTY_POOL;
  let tickets = 0;
  const endOf = (host: string): AbortController => {
    const known = ends.get(host) ?? new AbortController();
    ends.set(host, known);
    return known;
  };
  const renew = (host: string) => {
    if (ends.get(host)?.signal.aborted) ends.delete(host);
  };
  const carryOut = (decision: PoolDecision, reason: string) => {
    if (decision.is === 'entered' || decision.is === 'turned_away') {
      const waiter = waiters.get(decision.ticket);
      waiters.delete(decision.ticket);
      if (decision.is === 'entered') waiter?.entered();
      else waiter?.away(awayError(decision));
    } else if (decision.is === 'lost') options.onChange(decision.engine, 'lost', reason);
    else if (decision.is === 'back') {
      renew(decision.engine);
      options.onChange(decision.engine, 'back', '');
      for (const listener of listeners) listener.back?.(decision.engine);
    } else if (decision.is === 'end') endOf(decision.engine).abort(endError(decision, options.now()));
  };
  const apply = (event: PoolEvent, reason = ''): PoolStep => {
    const before = state;
    const step = poolStep(state, event);
    state = step.state;
    for (const decision of step.decisions) carryOut(decision, reason);
    tellPhases(listeners, before, step.state, reason);
    return step;
  };
  return {
    ...options,
    ...{ engines, waiters, listeners, apply },
    asked: new Map(),
    state: () => state,
    join(engine) {
      engines.set(engine.name, engine);
      renew(engine.name);
      for (const listener of listeners) listener.joined?.(engine);
      apply({ is: 'join', engine: engine.name, slots: engine.slots });
    },
    newTicket: () => ++tickets,
    endOf: (host) => endOf(host).signal,
    lease(host, attempt) {
      for (const listener of listeners) listener.leased?.(host, attempt);
      let open = true;
      return (how) => {
        if (!open) return;
        open = false;
        for (const listener of listeners) listener.released?.(host, attempt, how);
      };
    },
  };
}

function tellPhases(
  listeners: readonly PoolListener[],
  before: PoolState,
  after: PoolState,
  reason: string,
): void {
  if (listeners.length === 0 || before === after) return;
  for (const engine of after.engines.values()) {
    const was = before.engines.get(engine.name);
    const phase = phaseOf(after, engine);
    if (was && phaseOf(before, was) === phase) continue;
    for (const listener of listeners) listener.changed?.(engine.name, phase, reason);
  }
}

function awayError({ why, engine }: Extract<PoolDecision, { is: 'turned_away' }>): Error {
  if (why === 'lost') return new EnvironmentError('daemon_lost', `the engine ${engine} does not answer`);
  return new EngineDrains(
    why === 'draining' ? `the engine ${engine} is drained` : 'an engine that has joined has room',
  );
}

/** What the attempts on the engine end with: the engine, and since when it has not answered. */
function endError(
  { engine, why, since }: Extract<PoolDecision, { is: 'end' }>,
  now: number,
): EnvironmentError {
  if (why === 'removed')
    return new EnvironmentError('died', `the engine ${engine} was removed from the run`, {
      sub: 'daemon_lost',
      evidence: { engine, removed: true },
    });
  const silentSince = new Date(Date.now() - (now - (since ?? now))).toISOString();
  return new EnvironmentError(
    'died',
    `the engine ${engine} has not answered for ${Math.round(LOST_AFTER_MS / 1000)} s`,
    { sub: 'daemon_lost', evidence: { engine, silent_since: silentSince } },
  );
}
