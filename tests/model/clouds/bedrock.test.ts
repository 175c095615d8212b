// Claude at Bedrock: signed with credentials of AWS, which a server here checks by itself; streamed in Amazon's frames; credentials that run out.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { missingCredentials } from '../../../src/model/clouds/chooseCloud.ts';
import { cli, REPO, tempDir } from '../../support/cli.ts';
import { jsonReply, type RawReply } from '../../support/rawServer.ts';
import { askCloud, replied, settledCloud } from './asking.ts';
import { startCloudServer, withVariables } from './cloudServer.ts';
import { eventFrame, exceptionFrame, signatureProblem } from './sigV4.ts';

const MODEL = 'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const KEYS = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_SESSION_TOKEN: undefined,
  AWS_PROFILE: undefined,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: undefined,
  HOME: '/nowhere',
};

const usage = {
  input_tokens: 100,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 0,
  output_tokens: 40,
};
const COST = 100 * 1000 + 100 * 100 + 40 * 10_000;
const ANSWER = {
  id: 'msg_bdrk_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Look at é.' }],
  stop_reason: 'end_turn',
  usage,
};
const EVENTS = [
  {
    type: 'message_start',
    message: { ...ANSWER, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Look at ' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'é.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 200 } },
];
const stream = (body: Buffer): RawReply => ({
  headers: { 'content-type': 'application/vnd.amazon.eventstream' },
  body,
});
const streamed = stream(Buffer.concat(EVENTS.map(eventFrame)));
const refusal = (status: number, kind: string, message: string, headers = {}): RawReply =>
  jsonReply({ message }, status, { 'x-amzn-errortype': `${kind}:http://internal.amazon.com/x/`, ...headers });

const region = { AWS_REGION: 'us-east-1' };
const envOf = (url: string) => ({ ...region, AWS_BEDROCK_RUNTIME_ENDPOINT: url });

describe.each([false, true])('stream: %s', (streaming) => {
  test('a signed request, and its answer', async () => {
    using _keys = withVariables(KEYS);
    await using server = await startCloudServer((asked) =>
      signatureProblem(asked, SECRET) === null
        ? streaming
          ? streamed
          : jsonReply(ANSWER)
        : jsonReply({}, 403),
    );
    const { answers, calls } = await askCloud({
      model_name: MODEL,
      env: envOf(server.url),
      settings: { stream: streaming, model_kwargs: { temperature: 0.5 } },
    });
    expect(replied(answers[0]!)).toMatchObject({
      content: 'Look at é.',
      finishReason: 'stop',
      costNano: COST,
    });
    expect(calls).toMatchObject([
      { state: 'ok', costNano: COST, usage: { input: 100, cacheRead: 100, output: 40 } },
    ]);
    const [asked] = server.asked;
    expect(signatureProblem(asked!, SECRET)).toBeNull();
    expect(signatureProblem(asked!, 'another secret')).not.toBeNull();
    expect(signatureProblem({ ...asked!, bytes: Buffer.from('{}') }, SECRET)).not.toBeNull();
    expect(asked!.url).toBe(
      `/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/${streaming ? 'invoke-with-response-stream' : 'invoke'}`,
    );
    const body = JSON.parse(asked!.bytes.toString()) as Record<string, unknown>;
    expect(body).toMatchObject({
      anthropic_version: 'bedrock-2023-05-31',
      temperature: 0.5,
      max_tokens: 64_000,
    });
    expect(body).not.toHaveProperty('model');
    expect(body).not.toHaveProperty('stream');
    expect(asked!.headers.authorization).toContain('/us-east-1/bedrock/aws4_request');
  });
});

test('frames in pieces of any size are the same; one that is cut or damaged is asked for again', async () => {
  using _keys = withVariables(KEYS);
  const whole = Buffer.concat(EVENTS.map(eventFrame));
  const damaged = Buffer.from(whole);
  damaged[200]! ^= 0xff;
  const begun = Buffer.concat(EVENTS.slice(0, 6).map(eventFrame));
  const bodies = [begun.subarray(0, begun.length - 30), damaged, whole];
  await using server = await startCloudServer((_asked, n) => stream(bodies[Math.min(n, 3) - 1]!));
  const { answers, calls } = await askCloud({
    model_name: MODEL,
    env: envOf(server.url),
    settings: { stream: true },
  });
  expect(replied(answers[0]!).content).toBe('Look at é.');
  expect(calls.map((call) => call.errorCode)).toEqual(['NETWORK_ERROR', 'NETWORK_ERROR', null]);
  const { readFrames, loadFrames } = await import('../../../src/model/clouds/bedrock.ts');
  await loadFrames();
  const read = async (size: number) => {
    const events = [];
    const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, n) =>
      whole.subarray(n * size, (n + 1) * size),
    );
    for await (const { data } of readFrames(
      (async function* () {
        yield* pieces;
      })(),
    ))
      events.push(data);
    return events;
  };
  for (const size of [1, 3, 50, 10_000]) expect(await read(size)).toEqual(EVENTS);
});

test('an exception inside a stream means what the error of Messages means', async () => {
  using _keys = withVariables(KEYS);
  const begun = EVENTS.slice(0, 1).map(eventFrame);
  const ask = async (kind: string, message: string) => {
    await using server = await startCloudServer((_asked, n) =>
      n === 1 ? stream(Buffer.concat([...begun, exceptionFrame(kind, message)])) : streamed,
    );
    const { answers } = await askCloud({
      model_name: MODEL,
      env: envOf(server.url),
      settings: { stream: true },
    });
    return [answers[0]!.success, server.asked.length];
  };
  expect(await ask('throttlingException', 'Too many requests')).toEqual([true, 2]);
  expect(await ask('modelStreamErrorException', 'again')).toEqual([true, 2]);
  expect(await ask('validationException', 'Input is too long for requested model.')).toEqual([false, 1]);
});

test.each([
  ['ThrottlingException', 429, 'Too many requests', 'unavailable', 3],
  ['ServiceQuotaExceededException', 400, 'quota exceeded', 'quota', 1],
  ['ModelErrorException', 424, 'the model failed', 'unavailable', 3],
  ['ValidationException', 400, 'Input is too long for requested model.', 'context', 1],
  ['ValidationException', 400, 'The provided model identifier is invalid.', 'not_found', 1],
  ['ValidationException', 400, 'max_tokens: 100000 > 64000, which is the maximum', 'config', 1],
  ['AccessDeniedException', 403, 'You don’t have access to the model', 'auth', 1],
  ['ResourceNotFoundException', 404, 'no such model', 'not_found', 1],
] as const)('%s (%s): %s', async (kind, status, message, why, requests) => {
  using _keys = withVariables(KEYS);
  await using server = await startCloudServer(() => refusal(status, kind, message));
  const { answers } = await askCloud({ model_name: MODEL, env: envOf(server.url) });
  expect(answers[0]).toMatchObject({ success: false, metadata: { kind: why } });
  expect(server.asked).toHaveLength(requests);
});

describe('credentials', () => {
  test('that run out in the middle of a run are got anew, from where they came', async () => {
    let given = 0;
    await using place = await startCloudServer(() => {
      given += 1;
      const Expiration = new Date(Date.now() + 3_600_000).toISOString();
      return jsonReply({
        AccessKeyId: `ASIA${given}`,
        SecretAccessKey: `${SECRET}${given}`,
        Token: `token-${given}-abcdef`,
        Expiration,
      });
    });
    using _keys = withVariables({
      ...KEYS,
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${place.url}/credentials`,
    });
    await using server = await startCloudServer((asked, n) => {
      const mine = n === 1 ? 1 : 2;
      const good = signatureProblem(asked, `${SECRET}${mine}`) === null;
      return good && asked.headers['x-amz-security-token'] === `token-${mine}-abcdef`
        ? jsonReply(ANSWER)
        : refusal(
            403,
            'ExpiredTokenException',
            `The security token ${asked.headers['x-amz-security-token']} is expired`,
          );
    });
    const { answers, calls } = await askCloud({ model_name: MODEL, env: envOf(server.url), times: 2 });
    expect(answers.map(({ success }) => success)).toEqual([true, true]);
    expect(calls.map((call) => [call.statusCode, call.costNano])).toEqual([
      [200, COST],
      [403, 0],
      [200, COST],
    ]);
    expect(JSON.stringify(calls)).not.toMatch(/token-\d-abcdef/);
    expect(given).toBe(2);
  });

  test('that were never taken end the run at once, and the reason is named without them', async () => {
    using _keys = withVariables({ ...KEYS, AWS_SESSION_TOKEN: 'session-token-abcdef' });
    await using server = await startCloudServer((asked) =>
      refusal(
        403,
        'ExpiredTokenException',
        `token ${asked.headers['x-amz-security-token']} included is expired`,
      ),
    );
    const { answers } = await askCloud({ model_name: MODEL, env: envOf(server.url) });
    expect(answers[0]).toMatchObject({ success: false, metadata: { kind: 'auth' } });
    expect(answers[0]!.message).toContain('the credentials have expired: get new ones');
    expect(JSON.stringify(answers)).not.toContain('session-token');
    expect(server.asked).toHaveLength(1);
  });

  test('a clock that is wrong is named, with how wrong it is', async () => {
    using _keys = withVariables(KEYS);
    const date = new Date(Date.now() - 20 * 60_000).toUTCString();
    await using server = await startCloudServer(() =>
      refusal(
        403,
        'InvalidSignatureException',
        'Signature not yet current: 20260101T000000Z is still later than 20251231T',
        { date },
      ),
    );
    const { answers } = await askCloud({ model_name: MODEL, env: envOf(server.url) });
    expect(answers[0]!.message).toMatch(
      /the clock of this machine is 20m\d*s? ahead of the provider's: set it by NTP/,
    );
  });

  test('that are nowhere: no request leaves, and the chain is named', async () => {
    using _keys = withVariables({
      ...KEYS,
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      AWS_EC2_METADATA_DISABLED: 'true',
    });
    await using server = await startCloudServer(() => jsonReply(ANSWER));
    const { answers } = await askCloud({ model_name: MODEL, env: envOf(server.url) });
    expect(answers[0]).toMatchObject({ success: false, metadata: { kind: 'auth' } });
    expect(answers[0]!.message).toContain("no credentials from AWS's default chain");
    expect(server.asked).toHaveLength(0);
  });

  test('that are nowhere are told before a run starts', async () => {
    const none = { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined };
    using _keys = withVariables({ ...KEYS, AWS_EC2_METADATA_DISABLED: 'true' });
    const model = settledCloud({ model_name: MODEL, env: envOf('http://127.0.0.1:9') });
    expect(await missingCredentials(model)).toBeNull();
    using _none = withVariables(none);
    expect(await missingCredentials(model)).toEqual({
      message: expect.stringContaining("no credentials from AWS's default chain"),
      fix: expect.stringContaining('a key in $'),
    });
    const out = join(tempDir(), 'out');
    const { code, stderr } = await cli(
      ['run', '--subset', join(REPO, 'datasets/demo'), '--split', 'demo', '-m', MODEL, '-o', out],
      { env: { AWS_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true', HOME: '/nowhere' } },
    );
    expect([code, stderr]).toEqual([2, expect.stringContaining("no credentials from AWS's default chain")]);
    expect(existsSync(out)).toBe(false);
  });

  test('a key of Bedrock’s own is a bearer’s, and nothing is signed', async () => {
    await using server = await startCloudServer(() => jsonReply(ANSWER));
    const env = { ...envOf(server.url), AWS_BEARER_TOKEN_BEDROCK: 'bedrock-api-key-1' };
    const { answers, model } = await askCloud({
      model_name: MODEL,
      env,
      apiKey: env.AWS_BEARER_TOKEN_BEDROCK,
    });
    expect(answers[0]!.success).toBe(true);
    expect(model.api_key_env).toBe('AWS_BEARER_TOKEN_BEDROCK');
    expect(server.asked[0]!.headers.authorization).toBe('Bearer bedrock-api-key-1');
  });
});
