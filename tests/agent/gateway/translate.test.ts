// Programs of each protocol with models of each other one, over real HTTP: tool calls over several turns, streamed and not.
import { afterEach, describe, expect, test } from 'vitest';
import { DIALECT_NAMES, type DialectName } from '../../../src/model/dialects/dialects.ts';
import { type SeenRequest, startFakeProvider, type Turn } from '../../support/agents/playedProvider.ts';
import { type Bench, type BenchOptions, bench } from './gatewayBench.ts';
import { askAs, firstOf, type Programme, SYSTEM, TASK, work } from './translationClients.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

const BASE = { chat: '/v1', responses: '/v1', messages: '', gemini: '/v1beta' } as const;
type Before = Parameters<typeof startFakeProvider>[1];

interface Pair {
  readonly from: DialectName;
  readonly to: DialectName;
}
const PAIRS: Pair[] = DIALECT_NAMES.flatMap((from) =>
  DIALECT_NAMES.flatMap((to) => (from === to ? [] : [{ from, to }])),
);

async function start(
  { from, to }: Pair,
  turns: readonly Turn[],
  { before, streamed = false, ...more }: Partial<BenchOptions> & { before?: Before; streamed?: boolean } = {},
): Promise<{ here: Bench; requests: SeenRequest[]; program: Programme }> {
  const provider = await startFakeProvider(turns, before);
  open.push(provider);
  const here = await bench({
    ...{ providerUrl: provider.url, dialect: to, config: { translate: true } },
    ...more,
    model: { base_url: `${provider.url}${BASE[to]}`, ...more.model },
  });
  open.push({ [Symbol.asyncDispose]: () => here.stop() });
  const program = { dialect: from, streamed, url: here.url, key: here.session.key };
  return { here, requests: provider.requests, program };
}

const TURNS: Turn[] = [
  { tool: 'bash', args: { command: 'ls "a b"' } },
  { tool: 'bash', args: { command: 'echo ä > x' } },
  { say: 'It is fixed.' },
];
/** Where each protocol puts what a tool has answered. */
const RESULTS: Readonly<Record<DialectName, (body: Record<string, unknown>) => unknown[]>> = {
  chat: (body) => (body.messages as Record<string, unknown>[]).filter(({ role }) => role === 'tool'),
  responses: (body) =>
    (body.input as Record<string, unknown>[]).filter(({ type }) => type === 'function_call_output'),
  messages: (body) =>
    (body.messages as { content: Record<string, unknown>[] }[])
      .flatMap(({ content }) => content)
      .filter(({ type }) => type === 'tool_result'),
  gemini: (body) =>
    (body.contents as { parts: Record<string, unknown>[] }[])
      .flatMap(({ parts }) => parts)
      .filter((part) => 'functionResponse' in part),
};

describe.each(PAIRS)('$from to $to', (pair) => {
  test.each([false, true])('works over several turns of tools, streamed: %s', async (streamed) => {
    const { here, requests, program } = await start(pair, TURNS, { streamed });
    const results = ['a\nb', 'done: "ä"'];
    const replies = await work(program, () => results.shift()!);
    expect(replies.map(({ toolCalls }) => toolCalls.map((call) => call.function.name))).toEqual([
      ['bash'],
      ['bash'],
      [],
    ]);
    expect(
      replies.flatMap(({ toolCalls }) => toolCalls.map((c) => JSON.parse(c.function.arguments) as unknown)),
    ).toEqual([{ command: 'ls "a b"' }, { command: 'echo ä > x' }]);
    expect(replies.map(({ finishReason }) => finishReason)).toEqual(['tool_calls', 'tool_calls', 'stop']);
    expect(replies[2]!.content).toBe('It is fixed.');

    expect(requests).toHaveLength(3);
    const last = requests[2]!;
    expect(JSON.stringify(last.body)).toContain(SYSTEM);
    expect(JSON.stringify(last.body)).toContain(TASK);
    expect(JSON.stringify(last.body)).not.toContain(here.session.key);
    const answered = RESULTS[pair.to](last.body as Record<string, unknown>);
    expect(answered).toHaveLength(2);
    expect(JSON.stringify(answered[0])).toContain('a\\nb');
    expect(JSON.stringify(answered[1])).toContain('done: \\"ä\\"');
    expect(JSON.stringify(last.body)).toContain('500');

    // Each row of the ledger and each call of the record say that the request is not the program's own.
    expect(here.rows).toHaveLength(3);
    for (const row of here.rows) {
      expect(row).toMatchObject({ state: 'ok', usage: { input: 1000, output: 50 }, costNano: 1_500_000 });
      expect(row.notes).toContain(`translated from ${pair.from} to ${pair.to}`);
    }
    expect(here.calls.map(({ dialect, translated, status }) => [dialect, translated, status])).toEqual(
      [0, 1, 2].map(() => [pair.from, pair.to, 200]),
    );
    expect(here.calls.flatMap(({ newMessages }) => newMessages.map(({ role }) => role))).toEqual([
      ...['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'],
    ]);
  });

  test('is refused without gateway.translate, and the key is named', async () => {
    const { here, requests, program } = await start(pair, TURNS, { config: {} });
    const { status, text } = await askAs(program, firstOf(pair.from));
    expect(status).toBe(400);
    expect(text).toContain('gateway.translate: true');
    expect(requests).toHaveLength(0);
    expect(here.rows).toEqual([]);
  });

  test('a 429 is waited for, and a stream that was cut is asked for again', async () => {
    let tries = 0;
    const { here, program } = await start(pair, [{ say: 'Hello.' }], {
      streamed: true,
      before: (_seen, response) => {
        tries += 1;
        if (tries === 1) response.writeHead(429).end('{"error":{"message":"slow down"}}');
        if (tries === 2) {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('data: {}\n\n', () => response.destroy());
        }
        return tries < 3;
      },
    });
    const { reply } = await askAs(program, firstOf(pair.from));
    expect(reply?.content).toBe('Hello.');
    expect(here.rows.map(({ state }) => state)).toEqual(['failed', 'failed', 'ok']);
  });

  test('a refusal of the provider comes in the words of the program', async () => {
    const { program } = await start(pair, [], {
      before: (_seen, response) => {
        const error = { type: 'invalid_request_error', message: 'tools.0: no such thing', code: null };
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ type: 'error', error }));
        return true;
      },
    });
    const { status, text } = await askAs(program, firstOf(pair.from));
    expect(status).toBe(400);
    const { error } = JSON.parse(text) as { error: Record<string, unknown> };
    expect(error.message).toContain('tools.0: no such thing');
    expect(Object.keys(error)).toEqual(
      { chat: ['message', 'type', 'param', 'code'], responses: ['message', 'type', 'param', 'code'] }[
        pair.from as 'chat'
      ] ?? (pair.from === 'messages' ? ['type', 'message'] : ['code', 'message', 'status']),
    );
  });
});
