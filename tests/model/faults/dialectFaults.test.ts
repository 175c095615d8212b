// T-01 to T-17 of the fault list in every dialect, each in the words of its maker over real HTTP: the same ends, the same number of requests and
// the same money, streamed or not.
import { describe, expect, test } from 'vitest';
import type {
  CallRecord,
  Message,
  ModelErrorResponse,
  ModelReply,
  ToolSpec,
} from '../../../src/model/model.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { eventReply, jsonReply, type RawReply, startRawServer } from '../../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY, recorder } from '../harness.ts';
import { broken, VOICES, type Voice } from './voices.ts';

const PRICES = { input: 1, output: 10, cache_read: 0.1 };
/** 100 at $1, 100 at $0.10 and 40 at $10 a million. */
const COST = 100 * 1000 + 100 * 100 + 40 * 10_000;

interface Asking {
  readonly stream?: boolean;
  readonly settings?: object;
  readonly history?: readonly Message[];
  readonly tools?: readonly ToolSpec[];
}

async function ask(voice: Voice, replies: readonly RawReply[], asking: Asking = {}) {
  await using server = await startRawServer(replies);
  const { clock, slept } = autoClock();
  const factory = await createModelFactory(
    configOf({
      ...voice.settings,
      base_url: server.url,
      prices: PRICES,
      stream: asking.stream ?? false,
      retry: { max_retries: 3, base_delay_ms: 10, enable_jitter: false },
      ...asking.settings,
    }),
    { apiKey: KEY, clock },
  );
  const { listener, calls } = recorder();
  const query = { listener, ...(asking.tools ? { tools: asking.tools } : {}) };
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(asking.history ?? ASK, query);
  await factory.close();
  return { answer, calls, slept, requests: server.requests };
}
type Asked = Awaited<ReturnType<typeof ask>>;

function failure({ answer }: Asked): ModelErrorResponse {
  if (answer.success) throw new Error(`expected a failure, got "${answer.result.content}"`);
  return answer;
}
function reply({ answer }: Asked): ModelReply {
  if (!answer.success) throw new Error(answer.message);
  return answer.result;
}
const kinds = (asked: Asked) => [failure(asked).metadata?.kind, asked.requests.length];
const costs = ({ calls }: { calls: readonly CallRecord[] }) => calls.map((call) => call.costNano);

// Several at a time: some of them wait for a server that is silent.
describe.concurrent.each(VOICES)('%s', (_name, voice) => {
  const good = jsonReply(voice.answer('Look.'));
  const streamedGood = eventReply(voice.events('Look.'));

  test('streamed and not, an answer is the same: text, end, usage, cost', async () => {
    const plain = await ask(voice, [good]);
    const streamed = await ask(voice, [streamedGood], { stream: true });
    const { raw: _plain, message: expectedMessage, ...expected } = reply(plain);
    const { raw: _streamed, message, ...got } = reply(streamed);
    expect(got).toEqual(expected);
    expect(JSON.stringify(message)).toBe(JSON.stringify(expectedMessage));
    expect(expected).toMatchObject({ content: 'Look.', finishReason: 'stop', costNano: COST });
    expect(streamed.calls[0]).toMatchObject({ costNano: COST, usage: plain.calls[0]!.usage });
  });

  describe.each([false, true])('stream: %s', (stream) => {
    const fine = stream ? streamedGood : good;
    const asked = (replies: readonly RawReply[], more: Asking = {}) =>
      ask(voice, replies, { stream, ...more });

    test('T-01 three 429s that ask for two seconds are waited for', async () => {
      const limited = voice.rateLimited('2');
      const got = await asked([limited, limited, limited, fine]);
      expect(reply(got).content).toBe('Look.');
      expect(costs(got)).toEqual([0, 0, 0, COST]);
      expect(got.slept.filter((ms) => ms === 2000)).toHaveLength(3);
      expect(got.calls.map((call) => call.statusCode)).toEqual([429, 429, 429, 200]);
    });

    test('T-01 an overloaded server is asked again', async () => {
      const got = await asked([voice.overloaded, voice.overloaded, fine]);
      expect(costs(got)).toEqual([0, 0, COST]);
    });

    test('T-02 429 for ever', async () => {
      const got = await asked([voice.rateLimited(null)]);
      const [kind, tries] = kinds(got);
      expect(kind).toBe('unavailable');
      // Ten minutes of waits of ten seconds, and the first three.
      expect(tries).toBeGreaterThan(50);
      expect(failure(got)).toMatchObject({ error: 'RATE_LIMITED' });
      expect(failure(got).message).toMatch(/^rate limited \(429\) after \d+ tries over (?:9m5\d|10m)/);
      expect(new Set(costs(got))).toEqual(new Set([0]));
    });

    test('T-03 a day is too long; a wait that nobody understands is the usual one', async () => {
      const day = await asked([voice.rateLimited('86400')]);
      expect(kinds(day)).toEqual(['unavailable', 1]);
      expect(failure(day).message).toContain('server asked to wait 24h');
      const odd = await asked([voice.rateLimited('soon'), fine]);
      expect(odd.slept).toContain(10);
    });

    test.each(voice.quota.map((_, n) => n))('T-02 a quota that is used up (%s) ends at once', async (n) => {
      const got = await asked([voice.quota[n]!]);
      expect(kinds(got)).toEqual(['quota', 1]);
      expect(costs(got)).toEqual([0]);
    });

    test('T-04 taken and never answered', async () => {
      const got = await asked([{ body: '', hang: true }], {
        settings: { first_byte_timeout_s: 0.2, retry: { max_retries: 1, base_delay_ms: 1 } },
      });
      expect(kinds(got)).toEqual(['unavailable', 2]);
      expect(failure(got)).toMatchObject({ error: 'TIMEOUT' });
      expect(costs(got)).toEqual([null, null]);
    });

    test('T-07 a page, a body cut, JSON cut, an error in a 200: each is asked again', async () => {
      const whole = JSON.stringify(voice.answer('Look.'));
      const headers = { 'content-type': 'application/json', 'content-length': String(whole.length) };
      const cut: RawReply = { headers, body: whole.slice(0, 30), after: 'reset' };
      const half: RawReply = { headers: { 'content-type': 'application/json' }, body: whole.slice(0, 30) };
      const page: RawReply = { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>' };
      for (const [fault, text] of [
        [page, /^non-JSON 502 /],
        [cut, /^truncated body: connection lost/],
        [half, /^truncated body: the JSON ends/],
        [voice.errorIn200, /^error object in 200 /],
      ] as const) {
        const got = await asked([fault]);
        expect(kinds(got)).toEqual(['unavailable', 4]);
        expect(failure(got)).toMatchObject({ error: 'NETWORK_ERROR' });
        expect(failure(got).message).toMatch(text);
        expect(reply(await asked([fault, fine])).content).toBe('Look.');
      }
    });

    test('T-08 a refused key, without a character of it', async () => {
      for (const refused of voice.badKey) {
        const got = await asked([refused]);
        expect(kinds(got)).toEqual(['auth', 1]);
        expect(failure(got)).toMatchObject({ error: 'AUTHENTICATION_ERROR' });
        expect(failure(got).message).toContain('OPENAI_API_KEY');
        expect(JSON.stringify([got.answer, got.calls])).not.toContain(KEY);
      }
    });

    test('T-09 a model that is not there', async () => {
      const got = await asked([voice.noModel]);
      expect(kinds(got)).toEqual(['not_found', 1]);
      expect(failure(got).message).toContain('http://127.0.0.1');
    });

    test.each(voice.tooLong.map((_, n) => n))('T-10 a prompt that is too long (%s)', async (n) => {
      const got = await asked([voice.tooLong[n]!]);
      expect(kinds(got)).toEqual(['context', 1]);
      expect(failure(got)).toMatchObject({ error: 'CONTEXT_LENGTH_EXCEEDED' });
    });

    test.each(voice.refused.map((_, n) => n))('T-11 a refusal (%s)', async (n) => {
      const got = await asked([voice.refused[n]!]);
      expect(kinds(got)).toEqual(['refusal', 1]);
    });

    test.each(voice.empty.map((_, n) => n))(
      'T-12 an empty answer (%s) is billed and not asked again here',
      async (n) => {
        const got = await asked([voice.empty[n]!]);
        expect(kinds(got)).toEqual(['empty', 1]);
        expect(costs(got)).toEqual([COST]);
      },
    );

    test('a parameter that is refused, and another 400', async () => {
      for (const refused of voice.badParameter) expect(kinds(await asked([refused]))).toEqual(['config', 1]);
      const other = await asked([voice.notUnderstood]);
      expect(kinds(other)).toEqual(['rejected', 1]);
      expect(costs(other)).toEqual([0]);
    });
  });

  test('T-05 a stream that falls silent: a partial row, its cost estimated and flagged', async () => {
    const text = 'x'.repeat(400);
    const got = await ask(voice, [broken(voice.half(text), 'silence')], {
      stream: true,
      settings: { idle_timeout_s: 0.6, retry: { enabled: false } },
    });
    expect(kinds(got)).toEqual(['unavailable', 1]);
    expect(failure(got).message).toMatch(/^stream idle 600ms after \d+ chunks/);
    const [row] = got.calls;
    expect(row).toMatchObject({ state: 'aborted', errorCode: 'TIMEOUT', usage: { output: 100 } });
    expect(row!.costNano).toBeGreaterThanOrEqual(100 * 10_000);
    expect(row!.notes.join()).toContain('estimated');
  });

  test('T-07 a stream that is cut, or ends before its end', async () => {
    const cut = await ask(voice, [broken(voice.half('x'.repeat(400)), 'reset'), streamedGood], {
      stream: true,
    });
    expect(reply(cut).content).toBe('Look.');
    expect(cut.calls[0]).toMatchObject({
      state: 'failed',
      errorCode: 'NETWORK_ERROR',
      usage: { output: 100 },
    });
    const ended = await ask(voice, [eventReply(voice.half('x'.repeat(400))), streamedGood], { stream: true });
    expect(ended.calls[0]).toMatchObject({
      state: 'failed',
      errorCode: 'NETWORK_ERROR',
      usage: { output: 100 },
    });
    const nothing = await ask(voice, [broken(voice.begun(), 'reset'), streamedGood], { stream: true });
    expect(costs(nothing)).toEqual([null, COST]);
  });

  test('T-07 overloaded inside a stream: before a word it costs nothing, behind half an answer it is estimated', async () => {
    const overloaded = voice.errorEvents('overloaded');
    const before = await ask(voice, [eventReply([...voice.begun(), ...overloaded]), streamedGood], {
      stream: true,
    });
    expect(costs(before)).toEqual([0, COST]);
    const behind = [...voice.half('x'.repeat(400)), ...overloaded];
    const half = await ask(voice, [eventReply(behind), streamedGood], { stream: true });
    expect(half.calls[0]).toMatchObject({ state: 'failed', usage: { output: 100 } });
    expect(half.calls[0]!.notes.join()).toContain('estimated');
    expect(half.requests).toHaveLength(2);
  });

  test('T-10 too long, said inside a stream', async () => {
    const got = await ask(voice, [eventReply([...voice.begun(), ...voice.errorEvents('tooLong')])], {
      stream: true,
    });
    expect(kinds(got)).toEqual(['context', 1]);
  });

  test('T-13 an answer that was cut says so, and an end that nobody knows is none', async () => {
    expect(reply(await ask(voice, [jsonReply(voice.answer('Loo', 'length'))]))).toMatchObject({
      content: 'Loo',
      finishReason: 'length',
    });
    expect(kinds(await ask(voice, [jsonReply(voice.answer('Look.', 'unknown'))]))).toEqual([
      'unavailable',
      4,
    ]);
  });

  test('T-14 arguments that are no object reach the agent as they are, and the history can still be sent', async () => {
    const { message, toolCalls } = reply(await ask(voice, [jsonReply(voice.calls('{"command": tr'))]));
    expect(toolCalls).toHaveLength(1);
    expect(toolCalls[0]!.function.arguments).toContain('{\\"command\\": tr'.slice(0, 1));
    const history: Message[] = [
      ...ASK,
      message,
      { role: 'tool', tool_call_id: toolCalls[0]!.id, content: 'no JSON' },
    ];
    const { requests } = await ask(voice, [good], { history });
    expect(JSON.stringify(requests[0]!.body)).toContain('no JSON');
  });

  test('T-15 two calls have ids of their own, and both answers go back in one request', async () => {
    const { message, toolCalls } = reply(
      await ask(voice, [jsonReply(voice.calls('{"command": "a"}', '{"command": "b"}'))]),
    );
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(2);
    expect(toolCalls.map((call) => JSON.parse(call.function.arguments))).toEqual([
      { command: 'a' },
      { command: 'b' },
    ]);
    const history: Message[] = [
      ...ASK,
      message,
      ...toolCalls.map(({ id }, n): Message => ({ role: 'tool', tool_call_id: id, content: `said ${n}` })),
    ];
    const sent = JSON.stringify((await ask(voice, [good], { history })).requests[0]!.body);
    expect(sent.indexOf('said 0')).toBeGreaterThan(0);
    expect(sent.indexOf('said 1')).toBeGreaterThan(sent.indexOf('said 0'));
  });

  test('T-16 lone surrogates, NUL, ANSI and tags come as they are and go back well-formed', async () => {
    const odd = 'a\ud800b\u0000c\u001b[31m</script>';
    const { content, message } = reply(await ask(voice, [jsonReply(voice.answer(odd))]));
    expect(content).toBe(odd);
    const history: Message[] = [...ASK, message, { role: 'user', content: odd }];
    const { requests } = await ask(voice, [good], { history });
    const sent = JSON.stringify(requests[0]!.body);
    expect(sent).toContain('a\ufffdb');
    expect(sent).not.toContain('\\ud800');
  });

  test('T-17 another model than the one asked for is noted', async () => {
    const { calls } = await ask(voice, [jsonReply(voice.otherModel)]);
    expect(calls[0]!.notes.join()).toMatch(/answered by .*-\d+/);
  });
});

test('thought without its signature does not go back to Claude, and reasoning that nobody kept not to OpenAI', async () => {
  const voiceOf = (name: string) => VOICES.find(([found]) => found === name)![1];
  const claude = voiceOf('messages');
  const body = claude.answer('Look.') as { content: object[] };
  const unsigned = { ...body, content: [{ type: 'thinking', thinking: 'unsigned' }, ...body.content] };
  const { message } = reply(await ask(claude, [jsonReply(unsigned)]));
  const back = await ask(claude, [jsonReply(body)], {
    history: [...ASK, message, { role: 'user', content: 'go' }],
  });
  expect(JSON.stringify(back.requests[0]!.body)).not.toContain('unsigned');
  const openai = voiceOf('responses');
  const thought = openai.answer('Look.') as { output: object[] };
  const lost = { ...thought, output: [{ type: 'reasoning', id: 'rs_lost', summary: [] }, ...thought.output] };
  const said = reply(await ask(openai, [jsonReply(lost)])).message;
  const again = await ask(openai, [jsonReply(thought)], {
    history: [...ASK, said, { role: 'user', content: 'go' }],
  });
  expect(JSON.stringify(again.requests[0]!.body)).not.toContain('rs_lost');
});
