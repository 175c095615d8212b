// The OpenAI-compatible client when all goes well: what the server sees, what the agent and the ledger get, aborts, secrets.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { redactor } from '../../src/base/text/redact.ts';
import { dispatcherOptions } from '../../src/model/http/httpTransport.ts';
import type { CallListener, Message } from '../../src/model/model.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { ASK, configOf, KEY, modelOf, recorder, wire } from './harness.ts';

const TOOLS = [
  { type: 'function', function: { name: 'bash', description: 'Run', parameters: { type: 'object' } } },
] as const;
const CALL = {
  id: 'call_7',
  type: 'function',
  function: { name: 'bash', arguments: '{"command":"ls"}' },
} as const;

describe.each([false, true])('with stream: %s', (stream) => {
  test('a reply, its usage, its cost and its row', async () => {
    await using wired = await wire(
      { replies: [{ content: 'hello there', usage: { prompt_tokens: 1000, completion_tokens: 100 } }] },
      { stream },
    );
    const seen = recorder();
    const response = await modelOf(wired).query(ASK, seen);
    expect(response).toMatchObject({
      success: true,
      result: {
        content: 'hello there',
        message: { role: 'assistant', content: 'hello there' },
        toolCalls: [],
        finishReason: 'stop',
        modelId: 'gpt-4o',
        usage: { input: 1000, output: 100 },
        costNano: 3_500_000,
      },
    });
    expect(seen.began).toEqual([{ try: 0, estimateNano: expect.any(Number) }]);
    expect(seen.calls).toHaveLength(1);
    expect(seen.calls[0]).toMatchObject({
      try: 0,
      state: 'ok',
      statusCode: 200,
      errorCode: null,
      modelAsked: 'gpt-4o',
      responseId: 'chatcmpl-fake',
      finishReason: 'stop',
      rawUsage: { prompt_tokens: 1000, completion_tokens: 100 },
      costNano: 3_500_000,
      notes: [],
    });
    expect(seen.calls[0]!.requestBytes).toBe(wired.server.requests[0]!.bytes);
    expect(seen.phases).toEqual(['model']);
  });

  test('tool calls come and go back as they are', async () => {
    await using wired = await wire({ replies: [{ content: null, tool_calls: [CALL] }, 'done'] }, { stream });
    const model = modelOf(wired);
    const first = await model.query(ASK, { tools: TOOLS });
    if (!first.success) throw new Error(first.message);
    expect(first.result).toMatchObject({ content: '', toolCalls: [CALL], finishReason: 'tool_calls' });
    const answer: Message = { role: 'tool', tool_call_id: 'call_7', content: 'a b', extra: { raw: 'x' } };
    await model.query([...ASK, first.result.message, answer], { tools: TOOLS });
    expect(wired.server.requests[1]!.body).toMatchObject({
      model: 'gpt-4o',
      tools: TOOLS,
      messages: [
        { role: 'user', content: 'What now?' },
        { role: 'assistant', content: null, tool_calls: [CALL] },
        { role: 'tool', tool_call_id: 'call_7', content: 'a b' },
      ],
    });
    expect(JSON.stringify(wired.server.requests[1]!.body)).not.toContain('extra');
  });

  test('an abort rejects with AbortError, and leaves an aborted row', async () => {
    await using wired = await wire({ replies: [{ hang: true }] }, { stream });
    const stop = new AbortController();
    const seen = recorder();
    const pending = modelOf(wired).query(ASK, { listener: seen.listener, signal: stop.signal });
    await wired.server.waitForRequests(1);
    stop.abort(new Error('the wall clock'));
    await expect(pending).rejects.toMatchObject({ name: 'AbortError', message: 'the wall clock' });
    expect(seen.calls).toMatchObject([{ state: 'aborted', statusCode: null, costNano: null }]);
    expect(wired.factory.load?.()).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});

describe('what the server sees', () => {
  test('the key, the extra parameters, and nothing that the environment adds', async () => {
    await using wired = await wire(
      { replies: ['ok'] },
      {
        model_kwargs: { temperature: 0, top_k: 3, drop_params: true, extra_headers: { 'X-Title': 'bench' } },
      },
    );
    await modelOf(wired).query(ASK);
    const request = wired.server.requests[0]!;
    expect(request.path).toBe('/v1/chat/completions');
    expect(request.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(request.headers['x-title']).toBe('bench');
    expect(request.headers).not.toHaveProperty('openai-organization');
    expect(request.body).toEqual({ model: 'gpt-4o', messages: ASK, temperature: 0, top_k: 3 });
  });

  test('connections are kept and used again', async () => {
    await using wired = await wire({ replies: ['ok'] });
    const model = modelOf(wired);
    for (let n = 0; n < 20; n += 1) await model.query(ASK);
    expect(wired.server.connections()).toBeLessThanOrEqual(2);
  });

  test('max_concurrent holds over all models of the factory', async () => {
    await using wired = await wire({ replies: ['ok'], latencyMs: 5 }, { max_concurrent: 2 });
    await Promise.all(Array.from({ length: 12 }, (_, n) => modelOf(wired, `i-${n}`).query(ASK)));
    expect(wired.server.count()).toBe(12);
    expect(wired.server.peak()).toBe(2);
  });
});

test('a history is serialised once per query, however often it is sent', async () => {
  await using wired = await wire({ replies: [{ status: 500 }, { status: 500 }, 'ok'] });
  let walked = 0;
  const part = {
    toJSON() {
      walked += 1;
      return { type: 'text', text: 'x' };
    },
  };
  const seen = recorder();
  await modelOf(wired).query([{ role: 'user', content: [part] }], seen);
  expect(seen.calls).toHaveLength(3);
  expect(walked).toBe(1);
});

test('a herd that meets a rate limit thins out: the server sees few refusals', async () => {
  const limited = { status: 429, headers: { 'retry-after': '1' } };
  const scripts = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`i-${n}`, [limited, 'ok']]));
  await using wired = await wire({ scripts });
  const ask = (n: number) => modelOf(wired).query([{ role: 'user', content: `[[instance:i-${n}]]` }]);
  const responses = await Promise.all(Array.from({ length: 16 }, (_, n) => ask(n)));
  expect(responses.every((response) => response.success)).toBe(true);
  expect(wired.server.count()).toBe(32);
  expect(wired.factory.load?.()).toMatchObject({ rateLimited: 16, inFlight: 0, waiting: 0 });
  // All 16 were out together: that is one meeting with the limit, and it halves once.
  expect(wired.factory.load?.().changes[0]).toMatchObject({ limit: 8, reason: 'rate limited' });
});

describe('set-up', () => {
  test('a provider in front of an OpenAI name is left out for OpenAI, and kept for a server of one’s own', async () => {
    await using wired = await wire(
      { replies: ['ok'] },
      { model_name: 'openai/gpt-oss-120b', prices: 'free' },
    );
    const seen = recorder();
    await modelOf(wired).query(ASK, seen);
    expect(seen.calls[0]?.modelAsked).toBe('openai/gpt-oss-120b');
    expect(wired.factory).toMatchObject({ name: 'openai/gpt-oss-120b', free: true });
  });

  test('no key is needed without TLS, and one is with it', async () => {
    await expect(createModelFactory(configOf({}), {})).rejects.toMatchObject({
      name: 'ModelConfigError',
      code: 'PROVIDER_NOT_CONFIGURED',
      message: expect.stringContaining('set $OPENAI_API_KEY'),
    });
    const local = await createModelFactory(configOf({ base_url: 'http://127.0.0.1:9/v1' }), {});
    await local.close();
  });

  test.each(['ftp://x/v1', 'not a url', ''])('base_url %j is refused', async (base_url) => {
    await expect(createModelFactory(configOf({ base_url }), { apiKey: KEY })).rejects.toThrow('base_url');
  });

  test.each(['api_base', 'api_key', 'messages'])(
    'model_kwargs.%s is refused, with where it belongs',
    async (name) => {
      const settings = { base_url: 'http://127.0.0.1:9/v1', model_kwargs: { [name]: 'sk-secret-value' } };
      const refused = createModelFactory(configOf(settings), {});
      await expect(refused).rejects.toThrow(`model.model_kwargs.${name} is not sent: `);
      await expect(refused).rejects.not.toThrow('sk-secret-value');
    },
  );

  test('T-06: undici’s own limits of 300 s are off, whatever ours are', () => {
    const options = dispatcherOptions({ connectMs: 15_000, firstByteMs: 600_000, idleMs: 1, totalMs: 1 });
    expect(options).toMatchObject({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 15_000 } });
  });

  test('templates see the name and the parameters, and no key', async () => {
    await using wired = await wire({ replies: ['ok'] }, { model_kwargs: { temperature: 1 } });
    const vars = modelOf(wired).templateVars();
    expect(vars).toEqual({ model_name: 'gpt-4o', model_kwargs: { temperature: 1 } });
  });
});

describe('the listener is the ledger', () => {
  test('began comes before the request leaves, ended before the answer is used', async () => {
    await using wired = await wire({ replies: ['ok'] });
    const order: string[] = [];
    const listener: CallListener = {
      began: () => void order.push(`began after ${wired.server.count()}`),
      ended: (call) => void order.push(`ended ${call.state}`),
    };
    await modelOf(wired).query(ASK, { listener });
    order.push('used');
    expect(order).toEqual(['began after 0', 'ended ok', 'used']);
  });

  test('the request waits until the row is on the disk', async () => {
    await using wired = await wire({ replies: ['ok'] });
    const disk = Promise.withResolvers<void>();
    const row = Promise.withResolvers<void>();
    const listener: CallListener = {
      began: () => {
        row.resolve();
        return disk.promise;
      },
      ended: () => undefined,
    };
    const asked = modelOf(wired).query(ASK, { listener });
    await row.promise;
    // Another call of the same model goes out and comes back meanwhile.
    await modelOf(wired).query(ASK);
    expect(wired.server.count()).toBe(1);
    disk.resolve();
    await asked;
    expect(wired.server.count()).toBe(2);
  });

  test('a disk that fails after the row was written ends the query before its request', async () => {
    await using wired = await wire({ replies: ['ok'] });
    const listener: CallListener = {
      began: () => Promise.reject(new Error('disk full')),
      ended: () => undefined,
    };
    await expect(modelOf(wired).query(ASK, { listener })).rejects.toThrow('disk full');
    expect(wired.server.count()).toBe(0);
    expect(wired.factory.load?.().inFlight).toBe(0);
  });

  test.each(['began', 'ended'] as const)(
    'a ledger that cannot write (%s) ends the query with its error',
    async (where) => {
      await using wired = await wire({ replies: ['ok'] });
      const boom = () => {
        throw new Error('disk full');
      };
      const listener: CallListener = { began: () => undefined, ended: () => undefined, [where]: boom };
      await expect(modelOf(wired).query(ASK, { listener })).rejects.toThrow('disk full');
      expect(wired.server.count()).toBe(where === 'began' ? 0 : 1);
      expect(wired.factory.load?.().inFlight).toBe(0);
    },
  );
});

test('redaction takes out the key, other secrets, and what looks like one', () => {
  const redact = redactor(['hunter2-secret', KEY]);
  expect(redact(`a ${KEY} b hunter2-secret c sk-proj-abc123DEF456 d Bearer abc.def`)).toBe(
    'a [key] b [key] c [key] d [key]',
  );
  expect(redactor(['ab'])('about')).toBe('about');
});

const golden = join(import.meta.dirname, '..', '..', '..', 'shared', 'golden', 'requests');
describe.skipIf(!existsSync(golden))('recorded requests of the real agent', () => {
  test.each(['v1-swebench-text', 'v2-swebench-toolcall', 'v2-swebench_backticks-text'])(
    '%s: the same messages, tools and parameters go over the wire',
    async (name) => {
      const recorded = JSON.parse(readFileSync(join(golden, `${name}.json`), 'utf8')) as {
        requests: {
          last_messages: Message[];
          message_counts: number[];
          other_fields: Record<string, unknown>;
        };
      };
      const { last_messages, message_counts, other_fields } = recorded.requests;
      const { tools, ...parameters } = other_fields;
      await using wired = await wire(
        { replies: ['ok'] },
        { model_kwargs: { drop_params: true, ...parameters } },
      );
      const model = modelOf(wired);
      for (const count of message_counts) {
        const messages = last_messages
          .slice(0, count)
          .map((message) => ({ ...message, extra: { timestamp: 1 } }));
        await model.query(messages, tools ? { tools: tools as never } : {});
        expect(wired.server.requests.at(-1)!.body).toEqual({
          model: 'gpt-4o',
          messages: last_messages.slice(0, count),
          ...other_fields,
        });
      }
      expect(wired.server.count()).toBe(message_counts.length);
    },
  );
});
