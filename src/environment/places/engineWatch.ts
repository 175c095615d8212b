/**
 * Whether an engine answers. An engine that is away is waited for by everybody who needs it, so that its outage costs no attempt and no
 * verdict; the time that it was away counts against no limit (T-35).
 */
import { orAborted, sleep } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError } from '../environment.ts';
import { engineClient } from './chosenEngine.ts';
import { daemonAnswer } from './dockerFault.ts';

interface EngineListener {
  away(reason: string): void;
  back(awayMs: number): void;
  /** The engine was away for longer than the limit. */
  lost(reason: string): void;
}

/** The longest wait between two looks. */
const LOOK_MS = 5000;
const FIRST_LOOK_MS = 250;
const PING_MS = 15_000;

const lostError = (reason: string) =>
  new EnvironmentError('daemon_lost', `the container engine does not answer: ${reason}`);

export type EngineWatch = ReturnType<typeof createEngineWatch>;

export function createEngineWatch({
  ping,
  limitMs,
  now = () => performance.now(),
  sleep: rest = sleep,
}: {
  readonly ping: () => Promise<unknown>;
  /** How long an engine is waited for; 0 for ever. */
  readonly limitMs: number;
  /** Monotonic. */
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}) {
  const listeners: EngineListener[] = [];
  const closing = new AbortController();
  /** Resolves when the engine is back, and rejects at the limit. */
  let outage: Promise<void> | undefined;
  /** Set while the engine is away. */
  let since: number | undefined;
  let lastBack = Number.NEGATIVE_INFINITY;
  let total = 0;
  /** The limit was reached, and nobody has seen the engine since (observed: tests/environment/places/engines/engineWatch.test.ts). */
  let givenUp = false;
  const tell = (say: (listener: EngineListener) => void) => {
    for (const listener of listeners) say(listener);
  };

  /** Undefined when the engine answers. */
  async function whyAway(): Promise<string | undefined> {
    try {
      await daemonAnswer(ping(), PING_MS);
      return undefined;
    } catch (error) {
      return errorText(error);
    }
  }

  /** Looks at once, and then until the engine answers. */
  async function look(): Promise<void> {
    const began = now();
    try {
      const reason = await whyAway();
      if (reason === undefined) givenUp = false;
      else if (givenUp) throw lostError(reason);
      else await waitUntilBack(reason, began);
    } finally {
      outage = undefined;
    }
  }

  async function waitUntilBack(first: string, began: number): Promise<void> {
    since = began;
    try {
      tell((listener) => listener.away(first));
      let reason: string | undefined = first;
      for (let wait = FIRST_LOOK_MS; reason !== undefined; wait = Math.min(wait * 2, LOOK_MS)) {
        if (limitMs > 0 && now() - began >= limitMs) throw giveUp(reason);
        await rest(wait, closing.signal);
        reason = await whyAway();
      }
    } finally {
      total += now() - began;
      lastBack = now();
      since = undefined;
    }
    tell((listener) => listener.back(now() - began));
  }

  function giveUp(reason: string): EnvironmentError {
    givenUp = true;
    const minutes = limitMs / 60_000;
    const waited = minutes < 1 ? `${Math.round(minutes * 60)} s` : `${Math.round(minutes)} min`;
    const error = lostError(`${reason}; it was waited for ${waited} (run.stall.engine_s)`);
    tell((listener) => listener.lost(error.message));
    return error;
  }

  const looking = (): Promise<void> => {
    outage ??= look();
    outage.catch(() => undefined);
    return outage;
  };

  return {
    /** Resolves once the engine answers. Rejects with daemon_lost when the wait becomes too long, or with the signal's reason. */
    async back(signal?: AbortSignal): Promise<void> {
      signal?.throwIfAborted();
      await orAborted(looking(), signal);
    },
    /** A connection broke: looks whether the engine is away. */
    suspect(): void {
      if (!closing.signal.aborted) void looking();
    },
    /** A moment, for `awaySince`. */
    mark: now,
    /** The engine was away at that moment or later. */
    awaySince: (mark: number): boolean => since !== undefined || lastBack >= mark,
    /** Milliseconds that it was away, all in all. */
    awayMs: (): number => total + (since === undefined ? 0 : now() - since),
    follow: (listener: EngineListener): void => void listeners.push(listener),
    /** Nobody waits any longer. */
    close: (): void => closing.abort(lostError('the program ended')),
  };
}

/** The watch of the process's engine. */
export function watchEngine(limitS: number): EngineWatch {
  const docker = engineClient();
  return createEngineWatch({ ping: () => docker.ping(), limitMs: limitS * 1000 });
}
