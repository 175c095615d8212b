// Numbers that no call can have: they become unknown, with a note, and never a row that cannot be written or summed.

import { describe, expect, test } from 'vitest';
import { createMeter } from '../../src/agent/loop/meter.ts';
import { readUsage } from '../../src/model/dialects/completion.ts';
import { readUsageMetadata } from '../../src/model/dialects/gemini/geminiDialect.ts';
import { createTally } from '../../src/model/meteredCall.ts';
import type { CallRecord, ModelReply, ModelResponse } from '../../src/model/model.ts';
import { costOf, estimateNano } from '../../src/model/prices.ts';
import { nested } from '../support/foreign/worstText.ts';
import { ASK, modelOf, recorder, wire } from './harness.ts';

const AT = new Date('2026-11-21T00:00:00Z');
const ABSURD = [1e15, 9e15, 2 ** 53, 1e300, -1, -1e15, 0.5, Number.NaN, Number.POSITIVE_INFINITY];

describe.each(ABSURD)('%d tokens', (tokens) => {
  test.each([
    { prompt_tokens: tokens, completion_tokens: 1 },
    { prompt_tokens: 1, completion_tokens: tokens },
    { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: tokens },
    { input_tokens: 1, output_tokens: 1, cache_creation: { ephemeral_5m_input_tokens: tokens } },
    { prompt_tokens: 1, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: tokens } },
    { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: { cached_tokens: tokens } },
  ])('are unknown: %o', (usage) => {
    const read = readUsage(usage);
    expect(read.usage).toBeNull();
    expect(read.notes[0]).toMatch(/^usage unusable/);
  });
  test.each(['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'toolUsePromptTokenCount'])(
    'are unknown in %s',
    (name) => {
      const read = readUsageMetadata({ promptTokenCount: 1, candidatesTokenCount: 1, [name]: tokens });
      expect(read.usage).toBeNull();
      expect(read.notes[0]).toMatch(/^usage unusable/);
    },
  );
});

test.each([9.3e9, 1e300, -0.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'a stated cost of %d dollars is unknown',
  (cost) => {
    const usage = { prompt_tokens: 10, completion_tokens: 1, cost };
    const read = costOf({ model_name: 'nobody/knows' }, usage, AT);
    expect(read).toMatchObject({ costNano: null, providerCostNano: null });
    expect(read.notes.join()).toContain('usage.cost is not a cost');
  },
);

test('a price in the configuration that is absurd gives no cost, and no estimate that cannot be written', () => {
  const config = { model_name: 'x', prices: { input: 1e300, output: 1 } };
  const usage = { prompt_tokens: 1000, completion_tokens: 1 };
  const read = costOf(config, usage, AT);
  expect(read.costNano).toBeNull();
  expect(read.notes.join()).toContain('cost');
  expect(estimateNano(config, 1000, 1000, AT)).toBeNull();
  const usual = { model_name: 'x', prices: { input: 1, output: 1 } };
  expect(Number.isSafeInteger(estimateNano(usual, 1000, 1e300, AT) ?? 0)).toBe(true);
});

test.each([false, true])('usage that is nested 5,000 deep ends its call (stream: %s)', async (stream) => {
  const deep = nested(5000);
  const said = { role: 'assistant', content: 'hello' };
  const usage = `{"prompt_tokens": 10, "completion_tokens": 1, "more": ${deep}}`;
  const chunk = (choice: object, more = '') =>
    `data: {"id": "x", "choices": [${JSON.stringify({ index: 0, ...choice })}]${more}}\n\n`;
  const body = stream
    ? `${chunk({ delta: said })}${chunk({ delta: {}, finish_reason: 'stop' }, `, "usage": ${usage}`)}data: [DONE]\n\n`
    : `{"id": "x", "choices": [${JSON.stringify({ message: said, finish_reason: 'stop' })}], "usage": ${usage}}`;
  const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
  await using wired = await wire({ scripts: { default: [{ status: 200, body, headers }] } }, { stream });
  const { listener, began, calls } = recorder();
  const response = await modelOf(wired).query(ASK, { listener });
  expect(response.success).toBe(true);
  expect([began.length, calls.length]).toEqual([1, 1]);
  expect(calls[0]).toMatchObject({ state: 'ok', usage: { input: 10, output: 1 } });
  expect(calls[0]!.notes.join()).toContain('nested');
  expect(JSON.stringify(calls[0]!.rawUsage).length).toBeLessThan(2000);
  expect(() => JSON.stringify(response)).not.toThrow();
});

describe('counts that measure nothing', () => {
  test.each<[what: string, usage: object]>([
    ['zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ["zeros in Anthropic's form", { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0 }],
    ['a prompt without a token', { prompt_tokens: 0, completion_tokens: 7 }],
    ['a total that is less than its parts', { prompt_tokens: 100, completion_tokens: 7, total_tokens: 99 }],
    [
      'more cached than read',
      { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 11 } },
    ],
    ['more thought than written', { prompt_tokens: 10, completion_tokens: 1, reasoning_tokens: 2 }],
    ['texts', { prompt_tokens: '10', completion_tokens: '1' }],
  ])('%s', (_what, usage) => {
    expect(readUsage(usage)).toMatchObject({
      usage: null,
      notes: [expect.stringMatching(/^usage unusable/)],
    });
  });
  test.each([
    { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 },
    { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 5, totalTokenCount: 15 },
  ])('Google: %o', (usage) => {
    expect(readUsageMetadata(usage)).toMatchObject({
      usage: null,
      notes: [expect.stringMatching(/^usage unusable/)],
    });
  });

  /** One reply with this usage: its row, and what each limit counts of it. */
  /** Tokens that a limit counts. */
  function tokensOf(call: CallRecord): number {
    const tally = createTally();
    tally.count(call, null);
    return tally.tokens;
  }
  async function answered(usage: unknown, content = 'a real reply') {
    await using wired = await wire({
      replies: [{ content, finish_reason: content === '' ? 'length' : 'stop', usage }],
    });
    const { listener, calls } = recorder();
    const response = await modelOf(wired).query(ASK, { listener });
    expect(response.success).toBe(true);
    return calls[0]!;
  }
  test.each<[what: string, usage: unknown]>([
    ['zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['no token written', { prompt_tokens: 10, completion_tokens: 0 }],
    [
      'more tokens read than a request of some bytes has',
      { prompt_tokens: 900_000_000, completion_tokens: 1 },
    ],
    ['a reply longer than any', { prompt_tokens: 10, completion_tokens: 900_000_000 }],
    ['zeros and a cost of zero', { prompt_tokens: 0, completion_tokens: 0, cost: 0 }],
    ['nothing', null],
  ])('beside a real reply: %s', async (_what, usage) => {
    const call = await answered(usage);
    expect(call).toMatchObject({ state: 'ok', usage: null, costNano: null });
    expect(call.notes.join()).toMatch(/usage (?:unusable|missing)/);
    expect(tokensOf(call)).toBeGreaterThan(2000);
  });
  test('a reply that was cut off before its first word may have none', async () => {
    const call = await answered({ prompt_tokens: 10, completion_tokens: 0 }, '');
    expect(call).toMatchObject({ usage: { input: 10, output: 0 } });
    expect(tokensOf(call)).toBe(10);
  });
  test.each([0, -0.5, null])(
    'a cost of %s that a router states of a model without a price is unknown',
    (cost) => {
      const usage = { prompt_tokens: 10, completion_tokens: 1, cost };
      expect(costOf({ model_name: 'nobody/knows' }, usage, AT).costNano).toBeNull();
    },
  );
  test('a name that says it is free is', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 1, cost: 0 };
    expect(costOf({ model_name: 'openrouter/nobody/knows:free' }, usage, AT).costNano).toBe(0);
  });
  test('a limit of money and one of tokens end a run of replies that state zeros', async () => {
    const zeros = { content: 'x', usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } };
    await using wired = await wire({ scripts: { default: [zeros] } });
    const { listener } = recorder();
    for (const limit of [{ token_limit: 5000 }, { cost_limit: 0.05 }]) {
      const meter = createMeter();
      const over = () => meter.check({ step_limit: 0, cost_limit: 0, token_limit: 0, ...limit });
      expect(over).not.toThrow();
      for (let calls = 0; calls < 5; calls += 1)
        await modelOf(wired).query(ASK, { listener: meter.listen(listener) });
      expect(over).toThrow(/limit/);
      expect(meter.costNano).toBeNull();
    }
  });
});

describe('a reply without a word and without a token', () => {
  const NOTHING = { content: '', usage: null };
  const BLANK = { content: ' ', usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } };
  const kindOf = (response: ModelResponse<ModelReply>) =>
    response.success ? 'reply' : response.metadata?.kind;

  test.each([
    ['plain', NOTHING, false],
    ['in a stream', NOTHING, true],
    ['with zeros', BLANK, false],
    [
      'a prompt was read',
      { content: '', usage: { prompt_tokens: 20, completion_tokens: 0 }, prompt: true },
      false,
    ],
    ['said to be cut off', { ...NOTHING, finish_reason: 'length' }, false],
    ['said to be cut off, in a stream', { ...NOTHING, finish_reason: 'length' }, true],
  ])('is no answer of a server that gives no other, and an outage: %s', async (_how, reply, stream) => {
    await using wired = await wire({ scripts: { default: [reply] } }, { stream, retry: { max_retries: 2 } });
    const { listener, calls } = recorder();
    const response = await modelOf(wired).query(ASK, { listener });
    expect(response).toMatchObject({
      success: false,
      metadata: { kind: 'unavailable', unreachable: true },
      message: expect.stringContaining('answers nothing'),
    });
    const cost = 'prompt' in reply ? 50_000 : null;
    expect(calls.map(({ costNano }) => costNano)).toEqual([cost, cost, cost]);
  });
  test('between others it is an empty reply, as one is that states its tokens', async () => {
    const said = { content: 'x' };
    await using wired = await wire({ scripts: { default: [said, NOTHING, said, NOTHING, NOTHING, said] } });
    const kinds = [];
    for (let n = 0; n < 6; n += 1) kinds.push(kindOf(await modelOf(wired).query(ASK)));
    expect(kinds).toEqual(['reply', 'empty', 'reply', 'empty', 'empty', 'reply']);
    await using stated = await wire({ scripts: { default: [{ content: '' }] } });
    expect(kindOf(await modelOf(stated).query(ASK))).toBe('empty');
  });
  test('a server that falls silent is away from the third on', async () => {
    const replies = [{ content: 'x' }, NOTHING, NOTHING, NOTHING];
    await using wired = await wire({ scripts: { default: replies } }, { retry: { max_retries: 0 } });
    const kinds = [];
    for (let n = 0; n < 5; n += 1) kinds.push(kindOf(await modelOf(wired).query(ASK)));
    expect(kinds).toEqual(['reply', 'empty', 'empty', 'unavailable', 'unavailable']);
  });
});
