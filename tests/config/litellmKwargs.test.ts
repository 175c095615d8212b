// What litellm's own parameters under model_kwargs mean, seen by the server that is asked.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { settleModel } from '../../src/model/settleModel.ts';
import { jsonReply, type RawReply, startRawServer } from '../support/rawServer.ts';

const CHAT = jsonReply({
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'x' } }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
});
const CLAUDE = jsonReply({
  ...{ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn' },
  usage: { input_tokens: 1, output_tokens: 1 },
});
const BUSY = jsonReply({ error: { message: 'busy' } }, 503);

/** Asks once with these parameters, `URL` being the server's address, and gives what it saw and what came of it. */
async function asked(
  kwargs: Record<string, unknown>,
  { model_name = 'hosted_vllm/m', replies = [CHAT] as RawReply[], env = {} as Record<string, string> } = {},
) {
  await using server = await startRawServer(replies);
  const file = JSON.stringify({ model: { model_name, model_kwargs: kwargs } }).replaceAll('URL', server.url);
  const { config, apiKey: written } = loadConfig({
    specs: ['/w/f.yaml', 'model.retry.base_delay_ms=1'],
    readFile: (path) => (path === '/w/f.yaml' ? file : null),
    cwd: '/w',
  });
  const settled = settleModel(config.model, { env, litellm: false });
  if (!settled.ok) throw new Error(settled.message);
  const apiKey = written ?? env[settled.model.api_key_env] ?? '';
  const factory = await createModelFactory(settled.model, { apiKey });
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query([{ role: 'user', content: 'hi' }]);
  await factory.close();
  const [first] = server.requests;
  return {
    answer,
    count: server.requests.length,
    ...first!,
    body: first!.body as Record<string, unknown>,
    model: settled.model,
  };
}

describe("litellm's parameters", () => {
  test.each(['api_base', 'base_url'])('%s is the address, and is not sent', async (name) => {
    const { answer, path, body } = await asked({ [name]: 'URL/v1' });
    expect(answer.success).toBe(true);
    expect(path).toBe('/v1/chat/completions');
    expect(body).toEqual({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  });
  test('api_key names a variable, and is not sent', async () => {
    const env = { MY_KEY: 'k-1' };
    const { headers, body } = await asked({ api_base: 'URL/v1', api_key: 'os.environ/MY_KEY' }, { env });
    expect(headers.authorization).toBe('Bearer k-1');
    expect(body).not.toHaveProperty('api_key');
  });
  test('api_key may be the key itself', async () => {
    const { headers, body, model } = await asked({ api_base: 'URL/v1', api_key: 'k-2' });
    expect(headers.authorization).toBe('Bearer k-2');
    expect(JSON.stringify([body, model])).not.toContain('k-2');
  });
  test('custom_llm_provider chooses the protocol, and is not sent', async () => {
    const more = { model_name: 'my-claude', replies: [CLAUDE] };
    const { path, body } = await asked({ api_base: 'URL', custom_llm_provider: 'anthropic' }, more);
    expect(path).toBe('/v1/messages');
    expect(body).not.toHaveProperty('custom_llm_provider');
    expect(body.model).toBe('my-claude');
  });
  test('extra_headers are headers, and extra_body are fields of the body', async () => {
    const { headers, body } = await asked({
      api_base: 'URL/v1',
      extra_headers: { 'X-Team': 'a' },
      extra_body: { top_k: 20 },
    });
    expect(headers['x-team']).toBe('a');
    expect(body).toMatchObject({ top_k: 20 });
    for (const name of ['extra_headers', 'extra_body']) expect(body).not.toHaveProperty(name);
  });
  test.each([
    [0, 1],
    [2, 3],
  ])('num_retries: %s makes %s requests of a server that is busy', async (num_retries, requests) => {
    const { answer, count, body } = await asked({ api_base: 'URL/v1', num_retries }, { replies: [BUSY] });
    expect(answer.success).toBe(false);
    expect(count).toBe(requests);
    expect(body).not.toHaveProperty('num_retries');
  });
  test.each([30, '30'])('timeout: %j is the limit of a call in seconds, and is not sent', async (timeout) => {
    const { model, body } = await asked({ api_base: 'URL/v1', timeout });
    expect(model.total_timeout_s).toBe(30);
    expect(body).not.toHaveProperty('timeout');
  });
  test('drop_params leaves out what the model is known to refuse, and is not sent', async () => {
    const refusing = { api_base: 'URL/v1', temperature: 0.5 };
    const o3 = { model_name: 'openai/o3' };
    const { body } = await asked({ ...refusing, drop_params: true }, o3);
    expect(body).not.toHaveProperty('temperature');
    expect(body).not.toHaveProperty('drop_params');
    const kept = await asked({ ...refusing, drop_params: true });
    expect(kept.body).toMatchObject({ temperature: 0.5 });
  });
});
