/**
 * The wall-clock limit of an attempt as an AbortSignal, so that a request or a command in flight ends with it. The clock stands still while the
 * provider keeps the agent waiting: how fast a provider is, and how often it is out of order, says nothing about an agent.
 */
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { EnvironmentError } from '../../environment/environment.ts';
import { RETRYABLE_CODES } from '../../model/classify.ts';
import type { CallListener, CallRecord } from '../../model/model.ts';
import { TimeExceeded } from './exceptions.ts';

export interface Deadline {
  /** Fires at the limit, or when the caller's own signal does, with its reason. */
  readonly signal: AbortSignal;
  /** The time without waits for the provider. */
  elapsedMs(): number;
  /** Throws TimeExceeded once the limit is reached. */
  check(): void;
  /** Work that the limit cuts short. An abort by it becomes TimeExceeded; a broken environment stays one. */
  during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** A listener around that of one call: it hears when the call waits. */
  listen(to: CallListener): CallListener;
  /** Runs `work` of ours while the clock of the agent stands still. */
  outside<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
}

export const timeExceeded = (limitS: number): TimeExceeded =>
  new TimeExceeded(`the limit of ${limitS} seconds was reached`);

/**
 * The time that a call takes at most where all is well: until its first word, and for each token of its answer, thought included. Slow providers
 * write 20 tokens a second.
 */
const USUAL_MS = 10_000;
const USUAL_MS_A_TOKEN = 50;

interface OpenCall {
  /** The call waits for a rate limit, or for its next try. */
  held: boolean;
  since: number;
  /** Others were out meanwhile: then nobody can say which of them the agent waited for. */
  alone: boolean;
}

/** The time that a try may have taken, once its end is known. */
function usualMs({ state, errorCode, usage }: CallRecord): number {
  if (state !== 'ok' && errorCode !== null && RETRYABLE_CODES.has(errorCode)) return 0;
  return USUAL_MS + (usage?.output ?? 0) * USUAL_MS_A_TOKEN;
}

/** Time without what the provider kept us waiting: its rate limits, its outages, and calls that take longer than usual. */
function createWorkClock(now: () => number, changed: () => void) {
  const open = new Set<OpenCall>();
  const started = now();
  let waited = 0;
  let seen = started;
  const heldFrom = (call: OpenCall): number => (call.held ? call.since : call.since + USUAL_MS);
  /** Since when nobody does anything but wait; null while somebody works. */
  const stillSince = (): number | null => (open.size === 0 ? null : Math.max(...[...open].map(heldFrom)));
  const waitedUntil = (at: number): number => {
    const still = stillSince();
    return still === null ? waited : waited + Math.max(0, at - Math.max(seen, still));
  };
  const look = (): void => {
    const at = now();
    waited = waitedUntil(at);
    seen = at;
  };
  return {
    elapsedMs(): number {
      const at = now();
      return at - started - waitedUntil(at);
    },
    async outside<T>(work: () => Promise<T>): Promise<T> {
      look();
      const held: OpenCall = { held: true, since: seen, alone: false };
      open.add(held);
      changed();
      try {
        return await work();
      } finally {
        look();
        open.delete(held);
        changed();
      }
    },
    standsStill(): boolean {
      const still = stillSince();
      return still !== null && still <= now();
    },
    listen(to: CallListener): CallListener {
      const call: OpenCall = { held: false, since: 0, alone: true };
      const becomes = (held: boolean): void => {
        if (open.has(call) && call.held === held) return;
        look();
        Object.assign(call, { held, since: seen, alone: true });
        open.add(call);
        if (open.size > 1) for (const each of open) each.alone = false;
        changed();
      };
      const phase: NonNullable<CallListener['phase']> = (name) => {
        if (name !== 'model') becomes(true);
        to.phase?.(name);
      };
      return {
        ...to,
        asks() {
          becomes(true);
          to.asks?.();
        },
        // A module of the user may not say how it tells that it waits.
        wanted: async (estimate, stop, waits = () => phase('rate_wait')) =>
          to.wanted?.(estimate, stop, waits),
        began(begun) {
          becomes(false);
          return to.began(begun);
        },
        ended(record) {
          look();
          const { alone, since } = call;
          open.delete(call);
          // The outcome is known now: the call is charged its usual time, not what was assumed while it was open.
          const took = seen - since;
          if (alone) waited += Math.min(took, USUAL_MS) - Math.min(took, usualMs(record));
          to.ended(record);
          changed();
        },
        phase,
      };
    },
  };
}

export function startDeadline({
  limitS,
  mode,
  now,
  signal: outer,
}: {
  readonly limitS: number;
  /** `interrupts`: cuts short what is in flight. `before-query`: looked at between steps only, in whole seconds. */
  readonly mode: 'interrupts' | 'before-query';
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}): Deadline {
  const controller = new AbortController();
  const passOn = (): void => controller.abort(outer?.reason);
  let fired = false;
  let stopped = false;
  let timer: Timer | undefined;
  const interrupts = mode === 'interrupts' && limitS > 0;
  const clock = createWorkClock(now, () => {
    if (interrupts && !stopped) arm();
  });
  const { elapsedMs } = clock;
  const elapsed = (): number =>
    mode === 'before-query' ? Math.floor(elapsedMs() / 1000) : elapsedMs() / 1000;

  /** A timer can come early against another clock: look again until it is really time. While the clock stands still there is none. */
  function arm(): void {
    timer?.cancel();
    const leftMs = limitS * 1000 - elapsedMs();
    if (leftMs > 0) {
      if (!clock.standsStill()) timer = startTimer(Math.max(leftMs, 1), arm, { idle: true });
      return;
    }
    fired = true;
    controller.abort();
  }
  if (outer?.aborted) passOn();
  else outer?.addEventListener('abort', passOn, { once: true });
  if (interrupts) arm();

  const check = (): void => {
    if (fired || (0 < limitS && limitS <= elapsed())) throw timeExceeded(limitS);
  };
  const cutShort = (): boolean => fired && !outer?.aborted;
  return {
    signal: controller.signal,
    elapsedMs,
    check,
    async during(work) {
      try {
        const result = await work(controller.signal);
        if (cutShort()) check();
        return result;
      } catch (error) {
        if (cutShort() && !(error instanceof EnvironmentError)) check();
        throw error;
      }
    },
    listen: clock.listen,
    outside: clock.outside,
    stop() {
      stopped = true;
      timer?.cancel();
      outer?.removeEventListener('abort', passOn);
    },
  };
}
