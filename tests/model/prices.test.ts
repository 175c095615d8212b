// Money of a call (T-18 to T-20): hand-computed costs, every kind of token, prices nobody knows, usage that is nonsense.

import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { readUsage } from '../../src/model/dialects/completion.ts';
import { costOf, estimateNano, likelyModel, NO_PRICE_FIX, priceKnown } from '../../src/model/prices.ts';
import fc from '../support/property.ts';

const require = createRequire(import.meta.url);
const { calcPrice, findProvider } =
  require('@pydantic/genai-prices') as typeof import('@pydantic/genai-prices');
const AT = new Date('2026-11-21T00:00:00Z');
const PRICES = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 };
const priced = (usage: unknown, prices: typeof PRICES | 'free' | null = PRICES, model = 'x/y') =>
  costOf({ model_name: model, prices: prices ?? undefined, base_url: undefined }, usage, AT);

describe('usage', () => {
  test.each([
    [
      'OpenAI with cache and reasoning',
      {
        prompt_tokens: 1000,
        completion_tokens: 200,
        total_tokens: 1200,
        prompt_tokens_details: { cached_tokens: 300 },
        completion_tokens_details: { reasoning_tokens: 150 },
      },
      { input: 700, cacheRead: 300, cacheWrite: 0, output: 200, reasoning: 150 },
    ],
    [
      'OpenRouter with cache writes',
      {
        prompt_tokens: 1000,
        completion_tokens: 10,
        prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 400 },
      },
      { input: 500, cacheRead: 100, cacheWrite: 400, output: 10, reasoning: 0 },
    ],
    [
      'Anthropic through a proxy',
      {
        prompt_tokens: 1000,
        completion_tokens: 10,
        total_tokens: 1010,
        cache_read_input_tokens: 600,
        cache_creation_input_tokens: 100,
      },
      { input: 300, cacheRead: 600, cacheWrite: 100, output: 10, reasoning: 0 },
    ],
    [
      'Anthropic’s own form, where the cache is counted beside the input',
      { input_tokens: 12, output_tokens: 10, cache_read_input_tokens: 600, cache_creation_input_tokens: 100 },
      { input: 12, cacheRead: 600, cacheWrite: 100, output: 10, reasoning: 0 },
    ],
    [
      'the Responses API',
      {
        input_tokens: 100,
        output_tokens: 10,
        total_tokens: 110,
        input_tokens_details: { cached_tokens: 40 },
      },
      { input: 60, cacheRead: 40, cacheWrite: 0, output: 10, reasoning: 0 },
    ],
    [
      'DeepSeek',
      {
        prompt_tokens: 100,
        completion_tokens: 10,
        prompt_cache_hit_tokens: 64,
        prompt_cache_miss_tokens: 36,
      },
      { input: 36, cacheRead: 64, cacheWrite: 0, output: 10, reasoning: 0 },
    ],
    [
      'xAI, whose completion leaves the reasoning out',
      {
        prompt_tokens: 100,
        completion_tokens: 10,
        total_tokens: 160,
        completion_tokens_details: { reasoning_tokens: 50 },
      },
      { input: 100, cacheRead: 0, cacheWrite: 0, output: 60, reasoning: 50 },
    ],
    [
      'nulls for what does not apply',
      {
        prompt_tokens: 5,
        completion_tokens: 5,
        prompt_tokens_details: null,
        completion_tokens_details: { reasoning_tokens: null },
      },
      { input: 5, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 },
    ],
  ])('%s', (_name, raw, expected) => {
    expect(readUsage(raw)).toMatchObject({ usage: expected, notes: [] });
  });

  test.each([
    ['missing', null],
    ['empty', {}],
    ['negative', { prompt_tokens: -1, completion_tokens: 5 }],
    ['text', { prompt_tokens: '100', completion_tokens: 5 }],
    ['a fraction', { prompt_tokens: 1.5, completion_tokens: 5 }],
    [
      'more cached than sent',
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 11 } },
    ],
    [
      'more reasoning than said',
      { prompt_tokens: 10, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 6 } },
    ],
    [
      'details that are text',
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 'some' } },
    ],
    ['a list', [1, 2]],
    ['a word', 'lots'],
    ['not a number', { prompt_tokens: Number.NaN, completion_tokens: 1 }],
  ])('T-19: %s is no count, and says so', (_name, raw) => {
    const read = readUsage(raw);
    expect(read.usage).toBeNull();
    expect(read.notes[0]).toMatch(/^usage (missing|unusable)/);
    expect(priced(raw)).toMatchObject({ costNano: null, usage: null });
  });

  test('never throws and never counts below zero, whatever a server sends', () => {
    fc.assert(
      fc.property(fc.anything(), (raw) => {
        const { usage } = readUsage(raw);
        if (usage) for (const count of Object.values(usage)) expect(count).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe('cost', () => {
  test('T-18: cached, written for 5 minutes and for an hour, reasoning: equal to the sum by hand', () => {
    const usage = {
      prompt_tokens: 10_000,
      completion_tokens: 1234,
      cache_read_input_tokens: 4000,
      cache_creation_input_tokens: 3000,
      cache_creation: { ephemeral_5m_input_tokens: 2000, ephemeral_1h_input_tokens: 1000 },
      completion_tokens_details: { reasoning_tokens: 1000 },
    };
    // 3000 x 3 + 4000 x 0.3 + 2000 x 3.75 + 1000 x 6 + 1234 x 15 dollars per million
    const byHand = (3000 * 3 + 4000 * 0.3 + 2000 * 3.75 + 1000 * 6 + 1234 * 15) / 1e6;
    expect(priced(usage).costNano! / 1e9).toBeCloseTo(byHand, 9);
    expect(priced(usage).costNano).toBe(42_210_000);
  });

  test('rounds once, at the end, to whole nano-dollars', () => {
    const tiny = { input: 0.0375, output: 0.15, cache_read: 0.01, cache_write: 0.0375 };
    expect(priced({ prompt_tokens: 3, completion_tokens: 0 }, tiny).costNano).toBe(113);
  });

  test('missing cache prices are the input price; an hour costs twice the input', () => {
    const usage = {
      input_tokens: 0,
      output_tokens: 0,
      cache_read_input_tokens: 10,
      cache_creation_input_tokens: 10,
      cache_creation: { ephemeral_1h_input_tokens: 10 },
    };
    const { costNano } = costOf(
      { model_name: 'm', base_url: undefined, prices: { input: 1, output: 1 } },
      usage,
      AT,
    );
    expect(costNano).toBe(10 * 1000 + 10 * 2000);
  });

  test('the config’s prices stand in the ledger, so that a cost can be computed again [M-58]', () => {
    expect(priced({ prompt_tokens: 1, completion_tokens: 1 }).priceVersion).toBe(
      'config: input 3, output 15, cache_read 0.3, cache_write 3.75',
    );
  });

  test('free is 0, also without usage', () => {
    expect(priced(null, 'free')).toMatchObject({ costNano: 0, priceVersion: 'config: free' });
  });

  test('the table has a version, and knows tiers and caches', () => {
    const { costNano, priceVersion } = priced(
      { prompt_tokens: 1000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 200 } },
      null,
      'gpt-4o',
    );
    expect(priceVersion).toMatch(/^genai-prices@\d+\.\d+\.\d+ openai\/gpt-4o$/);
    expect(costNano).toBe((800 * 2.5 + 200 * 1.25 + 100 * 10) * 1000);
  });

  test('a name with its provider in front finds the same price', () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 100 };
    expect(priced(usage, null, 'openai/gpt-4o').costNano).toBe(priced(usage, null, 'gpt-4o').costNano);
  });

  test('an unknown price is null and never 0', () => {
    expect(priced({ prompt_tokens: 1, completion_tokens: 1 }, null)).toMatchObject({
      costNano: null,
      usage: { input: 1 },
      notes: ['no price known for x/y'],
    });
  });

  test('the provider’s own figure is kept, and wins over the table', () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 100, cost: 0.00123 };
    expect(priced(usage, null)).toMatchObject({
      costNano: 1_230_000,
      providerCostNano: 1_230_000,
      priceVersion: 'provider',
    });
    expect(priced(usage)).toMatchObject({ costNano: 4_500_000, providerCostNano: 1_230_000 });
  });

  test('a figure far from the table’s is flagged; a figure of 0 from late books is not believed', () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 100 };
    expect(priced({ ...usage, cost: 0.1 }, null, 'gpt-4o').notes[0]).toContain('provider states 100000000');
    expect(priced({ ...usage, cost: 0.0035 }, null, 'gpt-4o').notes).toEqual([]);
    expect(priced({ ...usage, cost: 0 }, null, 'gpt-4o').costNano).toBe(3_500_000);
  });

  test('with a key of one’s own the upstream part is added', () => {
    const usage = {
      prompt_tokens: 1,
      completion_tokens: 1,
      cost: 0.01,
      is_byok: true,
      cost_details: { upstream_inference_cost: 0.2 },
    };
    expect(priced(usage, null).providerCostNano).toBe(210_000_000);
  });

  test('a figure that is nonsense is no figure', () => {
    for (const cost of [-1, '0.1', Number.NaN, null])
      expect(priced({ prompt_tokens: 1, completion_tokens: 1, cost }).providerCostNano).toBeNull();
  });

  test('the row of a published recording: cached input at its own rate', () => {
    const prices = { input: 2, output: 12, cache_read: 0.125 };
    const usage = {
      prompt_tokens: 8000,
      completion_tokens: 500,
      prompt_tokens_details: { cached_tokens: 6000 },
    };
    const cost = costOf(
      { model_name: 'google/gemini-3-pro-preview', base_url: undefined, prices },
      usage,
      AT,
    ).costNano;
    expect(cost).toBe((2000 * 2 + 6000 * 0.125 + 500 * 12) * 1000);
  });
});

describe('preflight and reservation', () => {
  const config = (model_name: string, more = {}) => ({
    model_name,
    model_class: 'openai',
    base_url: undefined,
    prices: undefined,
    ...more,
  });

  test.each([
    ['gpt-5.4x', 'gpt-5.4'],
    ['claude-opus-45', 'claude-opus-4-5'],
    ['openrouter/anthropic/claude-sonet-4.5', 'openrouter/anthropic/claude-sonnet-4.5'],
    ['gtp-5.4', 'gpt-5.4'],
    ['gpt5.4', 'gpt-5.4'],
    ['GPT-5.4', 'gpt-5.4'],
    ['claud-opus-4-5', 'claude-opus-4-5'],
    ['claude-4.5-opus', 'claude-opus-4-5'],
    ['gemini-2.5-por', 'gemini-2.5-pro'],
    ['deepsek-chat', 'deepseek/deepseek-chat'],
    ['opnai/gpt-5.4', 'openai/gpt-5.4'],
    ['antropic/claude-opsu-4-5', 'anthropic/claude-opus-4-5'],
    ['google/gemini-2.5-pro', 'gemini/gemini-2.5-pro'],
    ['vertex/gemini-2.5-pro', 'vertex_ai/gemini-2.5-pro'],
    ['groq/llama-3.3-70b-versatil', 'groq/llama-3.3-70b-versatile'],
    ['scirpted:replies.json', 'scripted:replies.json'],
    ['zzzzzzzzzzzzzzzzzz', null],
    ['my-model', null],
    ['local/qwen', null],
    ['gpt-6', null],
    ['gpt-99', null],
    ['hosted_vllm/mine', null],
    ['', null],
  ])('a misspelt %j most likely means %j', (name, meant) => {
    expect(likelyModel(config(name))).toBe(meant);
    if (meant !== null) expect(priceKnown(config(meant))).toBe(true);
  });

  test("a server of one's own has names of its own", () => {
    expect(likelyModel(config('hosted_vlm/mine'))).toBe('hosted_vllm/mine');
    for (const name of ['gtp-5.4', 'opnai/gpt-5.4'])
      expect(likelyModel(config(name, { base_url: 'http://localhost:8000/v1' }))).toBeNull();
  });

  test('T-20: known and unknown prices', () => {
    expect(priceKnown(config('gpt-4o'))).toBe(true);
    expect(priceKnown(config('x/y'))).toBe(false);
    expect(priceKnown(config('x/y', { prices: PRICES }))).toBe(true);
    expect(priceKnown(config('x/y', { prices: 'free' }))).toBe(true);
    expect(priceKnown(config('scripted:somewhere'))).toBe(true);
    expect(priceKnown(config('replay:r1'))).toBe(true);
    expect(NO_PRICE_FIX).toMatch(/^add prices: .*, or --cost-limit none with -c agent\.cost_limit=none$/);
  });

  test('an estimate grows with the request and the longest answer, and is null without a price', () => {
    const at = (bytes: number, out: number | null, more = {}) =>
      estimateNano(config('x/y', { prices: PRICES, ...more }), bytes, out, AT);
    expect(at(30_000, 1000)).toBe((10_000 * 3 + 1000 * 15) * 1000);
    expect(at(60_000, 1000)!).toBeGreaterThan(at(30_000, 1000)!);
    expect(at(30_000, null)!).toBeGreaterThan(at(30_000, 1000)!);
    expect(at(30_000, null, { prices: 'free' })).toBe(0);
    expect(at(30_000, null, { prices: undefined })).toBeNull();
  });
});

/** Chat completions: the prompt counts what was read from a cache and written to one. */
const counted = (input: number, read: number, write: number, output: number) => ({
  prompt_tokens: input + read + write,
  completion_tokens: output,
  prompt_tokens_details: { cached_tokens: read, cache_write_tokens: write },
});

test('what is added up here is to the last bit what the table says, for every model of the large providers', () => {
  const named = [
    'anthropic',
    'openai',
    'google',
    'mistral',
    'groq',
    'x-ai',
    'deepseek',
    'openrouter',
  ].flatMap((id) => (findProvider({ providerId: id })?.models ?? []).map((model) => `${id}/${model.id}`));
  expect(named.length).toBeGreaterThan(500);
  let prices = 0;
  for (const [n, name] of named.entries())
    for (const [input, read, write, output] of [
      [1, 0, 0, 1],
      [12_345 + n, 0, 0, 677 + n],
      [4321, 98_765 + n, 0, 33],
      [1, 77_777, 13_131 + n, 5],
    ] as const) {
      const { costNano } = priced(counted(input, read, write, output), null, name);
      const slash = name.indexOf('/');
      const counts = {
        input_tokens: input + read + write,
        cache_read_tokens: read,
        cache_write_tokens: write,
        output_tokens: output,
      };
      let table: number | undefined;
      // A first price, by which the row is found, may be by another name of the same model.
      for (const [model, where] of [
        [name, {}],
        [name.slice(slash + 1), { providerId: name.slice(0, slash) }],
      ] as const)
        try {
          table ??= calcPrice(counts, model, { ...where, timestamp: AT })?.total_price;
        } catch {
          // Counts that it refuses.
        }
      if (table === undefined) continue;
      prices += 1;
      expect([name, costNano]).toEqual([name, Math.round(table * 1e9)]);
    }
  expect(prices).toBeGreaterThan(1000);
});
