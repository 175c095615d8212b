/**
 * Requests and tokens a minute, shared with other processes that use the same key: each call takes its share before it starts. How many
 * tokens a call takes is known only afterwards, so it is estimated from the calls before and corrected.
 */

import { createRoom } from '../../base/async/room.ts';
import { abortError, type Usage } from '../model.ts';
import type { Clock } from './clock.ts';
import { allowance } from './retryAfter.ts';

/** The part that the processes share. Times are milliseconds since 1970. */
export interface RateBook {
  /** Milliseconds until there may be room; 0 when the share was taken. */
  take(ask: MinuteLimits & { readonly at: number; readonly tokens: number }): number;
  correct(at: number, tokens: number): void;
  learn(limits: MinuteLimits, at: number): void;
  /** The limits that any of the processes has learned. */
  learned(at: number): MinuteLimits;
  /** The provider asked one of the processes to wait. */
  pause(until: number, at: number): void;
  /** The end of the pause; 0 where nobody has to wait. */
  pausedUntil(at: number): number;
}

export interface RateShare {
  /** Waits for its turn. `onWait` is called when it has to wait, and again as long as it does. */
  take(requestBytes: number, signal: AbortSignal | undefined, onWait: () => void): Promise<Taken>;
  limits(): MinuteLimits;
  /** The provider asked this process to wait: the others wait too. */
  pause(ms: number): void;
  /** How long any of the processes was asked to wait from now on; 0 is not at all. */
  pausedMs(): number;
}

export interface Taken {
  /** `usage` is null where nothing is known; a call that was refused took nothing (observed: tests/model/limits/sharedRate.test.ts). */
  end(usage: Usage | null, refused: boolean, headers: Readonly<Record<string, string>>): void;
}

interface RateShareOptions {
  readonly book: RateBook;
  /** The configured limits; null is learned. */
  readonly configured: MinuteLimits;
  /** Tokens read from the cache count: not with Anthropic. */
  readonly countsCached: boolean;
  /** A longer pause is another process's, whose patience is larger (observed: tests/model/limits/sharedPause.test.ts). */
  readonly longestPauseMs: number;
  readonly clock: Clock;
}

/** A wait ends early when another process gives tokens back. */
const LONGEST_WAIT_MS = 1000;
/** The book is asked so often what others have learned, and whether they were asked to wait (observed: tests/model/limits/sharedPause.test.ts). */
const LEARNED_EVERY_MS = 1000;
/** The newest call has this share in the estimate of the next. */
const NEW_SHARE = 0.05;

export function createRateShare(options: RateShareOptions): RateShare {
  const { book, configured, countsCached, clock } = options;
  const estimate = createEstimate(countsCached);
  const limits = knownLimits(book, configured, clock);
  const pauses = sharedPause(options);
  /** Shares are moments at which they were taken. */
  const room = createRoom<number, number>((tokens) => {
    const at = clock.wall();
    const waitMs = pauses.pausedMs() || book.take({ ...limits.now(), at, tokens });
    if (waitMs === 0) return { share: at };
    return { laterMs: Math.min(waitMs, LONGEST_WAIT_MS) * (0.5 + clock.random() / 2) };
  }, clock.sleep);
  return {
    limits: limits.now,
    ...pauses,
    async take(requestBytes, signal, onWait) {
      const { rpm, tpm } = limits.now();
      // No limit is known that could be kept; the answer may say one.
      if (rpm === null && tpm === null)
        return { end: (usage, _refused, headers) => settle(usage, headers, requestBytes) };
      const tokens = estimate.of(requestBytes);
      try {
        const at = await room.enter(tokens, signal, onWait);
        return {
          end(usage, refused, headers) {
            const took = refused ? 0 : usage ? estimate.tokens(usage) : tokens;
            if (took !== tokens) book.correct(at, took - tokens);
            settle(usage, headers, requestBytes);
          },
        };
      } catch (error) {
        throw signal?.aborted ? abortError(signal) : error;
      }
    },
  };
  function settle(usage: Usage | null, headers: Readonly<Record<string, string>>, requestBytes: number) {
    if (usage) estimate.note(usage, requestBytes);
    limits.hear(headers);
  }
}

/** One process hears of a pause, and none of them starts a call until it is over. */
function sharedPause({ book, clock, longestPauseMs }: RateShareOptions) {
  let until = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    pause(ms: number): void {
      const at = clock.wall();
      if (ms > 0) book.pause(at + ms, at);
    },
    pausedMs(): number {
      const at = clock.wall();
      if (clock.now() - readAt >= LEARNED_EVERY_MS) {
        readAt = clock.now();
        until = book.pausedUntil(at);
      }
      const left = Math.max(0, until - at);
      return left <= longestPauseMs ? left : 0;
    },
  };
}

/** Tokens of a call from the bytes of its request, by what calls before took. */
function createEstimate(countsCached: boolean) {
  // Before any answer: English and code take 3 to 4 bytes a token.
  let inputPerByte = 0.3;
  let output = 500;
  const input = (usage: Usage) => usage.input + usage.cacheWrite + (countsCached ? usage.cacheRead : 0);
  let seen = 0;
  return {
    of: (bytes: number): number => Math.max(1, Math.ceil(bytes * inputPerByte + output)),
    tokens: (usage: Usage): number => input(usage) + usage.output,
    note(usage: Usage, bytes: number): void {
      seen += 1;
      const share = Math.max(NEW_SHARE, 1 / seen);
      inputPerByte += share * (input(usage) / Math.max(1, bytes) - inputPerByte);
      output += share * (usage.output - output);
    },
  };
}

/** Configured limits count more than learned ones. */
function knownLimits(book: RateBook, configured: MinuteLimits, clock: Clock) {
  let learned: MinuteLimits = { rpm: null, tpm: null };
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    now(): MinuteLimits {
      const complete = configured.rpm !== null && configured.tpm !== null;
      if (!complete && clock.now() - readAt >= LEARNED_EVERY_MS) {
        learned = book.learned(clock.wall());
        readAt = clock.now();
      }
      return { rpm: configured.rpm ?? learned.rpm, tpm: configured.tpm ?? learned.tpm };
    },
    hear(headers: Readonly<Record<string, string>>): void {
      const told = minuteLimits(headers, clock.wall());
      const news = (told.rpm ?? learned.rpm) !== learned.rpm || (told.tpm ?? learned.tpm) !== learned.tpm;
      if (!news) return;
      learned = { rpm: told.rpm ?? learned.rpm, tpm: told.tpm ?? learned.tpm };
      book.learn(told, clock.wall());
    },
  };
}

export interface MinuteLimits {
  /** Requests a minute; null is not known. */
  readonly rpm: number | null;
  readonly tpm: number | null;
}

/**
 * The same headers carry limits of a minute and of a day. The used part is whole again after `reset`, evenly, so the period of a limit is
 * reset * limit / used: only a period of about a minute counts (observed: tests/model/limits/sharedRate.test.ts).
 */
export function minuteLimits(headers: Readonly<Record<string, string>>, wallNow: number): MinuteLimits {
  const ofMinute = (counts: 'requests' | 'tokens'): number | null => {
    const found = allowance(headers, counts, wallNow);
    if (!found || found.limit === null || found.left >= found.limit) return null;
    const periodMs = (found.resetMs * found.limit) / (found.limit - found.left);
    return periodMs >= 45_000 && periodMs <= 75_000 ? found.limit : null;
  };
  return { rpm: ofMinute('requests'), tpm: ofMinute('tokens') };
}
