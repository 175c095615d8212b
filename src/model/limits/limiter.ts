/**
 * Shared by all slots of one model: how many requests may be out, and until when none may start. One 429 delays every slot,
 * 429s halve the number of requests at a time, and successes win it back one by one.
 */

import { abortError, type ModelLoad } from '../model.ts';
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
  /** Nobody may start for this long: another process was asked to wait. */
  block(ms: number): void;
  state(): ModelLoad;
}

interface Waiter {
  readonly grant: (release: Release) => void;
}

const CHANGES_KEPT = 50;
const shown = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** How many requests may be out: halved by a cut, won back one by one, and never above what the last headers allow. */
function createWidth(ceiling: number, clock: Clock) {
  const changes: Change[] = [];
  let limit = ceiling;
  let successes = 0;
  /** Requests that left before the last cut say nothing about the limit it set. */
  let cuts = 0;
  let headerLimit = Number.POSITIVE_INFINITY;
  let headerUntil = Number.NEGATIVE_INFINITY;

  function setLimit(value: number, reason: string): void {
    if (value === limit) return;
    limit = value;
    changes.push({ at: clock.wall(), limit: shown(value), reason });
    if (changes.length > CHANGES_KEPT) changes.shift();
  }

  return {
    changes,
    cuts: () => cuts,
    current: (): number => (clock.now() < headerUntil ? Math.min(limit, headerLimit) : limit),
    overloaded(outBefore: number, cutsAtStart: number): void {
      successes = 0;
      if (cutsAtStart !== cuts) return;
      cuts += 1;
      setLimit(Math.max(1, Math.floor(Math.min(limit, outBefore) / 2)), 'rate limited');
    },
    succeeded(peak: number): void {
      if (limit >= ceiling) return;
      successes += 1;
      if (successes < limit) return;
      successes = 0;
      const wider = limit + 1;
      // Once it is as wide as it ever was used, the limit is of no more use.
      setLimit(wider > peak && ceiling === Number.POSITIVE_INFINITY ? ceiling : wider, 'no limit met');
    },
    heed({ requestsLeft, resetMs }: RateHint): void {
      if (requestsLeft === null) return;
      headerLimit = Math.max(1, requestsLeft);
      headerUntil = clock.now() + resetMs;
    },
  };
}

/** Until when nobody may start. `wake` is called when that is over, while somebody waits. */
function createHold(clock: Clock, wake: () => void) {
  let blockedUntil = Number.NEGATIVE_INFINITY;
  let alarm: AbortController | undefined;
  const blockedMs = (): number => Math.max(0, blockedUntil - clock.now());
  return {
    blockedMs,
    /** An alarm set for an earlier end finds the hold longer and is set again. */
    block(ms: number): void {
      if (ms <= 0) return;
      blockedUntil = Math.max(blockedUntil, clock.now() + ms);
    },
    /** 0: nobody waits for it. */
    setAlarm(wait: number): void {
      if (wait === 0) {
        alarm?.abort();
        alarm = undefined;
        return;
      }
      if (alarm) return;
      const mine = new AbortController();
      alarm = mine;
      const ring = () => {
        if (alarm === mine) alarm = undefined;
        if (!mine.signal.aborted) wake();
      };
      clock.sleep(wait, mine.signal).then(ring, ring);
    },
  };
}

export function createLimiter(maxConcurrent: number, clock: Clock): Limiter {
  const width = createWidth(maxConcurrent > 0 ? maxConcurrent : Number.POSITIVE_INFINITY, clock);
  const hold = createHold(clock, pump);
  const waiters = new Set<Waiter>();
  let inFlight = 0;
  let peak = 0;
  let rateLimited = 0;

  function pump(): void {
    // Read once: a gate that opened between two looks would have neither let anybody in nor an alarm.
    const blockedMs = hold.blockedMs();
    for (const waiter of waiters) {
      if (blockedMs > 0 || inFlight >= width.current()) break;
      waiters.delete(waiter);
      waiter.grant(start());
    }
    hold.setAlarm(waiters.size > 0 ? blockedMs : 0);
  }

  function start(): Release {
    inFlight += 1;
    peak = Math.max(peak, inFlight);
    const cutsAtStart = width.cuts();
    let over = false;
    return (end) => {
      if (over) return;
      over = true;
      inFlight -= 1;
      if (end.overloaded) {
        rateLimited += 1;
        width.overloaded(inFlight + 1, cutsAtStart);
      } else if (end.succeeded) width.succeeded(peak);
      hold.block(Math.max(end.waitMs ?? 0, end.hint?.blockedMs ?? 0));
      if (end.hint) width.heed(end.hint);
      pump();
    };
  }

  function wait(signal?: AbortSignal): Promise<Release> {
    return new Promise<Release>((resolve, reject) => {
      const stop = () => {
        waiters.delete(waiter);
        pump();
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
  }

  return {
    acquire(signal, onWait) {
      if (signal?.aborted) return Promise.reject(abortError(signal));
      const open = waiters.size === 0 && hold.blockedMs() === 0 && inFlight < width.current();
      if (open) return Promise.resolve(start());
      onWait?.();
      return wait(signal);
    },
    block: hold.block,
    state: () => ({
      limit: shown(width.current()),
      inFlight,
      waiting: waiters.size,
      blockedMs: hold.blockedMs(),
      rateLimited,
      changes: [...width.changes],
    }),
  };
}
