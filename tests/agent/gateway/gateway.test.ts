// The gateway between a program and a provider, over real HTTP in all four dialects.
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES, type Sample, sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json, sse } from './fakeProvider.ts';
import { type Bench, type BenchOptions, bench, REAL_KEY } from './gatewayBench.ts';

let provider: FakeProvider;
const open: Bench[] = [];

beforeAll(async () => {
  provider = await fakeProvider();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.stop()));
  provider.got.length = 0;
});
afterAll(() => provider.close());

async function start(dialect: Sample['dialect'], more: Partial<BenchOptions> = {}): Promise<Bench> {
  const made = await bench({ providerUrl: provider.url, dialect, ...more });
  open.push(made);
  return made;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function post(
  { url, session }: Pick<Bench, 'url' | 'session'>,
  sample: Sample,
  { path = sample.path, body = sample.request as unknown, key = session.key, headers = {} } = {},
): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...sample.keyHeader(key), ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const streamed = (sample: Sample) => ({ path: sample.streamPath, body: sample.streamRequest as unknown });

describe.each(SAMPLES)('$dialect', (sample) => {
  test('parameters of the arm go over those of the program, and the ledger says so', async () => {
    const model_kwargs = { temperature: 0.25, parallel_tool_calls: false };
    const here = await start(sample.dialect, { model: { model_kwargs } });
    provider.script(json(sample.answer));
    await post(here, sample);
    const sent = JSON.parse(provider.got[0]!.body.toString()) as Record<string, unknown>;
    const set = sample.dialect === 'gemini' ? 'generationConfig' : 'temperature';
    const own = sample.request as Record<string, unknown>;
    const value = sample.dialect === 'gemini' ? { ...(own[set] as object), temperature: 0.25 } : 0.25;
    expect(sent).toEqual({ ...own, [set]: value });
    expect(here.rows[0]!.notes).toContain(`set by model_kwargs over the program's own: ${set}`);
    // The record has what the program asked.
    expect(here.calls[0]!.request).toEqual(own);
  });

  test('bytes pass unchanged in both directions, the key does not', async () => {
    const here = await start(sample.dialect);
    const written = ` ${JSON.stringify(sample.request).replace('{', '{ "extra": 1.0, ')}\n`;
    const answered = JSON.stringify(sample.answer).replace('{', '{  ');
    provider.script((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'x-ratelimit-remaining-requests': '9' });
      response.end(answered);
    });
    const answer = await post(here, sample, { body: written });
    expect(answer).toMatchObject({ status: 200, text: answered });
    expect(answer.headers.get('x-ratelimit-remaining-requests')).toBeNull();
    const [got] = provider.got;
    expect(got!.body.toString()).toBe(written);
    expect(got!.path).toBe(sample.path);
    expect(JSON.stringify(got!.headers)).toContain(REAL_KEY);
    expect(JSON.stringify(got!.headers)).not.toContain(here.session.key);
    expect(here.rows).toMatchObject([{ state: 'ok', usage: { input: 11, output: 7 }, costNano: 81_000 }]);
  });

  test('a stream passes as it comes, and its last event is the row in the ledger', async () => {
    const here = await start(sample.dialect);
    const gate = Promise.withResolvers<void>();
    const first = sample.events.slice(0, sample.untilWords).join('');
    const last = sample.events.slice(sample.untilWords);
    provider.script(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(first);
      await gate.promise;
      for (const event of last) response.write(event);
      response.end();
    });
    const { path, body } = streamed(sample);
    const answer = await fetch(`${here.url}${path}`, {
      method: 'POST',
      headers: sample.keyHeader(here.session.key),
      body: JSON.stringify(body),
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe(first);
    gate.resolve();
    let rest = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest += next.value;
    expect(rest).toBe(last.join(''));
    expect(provider.got[0]!.path).toBe(sample.streamPath);
    await expect.poll(() => here.rows).toMatchObject([{ state: 'ok', usage: { input: 11, output: 7 } }]);
    expect(here.calls).toMatchObject([
      { label: { kind: 'main' }, step: 1, streamed: true, status: 200, thread: 'main' },
    ]);
    expect(here.calls[0]!.newMessages.map(({ role }) => role)).toEqual(
      sample.dialect === 'messages' ? ['system', 'user', 'assistant'] : ['user', 'assistant'],
    );
  });

  test('a key that is not of this attempt is refused in its words, and noted', async () => {
    const here = await start(sample.dialect);
    provider.script(json(sample.answer));
    const other = await here.another();
    for (const key of ['forged', other.session.key]) {
      const { status, text } = await post(here, sample, { key });
      expect(status).toBe(401);
      expect(JSON.parse(text)).toHaveProperty('error');
    }
    await here.session.close();
    expect(provider.got).toHaveLength(0);
    expect(here.notes).toEqual([
      'gateway: a call with a key that is none of ours was refused',
      'gateway: a call with the key of another attempt was refused',
    ]);
  });

  test('a 429 and an overload are waited for inside, and the program sees the answer alone', async () => {
    const here = await start(sample.dialect);
    provider.script(
      json({ error: { message: 'slow down' } }, 429),
      json({ error: {} }, 529),
      json(sample.answer),
    );
    expect(await post(here, sample)).toMatchObject({ status: 200, text: JSON.stringify(sample.answer) });
    expect(here.rows.map(({ statusCode }) => statusCode)).toEqual([429, 529, 200]);
    expect(here.calls).toHaveLength(1);
  });

  test('eight 429s in a row are waited for too', async () => {
    const here = await start(sample.dialect);
    const limited = Array.from({ length: 8 }, () => json({ error: { message: 'slow down' } }, 429));
    provider.script(...limited, json(sample.answer));
    expect(await post(here, sample)).toMatchObject({ status: 200, text: JSON.stringify(sample.answer) });
    expect(here.session.state()).toMatchObject({ steps: 1, calls: 1, lastFailure: null });
  });

  test('a stream that broke off after its first words costs no step', async () => {
    const here = await start(sample.dialect, { limits: { steps: 1 } });
    const { path, body } = streamed(sample);
    const askStreamed = () =>
      fetch(`${here.url}${path}`, {
        method: 'POST',
        headers: sample.keyHeader(here.session.key),
        body: JSON.stringify(body),
      }).then((answer) => answer.text());
    provider.script(
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const event of sample.events.slice(0, sample.untilWords)) response.write(event);
        setTimeout(() => response.destroy(), 50);
      },
      sse(...sample.events),
    );
    await expect(askStreamed()).rejects.toThrow();
    await expect.poll(() => here.session.state().steps).toBe(0);
    expect(await askStreamed()).toBe(sample.events.join(''));
    expect(here.session.state()).toMatchObject({ steps: 1, calls: 2 });
    expect(here.calls.map(({ answer }) => answer.end)).toEqual(['cut', 'whole']);
  });

  test('at the limit every further call is refused with an error that nobody tries again', async () => {
    const here = await start(sample.dialect, { limits: { steps: 1 } });
    provider.script(json(sample.answer));
    expect((await post(here, sample)).status).toBe(200);
    const { status, text, headers } = await post(here, sample, {
      body: { ...sample.request, user: 'again' },
    });
    expect(status).toBe(400);
    expect(headers.get('x-should-retry')).toBe('false');
    expect(text).toContain('the limit of 1 steps was reached');
    expect(await here.session.ended).toEqual({
      kind: 'limit',
      limit: 'steps',
      message: 'the limit of 1 steps was reached',
    });
    expect(provider.got).toHaveLength(1);
  });

  test('an error that the program can mend passes as the provider wrote it', async () => {
    const here = await start(sample.dialect);
    const refused = {
      error: { message: 'maximum context length is 5', type: 'invalid_request_error', code: 400 },
    };
    provider.script(json(refused, 400));
    expect(await post(here, sample)).toMatchObject({ status: 400, text: JSON.stringify(refused) });
    expect(here.session.state().lastFailure).toMatchObject({ metadata: { kind: 'context' } });
  });

  test('a provider that answers nothing is away: the attempt ends, and its program reads no empty answer', async () => {
    const here = await start(sample.dialect, {
      model: { retry: { base_delay_ms: 1, max_delay_ms: 2, max_retries: 1 } as never },
    });
    const nothing = {
      chat: { choices: [{ message: { content: '' }, finish_reason: 'stop' }] },
      responses: { object: 'response', status: 'completed', output: [] },
      messages: { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn' },
      gemini: { candidates: [{ finishReason: 'STOP' }] },
    };
    provider.script(json(nothing[sample.dialect]));
    expect((await post(here, sample)).status).toBe(400);
    expect(await here.session.ended).toMatchObject({
      kind: 'model',
      failure: { metadata: { kind: 'unavailable', unreachable: true } },
    });
    expect(here.rows.map(({ costNano }) => costNano)).toEqual([null, null]);
  });

  test('a refused key of ours ends the attempt, and none of the provider’s words reach the program', async () => {
    const here = await start(sample.dialect);
    provider.script(json({ error: { message: `bad key ${REAL_KEY}` } }, 401));
    const { status, text } = await post(here, sample);
    expect(status).toBe(400);
    expect(text).not.toContain(REAL_KEY);
    expect(await here.session.ended).toMatchObject({
      kind: 'model',
      failure: { metadata: { kind: 'auth' } },
    });
  });
});

describe('money', () => {
  const sample = sampleOf('chat');

  test('the same request, sent again while the first is out, is asked and paid once', async () => {
    const here = await start('chat');
    const gate = Promise.withResolvers<void>();
    provider.script(async (response) => {
      await gate.promise;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(sample.answer));
    });
    const both = [post(here, sample), post(here, sample)];
    await expect
      .poll(() => here.notes)
      .toEqual(['gateway: a request that came twice was asked and paid once']);
    gate.resolve();
    const answers = await Promise.all(both);
    expect(answers.map(({ text }) => text)).toEqual([
      JSON.stringify(sample.answer),
      JSON.stringify(sample.answer),
    ]);
    expect(here.rows).toHaveLength(1);
  });

  test('a client that goes away loses no usage, and gets the same answer when it asks again', async () => {
    const here = await start('chat');
    const gate = Promise.withResolvers<void>();
    provider.script(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sample.events[0]);
      await gate.promise;
      for (const event of sample.events.slice(1)) response.write(event);
      response.end();
    });
    const client = httpRequest(`${here.url}${sample.path}`, {
      method: 'POST',
      headers: sample.keyHeader(here.session.key),
    });
    client.on('error', () => undefined);
    client.end(JSON.stringify(sample.streamRequest));
    const [answer] = (await once(client, 'response')) as [IncomingMessage];
    await once(answer, 'data');
    client.destroy();
    gate.resolve();
    await expect.poll(() => here.rows).toMatchObject([{ state: 'ok', usage: { input: 11, output: 7 } }]);
    expect((await post(here, sample, streamed(sample))).text).toBe(sample.events.join(''));
    expect(provider.got).toHaveLength(1);
    // Whoever has it and asks the same again wants another answer.
    provider.script(sse(...sample.events));
    await post(here, sample, streamed(sample));
    expect(provider.got).toHaveLength(2);
    await post(here, sample, { ...streamed(sample), headers: { 'x-stainless-retry-count': '1' } });
    expect(provider.got).toHaveLength(2);
  });

  test('an answer that lies unread when its client breaks off is not got, and not paid twice', async () => {
    const here = await start('chat');
    provider.script(json(sample.answer));
    const { port } = new URL(here.url);
    const client = connect(Number(port), '127.0.0.1');
    client.on('error', () => undefined);
    const text = JSON.stringify(sample.request);
    const head = Object.entries({ ...sample.keyHeader(here.session.key), 'content-length': text.length });
    client.write(
      `POST ${sample.path} HTTP/1.1\r\nhost: here\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`,
    );
    // The first byte is here, so the rest is on its way: nobody reads it.
    await once(client, 'readable');
    client.resetAndDestroy();
    await once(client, 'close');
    const again = await post(here, sample);
    expect(again.text).toBe(JSON.stringify(sample.answer));
    expect(provider.got).toHaveLength(1);
    expect(here.rows).toHaveLength(1);
    // Now somebody has it.
    await post(here, sample);
    expect(provider.got).toHaveLength(2);
  });

  test('a program that asks for no usage has it estimated and marked', async () => {
    const here = await start('chat');
    provider.script(sse(sample.events[0]!, sample.events[1]!, 'data: [DONE]\n\n'));
    await post(here, sample, streamed(sample));
    await expect
      .poll(() => here.rows)
      .toMatchObject([
        { state: 'ok', rawUsage: null, notes: ['usage and cost estimated: the provider stated none'] },
      ]);
    expect(here.rows[0]!.costNano).toBeGreaterThan(0);
  });

  test('a model that may have thought unseen is estimated with what a step writes, and says so', async () => {
    const here = await start('chat', { model: { model_name: 'openai/gpt-5.1' } });
    provider.script(sse(sample.events[0]!, sample.events[1]!, 'data: [DONE]\n\n'));
    const body = { ...(sample.streamRequest as object), model: 'gpt-5.1' };
    await post(here, sample, { path: sample.streamPath, body });
    await expect.poll(() => here.rows).toMatchObject([{ state: 'ok', usage: { output: 2048 } }]);
    expect(here.rows[0]!.notes[0]).toContain('hidden reasoning');
  });

  test('a budget that is spent ends the attempt before the call is made', async () => {
    const spent = new Error('the run budget is reached');
    const here = await start('chat', { wanted: () => Promise.reject(spent) });
    provider.script(json(sample.answer));
    expect(await post(here, sample)).toMatchObject({ status: 400 });
    expect(await here.session.ended).toEqual({ kind: 'thrown', error: spent });
    expect(provider.got).toHaveLength(0);
  });

  test('a stream that waits shows signs of life, and an error then is an event', async () => {
    const here = await start('chat', {
      options: { keepAliveMs: 20 },
      model: { retry: { enabled: false } as never },
    });
    provider.script(async (response) => {
      await expect.poll(() => text).toContain(': waiting for the provider\n\n');
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'no such parameter' } }));
    });
    let text = '';
    const answer = await fetch(`${here.url}${sample.path}`, {
      method: 'POST',
      headers: sample.keyHeader(here.session.key),
      body: JSON.stringify(sample.streamRequest),
    });
    expect(answer.status).toBe(200);
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) text += part;
    expect(text.split('\n\n').at(-2)).toContain('no such parameter');
  });

  test('Gemini’s clients read every event of an answer that was waited for', async () => {
    const gemini = sampleOf('gemini');
    const here = await start('gemini', { options: { keepAliveMs: 20 } });
    let text = '';
    provider.script(async (response) => {
      await expect.poll(() => text.length).toBeGreaterThan(0);
      await sse(...gemini.events)(response, provider.got[0]!);
    });
    const answer = await fetch(`${here.url}${gemini.streamPath}`, {
      method: 'POST',
      headers: gemini.keyHeader(here.session.key),
      body: JSON.stringify(gemini.streamRequest),
    });
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) text += part;
    // As @google/genai reads: whatever is in front of an event but white space hides it, and what is left at the end is an error.
    const events: string[] = [];
    const first = /^\s*data: (.*)(?:\n\n|\r\r|\r\n\r\n)/;
    for (let found = first.exec(text); found; found = first.exec(text)) {
      events.push(found[1]!);
      text = text.slice(found[0].length);
    }
    expect(events).toEqual(gemini.events.map((event) => event.replace(/^data: /, '').trim()));
    expect(text.trim()).toBe('');
  });

  test('Gemini’s clients read an error that comes after a sign of life as one', async () => {
    const gemini = sampleOf('gemini');
    const here = await start('gemini', {
      options: { keepAliveMs: 20 },
      model: { retry: { enabled: false } as never },
    });
    const parts: string[] = [];
    provider.script(async (response) => {
      await expect.poll(() => parts.length).toBeGreaterThan(0);
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { code: 400, message: 'no such parameter', status: 'X' } }));
    });
    const answer = await fetch(`${here.url}${gemini.streamPath}`, {
      method: 'POST',
      headers: gemini.keyHeader(here.session.key),
      body: JSON.stringify(gemini.streamRequest),
    });
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) parts.push(part);
    // @google/genai takes a piece of the body that is one JSON object for an error; an event without candidates is an empty answer to it.
    const errors = parts.filter((part) => part.trim() !== '').map((part) => JSON.parse(part) as unknown);
    expect(errors).toMatchObject([
      { error: { code: 400, message: expect.stringContaining('no such parameter') } },
    ]);
  });

  test('a stream that breaks off breaks off for the program too, and is paid as an estimate', async () => {
    const here = await start('chat');
    provider.script((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sample.events[0], () => response.destroy());
    });
    await expect(post(here, sample, streamed(sample))).rejects.toThrow();
    await expect.poll(() => here.rows).toMatchObject([{ state: 'failed' }]);
    expect(here.rows[0]!.notes.join()).toContain('estimated');
    expect(here.session.state().lastFailure).toMatchObject({ metadata: { kind: 'unavailable' } });
  });

  test('counting tokens is a labelled call that costs nothing and is no step', async () => {
    const wanted: (number | null)[] = [];
    const here = await start('messages', {
      limits: { steps: 1 },
      wanted: async (amount) => void wanted.push(amount),
    });
    provider.script(json({ input_tokens: 5 }));
    const messages = sampleOf('messages');
    const path = '/v1/messages/count_tokens?beta=true';
    expect(await post(here, messages, { path })).toMatchObject({ status: 200, text: '{"input_tokens":5}' });
    expect(provider.got[0]!.path).toBe(path);
    expect(here.rows).toMatchObject([{ costNano: 0, usage: null }]);
    expect(here.calls).toMatchObject([{ label: { kind: 'count_tokens' }, step: 0, newMessages: [] }]);
    expect(wanted).toEqual([0]);
  });
});

describe('who asks for what', () => {
  test('a tool of the provider is left out, and everything else stays byte for byte', async () => {
    const here = await start('messages');
    const sample = sampleOf('messages');
    provider.script(json(sample.answer));
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const own = sample.request.tools as unknown[];
    await post(here, sample, { body: { ...sample.request, tools: [...own, search], top_p: 1 } });
    expect(provider.got[0]!.body.toString()).toBe(
      JSON.stringify({ ...sample.request, tools: own, top_p: 1 }),
    );
    expect(here.notes).toEqual(['gateway: left out what runs at the provider: web_search_20250305']);
    expect(here.calls[0]!.stripped).toEqual(['web_search_20250305']);
  });

  test('another model is refused, one that is mapped is asked under its id', async () => {
    const here = await start('messages', { config: { models: { haiku: 'small-1' } } });
    const sample = sampleOf('messages');
    provider.script(json(sample.answer));
    expect((await post(here, sample, { body: { ...sample.request, model: 'opus' } })).status).toBe(404);
    expect((await post(here, sample, { body: { ...sample.request, model: 'haiku' } })).status).toBe(200);
    expect(provider.got.map(({ body }) => JSON.parse(body.toString()).model)).toEqual(['small-1']);
    expect(here.calls).toMatchObject([{ modelAsked: 'haiku', model: 'small-1' }]);
  });

  test.each([
    ['another model', { body: { ...sampleOf('chat').request, model: 'opus' } }, 'opus'],
    ['a forged key', { key: 'forged' }, 'none of ours'],
    ['an address that is not served', { path: '/v1/v1/chat/completions' }, '/v1/v1'],
  ])('%s is the reason why a program asked nothing, until it asks well', async (_what, bad, why) => {
    const here = await start('chat');
    const sample = sampleOf('chat');
    provider.script(json(sample.answer));
    expect(here.session.state()).toMatchObject({ calls: 0, refusal: null });
    await post(here, sample, bad);
    expect(here.session.state()).toMatchObject({ calls: 0, refusal: expect.stringContaining(why) });
    await post(here, sample);
    expect(here.session.state().calls).toBe(1);
  });

  test('a program of another protocol is told so in its own', async () => {
    const here = await start('chat');
    const { status, text } = await post(here, sampleOf('messages'));
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    expect(text).toContain('asked by chat');
  });

  test('sub-agents and calls without tools have labels and conversations of their own', async () => {
    const here = await start('messages');
    const sample = sampleOf('messages');
    provider.script(json(sample.answer));
    await post(here, sample, { headers: { 'x-claude-code-agent-id': 'a/7' } });
    await post(here, sample, { body: { ...sample.request, tools: [] } });
    const below = { 'x-session-affinity': 'ses_2', 'x-parent-session-id': 'ses_1' };
    await post(here, sample, { headers: below });
    await post(here, sample, { headers: { 'x-session-affinity': 'ses_1' } });
    expect(here.calls.map(({ label, thread, step }) => ({ label, thread, step }))).toEqual([
      { label: { kind: 'subagent', id: 'a_7' }, thread: 'a_7', step: 1 },
      { label: { kind: 'title' }, thread: 'title', step: 1 },
      { label: { kind: 'subagent', id: 'ses_2' }, thread: 'ses_2', step: 2 },
      { label: { kind: 'main' }, thread: 'main', step: 3 },
    ]);
  });

  test('a WebSocket is refused at once', async () => {
    const here = await start('responses');
    const client = httpRequest(`${here.url}/v1/responses`, {
      headers: { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
    });
    client.end();
    const [answer] = (await once(client, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(426);
    answer.resume();
  });

  test('a client that offers HTTP/2 is answered as it asked', async () => {
    const here = await start('chat');
    const sample = sampleOf('chat');
    provider.script(json(sample.answer));
    const client = httpRequest(`${here.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        ...{ connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAEAAEAAAAIAAAAB' },
        ...sample.keyHeader(here.session.key),
      },
    });
    client.end(JSON.stringify(sample.request));
    const [answer] = (await once(client, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    answer.resume();
  });

  test('what a program asks for makes a bounded number of notes, each of bounded length', async () => {
    const here = await start('chat');
    const sample = sampleOf('chat');
    for (let n = 0; n < 80; n++)
      await post(here, sample, { body: { ...sample.request, model: `m-${n}-${'x'.repeat(20_000)}` } });
    expect(here.notes).toHaveLength(51);
    expect(here.notes.at(-1)).toBe('gateway: more notes were left out');
    for (const note of here.notes) expect(note.length).toBeLessThan(600);
  });

  test('the list of models has the arm’s and the mapped ones', async () => {
    const here = await start('chat', { config: { models: { mini: 'm-0' } } });
    const answer = await fetch(`${here.url}/v1/models`, {
      headers: sampleOf('chat').keyHeader(here.session.key),
    });
    expect(await answer.json()).toMatchObject({ data: [{ id: 'm-1' }, { id: 'mini' }] });
  });

  test('what is no JSON, compressed, far too large or at a wrong address is refused', async () => {
    const here = await start('chat');
    const sample = sampleOf('chat');
    expect((await post(here, sample, { body: '{"model":' })).status).toBe(400);
    expect(
      (await post(here, sample, { body: '{"model":"m-1","model":"m-2","messages":[]}' })).text,
    ).toContain('twice');
    expect((await post(here, sample, { headers: { 'content-encoding': 'gzip' } })).status).toBe(400);
    expect((await post(here, sample, { path: '/v1/files' })).status).toBe(404);
    const huge = JSON.stringify({ ...sample.request, user: 'x'.repeat(50 << 20) });
    expect((await post(here, sample, { body: huge })).status).toBe(413);
    expect(provider.got).toHaveLength(0);
  });

  test('a program that sends more than the memory for it is refused, and goes on when the rest has been answered', async () => {
    const here = await start('chat', { options: { heldBytes: 3 << 20 } });
    const sample = sampleOf('chat');
    const gate = Promise.withResolvers<void>();
    provider.script(async (response) => {
      await gate.promise;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(sample.answer));
    });
    const large = (n: number) => ({ body: { ...sample.request, user: `${n}${'x'.repeat(2 << 20)}` } });
    const first = post(here, sample, large(1));
    await expect.poll(() => provider.got.length).toBe(1);
    expect((await post(here, sample, large(2))).status).toBe(413);
    gate.resolve();
    expect((await first).status).toBe(200);
    expect((await post(here, sample, large(3))).status).toBe(200);
  });

  test('after the end of the attempt its key is worth nothing, and calls that were out are paid', async () => {
    const here = await start('chat');
    const sample = sampleOf('chat');
    provider.script(json(sample.answer));
    const first = post(here, sample);
    await expect.poll(() => provider.got.length).toBe(1);
    const summary = await here.session.close();
    expect(summary).toMatchObject({ steps: 1, calls: 1, tokens: 18 });
    await first.catch(() => undefined);
    expect(here.rows).toHaveLength(1);
    const other = await here.another();
    expect((await post({ url: other.url, session: here.session }, sample)).status).toBe(401);
  });
});
