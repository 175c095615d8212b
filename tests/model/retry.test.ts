// The seed's retry rules: formula, jitter, cap, precedence of Retry-After, and what a person reads when they are used up.

import { describe, expect, test } from 'vitest';
import { formatDuration } from '../../src/model/limits/clock.ts';
import { parseReset, rateHint, retryAfter } from '../../src/model/limits/retryAfter.ts';
import { backoffMs, planRetry, type TryResult, withRetries } from '../../src/model/limits/withRetries.ts';
import { retryConfigSchema } from '../../src/model/modelConfig.ts';
import fc from '../support/property.ts';
import { autoClock } from './harness.ts';

const defaults = retryConfigSchema.parse({});
const NETWORK = { code: 'NETWORK_ERROR', kind: 'unavailable', retryable: true } as const;
const failed = (extra = {}): TryResult<string> => ({
  ok: false,
  verdict: NETWORK,
  what: 'server error (500)',
  last: 'boom',
  wait: { kind: 'none' },
  metadata: {},
  ...extra,
});

describe('back-off', () => {
  test('the defaults are the seed’s [S-49]', () => {
    expect(defaults).toMatchObject({
      enabled: true,
      max_retries: 3,
      base_delay_ms: 1000,
      max_delay_ms: 10_000,
      enable_jitter: true,
    });
  });

  test('doubles from the base and stops at the cap [S-51]', () => {
    const config = { ...defaults, enable_jitter: false };
    expect([0, 1, 2, 3, 4, 5, 6].map((n) => backoffMs(config, n, Math.random))).toEqual([
      0, 1000, 2000, 4000, 8000, 10_000, 10_000,
    ]);
  });

  test('jitter is applied after the cap and stays within 20 % [S-52]', () => {
    expect(backoffMs(defaults, 2, () => 0.875)).toBeCloseTo(2300);
    expect(backoffMs(defaults, 9, () => 1)).toBeCloseTo(12_000);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempt, random) => {
          const plain = backoffMs({ ...defaults, enable_jitter: false }, attempt, Math.random);
          const ratio = backoffMs(defaults, attempt, () => random) / plain;
          expect(ratio).toBeGreaterThanOrEqual(0.8 - 1e-9);
          expect(ratio).toBeLessThanOrEqual(1.2 + 1e-9);
        },
      ),
    );
  });

  test('what the server asks for takes precedence, without jitter, beyond the cap of our own delay [S-34]', () => {
    const plan = planRetry(defaults, { verdict: NETWORK, wait: { kind: 'wait', ms: 42_000 } }, 0, () => 0);
    expect(plan).toEqual({ kind: 'retry', delayMs: 42_000 });
  });

  test('a wait beyond the limit ends the call', () => {
    const plan = planRetry(
      defaults,
      { verdict: NETWORK, wait: { kind: 'wait', ms: 86_400_000 } },
      0,
      () => 0,
    );
    expect(plan).toEqual({ kind: 'too_long', askedMs: 86_400_000 });
  });
});

describe('withRetries', () => {
  async function run(results: readonly TryResult<string>[], settings = {}, answered = false) {
    const { clock, slept } = autoClock();
    let tries = 0;
    const response = await withRetries({
      config: { ...defaults, enable_jitter: false, ...settings },
      clock,
      signal: undefined,
      onBackoff: () => undefined,
      answered,
      ask: async (tried) => {
        expect(tried).toBe(tries);
        tries += 1;
        return results[Math.min(tried, results.length - 1)]!;
      },
    });
    return { response, tries, slept };
  }

  test('max_retries is the number of tries after the first', async () => {
    const { tries, slept, response } = await run([failed()]);
    expect(tries).toBe(4);
    expect(slept).toEqual([1000, 2000, 4000]);
    expect(response).toMatchObject({
      success: false,
      error: 'NETWORK_ERROR',
      message: 'server error (500) after 4 tries over 7s; last: "boom"',
    });
  });

  test('a success ends it', async () => {
    const { tries, response } = await run([failed(), { ok: true, value: 'yes' }]);
    expect(tries).toBe(2);
    expect(response).toEqual({ success: true, result: 'yes', message: 'ok' });
  });

  test('disabled, or 0 retries, is one try [S-50]', async () => {
    expect((await run([failed()], { enabled: false })).tries).toBe(1);
    expect((await run([failed()], { max_retries: 0 })).response.message).toContain('after 1 try over');
  });

  const away = failed({ metadata: { statusCode: 503 } });

  test('a server that goes away under a conversation is waited for as long as a rate limit is: nothing is bought again', async () => {
    const { tries, response } = await run([...Array(40).fill(away), { ok: true, value: 'yes' }], {}, true);
    expect([tries, response.success]).toEqual([41, true]);
    const gone = failed({ metadata: { unreachable: true } });
    expect(
      (await run([...Array(40).fill(gone), { ok: true, value: 'yes' }], {}, true)).response.success,
    ).toBe(true);
  });

  test('before the first answer there is nothing to lose, and max_retries holds', async () => {
    expect((await run([away])).tries).toBe(4);
  });

  test('that wait ends with max_retry_after_s, and asks at most once a second', async () => {
    const hasty = { base_delay_ms: 1, max_delay_ms: 5, max_retries: 2, max_retry_after_s: 30 };
    const { tries, slept, response } = await run([away], hasty, true);
    expect(response.message).toContain('server error (500) after');
    expect(slept.slice(0, 2)).toEqual([1, 2]);
    expect(new Set(slept.slice(2))).toEqual(new Set([1000]));
    expect(tries).toBe(2 + 29 + 1);
    expect((await run([away], { ...hasty, max_retry_after_s: 0 }, true)).tries).toBe(3);
  });

  test.each([
    ['an answer that broke off, which may be billed each time', { metadata: {} }],
    [
      'a request that took too long',
      { verdict: { code: 'TIMEOUT', kind: 'unavailable', retryable: true }, metadata: {} },
    ],
  ])('%s is tried as often as max_retries says, whatever was answered before', async (_what, extra) => {
    expect((await run([failed(extra)], {}, true)).tries).toBe(4);
  });

  test('what cannot be retried is tried once and told as it is', async () => {
    const verdict = { code: 'UNKNOWN', kind: 'rejected', retryable: false };
    const { tries, response } = await run([failed({ verdict, what: 'request rejected (400)' })]);
    expect(tries).toBe(1);
    expect(response.message).toBe('request rejected (400)');
  });

  test('an abort during the wait rejects at once', async () => {
    const stop = new AbortController();
    const { systemClock } = await import('../../src/model/limits/clock.ts');
    const pending = withRetries({
      config: { ...defaults, base_delay_ms: 1e9, max_delay_ms: 1e9 },
      clock: systemClock,
      signal: stop.signal,
      onBackoff: () => stop.abort(new Error('stopped by us')),
      ask: async () => failed(),
    });
    await expect(pending).rejects.toMatchObject({ name: 'AbortError', message: 'stopped by us' });
  });
});

describe('Retry-After', () => {
  const now = Date.UTC(2026, 10, 21, 12, 0, 0);
  test.each([
    [{ 'retry-after': '2' }, { kind: 'wait', ms: 2000 }],
    [{ 'retry-after': ' 1.5 ' }, { kind: 'wait', ms: 1500 }],
    [{ 'retry-after': '0' }, { kind: 'none' }],
    [{ 'retry-after': '86400' }, { kind: 'wait', ms: 86_400_000 }],
    [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT' }, { kind: 'wait', ms: 30_000 }],
    [{ 'retry-after': 'Sat, 21 Nov 2026 11:59:00 GMT' }, { kind: 'none' }],
    [{ 'retry-after': 'abc' }, { kind: 'unreadable', value: 'abc' }],
    [{ 'retry-after': '-5' }, { kind: 'unreadable', value: '-5' }],
    [{ 'retry-after': 'Monkey' }, { kind: 'unreadable', value: 'Monkey' }],
    [
      { 'retry-after-ms': '250', 'retry-after': '9' },
      { kind: 'wait', ms: 250 },
    ],
    [{ 'retry-after': String(now / 1000 + 30) }, { kind: 'wait', ms: 30_000 }],
    [{ 'retry-after': String(now + 30_000) }, { kind: 'wait', ms: 30_000 }],
    [{ 'retry-after': String(now / 1000 - 30) }, { kind: 'none' }],
    [{ 'retry-after-ms': String(now + 250) }, { kind: 'wait', ms: 250 }],
    [{ 'retry-after': '2026-11-21T12:00:30Z' }, { kind: 'wait', ms: 30_000 }],
    [{ 'retry-after': '1m30s' }, { kind: 'wait', ms: 90_000 }],
    [{ 'retry-after': '20 seconds' }, { kind: 'wait', ms: 20_000 }],
    [{ 'retry-after': 'PT1M30S' }, { kind: 'wait', ms: 90_000 }],
    [{ 'retry-after': '5, 5' }, { kind: 'wait', ms: 5000 }],
    [{ 'retry-after': '"5"' }, { kind: 'wait', ms: 5000 }],
    [{ 'retry-after': '999999999' }, { kind: 'unreadable', value: '999999999' }],
    [
      { 'retry-after': 'Sat, 21 Nov 2099 12:00:30 GMT' },
      { kind: 'unreadable', value: 'Sat, 21 Nov 2099 12:00:30 GMT' },
    ],
    [{ 'retry-after': '1e9999' }, { kind: 'unreadable', value: '1e9999' }],
    [{}, { kind: 'none' }],
  ])('%j', (headers, expected) => {
    expect(retryAfter(headers as Record<string, string>, now)).toEqual(expected);
  });

  test.each([
    ['20ms', 20],
    ['1s', 1000],
    ['6m0s', 360_000],
    ['1h2m3.5s', 3_723_500],
    ['12', 12_000],
    ['2026-11-21T12:00:05Z', 5000],
    ['7.66s', 7660],
    ['1m26.4s', 86_400],
    ['429µs', 0.429],
    ['1d2h', 93_600_000],
    ['Sat, 21 Nov 2026 12:00:05 GMT', 5000],
    [String(now / 1000 + 5), 5000],
    [String(now / 1000 + 5.5), 5500],
    [String(now + 5000), 5000],
    [String((now + 5000) * 1e6), 5000],
    [String(now / 1000 - 5), 0],
    ['5 parsecs', null],
    ['soon', null],
    ['', null],
  ])('reset %s', (text, ms) => {
    expect(parseReset(text, now)).toBe(ms);
  });

  describe('rate-limit headers', () => {
    const openai = (kind: string, limit: number, left: number | string, reset: string) => ({
      [`x-ratelimit-limit-${kind}`]: String(limit),
      [`x-ratelimit-remaining-${kind}`]: String(left),
      [`x-ratelimit-reset-${kind}`]: reset,
    });
    test.each([
      [
        'requests are left',
        openai('requests', 60, 3, '10s'),
        { requestsLeft: 3, resetMs: 10_000, blockedMs: 0 },
      ],
      [
        'none is left: the next is free long before all are',
        openai('requests', 60, 0, '60s'),
        { requestsLeft: 0, resetMs: 60_000, blockedMs: 1000 },
      ],
      [
        'no token is left',
        { ...openai('requests', 60, 3, '10s'), ...openai('tokens', 1e5, 0, '4s') },
        { requestsLeft: 1, resetMs: 4000, blockedMs: 0 },
      ],
      [
        'Anthropic',
        {
          'anthropic-ratelimit-requests-limit': '50',
          'anthropic-ratelimit-requests-remaining': '0',
          'anthropic-ratelimit-requests-reset': '2026-11-21T12:00:02Z',
        },
        { requestsLeft: 0, resetMs: 2000, blockedMs: 40 },
      ],
      [
        'a limit that is not said',
        { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '3s' },
        { requestsLeft: 0, resetMs: 3000, blockedMs: 3000 },
      ],
      [
        'OpenRouter, which names nothing and a moment in ms',
        {
          'x-ratelimit-limit': '20',
          'x-ratelimit-remaining': '0',
          'x-ratelimit-reset': String(now + 20_000),
        },
        { requestsLeft: 0, resetMs: 20_000, blockedMs: 1000 },
      ],
      [
        'Cerebras, by the minute',
        {
          'x-ratelimit-limit-tokens-minute': '60000',
          'x-ratelimit-remaining-tokens-minute': '0',
          'x-ratelimit-reset-tokens-minute': '11.38',
        },
        { requestsLeft: 1, resetMs: 11_380, blockedMs: 0 },
      ],
      ['the limit of a day, which is none of ours', openai('requests', 200, 0, '7h12m0s'), null],
      ['words', openai('requests', 60, 'many', '10s'), null],
      ['nothing', {}, null],
    ])('%s', (_name, headers, expected) => {
      expect(rateHint(headers as Record<string, string>, now, 600_000)).toEqual(expected);
    });
  });
});

test.each([
  [50, '50ms'],
  [3000, '3s'],
  [3500, '3.5s'],
  [250_000, '4m10s'],
  [86_400_000, '24h'],
  [5_400_000, '1h30m'],
  [59_999, '1m'],
])('%d ms reads as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
