// What a model's name means: dialect, address, key and the name that is sent.
import { describe, expect, test } from 'vitest';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { namedModel, PROVIDERS } from '../../src/model/names.ts';
import { settleModel } from '../../src/model/settleModel.ts';

const settle = (settings: Record<string, unknown>, env: Record<string, string> = {}, litellm = false) =>
  settleModel(modelConfigSchema.parse(settings), { env, litellm });

const facts = (settings: Record<string, unknown>, env: Record<string, string> = {}, litellm = false) => {
  const settled = settle(settings, env, litellm);
  if (!settled.ok) return `${settled.message}; ${settled.fix}`;
  const { model } = settled;
  return [namedModel(model).dialect, namedModel(model).sentAs, namedModel(model).address, model.api_key_env];
};

describe('names', () => {
  test.each([
    ['gpt-5.1', 'responses', 'gpt-5.1', 'https://api.openai.com/v1', 'OPENAI_API_KEY'],
    ['openai/gpt-5.1', 'responses', 'gpt-5.1', 'https://api.openai.com/v1', 'OPENAI_API_KEY'],
    ['o3', 'responses', 'o3', 'https://api.openai.com/v1', 'OPENAI_API_KEY'],
    ['gpt-4o', 'chat', 'gpt-4o', 'https://api.openai.com/v1', 'OPENAI_API_KEY'],
    [
      'anthropic/claude-opus-4-5',
      'messages',
      'claude-opus-4-5',
      'https://api.anthropic.com',
      'ANTHROPIC_API_KEY',
    ],
    ['claude-opus-4-5', 'messages', 'claude-opus-4-5', 'https://api.anthropic.com', 'ANTHROPIC_API_KEY'],
    [
      'gemini/gemini-2.5-pro',
      'gemini',
      'gemini-2.5-pro',
      'https://generativelanguage.googleapis.com/v1beta',
      'GEMINI_API_KEY',
    ],
    [
      'openrouter/anthropic/claude-opus-4.5',
      'chat',
      'anthropic/claude-opus-4.5',
      'https://openrouter.ai/api/v1',
      'OPENROUTER_API_KEY',
    ],
    ['deepseek/deepseek-chat', 'chat', 'deepseek-chat', 'https://api.deepseek.com', 'DEEPSEEK_API_KEY'],
    ['ollama_chat/qwen3', 'chat', 'qwen3', 'http://localhost:11434/v1', 'OLLAMA_API_KEY'],
  ])('%s', (name, ...expected) => {
    expect(facts({ model_name: name })).toEqual(expected);
  });

  test('a name of nobody is sent to OpenAI as it is, as before', () => {
    expect(facts({ model_name: 'my-model' })).toEqual([
      'chat',
      'my-model',
      'https://api.openai.com/v1',
      'OPENAI_API_KEY',
    ]);
  });

  test('with an address of its own a name is whatever the server there calls it', () => {
    const base_url = 'http://localhost:8000/v1';
    for (const name of ['claude-opus-4-5', 'gpt-5.1', 'openai/gpt-oss-120b', 'Qwen/Qwen3-Coder'])
      expect(facts({ model_name: name, base_url })).toEqual(['chat', name, base_url, 'OPENAI_API_KEY']);
    expect(facts({ model_name: 'anthropic/claude-x', base_url })).toEqual([
      'messages',
      'claude-x',
      base_url,
      'ANTHROPIC_API_KEY',
    ]);
  });

  test('an unknown prefix names the known ones, and a server of one’s own needs its address', () => {
    expect(facts({ model_name: 'athropic/claude-x' })).toMatch(
      /by the prefix of "athropic\/claude-x" \(did you mean anthropic\/claude-x\?\); write one of openai\/, anthropic\//,
    );
    expect(facts({ model_name: 'hosted_vllm/m' })).toMatch(/set model.base_url, or \$HOSTED_VLLM_API_BASE/);
    expect(facts({ model_name: 'hosted_vllm/m' }, { HOSTED_VLLM_API_BASE: 'http://h:1/v1' })).toEqual([
      'chat',
      'm',
      'http://h:1/v1',
      'HOSTED_VLLM_API_KEY',
    ]);
  });

  test('a name of nobody goes where OpenAI’s clients would send it', () => {
    const env = { OPENAI_BASE_URL: 'http://g/v1/' };
    const at = (url: string, name: string) => ['chat', name, url, 'OPENAI_API_KEY'];
    expect(facts({ model_name: 'my-model' }, env)).toEqual(at('http://g/v1', 'my-model'));
    expect(facts({ model_name: 'Qwen/Qwen3-Coder' }, env)).toEqual(at('http://g/v1', 'Qwen/Qwen3-Coder'));
    expect(facts({ model_name: 'gpt-4o' }, env)).toEqual(at('http://g/v1', 'gpt-4o'));
    expect(facts({ model_name: 'my-model' }, { OPENAI_API_BASE: 'http://l/v1' })).toEqual(
      at('http://l/v1', 'my-model'),
    );
    expect(facts({ model_name: 'my-model' }, { ...env, OPENAI_API_BASE: 'http://l/v1' })[2]).toBe(
      'http://g/v1',
    );
    // The configuration counts more, and makers of their own have addresses of their own.
    expect(facts({ model_name: 'my-model', base_url: 'http://mine/v1' }, env)[2]).toBe('http://mine/v1');
    expect(facts({ model_name: 'claude-x' }, env)[2]).toBe('https://api.anthropic.com');
    expect(facts({ model_name: 'm', dialect: 'messages' }, env)[2]).toBe('https://api.openai.com/v1');
    expect(facts({ model_name: 'openrouter/x/y' }, env)[2]).toBe('https://openrouter.ai/api/v1');
    expect(facts({ model_name: 'my-model' }, { OPENAI_BASE_URL: '' })[2]).toBe('https://api.openai.com/v1');
  });

  test('the variable is told, and what was settled stays when it is settled again elsewhere', () => {
    const once = settle({ model_name: 'my-model' }, { OPENAI_BASE_URL: 'http://g/v1' });
    expect(once).toMatchObject({ ok: true, addressFrom: 'OPENAI_BASE_URL' });
    if (!once.ok) throw new Error('refused');
    const again = settleModel(once.model, { env: { OPENAI_BASE_URL: 'http://other/v1' }, litellm: false });
    expect(again).toEqual({ ok: true, model: once.model });
    expect(settle({ model_name: 'gpt-4o' })).not.toHaveProperty('addressFrom');
  });

  test('variables name other addresses and keys', () => {
    expect(
      facts({ model_name: 'claude-x' }, { ANTHROPIC_BASE_URL: 'http://g/', ANTHROPIC_AUTH_TOKEN: 't' }),
    ).toEqual(['messages', 'claude-x', 'http://g', 'ANTHROPIC_AUTH_TOKEN']);
    expect(
      facts({ model_name: 'gemini-3-pro' }, { GOOGLE_GEMINI_BASE_URL: 'http://g', GOOGLE_API_KEY: 'k' }),
    ).toEqual(['gemini', 'gemini-3-pro', 'http://g/v1beta', 'GOOGLE_API_KEY']);
    expect(facts({ model_name: 'openai/gpt-5.1' }, { OPENAI_BASE_URL: 'http://g/v1' })).toEqual([
      'chat',
      'gpt-5.1',
      'http://g/v1',
      'OPENAI_API_KEY',
    ]);
  });

  test('what the configuration says stands', () => {
    expect(facts({ model_name: 'gpt-5.1', dialect: 'chat' })).toEqual(
      facts({ model_name: 'gpt-5.1', dialect: 'chat', api_key_env: 'OPENAI_API_KEY' }),
    );
    expect(facts({ model_name: 'claude-x', api_key_env: 'MINE' })[3]).toBe('MINE');
    expect(facts({ model_name: 'm', dialect: 'messages', base_url: 'http://h' })).toEqual([
      'messages',
      'm',
      'http://h',
      'OPENAI_API_KEY',
    ]);
  });

  test('under agent.compat OpenAI is asked for chat completions, as litellm does', () => {
    expect(facts({ model_name: 'openai/gpt-5.1' }, {}, true)[0]).toBe('chat');
    expect(facts({ model_name: 'openai/gpt-5.1', dialect: 'responses' }, {}, true)[0]).toBe('responses');
    expect(settle({ model_name: 'gpt-4o' }, {}, true)).toEqual(settle({ model_name: 'gpt-4o' }));
  });

  test('scripted and replayed models, modules and plain chat configurations stay as they are', () => {
    for (const settings of [
      { model_name: 'scripted:x' },
      { model_name: 'replay:r' },
      { model_class: './m.ts', model_name: 'foo/bar' },
      { model_name: 'gpt-4o' },
      { model_name: 'openai/fake', base_url: 'http://localhost:1/v1' },
    ]) {
      const model = modelConfigSchema.parse(settings);
      expect(settleModel(model, { env: {}, litellm: false })).toEqual({ ok: true, model });
    }
  });

  test('prefixes are told apart', () => {
    const prefixes = PROVIDERS.map(({ prefix }) => prefix);
    expect(new Set(prefixes).size).toBe(prefixes.length);
  });
});

test('how long a cache keeps what no request marks is warned of', () => {
  const warned = (settings: Record<string, unknown>) => {
    const settled = settle({ cache_ttl: '1h', ...settings });
    return settled.ok ? (settled.warnings ?? []) : [settled.message];
  };
  expect(warned({ model_name: 'claude-opus-4-5' })).toEqual([]);
  expect(
    warned({ model_name: 'openrouter/anthropic/claude-opus-4.5', set_cache_control: 'default_end' }),
  ).toEqual([]);
  expect(warned({ model_name: 'gpt-5.1' })).toEqual([
    'model.cache_ttl: 1h has no effect, because responses has no marks',
  ]);
  expect(warned({ model_name: 'gemini-2.5-pro' })).toHaveLength(1);
  expect(warned({ model_name: 'deepseek/deepseek-chat' })).toEqual([
    'model.cache_ttl: 1h has no effect, because no mark is set; add model.set_cache_control: default_end',
  ]);
});

test.each([
  ['https://openrouter.ai/api/v1', 'anthropic/claude-opus-4.5', 'anthropic/claude-opus-4.5'],
  ['https://openrouter.ai/api/v1', 'openai/gpt-5.1', 'openai/gpt-5.1'],
  ['https://openrouter.ai/api/v1', 'openrouter/openai/gpt-5.1', 'openai/gpt-5.1'],
  ['https://api.portkey.ai/v1', '@team/claude', '@team/claude'],
  ['https://api.portkey.ai/v1', 'gemini/gemini-2.5-pro', 'gemini/gemini-2.5-pro'],
  ['https://router.requesty.ai/v1', 'anthropic/claude-opus-4-5', 'anthropic/claude-opus-4-5'],
])('the router at %s knows %s by its own name, and speaks chat', (base_url, model_name, sent) => {
  const [dialect, model, address, key] = facts({ model_name, base_url, api_key_env: 'ROUTER_KEY' });
  expect([dialect, model, address, key]).toEqual(['chat', sent, base_url, 'ROUTER_KEY']);
});

test.each(
  PROVIDERS.filter(({ cloud }) => cloud === undefined).map(
    (provider) => [provider.prefix, provider] as const,
  ),
)(
  '%s: a missing key names its variable before anything starts',
  async (prefix, { keys, keyOptional, baseUrl }) => {
    const settled = settle({
      model_name: `${prefix}/m`,
      ...(baseUrl === null ? { base_url: 'https://s.example/v1' } : {}),
    });
    if (!settled.ok) throw new Error(settled.message);
    const made = createModelFactory(settled.model, {});
    if (keyOptional) await (await made).close();
    else await expect(made).rejects.toThrow(`set $${keys[0]}`);
  },
);
