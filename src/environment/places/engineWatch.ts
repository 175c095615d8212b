/**
 * Whether an engine answers. An engine that is away is waited for by everybody who needs it, so that its outage costs no attempt and no
 * verdict; the time that it was away counts against no limit.
 */
import { orAborted, sleep } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError } from '../environment.ts';
import { daemonAnswer } from './dockerFault.ts';

export interface EngineListener {
  away?(reason: string): void;
  back?(awayMs: number): void;
  /** It was away for longer than the limit. */
  lost?(reason: string): void;
}

export interface EngineWatch {
  /** Resolves once the engine answers. Rejects with daemon_lost when the wait becomes too long, or with the signal's reason. */
  back(signal?: AbortSignal): Promise<void>;
  /** A connection broke: looks whether the engine is away. */
  suspect(): void;
  /** A moment, for `awaySince`. */
  mark(): number;
  /** The engine was away at that moment or later. */
  awaySince(mark: number): boolean;
  /** Milliseconds that it was away, all in all. */
  awayMs(): number;
  follow(listener: EngineListener): void;
  /** Nobody waits any longer. */
  close(): void;
}

export interface EngineWatchOptions {
  readonly ping: () => Promise<unknown>;
  /** How long an engine is waited for; 0 for ever. */
  readonly limitMs: number;
  /** Monotonic. */
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The longest wait between two looks. */
const LOOK_MS = 5000;
const FIRST_LOOK_MS = 250;
const PING_MS = 15_000;

interface Watch {
  readonly options: Required<EngineWatchOptions>;
  readonly listeners: EngineListener[];
  readonly closing: AbortController;
  /** Resolves when the engine is back, and rejects at the limit. */
  outage: Promise<void> | undefined;
  /** Set while the engine is away. */
  since: number | undefined;
  lastBack: number;
  total: number;
  /** The limit was reached, and nobody has seen the engine since. */
  givenUp: boolean;
}

export function createEngineWatch(options: EngineWatchOptions): EngineWatch {
  const watch: Watch = {
    options: { now: () => performance.now(), sleep, ...options },
    listeners: [],
    closing: new AbortController(),
    outage: undefined,
    since: undefined,
    lastBack: Number.NEGATIVE_INFINITY,
    total: 0,
    givenUp: false,
  };
  const { now } = watch.options;
  return {
    async back(signal) {
      signal?.throwIfAborted();
      watch.outage ??= outageOf(watch);
      watch.outage.catch(() => undefined);
      await orAborted(watch.outage, signal);
    },
    suspect() {
      if (watch.closing.signal.aborted) return;
      watch.outage ??= outageOf(watch);
      watch.outage.catch(() => undefined);
    },
    mark: now,
    awaySince: (mark) => watch.since !== undefined || watch.lastBack >= mark,
    awayMs: () => watch.total + (watch.since === undefined ? 0 : now() - watch.since),
    follow: (listener) => void watch.listeners.push(listener),
    close: () => watch.closing.abort(lostError('the program ended')),
  };
}

const lostError = (reason: string) =>
  new EnvironmentError('daemon_lost', `the container engine does not answer: ${reason}`);

/** Looks at once, and then until the engine answers. */
async function outageOf(watch: Watch): Promise<void> {
  const { now } = watch.options;
  const began = now();
  try {
    const reason = await whyAway(watch);
    if (reason === undefined) watch.givenUp = false;
    else if (watch.givenUp) throw lostError(reason);
    else await waitUntilBack(watch, reason, began);
  } finally {
    watch.outage = undefined;
  }
}

async function waitUntilBack(watch: Watch, first: string, began: number): Promise<void> {
  const { now, limitMs } = watch.options;
  watch.since = began;
  try {
    tell(watch, (listener) => listener.away?.(first));
    let reason: string | undefined = first;
    for (let wait = FIRST_LOOK_MS; reason !== undefined; wait = Math.min(wait * 2, LOOK_MS)) {
      if (limitMs > 0 && now() - began >= limitMs) throw giveUp(watch, reason);
      await watch.options.sleep(wait, watch.closing.signal);
      reason = await whyAway(watch);
    }
  } finally {
    watch.total += now() - began;
    watch.lastBack = now();
    watch.since = undefined;
  }
  tell(watch, (listener) => listener.back?.(now() - began));
}

function giveUp(watch: Watch, reason: string): EnvironmentError {
  watch.givenUp = true;
  const minutes = watch.options.limitMs / 60_000;
  const waited = minutes < 1 ? `${Math.round(minutes * 60)} s` : `${Math.round(minutes)} min`;
  const error = lostError(`${reason}; it was waited for ${waited} (run.stall.engine_s)`);
  tell(watch, (listener) => listener.lost?.(error.message));
  return error;
}

/** Undefined when the engine answers. */
async function whyAway({ options }: Watch): Promise<string | undefined> {
  try {
    await daemonAnswer(options.ping(), PING_MS);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function tell({ listeners }: Watch, say: (listener: EngineListener) => void): void {
  for (const listener of listeners) say(listener);
}
