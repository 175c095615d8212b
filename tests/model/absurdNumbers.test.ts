// Numbers that no call can have: they become unknown, with a note, and never a row that cannot be written or summed.

import { describe, expect, test } from 'vitest';
import { readUsage } from '../../src/model/dialects/completion.ts';
import { readUsageMetadata } from '../../src/model/dialects/gemini/geminiDialect.ts';
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
