// The model layer against a server that misbehaves (T-01 to T-13, T-16, T-17 of docs/appendix/proofs.md): what a person reads, what the
// ledger holds, and how many requests the server saw. Back-off takes no time; deadlines are real and short.
import { spawn } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import type { ModelErrorResponse, ModelReply, ModelResponse } from '../../src/model/model.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import type { Directive } from '../support/fakeAnswer.ts';
import { ASK, autoClock, configOf, KEY, manualClock, modelOf, recorder, wire } from './harness.ts';

const FAST = { retry: { max_retries: 3, base_delay_ms: 10, enable_jitter: false } };

function failed(response: ModelResponse<ModelReply>): ModelErrorResponse {
  if (response.success) throw new Error(`expected a failure, got "${response.result.content}"`);
  return response;
}

async function ask(replies: readonly (Directive | string)[], settings: Record<string, unknown> = {}) {
  await using wired = await wire({ replies }, { ...FAST, ...settings });
  const seen = recorder();
  const response = await modelOf(wired).query(ASK, { listener: seen.listener });
  const ports = new Set(wired.server.requests.map((request) => request.port));
  return {
    response,
    ...seen,
    requests: wired.server.count(),
    slept: wired.slept,
    ports,
    url: wired.server.url,
  };
}

describe('T-01: three 429s with Retry-After, then an answer', () => {
  const limited: Directive = { status: 429, headers: { 'retry-after': '2' } };

  test('three rows of cost 0 and status 429, at least 2 s between tries, then success', async () => {
    const { response, calls, requests, slept, phases } = await ask([limited, limited, limited, 'done']);
    expect(response.success).toBe(true);
    expect(requests).toBe(4);
    expect(calls.map((call) => [call.try, call.state, call.statusCode, call.costNano === 0])).toEqual([
      [0, 'failed', 429, true],
      [1, 'failed', 429, true],
      [2, 'failed', 429, true],
      [3, 'ok', 200, false],
    ]);
    expect(slept.filter((ms) => ms >= 2000)).toHaveLength(3);
    expect(phases).toContain('backoff');
  });

  test('all slots of the model wait, not only the one that was hit [T-01]', async () => {
    const time = manualClock();
    await using wired = await wire(
      { scripts: { default: ['fine'], hit: [limited, 'fine'] } },
      FAST,
      time.clock,
    );
    const say = (instance: string) =>
      modelOf(wired, instance).query([{ role: 'user', content: `[[instance:${instance}]]` }], other);
    const other = recorder();
    const first = say('hit');
    await time.untilSleeping(1);
    const second = say('b__b-1');
    await time.untilSleeping(2);
    expect(other.phases.at(-1)).toBe('rate_wait');
    await time.advance(1999);
    expect(wired.server.count()).toBe(1);
    expect(wired.factory.load?.()).toMatchObject({ waiting: 1, blockedMs: 1, rateLimited: 1 });
    await time.advance(1);
    expect((await first).success && (await second).success).toBe(true);
    expect(wired.server.count()).toBe(3);
  });
});

test('T-02: 429 for ever', async () => {
  const body = {
    error: { message: 'Rate limit reached for requests', type: 'requests', code: 'rate_limit_exceeded' },
  };
  const { response, calls, requests } = await ask([
    { status: 429, body, headers: { 'retry-after': '35.7' } },
  ]);
  // Sixteen waits are 571 s; one more would be longer than max_retry_after_s in all.
  expect(requests).toBe(17);
  const failure = failed(response);
  expect(failure.error).toBe('RATE_LIMITED');
  expect(failure.metadata).toMatchObject({ kind: 'unavailable', statusCode: 429, retryAfter: 35.7 });
  expect(failure.message).toBe(
    `rate limited (429) after 17 tries over 9m31s; last: "${JSON.stringify(body)}"`,
  );
  expect(calls).toHaveLength(17);
  expect(calls.every((call) => call.costNano === 0)).toBe(true);
});

describe('T-03: Retry-After that cannot be followed', () => {
  test('a date in the past is the usual back-off', async () => {
    const past = { status: 429, headers: { 'retry-after': 'Fri, 20 Nov 2026 00:00:00 GMT' } };
    const { response, slept } = await ask([past, 'done']);
    expect(response.success).toBe(true);
    expect(slept).toContain(10);
  });

  test('garbage is the usual back-off, and noted', async () => {
    const { response, slept, calls } = await ask([
      { status: 429, headers: { 'retry-after': 'abc' } },
      'done',
    ]);
    expect(response.success).toBe(true);
    expect(slept).toContain(10);
    expect(calls[0]?.notes).toEqual(['Retry-After "abc" not understood: usual back-off']);
  });

  test('a day is too long: the call ends at once, and says so', async () => {
    const { response, requests, slept } = await ask([
      { status: 429, headers: { 'retry-after': '86400' } },
      'done',
    ]);
    expect(requests).toBe(1);
    expect(slept).toEqual([]);
    expect(failed(response)).toMatchObject({
      error: 'RATE_LIMITED',
      metadata: { kind: 'unavailable' },
      retryAfterMs: 86_400_000,
    });
    expect(failed(response).message).toContain('server asked to wait 24h');
  });

  test('a day asked of one slot does not hold the others', async () => {
    await using wired = await wire(
      { scripts: { default: ['fine'], hit: [{ status: 429, headers: { 'retry-after': '86400' } }] } },
      FAST,
    );
    await modelOf(wired).query([{ role: 'user', content: '[[instance:hit]]' }]);
    expect(wired.factory.load?.().blockedMs).toBe(0);
    expect((await modelOf(wired).query(ASK)).success).toBe(true);
  });
});

describe('deadlines', () => {
  test('T-04: accepted and never answered: first byte, on a new socket each time', async () => {
    const { response, requests, ports, calls } = await ask([{ hang: true }], {
      first_byte_timeout_s: 1,
      retry: { max_retries: 2, base_delay_ms: 1 },
    });
    expect(requests).toBe(3);
    expect(ports.size).toBe(3);
    expect(failed(response)).toMatchObject({ error: 'TIMEOUT', metadata: { kind: 'unavailable' } });
    expect(failed(response).message).toMatch(/^no response byte in 1s after 3 tries over/);
    expect(calls[0]).toMatchObject({
      state: 'aborted',
      statusCode: null,
      costNano: null,
      errorCode: 'TIMEOUT',
    });
    expect(calls[0]?.notes).toEqual(['answer lost: it may have been billed']);
  });

  test('T-04: an answer after a hang is taken', async () => {
    const { response, requests } = await ask([{ hang: true }, 'late'], { first_byte_timeout_s: 1 });
    expect(requests).toBe(2);
    expect(response).toMatchObject({ success: true, result: { content: 'late' } });
  });

  test('T-05: a stream that falls silent: partial row, cost estimated and flagged', async () => {
    const content = 'a text of some length, in pieces of three';
    const { response, calls } = await ask([{ content, silentAfter: 5 }], {
      stream: true,
      idle_timeout_s: 1,
      retry: { enabled: false },
    });
    expect(failed(response).message).toMatch(/^stream idle 1s after 5 chunks after 1 try/);
    const row = calls[0]!;
    expect(row).toMatchObject({
      state: 'aborted',
      errorCode: 'TIMEOUT',
      statusCode: 200,
      modelAnswered: 'gpt-4o',
    });
    expect(row.costNano).toBeGreaterThan(0);
    expect(row.usage?.output).toBe(3);
    expect(row.notes).toContain('usage and cost estimated: the answer stopped after 5 chunks');
  });

  test('a plain body that falls silent is idle too', async () => {
    const { response } = await ask([{ content: 'x'.repeat(100), drip: { bytes: 10, everyMs: 60_000 } }], {
      idle_timeout_s: 1,
      retry: { enabled: false },
    });
    expect(failed(response).message).toMatch(/^body idle 1s after 10 bytes/);
  });

  test('a body that drips for ever meets the total deadline, and dripping keeps the idle one away', async () => {
    const { response } = await ask([{ content: 'x'.repeat(10_000), drip: { bytes: 1, everyMs: 5 } }], {
      idle_timeout_s: 1,
      total_timeout_s: 2,
      retry: { enabled: false },
    });
    expect(failed(response).message).toMatch(/^no complete response in 2s/);
  });

  test('the connect deadline is named: a TLS handshake that never comes', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const sockets = new Set<import('node:net').Socket>();
    silent.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    const { clock } = autoClock();
    const factory = await createModelFactory(
      configOf({
        base_url: `https://127.0.0.1:${port}/v1`,
        connect_timeout_s: 0.1,
        retry: { enabled: false },
      }),
      { apiKey: KEY, clock },
    );
    const seen = recorder();
    const failure = failed(await factory.create({ instanceId: 'a', epoch: 1 }).query(ASK, seen));
    expect(failure.error).toBe('TIMEOUT');
    expect(failure.message).toMatch(new RegExp(`^no connection to 127.0.0.1:${port} in 100ms`));
    expect(seen.calls[0]).toMatchObject({ state: 'aborted', costNano: 0 });
    await factory.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  test('nobody listens: the error has the address and the reason, and no hint of a key', async () => {
    const { clock } = autoClock();
    const factory = await createModelFactory(configOf({ base_url: 'http://127.0.0.1:9/v1', ...FAST }), {
      apiKey: KEY,
      clock,
    });
    const failure = failed(await factory.create({ instanceId: 'a', epoch: 1 }).query(ASK));
    expect(failure).toMatchObject({ error: 'NETWORK_ERROR', metadata: { kind: 'unavailable' } });
    expect(failure.message).toMatch(/^cannot connect to 127.0.0.1:9 \(ECONNREFUSED\) after 4 tries/);
    await factory.close();
  });
});

describe('T-07: answers that are none', () => {
  const cases: [string, Directive, Record<string, unknown>, RegExp][] = [
    [
      'connection reset mid-body',
      { content: 'x', cut: true },
      {},
      /^truncated body: connection lost after \d+ bytes after 4 tries/,
    ],
    [
      'truncated JSON',
      { content: 'x', half: true },
      {},
      /^truncated body: the JSON ends after \d+ characters after 4 tries/,
    ],
    ['an empty body', { body: '' }, {}, /^truncated body: the JSON ends after 0 characters/],
    ['an HTML 502', { html: true }, {}, /^non-JSON 502 after 4 tries over \d+ms; last: "<html>/],
    ['an HTML 200', { html: true, status: 200 }, {}, /^non-JSON 200 after 4 tries/],
    [
      'an error object in a 200',
      { body: { error: { code: 500, message: 'upstream died' } } },
      {},
      /^error object in 200 after 4 tries .*; last: "upstream died"$/,
    ],
    [
      'an error inside the choice',
      { body: { choices: [{ error: { code: 502, message: 'bad' } }] } },
      {},
      /^error object in 200/,
    ],
    [
      'reset before the answer',
      { reset: true },
      {},
      /^connection to 127.0.0.1:\d+ lost before it answered after 4 tries/,
    ],
    ['a status that HTTP does not have', { status: 799 }, {}, /^server error \(799\) after 4 tries/],
    ['a 204', { status: 204, body: '' }, {}, /^truncated body/],
    ['a 500 with JSON', { status: 500 }, {}, /^server error \(500\) after 4 tries/],
    [
      'a stream cut',
      { content: 'some text', cutAfter: 2 },
      { stream: true },
      /^truncated body: connection lost/,
    ],
  ];

  test.each(cases)('%s is retried and named', async (_name, directive, settings, text) => {
    const { response, requests, calls } = await ask([directive], settings);
    expect(failed(response)).toMatchObject({ error: 'NETWORK_ERROR', metadata: { kind: 'unavailable' } });
    expect(failed(response).message).toMatch(text);
    expect(requests).toBe(4);
    expect(calls).toHaveLength(4);
  });

  test('a reply that breaks the rules of its dialect is asked again, named, and kept as it came', async () => {
    const { response, requests, calls } = await ask([{ body: { hello: 1 } }]);
    expect(failed(response)).toMatchObject({ error: 'INVALID_RESPONSE', metadata: { kind: 'unavailable' } });
    expect(failed(response).message).toMatch(/^malformed reply: choices: /);
    expect(requests).toBe(4);
    expect(calls.map((call) => call.unreadable)).toEqual(Array(4).fill('{"hello":1}'));
  });

  test.each(cases)('%s once does no harm', async (_name, directive, settings) => {
    const { response, requests } = await ask([directive, 'fine'], settings);
    expect(response).toMatchObject({ success: true, result: { content: 'fine' } });
    expect(requests).toBe(2);
  });
});

test('of a free model a lost answer costs nothing', async () => {
  const { calls } = await ask([{ content: 'x', cut: true }], { prices: 'free' });
  expect(calls.every((call) => call.costNano === 0)).toBe(true);
});

describe('servers of their own mind', () => {
  test('one that ignores stream: true and sends a plain completion', async () => {
    const body = { choices: [{ message: { role: 'assistant', content: 'plain' }, finish_reason: 'stop' }] };
    const { response } = await ask([{ body }], { stream: true });
    expect(response).toMatchObject({ success: true, result: { content: 'plain' } });
  });

  test('one that sends an error in the middle of a stream', async () => {
    const stream =
      'data: {"choices":[{"delta":{"content":"par"}}]}\n\ndata: {"error":{"code":502,"message":"upstream"}}\n\n';
    const { response, requests } = await ask(
      [{ body: stream, headers: { 'content-type': 'text/event-stream' } }, 'fine'],
      { stream: true },
    );
    expect(requests).toBe(2);
    expect(response).toMatchObject({ success: true, result: { content: 'fine' } });
  });

  test('one that ends a stream without a finish reason', async () => {
    const stream = 'data: {"choices":[{"delta":{"content":"par"}}]}\n\ndata: [DONE]\n\n';
    const { response } = await ask([{ body: stream, headers: { 'content-type': 'text/event-stream' } }], {
      stream: true,
    });
    expect(failed(response).message).toMatch(
      /^truncated body: the stream ended after 1 chunks without a finish reason/,
    );
  });

  test('one that refuses a large request before it has read it', async () => {
    const early = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write(
          'HTTP/1.1 413 Payload Too Large\r\ncontent-length: 9\r\nconnection: close\r\n\r\ntoo large',
        );
        socket.resume();
      });
    });
    await new Promise<void>((resolve) => early.listen(0, '127.0.0.1', resolve));
    const { port } = early.address() as { port: number };
    const factory = await createModelFactory(configOf({ base_url: `http://127.0.0.1:${port}/v1`, ...FAST }), {
      clock: autoClock().clock,
    });
    const model = factory.create({ instanceId: 'a', epoch: 1 });
    const failure = failed(await model.query([{ role: 'user', content: 'x'.repeat(3_000_000) }]));
    expect(failure).toMatchObject({ metadata: { kind: 'rejected', statusCode: 413 } });
    await factory.close();
    await new Promise((resolve) => early.close(resolve));
  });

  test('one that never stops: the reply is given up at 256 MB, and not asked for again', {
    timeout: 120_000,
  }, async () => {
    const part = Buffer.alloc(1024 * 1024, 'x');
    let requests = 0;
    const endless = createHttpServer((request, response) => {
      requests += 1;
      request.resume();
      const more = () => {
        while (!response.destroyed && response.write(part));
      };
      response.on('drain', more).on('error', () => undefined);
      more();
    });
    await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
    const { port } = endless.address() as { port: number };
    const factory = await createModelFactory(configOf({ base_url: `http://127.0.0.1:${port}/v1`, ...FAST }), {
      clock: autoClock().clock,
    });
    const response = await factory.create({ instanceId: 'a', epoch: 1 }).query(ASK);
    expect(failed(response).message).toBe('reply larger than 256 MB');
    expect(requests).toBe(1);
    await factory.close();
    endless.closeAllConnections();
    await new Promise((resolve) => endless.close(resolve));
  });

  test('a whole reply of more than 16 MB is a reply like any other', async () => {
    const long = 'x'.repeat(17 * 1024 * 1024);
    const { response, requests } = await ask([long]);
    expect(requests).toBe(1);
    expect(response.success && response.result.content.length).toBe(long.length);
  });
});

describe('errors that no retry helps', () => {
  test('a 403 that is about something else than the key gives the words of the provider', async () => {
    const said = 'Country, region, or territory not supported';
    const { response, requests, url } = await ask([{ status: 403, body: { error: { message: said } } }], {
      api_key_env: 'MY_KEY',
    });
    expect(requests).toBe(1);
    expect(failed(response).message).toBe(
      `access denied (403) for model gpt-4o at host ${new URL(url).host} — check that the key in $MY_KEY may use it from here; it said: "${said}"`,
    );
  });

  test('T-08: a refused key: one request, the variable named, no character of the key [M-60]', async () => {
    const body = {
      error: { message: `Incorrect API key provided: ${KEY}. Find yours at ...`, code: 'invalid_api_key' },
    };
    const { response, requests, calls, url } = await ask([{ status: 401, body }], { api_key_env: 'MY_KEY' });
    expect(requests).toBe(1);
    const failure = failed(response);
    expect(failure).toMatchObject({
      error: 'AUTHENTICATION_ERROR',
      metadata: { kind: 'auth', statusCode: 401 },
    });
    expect(failure.message).toBe(
      `authentication failed (401) for model gpt-4o at host ${new URL(url).host} — check $MY_KEY`,
    );
    expect(JSON.stringify([failure, calls])).not.toContain('0123456789abcdef');
    expect(calls[0]?.errorMessage).toContain('[key]');
  });

  test('T-09: an unknown model: the address and the id are in the text', async () => {
    const body = { error: { message: 'The model `gpt-9` does not exist', code: 'model_not_found' } };
    const { response, requests, url } = await ask([{ status: 404, body }], { model_name: 'gpt-9' });
    expect(requests).toBe(1);
    expect(failed(response)).toMatchObject({ error: 'MODEL_NOT_FOUND', metadata: { kind: 'not_found' } });
    expect(failed(response).message).toContain(url);
    expect(failed(response).message).toContain('"gpt-9"');
  });

  test.each([
    ['OpenAI', { error: { message: 'too long', code: 'context_length_exceeded' } }],
    [
      'Anthropic',
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'prompt is too long: 210013 tokens > 200000 maximum',
        },
      },
    ],
    [
      'vLLM',
      {
        object: 'error',
        message: "This model's maximum context length is 8192 tokens.",
        type: 'BadRequestError',
        code: 400,
      },
    ],
  ])('T-10: context overflow in the words of %s is not retried', async (_name, body) => {
    const { response, requests } = await ask([{ status: 400, body }]);
    expect(requests).toBe(1);
    expect(failed(response)).toMatchObject({
      error: 'CONTEXT_LENGTH_EXCEEDED',
      metadata: { kind: 'context', statusCode: 400 },
    });
    expect(failed(response).message).toMatch(/^context window exceeded \(400\): /);
  });

  test.each<[string, Directive]>([
    [
      '400 content_policy',
      { status: 400, body: { error: { message: 'no', code: 'content_policy_violation' } } },
    ],
    ['400 invalid_prompt', { status: 400, body: { error: { message: 'no', code: 'invalid_prompt' } } }],
    ['content_filter', { content: 'I', finish_reason: 'content_filter' }],
    ['message.refusal', { content: null, refusal: 'I cannot help with that.' }],
  ])('T-11: %s is a refusal', async (_name, directive) => {
    const { response, requests } = await ask([directive]);
    expect(requests).toBeLessThanOrEqual(2);
    expect(failed(response)).toMatchObject({ error: 'INVALID_RESPONSE', metadata: { kind: 'refusal' } });
    expect(failed(response).message).toMatch(/refused/);
  });

  test('a streamed refusal is one too, and what it cost is kept', async () => {
    const { response, calls } = await ask([{ refusal: 'no' }], { stream: true });
    expect(failed(response).metadata?.kind).toBe('refusal');
    expect(calls[0]).toMatchObject({ state: 'failed', costNano: 75_000, usage: { input: 10, output: 5 } });
  });

  test('an account without money is not retried', async () => {
    const body = { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } };
    const { response, requests } = await ask([{ status: 429, body }]);
    expect(requests).toBe(1);
    expect(failed(response)).toMatchObject({ error: 'RATE_LIMITED', metadata: { kind: 'quota' } });
    expect(failed(response).message).toMatch(/^no quota left \(429\)/);
  });

  test('a redirect is not followed, and says what to set', async () => {
    const { response, requests } = await ask([
      { status: 307, body: '', headers: { location: 'https://elsewhere.example/v1' } },
    ]);
    expect(requests).toBe(1);
    expect(failed(response).message).toContain('redirects to https://elsewhere.example/v1, set base_url');
  });

  test('any other 400 is told in the server’s words', async () => {
    const { response, requests } = await ask([
      { status: 400, body: { error: { message: 'the last turn is of no known form' } } },
    ]);
    expect(requests).toBe(1);
    expect(failed(response)).toMatchObject({ error: 'UNKNOWN', metadata: { kind: 'rejected' } });
    expect(failed(response).message).toContain('the last turn is of no known form');
  });
});

test.each<[string, Directive, boolean]>([
  ['content null and no tools', { content: null }, true],
  ['an empty string', { content: '' }, true],
  ['a blank text', { content: ' \n' }, true],
  ['a stream without a word', { content: '' }, true],
])('T-12: %s is empty, never done; its row is kept with what it cost', async (name, directive) => {
  const { response, requests, calls } = await ask([directive], { stream: name.startsWith('a stream') });
  // The agent asks again, and counts: the model layer does not retry what was billed.
  expect(requests).toBe(1);
  expect(failed(response)).toMatchObject({ error: 'INVALID_RESPONSE', metadata: { kind: 'empty' } });
  expect(calls[0]).toMatchObject({ state: 'failed', statusCode: 200 });
  expect(calls[0]!.costNano).toBeGreaterThan(0);
});

test('T-13: a reply cut by its length limit reaches the agent, with its finish reason and body, also when it is empty', async () => {
  for (const content of ['cut off he', '']) {
    const { response } = await ask([{ content, finish_reason: 'length' }]);
    expect(response).toMatchObject({
      success: true,
      result: { content, finishReason: 'length', raw: { choices: [{}] } },
    });
  }
});

test('T-16: lone surrogates, NUL, ANSI and tags come through as they are, and go back as well-formed UTF-8', async () => {
  const odd = 'a\ud800b\u0000\u001b[31m</script>';
  await using wired = await wire({ replies: [odd, 'ok'] });
  const model = modelOf(wired);
  const first = await model.query(ASK);
  if (!first.success) throw new Error(first.message);
  expect(first.result.content).toBe(odd);
  expect((await model.query([...ASK, first.result.message])).success).toBe(true);
  const body = wired.server.requests[1]!.body as { messages: { content: string }[] };
  expect(body.messages[1]!.content).toBe('a\ufffdb\u0000\u001b[31m</script>');
});

test('T-17: another model than the one asked for is recorded and noted', async () => {
  const { response, calls } = await ask([{ content: 'x', model: 'gpt-4o-2024-08-06', fingerprint: 'fp_1' }]);
  expect(response).toMatchObject({ success: true, result: { modelId: 'gpt-4o-2024-08-06' } });
  expect(calls[0]).toMatchObject({
    modelAsked: 'gpt-4o',
    modelAnswered: 'gpt-4o-2024-08-06',
    fingerprint: 'fp_1',
    notes: ['answered by gpt-4o-2024-08-06'],
  });
});

test('T-19: a reply without usage, or with nonsense for it, is a reply whose cost nobody knows', async () => {
  for (const usage of [null, { prompt_tokens: -5, completion_tokens: 'x' }]) {
    const { response, calls, began } = await ask([{ content: 'fine', usage }]);
    expect(response).toMatchObject({
      success: true,
      result: { content: 'fine', usage: null, costNano: null },
    });
    expect(calls[0]).toMatchObject({ state: 'ok', costNano: null, rawUsage: usage });
    expect(calls[0]?.notes[0]).toMatch(/^usage (missing|unusable)/);
    // Limits go by this instead.
    expect(began[0]?.estimateNano).toBeGreaterThan(0);
  }
});

describe('a process that could not look', () => {
  /** As SQLite does while another process holds the database: nothing of this process runs. */
  const stand = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

  /** A server that goes on while this process stands still. */
  async function outside() {
    const main = join(import.meta.dirname, '..', 'support', 'fakeModelServerMain.ts');
    const child = spawn(process.execPath, [main, '--latency-ms', '150'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => JSON.parse(String((await lines.next()).value)) as Record<string, unknown>;
    const { url } = await next();
    return {
      url: String(url),
      async requests() {
        child.stdin.write('\n');
        return (await next()).requests;
      },
      [Symbol.dispose]: () => child.stdin.end(),
    };
  }

  test.each([
    [false, 500],
    [true, 500],
    // The timer is hardly late, and still this process has not read what came.
    [false, 50],
  ])(
    'an answer that came while it stood still is no timeout (stream: %s, %i ms beyond the deadline)',
    async (stream, beyond) => {
      using server = await outside();
      // Long beside what a busy machine needs until the request is there.
      const deadlines = { first_byte_timeout_s: 4, idle_timeout_s: 4, total_timeout_s: 60 };
      const factory = await createModelFactory(configOf({ base_url: server.url, stream, ...deadlines }), {
        apiKey: KEY,
        clock: autoClock().clock,
      });
      const began = performance.now();
      const asked = factory.create({ instanceId: 'a', epoch: 1 }).query(ASK);
      while ((await server.requests()) === 0);
      stand(began + 4000 + beyond - performance.now());
      expect(await asked).toMatchObject({ success: true });
      expect(await server.requests()).toBe(1);
      await factory.close();
    },
  );
});
