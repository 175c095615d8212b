/**
 * Several engines as places for environments: which have room, which were lost and may be back. A placed trial waits for its own engine,
 * so that its image is made ready where it will be used. Shared by all arms of a run: the slots of an engine are counted once.
 * poolState.ts decides; this file asks the engines, and wakes those who wait.
 */
import { orAborted } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, type Place } from '../environment.ts';
import { daemonAnswer } from './dockerFault.ts';
import {
  activeOn,
  assignedTo,
  hasRoom,
  isAway,
  LOST_AFTER_MS,
  newPool,
  type PoolDecision,
  type PoolEngine,
  type PoolEvent,
  poolStep,
  takes,
} from './poolState.ts';

export interface PooledEngine {
  readonly name: string;
  /** Environments at one time; 0 means no limit of its own. */
  readonly slots: number;
  /** Resolves while the engine answers. */
  readonly ping: () => Promise<unknown>;
}

export interface EnginePoolOptions {
  readonly now?: () => number;
  /** An engine that was lost is asked again after this long. */
  readonly retryMs?: number;
  readonly onChange?: (host: string, state: 'lost' | 'back', reason: string) => void;
}

/** `moved`: nothing had run there yet, so the attempt went to another engine. */
type LeaseEnd = 'closed' | 'lost' | 'moved';

/** Hears what becomes of the engines of a pool. */
interface PoolListener {
  /** It answers again. */
  back?(host: string): void;
  /** An attempt has its environment there. */
  leased?(host: string, attempt: string): void;
  released?(host: string, attempt: string, how: LeaseEnd): void;
}

/** The place of a trial was taken away while it waited: another engine takes it. */
export class PlaceGone extends Error {
  override readonly name = 'PlaceGone';
}

export type RunPool = ReturnType<typeof createEnginePool>;
/** The engines, for trials or for work beside their slots. */
export type EnginePool = ReturnType<RunPool['beside']>;

const RETRY_MS = 30_000;
const PING_MS = 15_000;

export function createEnginePool(
  engines: readonly PooledEngine[],
  { now = () => performance.now(), retryMs = RETRY_MS, onChange = () => {} }: EnginePoolOptions = {},
) {
  const pings = new Map(engines.map(({ name, ping }) => [name, ping]));
  /** When an engine that was lost was last asked, or failed. */
  const asked = new Map<string, number>();
  /** Who waits to enter a place. */
  const waiters = new Map<number, { entered(): void; away(error: Error): void }>();
  const listeners: PoolListener[] = [];
  const ends = new Map<string, AbortController>();
  let state = newPool(engines);
  let tickets = 0;

  const engine = (host: string): PoolEngine => state.engines.get(host)!;
  const all = (): PoolEngine[] => [...state.engines.values()];
  /** Those that are there for new trials, now or once they answer. */
  const wanted = (): PoolEngine[] => all().filter(({ refused }) => !refused);

  const endOf = (host: string): AbortController => {
    const known = ends.get(host) ?? new AbortController();
    ends.set(host, known);
    return known;
  };

  function apply(event: PoolEvent, reason = ''): readonly PoolDecision[] {
    const step = poolStep(state, event);
    state = step.state;
    for (const decision of step.decisions) carryOut(decision, reason);
    return step.decisions;
  }

  function carryOut(decision: PoolDecision, reason: string): void {
    switch (decision.is) {
      case 'entered':
      case 'turned_away': {
        const waiter = waiters.get(decision.ticket);
        waiters.delete(decision.ticket);
        if (decision.is === 'entered') waiter?.entered();
        else waiter?.away(awayError(decision));
        break;
      }
      case 'lost':
        onChange(decision.engine, 'lost', reason);
        break;
      case 'back':
        if (ends.get(decision.engine)?.signal.aborted) ends.delete(decision.engine);
        onChange(decision.engine, 'back', '');
        for (const listener of listeners) listener.back?.(decision.engine);
        break;
      case 'end':
        endOf(decision.engine).abort(endError(decision, now()));
        break;
    }
  }

  async function ask(name: string): Promise<void> {
    const began = now();
    try {
      await daemonAnswer(pings.get(name)!(), PING_MS);
      const { silentSince } = engine(name);
      if (isAway(engine(name)) || silentSince !== undefined) apply({ is: 'answered', engine: name });
    } catch (error) {
      const failed = now();
      asked.set(name, failed);
      // A ping that was under way while this machine slept says nothing about that time.
      apply({ is: 'silent', engine: name, at: Math.max(began, failed - PING_MS) }, errorText(error));
    }
  }

  /** Engines that were lost, asked last at least so long ago, are asked whether they are back; after 0 also those that are silent. */
  async function revive(afterMs: number): Promise<void> {
    const due = all().filter(
      (one) =>
        (isAway(one) && now() - (asked.get(one.name) ?? 0) >= afterMs) ||
        (afterMs === 0 && one.silentSince !== undefined),
    );
    await Promise.all(due.map(({ name }) => ask(name)));
  }

  /** A place of one trial on an engine. */
  function openPlace(ticket: number, host: string, beside: boolean): Place {
    let turn: PromiseWithResolvers<void> | undefined;
    const wait = (): Promise<void> => {
      if (turn) return turn.promise;
      turn = Promise.withResolvers<void>();
      const { promise, resolve, reject } = turn;
      // Who gives up waiting does not hear of it.
      promise.catch(() => undefined);
      waiters.set(ticket, { entered: resolve, away: reject });
      apply({ is: 'enter', ticket });
      return promise;
    };
    return {
      host,
      hasRoom: () => (beside ? takes(engine(host)) : hasRoom(state, engine(host))),
      async enter(signal, waits) {
        signal?.throwIfAborted();
        const turn = wait();
        if (waiters.has(ticket)) waits?.();
        await orAborted(turn, signal);
      },
      release() {
        waiters.delete(ticket);
        apply({ is: 'release', ticket });
      },
    };
  }

  const door = (beside: boolean) => ({
    /** The engine with fewest places taken in proportion to its slots; `prefer` narrows the choice where it leaves one. */
    async choose(prefer: (host: string) => boolean = () => true): Promise<Place> {
      await revive(wanted().some(takes) ? retryMs : 0);
      const among = namesOf(all().filter(takes)).filter(prefer);
      const ticket = ++tickets;
      const [placed] = apply({ is: 'choose', ticket, among, beside });
      if (placed?.is === 'placed') return openPlace(ticket, placed.engine, beside);
      throw new EnvironmentError('daemon_lost', `${noneAnswers(namesOf(wanted()))}; start one and resume`);
    },
    lose(host: string, reason: string): void {
      asked.set(host, now());
      apply({ is: 'failed', engine: host, at: now() }, reason);
    },
    /** The engine gets no places any more. */
    refuse(host: string): void {
      apply({ is: 'refuse', engine: host });
    },
    /** One that is silent may be back at once; until then nothing is asked of it. */
    alive: (): readonly string[] => namesOf(all().filter(takes)),
    /** Trials placed there, entered or not, and its slots (0: no limit). */
    load: (host: string) => ({ placed: assignedTo(state, host, beside), slots: engine(host).slots }),
    /** Resolves when one of them answers; rejects with their names. One that is refused does not help those who wait. */
    anyAnswers(): Promise<unknown> {
      const names = namesOf(wanted());
      return Promise.any(names.map((name) => pings.get(name)!())).catch(() => {
        throw new Error(noneAnswers(names));
      });
    },
    states: () =>
      all().map((one) => ({ name: one.name, active: activeOn(state, one.name), lost: isAway(one) })),
    /** Fires when what runs on the engine has to end, because it was lost. The reason is the error of the attempts. */
    endOf: (host: string): AbortSignal => endOf(host).signal,
    /** Asks one engine at once; false where it takes no trials. */
    async takesNow(host: string): Promise<boolean> {
      await ask(host);
      return takes(engine(host));
    },
    /** Asks every engine once. One where work has just failed is left alone for a while, although it may answer: it gets no trial before that. */
    async look(): Promise<void> {
      const due = all().filter(({ failedAt }) => failedAt === undefined || now() - failedAt >= retryMs);
      await Promise.all(due.map(({ name }) => ask(name)));
    },
    /** Sends who waits for a full engine where there is room. */
    balance: () => void apply({ is: 'balance' }),
    /** Tells who follows that an attempt has its environment there. Returns what ends that, with how it ended. */
    lease(host: string, attempt: string): (how: LeaseEnd) => void {
      for (const listener of listeners) listener.leased?.(host, attempt);
      let open = true;
      return (how) => {
        if (!open) return;
        open = false;
        for (const listener of listeners) listener.released?.(host, attempt, how);
      };
    },
    follow: (listener: PoolListener) => void listeners.push(listener),
  });
  /** `beside`: the same engines for work that takes no slots, which are gradings. */
  return { ...door(false), beside: () => door(true) };
}

const namesOf = (engines: readonly PoolEngine[]) => engines.map(({ name }) => name);

const noneAnswers = (names: readonly string[]): string =>
  names.length === 0
    ? 'no engine takes trials: all are refused'
    : `none of the engines answers (${names.join(', ')})`;

function awayError({ why, engine }: Extract<PoolDecision, { is: 'turned_away' }>): Error {
  if (why === 'lost') return new EnvironmentError('daemon_lost', `the engine ${engine} does not answer`);
  return new PlaceGone(why === 'refused' ? `the engine ${engine} is refused` : 'another engine has room');
}

/** What the attempts on the engine end with: the engine, and since when it has not answered. */
function endError({ engine, since }: Extract<PoolDecision, { is: 'end' }>, now: number): EnvironmentError {
  const silentSince = new Date(Date.now() - (now - since)).toISOString();
  return new EnvironmentError(
    'died',
    `the engine ${engine} has not answered for ${Math.round(LOST_AFTER_MS / 1000)} s`,
    { sub: 'daemon_lost', evidence: { engine, silent_since: silentSince } },
  );
}
