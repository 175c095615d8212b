// Parameters against what a model takes, before anything is asked: what is surely refused, what is only likely, and what is left out.
import { describe, expect, test } from 'vitest';
import { modelConfigSchema } from '../../../src/model/modelConfig.ts';
import { settleModel } from '../../../src/model/settleModel.ts';

type Settings = Record<string, unknown>;

const settle = (model_name: string, model_kwargs: Settings, rest: Settings = {}) =>
  settleModel(modelConfigSchema.parse({ model_name, model_kwargs, ...rest }), { env: {}, litellm: false });

const refusal = (name: string, kwargs: Settings, rest: Settings = {}): string | null => {
  const settled = settle(name, kwargs, rest);
  return settled.ok ? null : `${settled.message}; ${settled.fix}`;
};

const GPT = 'gpt-5';
const CLAUDE = 'anthropic/claude-opus-4-5';
const ADAPTIVE = 'anthropic/claude-opus-4-7';
const THINKING = { thinking: { type: 'enabled', budget_tokens: 4096 } };

describe('refused before anything starts, with what to do', () => {
  test.each<[string, string, Settings, string]>([
    ['a temperature', GPT, { temperature: 0 }, 'temperature: gpt-5 takes no temperature but 1'],
    ['a temperature', 'o3', { temperature: 0.2 }, 'temperature: o3 takes no temperature but 1'],
    ['a temperature', 'gpt-5.5', { temperature: 0 }, 'set reasoning_effort: none'],
    ['top_p', GPT, { top_p: 0.9 }, 'top_p: gpt-5 takes no such setting while it thinks'],
    ['a penalty', 'gpt-5.1', { presence_penalty: 1 }, 'presence_penalty: gpt-5.1 does not take it'],
    ['a word', GPT, { reasoning_effort: 'xhigh' }, 'set one of minimal, low, medium, high'],
    ['thought', 'gpt-4o', { reasoning_effort: 'low' }, 'gpt-4o does not think'],
    ['a name', GPT, { stop: ['x'] }, 'stop: the Responses API does not know it'],
    ['a number', 'gpt-4o', { max_tokens: 20_000 }, 'gpt-4o writes at most 16384 tokens, not 20000'],
    ['a range', 'gpt-4o', { temperature: 2.5 }, 'temperature: 2.5 is not a number from 0 to 2'],
    ['a type', 'gpt-4o', { temperature: '0' }, 'temperature: "0" is not a number from 0 to 2'],
    ['a fraction', 'gpt-4o', { max_tokens: 0.5 }, 'max_tokens: 0.5 is not a whole number of at least 1'],
    ['another maker', 'gpt-4o', THINKING, 'thinking: it is a setting of other providers'],
    ['a temperature', CLAUDE, { ...THINKING, temperature: 0 }, 'no temperature but 1 while it thinks'],
    ['a temperature', CLAUDE, { temperature: 1.5 }, 'Claude takes at most 1, not 1.5'],
    ['a temperature', CLAUDE, { reasoning_effort: 'high', temperature: 0 }, 'no temperature but 1'],
    ['a temperature', ADAPTIVE, { temperature: 0 }, 'claude-opus-4-7 takes no temperature'],
    ['two at once', CLAUDE, { temperature: 0.5, top_p: 0.9 }, 'temperature or top_p, not both'],
    ['top_k', CLAUDE, { ...THINKING, top_k: 5 }, 'top_k: Claude does not take it while it thinks'],
    ['a budget', CLAUDE, { ...THINKING, max_tokens: 4096 }, 'leaves nothing of max_tokens (4096)'],
    ['a budget', CLAUDE, { thinking: { type: 'enabled', budget_tokens: 100 } }, 'set at least 1024'],
    ['a budget', CLAUDE, { thinking: { type: 'enabled' } }, 'it has no budget_tokens'],
    ['a budget', ADAPTIVE, THINKING, 'claude-opus-4-7 decides itself how long it thinks'],
    ['a length', CLAUDE, { max_tokens: 100_000 }, 'writes at most 64000 tokens, not 100000'],
    ['a call', CLAUDE, { ...THINKING, tool_choice: 'required' }, 'forces no call while it thinks'],
    ['a name', CLAUDE, { seed: 1 }, 'seed: the Messages API does not know it'],
    ['a word', CLAUDE, { reasoning_effort: 'much' }, '"much" is no effort'],
    ['a budget', 'gemini/gemini-2.5-pro', { thinking: { budget_tokens: 0 } }, '128 to 32768 tokens, not 0'],
    ['no thought', 'gemini/gemini-2.5-pro', { reasoning_effort: 'none' }, 'gemini-2.5-pro always thinks'],
    ['a name', 'gemini/gemini-2.5-pro', { logit_bias: {} }, 'generateContent does not know it'],
    ['a length', 'gemini-2.5-flash', { max_tokens: 70_000 }, 'writes at most 65536 tokens'],
    ['a temperature', 'gemini/gemini-3.6-flash', { temperature: 0 }, 'gemini-3.6-flash does not take it'],
  ])('%s of %s', (_what, name, kwargs, expected) => {
    expect(refusal(name, kwargs)).toContain(expected);
  });

  test('max_tokens by the name that chat completions of GPT-5 know', () => {
    const chat = { dialect: 'chat' };
    expect(refusal(GPT, { max_tokens: 100 }, chat)).toContain('write max_completion_tokens');
    expect(refusal(GPT, { max_completion_tokens: 100 }, chat)).toBeNull();
    expect(refusal(GPT, { max_tokens: 100 })).toBeNull();
  });

  test('all at once, each parameter once', () => {
    const text = refusal(GPT, { temperature: 'hot', top_p: 7, max_tokens: 10 ** 7 })!;
    for (const name of ['temperature', 'top_p', 'max_tokens'])
      expect(text.split(`model.model_kwargs.${name}: `)).toHaveLength(2);
  });
});

describe('taken', () => {
  test.each<[string, Settings]>([
    [GPT, { temperature: 1, reasoning_effort: 'minimal', max_tokens: 128_000 }],
    ['gpt-5.1', { temperature: 0 }],
    ['gpt-5.1', { temperature: 0, reasoning_effort: 'none' }],
    ['gpt-5.5', { temperature: 0, reasoning_effort: 'none' }],
    [GPT, { reasoning: { effort: 'low', summary: 'auto' } }],
    ['gpt-5-chat-latest', { temperature: 0 }],
    ['gpt-4o', { temperature: 0, stop: ['x'], seed: 1, max_tokens: 16_384, response_format: {} }],
    [CLAUDE, { ...THINKING, temperature: 1, max_tokens: 4097 }],
    [
      CLAUDE,
      {
        ...THINKING,
        max_tokens: 2048,
        extra_headers: { 'anthropic-beta': 'interleaved-thinking-2025-05-14' },
      },
    ],
    [CLAUDE, { temperature: 0 }],
    ['anthropic/claude-opus-4-6', THINKING],
    [ADAPTIVE, { reasoning_effort: 'xhigh', temperature: 1 }],
    ['gemini/gemini-2.5-flash', { reasoning_effort: 'none', temperature: 2 }],
    ['gemini/gemini-2.5-pro', { thinking: { budget_tokens: -1 } }],
    ['deepseek/deepseek-chat', { temperature: 1.5, top_k: 3 }],
    ['a-model-that-nobody-knows', { temperature: 0, reasoning_effort: 'extreme' }],
    [GPT, { temperature: null }],
  ])('%s takes %j', (name, kwargs) => {
    const settled = settle(name, kwargs);
    expect(settled).toMatchObject({ ok: true });
    expect(settled).not.toHaveProperty('warnings');
    if (settled.ok) expect(settled.model.model_kwargs).toEqual(kwargs);
  });

  test('what the user vouches for is sent: in extra_body, or named by allowed_openai_params', () => {
    expect(refusal(GPT, { extra_body: { temperature: 0 } })).toBeNull();
    expect(refusal(GPT, { temperature: 0, allowed_openai_params: ['temperature'] })).toBeNull();
  });
});

test('at another address it is a warning, for nobody knows what is behind it', () => {
  const settled = settle(GPT, { temperature: 0 }, { base_url: 'https://gateway.example/v1' });
  expect(settled).toMatchObject({
    ok: true,
    model: { model_kwargs: { temperature: 0 } },
    warnings: [
      'model.model_kwargs.temperature: gpt-5 takes no temperature but 1 while it thinks; leave it out (it is sent as it is)',
    ],
  });
  const own = { base_url: 'http://localhost:8000/v1' };
  expect(settle('hosted_vllm/q', { temperature: 3, max_tokens: -1 }, own)).toMatchObject({
    ok: true,
    warnings: [expect.stringContaining('temperature'), expect.stringContaining('max_tokens')],
  });
  expect(refusal('hosted_vllm/q', { temperature: '0' }, own)).toContain('"0" is not a number');
});

test('the published configuration of mini-swe-agent fits o3 and GPT-5 by chat completions', () => {
  const kwargs = { temperature: 0, parallel_tool_calls: true };
  const settings = { drop_params: true, dialect: 'chat' };
  expect(settle('o3', kwargs, settings)).toMatchObject({ ok: true, model: { model_kwargs: {} } });
  expect(settle(GPT, kwargs, settings)).toMatchObject({
    ok: true,
    model: { model_kwargs: { parallel_tool_calls: true } },
  });
  expect(refusal('o3', kwargs, { dialect: 'chat' })).toContain('parallel_tool_calls: o3 does not take it');
});

test('drop_params leaves out what the model does not take, and no wrong value in silence', () => {
  const settled = settle(GPT, { temperature: 0, top_p: 1, parallel_tool_calls: true }, { drop_params: true });
  expect(settled).toMatchObject({
    ok: true,
    model: { model_kwargs: { parallel_tool_calls: true } },
    warnings: [
      'model.model_kwargs.temperature: gpt-5 takes no temperature but 1 while it thinks; it is left out (drop_params)',
      expect.stringContaining('top_p'),
    ],
  });
  expect(refusal('gpt-4o', { max_tokens: 20_000 }, { drop_params: true })).toContain('16384');
});

test('settled twice it is the same: a resumed run asks as it began', () => {
  const once = settle(GPT, { temperature: 0 }, { drop_params: true });
  if (!once.ok) throw new Error(once.message);
  expect(settleModel(once.model, { env: {}, litellm: false })).toEqual({ ok: true, model: once.model });
});
