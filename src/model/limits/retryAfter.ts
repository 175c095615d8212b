/** How long a server asks us to wait: `Retry-After`, `retry-after-ms`, and rate-limit reset headers. */

import { retryAfterMs } from '../../base/async/timer.ts';

export type Wait =
  | { readonly kind: 'none' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'unreadable'; readonly value: string };

type Headers = Readonly<Record<string, string>>;

/** A date in the past asks for nothing: the usual back-off applies (T-03). */
export function retryAfter(headers: Headers, wallNow: number): Wait {
  const exact = retryAfterMs(headers['retry-after-ms'], wallNow, 1);
  if (exact !== undefined) return positive(exact);
  const value = headers['retry-after']?.trim() ?? '';
  const ms = retryAfterMs(value, wallNow);
  if (ms !== undefined) return positive(ms);
  return value === '' ? { kind: 'none' } : { kind: 'unreadable', value: value.slice(0, 40) };
}

const positive = (ms: number): Wait => (ms > 0 ? { kind: 'wait', ms } : { kind: 'none' });

/** Null for anything that says no time. */
export const parseReset = (value: string, wallNow: number): number | null =>
  retryAfterMs(value, wallNow) ?? null;

export interface RateHint {
  /** Requests that may be out at a time for the next `resetMs`; null when nothing was said about it. */
  readonly requestsLeft: number | null;
  readonly resetMs: number;
  /** No request may start for this long: the limit of requests is used up. */
  readonly blockedMs: number;
}

const OPENAI = 'x-ratelimit';
const ANTHROPIC = 'anthropic-ratelimit';

type Names = readonly [limit: string, left: string, reset: string];
const openAi = (end: string): Names => [
  `${OPENAI}-limit${end}`,
  `${OPENAI}-remaining${end}`,
  `${OPENAI}-reset${end}`,
];

/** As OpenAI-like, Cerebras-like and Anthropic-like servers name them: the limit, what is left of it, and when it is whole again. */
const namesOf = (counts: string): readonly Names[] => [
  openAi(`-${counts}`),
  openAi(`-${counts}-minute`),
  openAi(`-${counts}-per-minute`),
  [`${ANTHROPIC}-${counts}-limit`, `${ANTHROPIC}-${counts}-remaining`, `${ANTHROPIC}-${counts}-reset`],
];
const NAMES = {
  // OpenRouter and Together name nothing; a request is what they count.
  requests: [...namesOf('requests'), openAi('')],
  tokens: namesOf('tokens'),
  'input-tokens': namesOf('input-tokens'),
  'output-tokens': namesOf('output-tokens'),
};
type Counted = keyof typeof NAMES;

interface Allowance {
  readonly limit: number | null;
  readonly left: number;
  readonly resetMs: number;
}

/** Null where it is not said, or cannot be read (observed: tests/model/retry.test.ts). */
export function allowance(headers: Headers, counts: Counted, wallNow: number): Allowance | null {
  for (const [limitName, leftName, resetName] of NAMES[counts]) {
    const [limit, left, reset] = [headers[limitName], headers[leftName], headers[resetName]];
    if (left === undefined || reset === undefined || !/^\d+$/.test(left)) continue;
    const resetMs = parseReset(reset, wallNow);
    if (resetMs === null) continue;
    return { limit: limit && /^[1-9]\d*$/.test(limit) ? Number(limit) : null, left: Number(left), resetMs };
  }
  return null;
}

/**
 * The share of a limit that a provider says is left. A limit fills up again evenly, so the next request is free after reset / limit, long before
 * all of it is. How many tokens a request takes is not known here: without any left, requests go one at a time. Resets
 * further away than `longestMs` are those of a day or a month, and the 429s that come with them say better what to do (observed:
 * tests/model/retry.test.ts).
 */
export function rateHint(headers: Headers, wallNow: number, longestMs: number): RateHint | null {
  const of = (counts: Counted) => {
    const found = allowance(headers, counts, wallNow);
    return found && found.resetMs <= longestMs ? found : null;
  };
  const requests = of('requests');
  const tokens = [of('tokens'), of('input-tokens'), of('output-tokens')];
  const spent = tokens.find((found) => found?.left === 0);
  if (spent && requests?.left !== 0) return { requestsLeft: 1, resetMs: spent.resetMs, blockedMs: 0 };
  if (!requests) return null;
  const blockedMs = requests.left === 0 ? requests.resetMs / (requests.limit ?? 1) : 0;
  return { requestsLeft: requests.left, resetMs: requests.resetMs, blockedMs };
}
