// OpenAI's models at Azure: by a key, by a token in a variable, and by a token of Entra ID that a server here gives; in both dialects.
import { describe, expect, test } from 'vitest';
import { eventReply, jsonReply, type RawReply } from '../../support/rawServer.ts';
import { askCloud, replied } from './asking.ts';
import { startCloudServer, withVariables } from './cloudServer.ts';

const COST = 100 * 1000 + 100 * 100 + 40 * 10_000;
const chatUsage = {
  prompt_tokens: 200,
  completion_tokens: 40,
  prompt_tokens_details: { cached_tokens: 100 },
};
const choice = (rest: object) => ({ id: 'c1', model: 'gpt-4o', choices: [{ index: 0, ...rest }] });
const response = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'gpt-5.1',
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Look.' }] }],
  usage: {
    input_tokens: 200,
    input_tokens_details: { cached_tokens: 100 },
    output_tokens: 40,
    total_tokens: 240,
  },
};

interface Kind {
  readonly name: string;
  readonly version: string;
  readonly path: string;
  readonly plain: RawReply;
  readonly stream: RawReply;
}
const CHAT = {
  plain: jsonReply({
    ...choice({ message: { role: 'assistant', content: 'Look.' }, finish_reason: 'stop' }),
    usage: chatUsage,
  }),
  stream: eventReply([
    [null, choice({ delta: { role: 'assistant', content: 'Look.' }, finish_reason: null })],
    [null, choice({ delta: {}, finish_reason: 'stop' })],
    [null, { id: 'c1', model: 'gpt-4o', choices: [], usage: chatUsage }],
    [null, '[DONE]'],
  ]),
};
const RESPONSES = {
  plain: jsonReply(response),
  stream: eventReply([['response.completed', { type: 'response.completed', response }]]),
};
const DATED = '2025-04-01-preview';
const KINDS: readonly Kind[] = [
  {
    name: 'azure/gpt-4o',
    version: DATED,
    path: `/openai/deployments/gpt-4o/chat/completions?api-version=${DATED}`,
    ...CHAT,
  },
  { name: 'azure/gpt-4o', version: 'v1', path: '/openai/v1/chat/completions', ...CHAT },
  { name: 'azure/gpt-5.1', version: DATED, path: `/openai/responses?api-version=${DATED}`, ...RESPONSES },
  {
    name: 'azure/gpt-5.1',
    version: 'preview',
    path: '/openai/v1/responses?api-version=preview',
    ...RESPONSES,
  },
  {
    name: 'azure/gpt-5.1',
    version: '2024-10-21',
    path: '/openai/deployments/gpt-5.1/chat/completions?api-version=2024-10-21',
    ...CHAT,
  },
  { name: 'azure/responses/mine', version: 'v1', path: '/openai/v1/responses', ...RESPONSES },
];

const envOf = (url: string, AZURE_API_VERSION: string) => ({ AZURE_API_BASE: `${url}/`, AZURE_API_VERSION });

describe.each(KINDS)('$name, $version', (kind) => {
  test.each([false, true])('by a key (stream: %s)', async (stream) => {
    await using server = await startCloudServer(({ headers }) =>
      headers['api-key'] === 'azure-key-1' ? kind[stream ? 'stream' : 'plain'] : jsonReply({}, 401),
    );
    const { answers, model } = await askCloud({
      model_name: kind.name,
      env: { ...envOf(server.url, kind.version), AZURE_API_KEY: 'azure-key-1' },
      apiKey: 'azure-key-1',
      settings: { stream },
    });
    expect(replied(answers[0]!)).toMatchObject({ content: 'Look.', costNano: COST });
    expect(server.asked[0]!.url).toBe(kind.path);
    expect(server.asked[0]!.headers).not.toHaveProperty('authorization');
    expect(model).toMatchObject({ api_key_env: 'AZURE_API_KEY', base_url: server.url });
    const body = JSON.parse(server.asked[0]!.bytes.toString()) as Record<string, unknown>;
    expect(body).toMatchObject({ model: kind.name.split('/').at(-1) });
    expect(body).not.toHaveProperty('api_version');
  });
});

test('by a token in a variable', async () => {
  await using server = await startCloudServer(() => CHAT.plain);
  const env = { ...envOf(server.url, 'v1'), AZURE_AD_TOKEN: 'eyJ.token' };
  const { answers } = await askCloud({ model_name: 'azure/gpt-4o', env, apiKey: 'eyJ.token' });
  expect(answers[0]!.success).toBe(true);
  expect(server.asked[0]!.headers.authorization).toBe('Bearer eyJ.token');
});

test('by a managed identity: the token is got once, got anew when it is refused, and stands in no text', async () => {
  let given = 0;
  await using identity = await startCloudServer(({ headers }) => {
    if (headers['x-identity-header'] !== 'header-secret') return jsonReply({}, 400);
    given += 1;
    const expires_on = String(Math.floor(Date.now() / 1000) + 86_400);
    return jsonReply({ access_token: `eyJ.entra-${given}`, expires_on, token_type: 'Bearer', resource: 'x' });
  });
  using _variables = withVariables({
    IDENTITY_ENDPOINT: `${identity.url}/msi/token`,
    IDENTITY_HEADER: 'header-secret',
    AZURE_CLIENT_ID: undefined,
    AZURE_TENANT_ID: undefined,
    AZURE_CLIENT_SECRET: undefined,
    AZURE_TOKEN_CREDENTIALS: 'ManagedIdentityCredential',
  });
  await using server = await startCloudServer(({ headers }, n) =>
    headers.authorization === `Bearer eyJ.entra-${n <= 2 ? 1 : 2}`
      ? CHAT.plain
      : jsonReply(
          { error: { code: 'Unauthorized', message: `Access token ${headers.authorization} is expired` } },
          401,
        ),
  );
  const { answers, calls } = await askCloud({
    model_name: 'azure/gpt-4o',
    env: envOf(server.url, 'v1'),
    times: 4,
  });
  expect(answers.map(({ success }) => success)).toEqual([true, true, true, true]);
  expect(calls.map((call) => call.statusCode)).toEqual([200, 200, 401, 200, 200]);
  expect(JSON.stringify(calls)).not.toContain('eyJ.entra');
  expect(identity.asked[0]!.url).toContain(encodeURIComponent('https://cognitiveservices.azure.com'));
});
