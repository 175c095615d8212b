// Gemini and Claude at Vertex AI, by application default credentials: tokens come from a metadata server here, run out, and come again.
import { describe, expect, test } from 'vitest';
import { eventReply, jsonReply, type RawReply } from '../../support/rawServer.ts';
import { askCloud, replied } from './asking.ts';
import { startCloudServer, withVariables } from './cloudServer.ts';

const usageMetadata = { promptTokenCount: 200, cachedContentTokenCount: 100, candidatesTokenCount: 40 };
const COST = 100 * 1000 + 100 * 100 + 40 * 10_000;
const generated = (parts: object[], finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts }, ...(finishReason ? { finishReason } : {}) }],
  ...(finishReason ? { usageMetadata } : {}),
  modelVersion: 'gemini-2.5-pro',
  responseId: 'r1',
});
const claude = (content: object[], stop_reason: string | null) => ({
  id: 'msg_vrtx_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content,
  stop_reason,
  usage: { input_tokens: 100, cache_read_input_tokens: 100, output_tokens: 40 },
});
const delta = (text: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text },
});

interface Kind {
  readonly name: string;
  readonly path: string;
  readonly streamPath: string;
  readonly plain: RawReply;
  readonly stream: RawReply;
}

const PLACE = '/v1/projects/my-project/locations/us-east5';
const KINDS: readonly Kind[] = [
  {
    name: 'vertex_ai/gemini-2.5-pro',
    path: `${PLACE}/publishers/google/models/gemini-2.5-pro:generateContent`,
    streamPath: `${PLACE}/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse`,
    plain: jsonReply(generated([{ text: 'Look at é.' }], 'STOP')),
    stream: eventReply([
      [null, generated([{ text: 'Look ' }])],
      [null, generated([{ text: 'at é.' }], 'STOP')],
    ]),
  },
  {
    name: 'vertex_ai/claude-sonnet-4-5@20250929',
    path: `${PLACE}/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict`,
    streamPath: `${PLACE}/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict`,
    plain: jsonReply(claude([{ type: 'text', text: 'Look at é.' }], 'end_turn')),
    stream: eventReply(
      [
        { type: 'message_start', message: claude([], null) },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        delta('Look '),
        delta('at é.'),
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } },
        { type: 'message_stop' },
      ].map((data) => [data.type, data] as const),
    ),
  },
];

/** Gives `ya29.token-1`, then `-2`, and so on. */
async function metadataServer() {
  let given = 0;
  const flavor = { 'metadata-flavor': 'Google' };
  const server = await startCloudServer((asked) => {
    if (!asked.url.includes('/token')) return { headers: flavor, body: 'ok' };
    given += 1;
    return jsonReply(
      { access_token: `ya29.token-${given}`, expires_in: 3600, token_type: 'Bearer' },
      200,
      flavor,
    );
  });
  const variables = withVariables({
    GCE_METADATA_HOST: server.host,
    METADATA_SERVER_DETECTION: 'assume-present',
    GOOGLE_APPLICATION_CREDENTIALS: undefined,
    // Else the library asks a gcloud of this machine, if there is one, for two seconds.
    GOOGLE_CLOUD_PROJECT: 'my-project',
    HOME: '/nowhere',
    APPDATA: undefined,
  });
  return {
    given: () => given,
    async [Symbol.asyncDispose]() {
      variables[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const envOf = (url: string) => ({
  VERTEXAI_PROJECT: 'my-project',
  VERTEXAI_LOCATION: 'us-east5',
  VERTEXAI_API_BASE: `${url}/v1`,
});
const UNAUTHENTICATED = (said: string) =>
  jsonReply({ error: { code: 401, status: 'UNAUTHENTICATED', message: said } }, 401);

describe.each(KINDS)('$name', (kind) => {
  test.each([false, true])('a token of the metadata server, and the answer (stream: %s)', async (stream) => {
    await using place = await metadataServer();
    await using server = await startCloudServer(({ headers }) =>
      headers.authorization === 'Bearer ya29.token-1'
        ? kind[stream ? 'stream' : 'plain']
        : UNAUTHENTICATED('no'),
    );
    const { answers } = await askCloud({
      model_name: kind.name,
      env: envOf(server.url),
      settings: { stream },
      times: 2,
    });
    for (const answer of answers)
      expect(replied(answer)).toMatchObject({ content: 'Look at é.', costNano: COST });
    expect(server.asked.map(({ url }) => url)).toEqual(Array(2).fill(stream ? kind.streamPath : kind.path));
    expect(place.given()).toBe(1);
    const body = JSON.parse(server.asked[0]!.bytes.toString()) as Record<string, unknown>;
    expect(body).not.toHaveProperty('model');
    if (kind.name.includes('claude'))
      expect(body).toMatchObject({
        anthropic_version: 'vertex-2023-10-16',
        max_tokens: 64_000,
        ...(stream ? { stream } : {}),
      });
  });

  test('a token that is refused in the middle of a run is got anew; it stands in no text', async () => {
    await using place = await metadataServer();
    await using server = await startCloudServer(({ headers }, n) =>
      headers.authorization === `Bearer ya29.token-${n === 1 ? 1 : 2}`
        ? kind.plain
        : UNAUTHENTICATED(`Request had invalid credentials: ${headers.authorization}`),
    );
    const { answers, calls } = await askCloud({ model_name: kind.name, env: envOf(server.url), times: 3 });
    expect(answers.map(({ success }) => success)).toEqual([true, true, true]);
    expect(calls.map((call) => call.statusCode)).toEqual([200, 401, 200, 200]);
    expect(JSON.stringify(calls)).not.toContain('ya29.token');
    expect(place.given()).toBe(2);
  });

  test('a token that is never taken ends the run at once', async () => {
    await using _place = await metadataServer();
    await using server = await startCloudServer(() => UNAUTHENTICATED('no'));
    const { answers } = await askCloud({ model_name: kind.name, env: envOf(server.url) });
    expect(answers[0]).toMatchObject({ success: false, metadata: { kind: 'auth' } });
    expect(answers[0]!.message).toContain("Google's application default credentials");
    expect(server.asked).toHaveLength(1);
  });
});

test('many calls that meet the end of one token get one new token', async () => {
  await using place = await metadataServer();
  const [{ name, plain }] = KINDS as [Kind];
  const { createCredentials } = await import('../../../src/model/clouds/cloud.ts');
  let opened = 0;
  const credentials = createCredentials(() => {
    opened += 1;
    return async () => `token ${opened}`;
  });
  const first = await credentials.current();
  expect(credentials.renew(first.generation)).toBe(false);
  credentials.accepted(first.generation);
  expect([1, 2, 3].map(() => credentials.renew(first.generation))).toEqual([true, true, true]);
  expect(opened).toBe(2);
  const second = await credentials.current();
  expect(credentials.renew(second.generation)).toBe(false);
  await using server = await startCloudServer(() => plain);
  expect((await askCloud({ model_name: name, env: envOf(server.url) })).answers[0]!.success).toBe(true);
  expect(place.given()).toBe(1);
});

test('without credentials anywhere no request leaves', async () => {
  using _none = withVariables({
    GOOGLE_APPLICATION_CREDENTIALS: '/nowhere/credentials.json',
    HOME: '/nowhere',
    METADATA_SERVER_DETECTION: 'none',
  });
  await using server = await startCloudServer(() => KINDS[0]!.plain);
  const { answers } = await askCloud({ model_name: KINDS[0]!.name, env: envOf(server.url) });
  expect(answers[0]).toMatchObject({ success: false, metadata: { kind: 'auth' } });
  expect(answers[0]!.message).toContain("no credentials from Google's application default credentials");
  expect(server.asked).toHaveLength(0);
});
