/**
 * Requests and tokens a minute, shared with other processes that use the same key: each call takes its share before it starts. How many
 * tokens a call takes is known only afterwards, so it is estimated from the calls before and corrected.
 */

import { abortError } from '../failure.ts';
import type { Usage } from '../model.ts';
import type { Clock } from './clock.ts';
import { type MinuteLimits, minuteLimits } from './minuteLimits.ts';

/** The part that the processes share. Times are milliseconds since 1970. */
export interface RateBook {
  /** 0 when it was taken, else after how many milliseconds there may be room. */
  take(ask: MinuteLimits & { readonly at: number; readonly tokens: number }): number;
  correct(at: number, tokens: number): void;
  learn(limits: MinuteLimits, at: number): void;
  /** What any of the processes has learned. */
  learned(at: number): MinuteLimits;
}

export interface RateShare {
  /** Waits for its turn. `onWait` is called when it has to wait at all. */
  take(requestBytes: number, signal: AbortSignal | undefined, onWait: () => void): Promise<Taken>;
  limits(): MinuteLimits;
}

export interface Taken {
  /** `usage` is null where nothing is known; a call that was refused took nothing. */
  end(usage: Usage | null, refused: boolean, headers: Readonly<Record<string, string>>): void;
}

export interface RateShareOptions {
  readonly book: RateBook;
  /** As configured; null is learned. */
  readonly configured: MinuteLimits;
  /** Tokens read from the cache count: not with Anthropic. */
  readonly countsCached: boolean;
  readonly clock: Clock;
}

/** A wait ends early when another process gives tokens back. */
const LONGEST_WAIT_MS = 1000;
/** The book is asked so often what others have learned. */
const LEARNED_EVERY_MS = 1000;
/** The newest call has this share in the estimate of the next. */
const NEW_SHARE = 0.05;

export function createRateShare({ book, configured, countsCached, clock }: RateShareOptions): RateShare {
  let turn: Promise<unknown> = Promise.resolve();
  const estimate = createEstimate(countsCached);
  const limits = knownLimits(book, configured, clock);
  const enter = async (tokens: number, signal: AbortSignal | undefined, onWait: () => void) => {
    for (;;) {
      if (signal?.aborted) throw abortError(signal);
      const at = clock.wall();
      const waitMs = book.take({ ...limits.now(), at, tokens });
      if (waitMs === 0) return at;
      onWait();
      try {
        await clock.sleep(Math.min(waitMs, LONGEST_WAIT_MS) * (0.5 + clock.random() / 2), signal);
      } catch (error) {
        throw signal?.aborted ? abortError(signal) : error;
      }
    }
  };
  return {
    limits: limits.now,
    async take(requestBytes, signal, onWait) {
      const { rpm, tpm } = limits.now();
      // Nothing is known that could be kept; the answer may say it.
      if (rpm === null && tpm === null)
        return { end: (usage, _refused, headers) => settle(usage, headers, requestBytes) };
      const tokens = estimate.of(requestBytes);
      const mine = turn.then(() => enter(tokens, signal, onWait));
      turn = mine.catch(() => undefined);
      const at = await mine;
      return {
        end(usage, refused, headers) {
          const took = refused ? 0 : usage ? estimate.tokens(usage) : tokens;
          if (took !== tokens) book.correct(at, took - tokens);
          settle(usage, headers, requestBytes);
        },
      };
    },
  };
  function settle(usage: Usage | null, headers: Readonly<Record<string, string>>, requestBytes: number) {
    if (usage) estimate.note(usage, requestBytes);
    limits.hear(headers);
  }
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

/** What is configured counts more than what was learned. */
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
