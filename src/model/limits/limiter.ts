/**
 * Shared by all slots of one model: how many requests may be out, and until when none may start. One 429 delays every slot
 * (R4), 429s halve the number of requests at a time and successes win it back one by one (R5).
 */

import { abortError } from '../failure.ts';
import type { ModelLoad } from '../model.ts';
import type { Clock } from './clock.ts';
import type { RateHint } from './retryAfter.ts';

type Change = ModelLoad['changes'][number];

export interface CallEnd {
  /** The server said that it gets too much: 429, or overloaded. */
  readonly overloaded: boolean;
  /** Nobody may start for this long. */
  readonly waitMs?: number;
  readonly succeeded: boolean;
  readonly hint?: RateHint | null;
}
/** Called exactly once when the request is over. */
export type Release = (end: CallEnd) => void;

export interface Limiter {
  /** Rejects with AbortError when the signal fires while waiting. `onWait` is called when it has to wait at all. */
  acquire(signal?: AbortSignal, onWait?: () => void): Promise<Release>;
  state(): ModelLoad;
}

interface Waiter {
  readonly grant: (release: Release) => void;
}

const CHANGES_KEPT = 50;

export function createLimiter(maxConcurrent: number, clock: Clock): Limiter {
  const ceiling = maxConcurrent > 0 ? maxConcurrent : Number.POSITIVE_INFINITY;
  const waiters = new Set<Waiter>();
  const changes: Change[] = [];
  let limit = ceiling;
  let inFlight = 0;
  let peak = 0;
  let successes = 0;
  let rateLimited = 0;
  /** Requests that left before the last cut say nothing about the limit it set. */
  let cuts = 0;
  let blockedUntil = Number.NEGATIVE_INFINITY;
  let headerLimit = Number.POSITIVE_INFINITY;
  let headerUntil = Number.NEGATIVE_INFINITY;
  let alarm: AbortController | undefined;

  const shown = (value: number): number | null => (Number.isFinite(value) ? value : null);
  function setLimit(value: number, reason: string): void {
    if (value === limit) return;
    limit = value;
    changes.push({ at: clock.wall(), limit: shown(value), reason });
    if (changes.length > CHANGES_KEPT) changes.shift();
  }
  const current = (): number => (clock.now() < headerUntil ? Math.min(limit, headerLimit) : limit);
  const blockedMs = (): number => Math.max(0, blockedUntil - clock.now());

  function setAlarm(): void {
    const wait = blockedMs();
    if (waiters.size === 0 || wait === 0) {
      alarm?.abort();
      alarm = undefined;
      return;
    }
    if (alarm) return;
    const mine = new AbortController();
    alarm = mine;
    const wake = () => {
      if (alarm === mine) alarm = undefined;
      if (!mine.signal.aborted) pump();
    };
    clock.sleep(wait, mine.signal).then(wake, wake);
  }

  function pump(): void {
    for (const waiter of waiters) {
      if (blockedMs() > 0 || inFlight >= current()) break;
      waiters.delete(waiter);
      waiter.grant(start());
    }
    setAlarm();
  }

  function start(): Release {
    inFlight += 1;
    peak = Math.max(peak, inFlight);
    const cutsAtStart = cuts;
    let over = false;
    return (end) => {
      if (over) return;
      over = true;
      const outBefore = inFlight;
      inFlight -= 1;
      if (end.overloaded) {
        rateLimited += 1;
        successes = 0;
        if (cutsAtStart === cuts) {
          cuts += 1;
          setLimit(Math.max(1, Math.floor(Math.min(limit, outBefore) / 2)), 'rate limited');
        }
      } else if (end.succeeded && limit < ceiling) {
        successes += 1;
        if (successes >= limit) {
          successes = 0;
          const wider = limit + 1;
          // Once it is as wide as it ever was used, the limit is of no more use.
          setLimit(wider > peak && ceiling === Number.POSITIVE_INFINITY ? ceiling : wider, 'no limit met');
        }
      }
      if (end.waitMs) block(end.waitMs);
      if (end.hint) heed(end.hint);
      pump();
    };
  }

  function block(ms: number): void {
    blockedUntil = Math.max(blockedUntil, clock.now() + ms);
    // An alarm set for an earlier end would find the gate shut and set itself again.
  }

  function heed(hint: RateHint): void {
    if (hint.blockedMs > 0) block(hint.blockedMs);
    if (hint.requestsLeft === null) return;
    headerLimit = Math.max(1, hint.requestsLeft);
    headerUntil = clock.now() + hint.resetMs;
  }

  return {
    acquire(signal, onWait) {
      if (signal?.aborted) return Promise.reject(abortError(signal));
      if (waiters.size === 0 && blockedMs() === 0 && inFlight < current()) return Promise.resolve(start());
      onWait?.();
      return new Promise<Release>((resolve, reject) => {
        const stop = () => {
          waiters.delete(waiter);
          setAlarm();
          reject(abortError(signal!));
        };
        const waiter: Waiter = {
          grant(release) {
            signal?.removeEventListener('abort', stop);
            resolve(release);
          },
        };
        waiters.add(waiter);
        signal?.addEventListener('abort', stop, { once: true });
        pump();
      });
    },
    state: () => ({
      limit: shown(current()),
      inFlight,
      waiting: waiters.size,
      blockedMs: blockedMs(),
      rateLimited,
      changes: [...changes],
    }),
  };
}
