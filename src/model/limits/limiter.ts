/**
 * The limit that all slots of one model share: how many requests may be out, and until when none may start. One 429 delays every slot,
 * 429s halve the number of requests at a time, and successes win it back one by one (T-01; observed: tests/model/limiter.test.ts).
 */

import { createRoom } from '../../base/async/room.ts';
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
  /** Rejects with AbortError when the signal fires while waiting. `onWait` is called when it has to wait, and again once others had answers. */
  acquire(signal: AbortSignal | undefined, onWait: () => void): Promise<Release>;
  /** Nobody may start for this long: another process was asked to wait. */
  block(ms: number): void;
  state(): ModelLoad;
}

const CHANGES_KEPT = 50;
const shown = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** How many requests may be out: halved by a cut, won back one by one, and never above what the last headers allow. */
function createWidth(ceiling: number, clock: Clock) {
  const changes: Change[] = [];
  let limit = ceiling;
  let successes = 0;
  /** Requests that left before the last cut say nothing about the limit it set (observed: tests/model/limiter.test.ts). */
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

export function createLimiter(maxConcurrent: number, clock: Clock): Limiter {
  const width = createWidth(maxConcurrent > 0 ? maxConcurrent : Number.POSITIVE_INFINITY, clock);
  let blockedUntil = Number.NEGATIVE_INFINITY;
  let inFlight = 0;
  let peak = 0;
  let rateLimited = 0;
  /** Calls that had an answer. */
  let answered = 0;
  const room = createRoom<void, Release>(() => {
    // Read once: a gate that opened between two looks would have neither let anybody in nor an alarm (observed: tests/model/limiter.test.ts).
    const laterMs = blockedMs();
    if (laterMs > 0) return { laterMs };
    return inFlight < width.current() ? { share: start() } : { laterMs: undefined };
  }, clock.sleep);

  const blockedMs = (): number => Math.max(0, blockedUntil - clock.now());
  function block(ms: number): void {
    if (ms > 0) blockedUntil = Math.max(blockedUntil, clock.now() + ms);
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
      if (end.succeeded) answered += 1;
      block(Math.max(end.waitMs ?? 0, end.hint?.blockedMs ?? 0));
      if (end.hint) width.heed(end.hint);
      room.look(true);
    };
  }

  return {
    async acquire(signal, onWait) {
      // The line stands still where a server refuses everybody, however often its turn comes.
      let told = -1;
      const waits = () => {
        if (told === answered) return;
        told = answered;
        onWait();
      };
      try {
        return await room.enter(undefined, signal, waits);
      } catch (error) {
        throw signal?.aborted ? abortError(signal) : error;
      }
    },
    block,
    state: () => ({
      limit: shown(width.current()),
      inFlight,
      waiting: room.waiting(),
      blockedMs: blockedMs(),
      rateLimited,
      changes: [...width.changes],
    }),
  };
}
