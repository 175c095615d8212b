// A reply that did not come whole says nothing about the model: it is asked for again, and ends as an outage when it never comes.
import { describe, expect, test } from 'vitest';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import type { Directive } from '../support/fakeAnswer.ts';
import { eventReply, jsonReply, startRawServer } from '../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY, recorder, wire } from './harness.ts';

const sse = (...lines: string[]): Directive => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: lines.map((line) => `${line}\n\n`).join(''),
});
const data = (value: unknown): string => `data: ${JSON.stringify(value)}`;
const choice = (rest: Record<string, unknown>): string =>
  data({ id: 'c', model: 'gpt-4o', choices: [{ index: 0, ...rest }] });
const json = (value: unknown): Directive => ({ status: 200, body: value });

const CUT: readonly (readonly [string, Directive, stream: boolean])[] = [
  ['a stream without an event', sse(), true],
  ['a stream of pings', sse(': ping', ': ping', ': ping'), true],
  ['a stream of its first chunk alone', sse(choice({ delta: { role: 'assistant', content: '' } })), true],
  [
    'a stream of reasoning without an end',
    sse(choice({ delta: { role: 'assistant', reasoning_content: 'hm' } }), 'data: [DONE]'),
    true,
  ],
  ['a stream of [DONE] alone', sse('data: [DONE]'), true],
  [
    'a stream that refuses and has no end',
    sse(choice({ delta: { role: 'assistant', refusal: 'I can' } })),
    true,
  ],
  [
    'an error beside a part of a message',
    json({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '```bash\nrm -rf .\n```' },
          error: { code: 502, message: 'upstream went away' },
          finish_reason: 'stop',
        },
      ],
    }),
    false,
  ],
  [
    'a reply that ended with an error',
    json({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '```bash\nrm -rf .\n```' },
          finish_reason: 'error',
        },
      ],
    }),
    false,
  ],
  [
    "a gateway's own page about a large request",
    {
      status: 413,
      headers: { 'content-type': 'text/html' },
      body: '<html><head><title>413 Request Entity Too Large</title></head></html>',
    },
    false,
  ],
];

describe('replies that did not come whole', () => {
  test.each(CUT)('%s is asked for again', async (_name, cut, stream) => {
    await using wired = await wire({ replies: [cut, { content: 'whole' }] }, { stream });
    const { listener, calls } = recorder();
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK, { listener });
    expect(answer).toMatchObject({ success: true, result: { content: 'whole' } });
    expect(calls.map((call) => call.state)).toEqual(['failed', 'ok']);
  });

  test.each(CUT)('%s for ever is an outage', async (_name, cut, stream) => {
    await using wired = await wire({ replies: [cut] }, { stream });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: false, metadata: { kind: 'unavailable' } });
    expect(wired.server.requests).toHaveLength(4);
  });

  test('plain JSON that is called an event stream is a reply', async () => {
    const body = JSON.stringify({
      model: 'gpt-4o',
      choices: [{ message: { role: 'assistant', content: 'plain' }, finish_reason: 'stop' }],
    });
    await using wired = await wire({ replies: [{ ...sse(), body }] }, { stream: true });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: true, result: { content: 'plain' } });
    expect(wired.server.requests).toHaveLength(1);
  });

  test.each([
    ['request_too_large', 'context'],
    ['invalid_request_error', 'rejected'],
  ])('a 413 of the API says that the history is too long only by its type: %s', async (type, kind) => {
    const body = { error: { message: 'Request too large', type } };
    await using wired = await wire({ replies: [{ status: 413, body }] });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    expect(answer).toMatchObject({ success: false, metadata: { kind } });
  });
});

const COMMAND = { command: 'rm -rf .' };
const BLOCK = '```bash\nrm -rf .\n```';
const chatBody = (message: object | null, finish_reason: string | null) => ({
  id: 'c',
  model: 'm',
  choices: message ? [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }] : [],
  usage: { prompt_tokens: 10, completion_tokens: 5 },
});
const chatCall = {
  content: null,
  tool_calls: [
    { id: 'c1', type: 'function', function: { name: 'bash', arguments: JSON.stringify(COMMAND) } },
  ],
};
const geminiBody = (parts: object[] | null, finishReason?: string) => ({
  ...(parts && {
    candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }) }],
  }),
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
});
const geminiCall = { functionCall: { name: 'bash', args: COMMAND } };
const claude = (content: object[], stop_reason: string | null) => ({
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', content, stop_reason },
  usage: { input_tokens: 10, output_tokens: 5 },
});
const toolUse = { type: 'tool_use', id: 't', name: 'bash', input: COMMAND };
const responsesBody = (rest: object) => ({
  ...{ id: 'r', object: 'response', model: 'm', usage: { input_tokens: 10, output_tokens: 5 } },
  output: [{ type: 'function_call', call_id: 'c', name: 'bash', arguments: JSON.stringify(COMMAND) }],
  ...rest,
});

/** Every end by which a provider says that a reply broke off, or does not say that it is whole; most hold a command. */
const BROKEN: readonly (readonly [dialect: 'chat' | 'messages' | 'responses' | 'gemini', string, object])[] =
  [
    ['gemini', 'an empty object', {}],
    ['gemini', 'no candidates', geminiBody(null)],
    ['gemini', 'finishReason OTHER without a part', geminiBody([], 'OTHER')],
    ['gemini', 'finishReason OTHER', geminiBody([geminiCall], 'OTHER')],
    ['gemini', 'an unspecified finishReason', geminiBody([geminiCall], 'FINISH_REASON_UNSPECIFIED')],
    ['gemini', 'no finishReason', geminiBody([{ text: BLOCK }])],
    ...['OTHER', 'BLOCK_REASON_UNSPECIFIED', 'A_NEW_WORD'].map(
      (blockReason) => ['gemini', `blockReason ${blockReason}`, { promptFeedback: { blockReason } }] as const,
    ),
    ['chat', 'no choices', chatBody(null, null)],
    ['chat', 'no text and no finish_reason', chatBody({ content: '' }, null)],
    ['chat', 'a call and no finish_reason', chatBody(chatCall, null)],
    ...['', 'abort', 'network_error', 'insufficient_system_resource', 'error', 'a_new_word'].map(
      (word) => ['chat', `finish_reason "${word}"`, chatBody({ content: BLOCK }, word)] as const,
    ),
    ['messages', 'no stop_reason', claude([toolUse], null)],
    ['messages', 'nothing and no stop_reason', claude([], null)],
    ['messages', 'pause_turn', claude([toolUse], 'pause_turn')],
    ['messages', 'a new stop_reason', claude([toolUse], 'a_new_word')],
    ['responses', 'no status', responsesBody({})],
    ['responses', 'incomplete without a reason', responsesBody({ status: 'incomplete' })],
    [
      'responses',
      'incomplete for a new reason',
      responsesBody({ status: 'incomplete', incomplete_details: { reason: 'a_new_word' } }),
    ],
    ['responses', 'in progress', responsesBody({ status: 'in_progress' })],
  ];

const WHOLE = {
  chat: chatBody({ content: 'whole' }, 'stop'),
  messages: claude([{ type: 'text', text: 'whole' }], 'end_turn'),
  responses: responsesBody({
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'whole' }] }],
  }),
  gemini: geminiBody([{ text: 'whole' }], 'STOP'),
};

/** The same reply as the events of a stream. */
function eventsOf(dialect: keyof typeof WHOLE, body: object): (readonly [string | null, unknown])[] {
  const fields = body as Record<string, never>;
  if (dialect === 'gemini') return [[null, body]];
  if (dialect === 'responses')
    return [[null, { type: `response.${fields.status ?? 'in_progress'}`, response: body }]];
  if (dialect === 'chat') {
    const { choices, ...rest } = fields as unknown as ReturnType<typeof chatBody>;
    return [
      ...choices.map(
        ({ message, finish_reason }) =>
          [null, { ...rest, choices: [{ index: 0, delta: message, finish_reason }] }] as const,
      ),
      [null, '[DONE]'],
    ];
  }
  const { content, stop_reason, ...rest } = fields as unknown as ReturnType<typeof claude>;
  return [
    ['message_start', { type: 'message_start', message: { ...rest, content: [], stop_reason: null } }],
    ...content.map(
      (block, index) =>
        ['content_block_start', { type: 'content_block_start', index, content_block: block }] as const,
    ),
    ['message_delta', { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 5 } }],
    ['message_stop', { type: 'message_stop' }],
  ];
}

describe.each([false, true])('no command of a reply that broke off runs (streamed: %s)', (stream) => {
  async function askTwice(dialect: keyof typeof WHOLE, bodies: readonly object[]) {
    const replies = bodies.map((body) => (stream ? eventReply(eventsOf(dialect, body)) : jsonReply(body)));
    await using server = await startRawServer(replies);
    const factory = await createModelFactory(
      configOf({ model_name: 'm', dialect, base_url: server.url, stream, prices: { input: 1, output: 10 } }),
      { apiKey: KEY, clock: autoClock().clock },
    );
    const { listener, calls } = recorder();
    const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK, { listener });
    await factory.close();
    return { answer, calls, requests: server.requests.length };
  }

  test.each(BROKEN)('%s: %s is asked for again', async (dialect, _end, body) => {
    const { answer, calls } = await askTwice(dialect, [body, WHOLE[dialect]]);
    expect(answer).toMatchObject({ success: true, result: { content: 'whole', toolCalls: [] } });
    expect(calls.map(({ state }) => state)).toEqual(['failed', 'ok']);
  });

  test.each(BROKEN)('%s: %s for ever is an outage', async (dialect, _end, body) => {
    const { answer, requests } = await askTwice(dialect, [body]);
    expect(answer).toMatchObject({ success: false, metadata: { kind: 'unavailable' } });
    expect(requests).toBe(4);
  });

  test('what was stated of its use is paid', async () => {
    const { calls } = await askTwice('chat', [chatBody(chatCall, 'abort'), WHOLE.chat]);
    expect(calls[0]!.costNano).toBeGreaterThan(0);
  });
});

test.each([
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['STOP', 'stop'],
  ['COMPLETE', 'stop'],
  ['end_turn', 'stop'],
  ['model_length', 'length'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'function_call'],
])('the word "%s" of another protocol is an end of its model: %s', async (word, means) => {
  await using wired = await wire({ replies: [json(chatBody({ content: 'whole' }, word))] });
  const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
  expect(answer).toMatchObject({ success: true, result: { finishReason: means } });
});

test('a stream of more than 16 MB is a reply like any other', async () => {
  const word = 'x'.repeat(1024 * 1024);
  const pieces = Array.from({ length: 18 }, () => choice({ delta: { content: word } }));
  const whole = sse(...pieces, choice({ delta: {}, finish_reason: 'stop' }), 'data: [DONE]');
  await using wired = await wire({ replies: [whole] }, { stream: true });
  const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
  expect(answer.success && answer.result.content.length).toBe(18 * word.length);
  expect(wired.server.requests).toHaveLength(1);
});

test("Z.ai's end at the context window, and its filter", async () => {
  const kinds = [];
  for (const word of ['model_context_window_exceeded', 'sensitive']) {
    await using wired = await wire({ replies: [json(chatBody({ content: BLOCK }, word))] });
    const answer = await wired.factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
    kinds.push(answer.success ? null : answer.metadata?.kind);
  }
  expect(kinds).toEqual(['context', 'refusal']);
});
