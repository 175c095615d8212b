// The three dialects beside chat completions, each over real HTTP: a reply plain and streamed, its usage and price, and what goes wrong.
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Message, ModelReply } from '../../src/model/model.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { eventReply, jsonReply, type RawReply, startRawServer } from '../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY, recorder } from './harness.ts';

const COMMAND = { command: 'ls "é"' };
const PRICES = { input: 1, output: 10, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2 };

interface Kind {
  readonly model: string;
  readonly plain: unknown;
  readonly events: readonly (readonly [string | null, unknown])[];
  /** The events without the last one. */
  readonly unfinished: number;
  readonly usage: object;
  readonly costNano: number;
  readonly refusal: unknown;
  readonly cutOff: unknown;
  readonly empty: unknown;
  readonly malformed: unknown;
  /** Error bodies: what a provider of this dialect answers. */
  readonly rateLimited: RawReply;
  readonly overloaded: RawReply;
  readonly quota: RawReply;
  readonly badKey: RawReply;
  readonly noModel: RawReply;
  readonly tooLong: RawReply;
  readonly badParameter: RawReply;
  readonly errorInStream: readonly (readonly [string | null, unknown])[];
}

const anthropicError = (status: number, type: string, message: string, headers = {}) =>
  jsonReply({ type: 'error', error: { type, message } }, status, headers);
const googleError = (status: number, name: string, message: string, details: unknown[] = []) =>
  jsonReply({ error: { code: status, message, status: name, details } }, status);
const openaiError = (status: number, code: string | null, message: string, type = 'invalid_request_error') =>
  jsonReply({ error: { message, type, code, param: null } }, status);

const claude = (rest: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-x',
  stop_reason: 'end_turn',
  usage: { input_tokens: 10, output_tokens: 5 },
  ...rest,
});
const CLAUDE_USAGE = {
  input_tokens: 100,
  cache_creation_input_tokens: 300,
  cache_read_input_tokens: 1000,
  cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
};

const messages: Kind = {
  model: 'anthropic/claude-x',
  plain: claude({
    content: [
      { type: 'thinking', thinking: 'hm, yes', signature: 's1' },
      { type: 'redacted_thinking', data: 'xx' },
      { type: 'text', text: 'Look at é.' },
      { type: 'tool_use', id: 'toolu_1', name: 'bash', input: COMMAND },
    ],
    stop_reason: 'tool_use',
    usage: { ...CLAUDE_USAGE, output_tokens: 40 },
  }),
  events: [
    [
      'message_start',
      {
        type: 'message_start',
        message: claude({ content: [], stop_reason: null, usage: { ...CLAUDE_USAGE, output_tokens: 1 } }),
      },
    ],
    [
      'content_block_start',
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
    ],
    ['ping', { type: 'ping' }],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm, ' } },
    ],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'yes' } },
    ],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 's1' } },
    ],
    ['content_block_stop', { type: 'content_block_stop', index: 0 }],
    [
      'content_block_start',
      { type: 'content_block_start', index: 1, content_block: { type: 'redacted_thinking', data: 'xx' } },
    ],
    [
      'content_block_start',
      { type: 'content_block_start', index: 2, content_block: { type: 'text', text: '' } },
    ],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'Look at ' } },
    ],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'é.' } },
    ],
    [
      'content_block_start',
      {
        type: 'content_block_start',
        index: 3,
        content_block: { type: 'tool_use', id: 'toolu_1', name: 'bash', input: {} },
      },
    ],
    [
      'content_block_delta',
      {
        type: 'content_block_delta',
        index: 3,
        delta: { type: 'input_json_delta', partial_json: '{"command": "ls ' },
      },
    ],
    [
      'content_block_delta',
      {
        type: 'content_block_delta',
        index: 3,
        delta: { type: 'input_json_delta', partial_json: '\\"é\\""}' },
      },
    ],
    [
      'message_delta',
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 40 } },
    ],
    ['message_stop', { type: 'message_stop' }],
  ],
  unfinished: 13,
  usage: { input: 100, cacheRead: 1000, cacheWrite: 300, output: 40, reasoning: 0 },
  costNano: 100 * 1000 + 1000 * 100 + 200 * 1250 + 100 * 2000 + 40 * 10_000,
  refusal: claude({ content: [{ type: 'text', text: 'I cannot.' }], stop_reason: 'refusal' }),
  cutOff: claude({ content: [{ type: 'text', text: 'I was about' }], stop_reason: 'max_tokens' }),
  empty: claude({ content: [] }),
  malformed: claude({ content: [{ type: 'tool_use', name: 'bash' }] }),
  rateLimited: anthropicError(429, 'rate_limit_error', 'slow down', { 'retry-after': '7' }),
  overloaded: anthropicError(529, 'overloaded_error', 'Overloaded'),
  quota: anthropicError(400, 'invalid_request_error', 'Your credit balance is too low to access the API.'),
  badKey: anthropicError(401, 'authentication_error', 'invalid x-api-key'),
  noModel: anthropicError(404, 'not_found_error', 'model: claude-x'),
  tooLong: anthropicError(400, 'invalid_request_error', 'prompt is too long: 212345 tokens > 200000 maximum'),
  badParameter: anthropicError(
    400,
    'invalid_request_error',
    'temperature: may only be set to 1 with thinking',
  ),
  errorInStream: [
    ['message_start', { type: 'message_start', message: claude({ content: [], stop_reason: null }) }],
    ['error', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
  ],
};

const response = (rest: object) => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'gpt-5.1',
  error: null,
  incomplete_details: null,
  usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  output: [],
  ...rest,
});
const OUTPUT = [
  {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: 'hm' }],
    encrypted_content: 'enc',
  },
  {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Look at é.', annotations: [] }],
  },
  {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'bash',
    arguments: JSON.stringify(COMMAND),
    status: 'completed',
  },
];
const RESPONSE_USAGE = {
  input_tokens: 1200,
  input_tokens_details: { cached_tokens: 1000 },
  output_tokens: 60,
  output_tokens_details: { reasoning_tokens: 32 },
  total_tokens: 1260,
};

const responses: Kind = {
  model: 'openai/gpt-5.1',
  plain: response({ output: OUTPUT, usage: RESPONSE_USAGE }),
  events: [
    ['response.created', { type: 'response.created', response: response({ status: 'in_progress' }) }],
    ['response.output_item.done', { type: 'response.output_item.done', output_index: 0, item: OUTPUT[0] }],
    [
      'response.output_text.delta',
      { type: 'response.output_text.delta', output_index: 1, delta: 'Look at é.' },
    ],
    ['response.output_item.done', { type: 'response.output_item.done', output_index: 1, item: OUTPUT[1] }],
    ['response.output_item.done', { type: 'response.output_item.done', output_index: 2, item: OUTPUT[2] }],
    [
      'response.completed',
      { type: 'response.completed', response: response({ output: OUTPUT, usage: RESPONSE_USAGE }) },
    ],
  ],
  unfinished: 5,
  usage: { input: 200, cacheRead: 1000, cacheWrite: 0, output: 60, reasoning: 32 },
  costNano: 200 * 1000 + 1000 * 100 + 60 * 10_000,
  refusal: response({
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'I cannot.' }] }],
  }),
  cutOff: response({
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output: [OUTPUT[0]],
  }),
  empty: response({}),
  malformed: response({ output: [{ type: 'function_call', name: 'bash' }] }),
  rateLimited: { ...openaiError(429, 'rate_limit_exceeded', 'slow down'), headers: { 'retry-after': '7' } },
  overloaded: openaiError(503, null, 'The server is overloaded', 'server_error'),
  quota: openaiError(429, 'insufficient_quota', 'You exceeded your current quota', 'insufficient_quota'),
  badKey: openaiError(401, 'invalid_api_key', 'Incorrect API key provided'),
  noModel: openaiError(404, 'model_not_found', 'The model does not exist'),
  tooLong: openaiError(400, 'context_length_exceeded', 'Your input exceeds the context window of this model'),
  badParameter: openaiError(400, null, "Unsupported parameter: 'temperature'"),
  errorInStream: [
    ['response.created', { type: 'response.created', response: response({ status: 'in_progress' }) }],
    [
      'response.failed',
      {
        type: 'response.failed',
        response: response({ status: 'failed', error: { code: 'server_error', message: 'try again' } }),
      },
    ],
  ],
};

const generated = (parts: unknown[], rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  modelVersion: 'gemini-x',
  responseId: 'r1',
  ...rest,
});
const GEMINI_USAGE = {
  promptTokenCount: 1200,
  cachedContentTokenCount: 1000,
  candidatesTokenCount: 40,
  thoughtsTokenCount: 20,
  totalTokenCount: 1260,
};
const CALL = { functionCall: { name: 'bash', args: COMMAND }, thoughtSignature: 'c2ln' };
const chunk = (parts: unknown[], rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }],
  modelVersion: 'gemini-x',
  responseId: 'r1',
});

const gemini: Kind = {
  model: 'gemini/gemini-x',
  plain: generated([{ text: 'hm', thought: true }, { text: 'Look at é.' }, CALL], {
    usageMetadata: GEMINI_USAGE,
  }),
  events: [
    [null, chunk([{ text: 'h', thought: true }])],
    [null, chunk([{ text: 'm', thought: true }])],
    [null, chunk([{ text: 'Look ' }])],
    [null, chunk([{ text: 'at é.' }])],
    [null, chunk([CALL])],
    [null, { ...chunk([], { finishReason: 'STOP' }), usageMetadata: GEMINI_USAGE }],
  ],
  unfinished: 5,
  usage: { input: 200, cacheRead: 1000, cacheWrite: 0, output: 60, reasoning: 20 },
  costNano: 200 * 1000 + 1000 * 100 + 60 * 10_000,
  refusal: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10 } },
  cutOff: {
    ...generated([]),
    candidates: [{ content: { parts: [{ text: 'I was about' }] }, finishReason: 'MAX_TOKENS' }],
  },
  empty: {
    ...generated([]),
    candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'bad call' }],
  },
  malformed: generated([{ functionCall: { args: {} } }]),
  rateLimited: googleError(
    429,
    'RESOURCE_EXHAUSTED',
    'You exceeded your current quota (requests per minute)',
    [
      {
        '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
        violations: [{ quotaId: 'RequestsPerMinute' }],
      },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' },
    ],
  ),
  overloaded: googleError(503, 'UNAVAILABLE', 'The model is overloaded.'),
  quota: googleError(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota', [
    {
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [{ quotaId: 'GenerateRequestsPerDayPerProject' }],
    },
  ]),
  badKey: googleError(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'),
  noModel: googleError(404, 'NOT_FOUND', 'models/gemini-x is not found'),
  tooLong: googleError(
    400,
    'INVALID_ARGUMENT',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  ),
  badParameter: googleError(400, 'INVALID_ARGUMENT', 'Unknown name "foo": Cannot find field.'),
  errorInStream: [
    [null, chunk([{ text: 'Look ' }])],
    [null, { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
  ],
};

const KINDS: readonly (readonly [string, Kind])[] = [
  ['messages', messages],
  ['responses', responses],
  ['gemini', gemini],
];

async function ask(
  kind: Kind,
  replies: readonly RawReply[],
  stream = false,
  history: readonly Message[] = ASK,
) {
  await using server = await startRawServer(replies);
  const { clock, slept } = autoClock();
  const factory = await createModelFactory(
    configOf({
      model_name: kind.model,
      dialect: undefined,
      base_url: server.url,
      prices: PRICES,
      stream,
      ...dialectFor(kind),
    }),
    { apiKey: KEY, clock },
  );
  const { listener, calls } = recorder();
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(history, { listener });
  await factory.close();
  return { answer, calls, slept, requests: server.requests };
}

/** A server at an address of its own speaks chat to an OpenAI name unless told otherwise. */
const dialectFor = (kind: Kind): object => (kind === responses ? { dialect: 'responses' } : {});

const replyOf = async (kind: Kind, reply: RawReply, stream = false): Promise<ModelReply> => {
  const { answer } = await ask(kind, [reply], stream);
  if (!answer.success) throw new Error(answer.message);
  return answer.result;
};

describe.each(KINDS)('%s', (name, kind) => {
  test('a reply: text, call, thought, usage and price', async () => {
    const { answer, calls } = await ask(kind, [jsonReply(kind.plain)]);
    expect(answer).toMatchObject({
      success: true,
      result: {
        content: 'Look at é.',
        finishReason: 'tool_calls',
        usage: kind.usage,
        costNano: kind.costNano,
      },
    });
    if (!answer.success) return;
    expect(answer.result.toolCalls).toHaveLength(1);
    expect(JSON.parse(answer.result.toolCalls[0]!.function.arguments)).toEqual(COMMAND);
    expect(answer.result.message.native?.dialect).toBe(name);
    expect(calls).toMatchObject([{ state: 'ok', usage: kind.usage, costNano: kind.costNano }]);
  });

  test('streamed it is the same', async () => {
    const plain = await replyOf(kind, jsonReply(kind.plain));
    const streamed = await replyOf(kind, eventReply(kind.events), true);
    const { raw: _raw, ...same } = plain;
    expect(streamed).toMatchObject(same);
  });

  test('a stream without its end is asked for again', async () => {
    const cut = eventReply(kind.events.slice(0, kind.unfinished));
    const { answer, calls } = await ask(kind, [cut, eventReply(kind.events)], true);
    expect(answer.success).toBe(true);
    expect(calls.map((call) => [call.state, call.errorCode])).toEqual([
      ['failed', 'NETWORK_ERROR'],
      ['ok', null],
    ]);
    expect(calls[0]!.errorMessage).toMatch(/^truncated body: the stream ended after \d+ chunks without/);
  });

  test('an error inside a stream is asked for again', async () => {
    const { answer, calls } = await ask(
      kind,
      [eventReply(kind.errorInStream), eventReply(kind.events)],
      true,
    );
    expect(answer.success).toBe(true);
    expect(calls.map((call) => call.state)).toEqual(['failed', 'ok']);
  });

  test.each(['rateLimited', 'overloaded'] as const)('%s is waited for', async (fault) => {
    const { answer, slept, requests } = await ask(kind, [kind[fault], jsonReply(kind.plain)]);
    expect(answer.success).toBe(true);
    expect(requests).toHaveLength(2);
    if (fault === 'rateLimited') expect(Math.max(...slept)).toBe(7000);
  });

  test.each([
    ['quota', 'quota'],
    ['badKey', 'auth'],
    ['noModel', 'not_found'],
    ['tooLong', 'context'],
    ['badParameter', 'config'],
  ] as const)('%s ends at once', async (fault, why) => {
    const { answer, requests } = await ask(kind, [kind[fault]]);
    expect(answer).toMatchObject({ success: false, metadata: { kind: why } });
    expect(requests).toHaveLength(1);
    expect(JSON.stringify(answer)).not.toContain(KEY);
  });

  test('a refusal, an answer cut off, nothing at all, and a reply that breaks the rules [M-26]', async () => {
    expect((await ask(kind, [jsonReply(kind.refusal)])).answer).toMatchObject({
      success: false,
      metadata: { kind: 'refusal' },
    });
    expect((await replyOf(kind, jsonReply(kind.cutOff))).finishReason).toBe('length');
    expect((await ask(kind, [jsonReply(kind.empty)])).answer).toMatchObject({ metadata: { kind: 'empty' } });
    const broken = await ask(kind, [jsonReply(kind.malformed)]);
    expect(broken.answer).toMatchObject({ success: false, error: 'INVALID_RESPONSE' });
    expect(broken.calls[0]).toMatchObject({
      errorCode: 'INVALID_RESPONSE',
      unreadable: JSON.stringify(kind.malformed),
    });
    expect(broken.calls[0]!.errorMessage).toMatch(/^malformed reply: /);
  });

  test('what was thought goes back unchanged, and the answer to a call names it [M-32]', async () => {
    const { message, toolCalls } = await replyOf(kind, jsonReply(kind.plain));
    const history: Message[] = [
      { role: 'system', content: 'You are.' },
      { role: 'user', content: 'Do.' },
      message,
      { role: 'tool', tool_call_id: toolCalls[0]!.id, content: 'listed' },
    ];
    const { requests } = await ask(kind, [jsonReply(kind.plain)], false, history);
    const sent = JSON.stringify(requests[0]!.body);
    for (const part of message.native!.content as unknown[]) expect(sent).toContain(JSON.stringify(part));
    expect(sent).toContain('listed');
    expect(sent).not.toContain('native');
    expect(JSON.stringify(requests[0]!.headers)).toContain(KEY);
  });

  test('packed by a gateway, or with a byte order mark, it is read', async () => {
    const text = JSON.stringify(kind.plain);
    const packed: readonly (readonly [string, Buffer])[] = [
      ['gzip', gzipSync(text)],
      ['deflate', deflateRawSync(text)],
      ['zstd', zstdCompressSync(text)],
      ['GZIP, br', brotliCompressSync(gzipSync(text))],
    ];
    for (const [encoding, body] of packed) {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
      expect((await replyOf(kind, { headers, body })).content).toBe('Look at é.');
    }
    expect((await replyOf(kind, { body: `\ufeff${text}` })).content).toBe('Look at é.');
  });
});
