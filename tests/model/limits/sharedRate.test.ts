// The share of one process in limits that others use too: estimates, corrections, waiting, and what headers teach.
import { describe, expect, test } from 'vitest';
import {
  createRateShare,
  type MinuteLimits,
  minuteLimits,
  type RateBook,
} from '../../../src/model/limits/sharedRate.ts';
import type { Usage } from '../../../src/model/model.ts';
import { modelConfigSchema } from '../../../src/model/modelConfig.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { autoClock } from '../harness.ts';

const usage = (more: Partial<Usage>): Usage => ({
  ...{ input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
  ...more,
});
const NONE: MinuteLimits = { rpm: null, tpm: null };

function bookOf(waits: number[] = []) {
  const asked: number[] = [];
  const corrected: number[] = [];
  const told: MinuteLimits[] = [];
  const book: RateBook = {
    take: ({ tokens }) => {
      const wait = waits.shift() ?? 0;
      if (wait === 0) asked.push(tokens);
      return wait;
    },
    correct: (_at, tokens) => void corrected.push(tokens),
    learn: (limits) => void told.push(limits),
    learned: () => told.at(-1) ?? NONE,
    pause: () => undefined,
    pausedUntil: () => 0,
  };
  return { book, asked, corrected, told };
}

const share = (book: RateBook, configured: MinuteLimits, countsCached = true) =>
  createRateShare({ book, configured, countsCached, longestPauseMs: 60_000, clock: autoClock().clock });

describe('limits in headers', () => {
  const openai = (limit: string, left: string, reset: string) => ({
    'x-ratelimit-limit-tokens': limit,
    'x-ratelimit-remaining-tokens': left,
    'x-ratelimit-reset-tokens': reset,
  });
  test.each([
    ['of a minute', openai('150000', '149000', '400ms'), 150_000],
    ['used up', openai('150000', '0', '1m0s'), 150_000],
    ['of a day', openai('14400', '14370', '3m0s'), null],
    ['nothing used yet', openai('150000', '150000', '0s'), null],
    ['no number', openai('many', '149000', '400ms'), null],
    ['zero', openai('0', '0', '1s'), null],
    ['no time', openai('150000', '149000', 'soon'), null],
    ['none', {}, null],
  ])('%s', (_what, headers, tpm) => {
    expect(minuteLimits(headers, 0).tpm).toBe(tpm);
  });
});

describe('a share of limits', () => {
  test('a call waits for room, and gives back what it did not take', async () => {
    const { book, asked, corrected } = bookOf([400, 5_000]);
    const rates = share(book, { rpm: null, tpm: 10_000 });
    let waited = 0;
    const first = await rates.take(1_000, undefined, () => (waited += 1));
    expect(waited).toBe(2);
    first.end(usage({ input: 200, output: 100 }), false, {});
    expect(corrected).toEqual([300 - asked[0]!]);
    // The next estimate is what the first took.
    const second = await rates.take(1_000, undefined, () => {});
    expect(asked[1]).toBe(300);
    second.end(null, true, {});
    expect(corrected[1]).toBe(-300);
    const third = await rates.take(2_000, undefined, () => {});
    expect(asked[2]).toBe(500);
    third.end(null, false, {});
    expect(corrected).toHaveLength(2);
  });

  test('tokens from the cache count where the provider counts them', async () => {
    for (const [counts, took] of [
      [true, 1_110],
      [false, 110],
    ] as const) {
      const { book, asked, corrected } = bookOf();
      const taken = await share(book, { rpm: null, tpm: 10_000 }, counts).take(1_000, undefined, () => {});
      taken.end(usage({ input: 100, cacheRead: 1_000, output: 10 }), false, {});
      expect(asked[0]! + corrected[0]!).toBe(took);
    }
  });

  test('without limits nothing is asked, until a header names one; what is configured counts more', async () => {
    const headers = {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1s',
    };
    const { book, asked, told } = bookOf();
    const rates = share(book, NONE);
    (await rates.take(10, undefined, () => {})).end(null, false, headers);
    expect(asked).toEqual([]);
    expect(told).toEqual([{ rpm: 60, tpm: null }]);
    expect(rates.limits()).toEqual({ rpm: 60, tpm: null });
    (await rates.take(10, undefined, () => {})).end(null, false, headers);
    expect(asked).toHaveLength(1);
    expect(told).toHaveLength(1);
    expect(share(book, { rpm: 7, tpm: null }).limits()).toEqual({ rpm: 7, tpm: null });
  });

  test('one that stops waiting leaves the line, and the next gets its turn', async () => {
    const { book, asked } = bookOf([500]);
    const rates = share(book, { rpm: 1, tpm: null });
    const stop = new AbortController();
    const gone = rates.take(10, stop.signal, () => stop.abort());
    const next = rates.take(10, undefined, () => {});
    await expect(gone).rejects.toMatchObject({ name: 'AbortError' });
    await next;
    expect(asked).toHaveLength(1);
  });
});

test('a call that is refused before it leaves gives its tokens of the minute back', async () => {
  const { book, asked, corrected } = bookOf();
  const refusal = new Error('the budget is spent');
  const config = modelConfigSchema.parse({
    ...{ model_name: 'openai/gpt-4o', base_url: 'http://127.0.0.1:9', prices: 'free', tpm: 10_000 },
  });
  const factory = await createModelFactory(config, { clock: autoClock().clock, rates: () => book });
  const listener = { wanted: () => Promise.reject(refusal), began: () => undefined, ended: () => undefined };
  const asking = factory
    .create({ instanceId: 'i', epoch: 1 })
    .query([{ role: 'user', content: 'task' }], { listener });
  await expect(asking).rejects.toBe(refusal);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toBeGreaterThan(0);
  expect(corrected).toEqual([-asked[0]!]);
  await factory.close();
});
