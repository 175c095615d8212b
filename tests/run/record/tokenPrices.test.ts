// List prices by kind of token, as reports show them and reckon with them.
import { expect, test } from 'vitest';
import { pricesOfModel } from '../../../src/run/record/tokenPrices.ts';

const AT = new Date('2026-01-01T00:00:00Z');

test('Claude has prices of its own for what is read from a cache, kept for five minutes, and kept for an hour', () => {
  const prices = pricesOfModel(
    { model_name: 'anthropic/claude-sonnet-4-5-20250929' } as never,
    'claude-sonnet-4-5-20250929',
    AT,
  );
  expect(prices).toEqual({ input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6 });
});
test('the configuration says otherwise', () => {
  const config = { model_name: 'm', prices: { input: 1, output: 2, cache_write: 1.5 } };
  expect(pricesOfModel(config as never, 'm', AT)).toEqual({
    ...{ input: 1, output: 2, cache_read: 1, cache_write: 1.5, cache_write_1h: 2 },
  });
});
