/** What a server of each dialect says: an answer, plain and streamed, and every fault in the words of its maker. */
import { eventReply, jsonReply, type RawReply } from '../../support/rawServer.ts';

type Events = readonly (readonly [string | null, unknown])[];

export interface Voice {
  readonly settings: Readonly<Record<string, unknown>>;
  /** The usage of every answer: 200 read, 100 of them from a cache, 40 written. */
  answer(text: string, end?: 'stop' | 'length' | 'unknown'): object;
  /** As many calls as there are arguments, as the model wrote them. */
  calls(...written: readonly string[]): object;
  events(text: string): Events;
  /** Events until some text has come. */
  half(text: string): Events;
  /** Events before any text. */
  begun(): Events;
  /** An error as an event of a stream. */
  errorEvents(which: 'overloaded' | 'tooLong'): Events;
  readonly rateLimited: (seconds: string | null) => RawReply;
  readonly overloaded: RawReply;
  readonly quota: readonly RawReply[];
  readonly badKey: readonly RawReply[];
  readonly noModel: RawReply;
  readonly tooLong: readonly RawReply[];
  readonly refused: readonly RawReply[];
  readonly empty: readonly RawReply[];
  readonly badParameter: readonly RawReply[];
  readonly notUnderstood: RawReply;
  readonly errorIn200: RawReply;
  readonly otherModel: object;
}

const retry = (seconds: string | null): Record<string, string> =>
  seconds === null ? {} : { 'retry-after': seconds };

const openai = (
  status: number,
  code: string | null,
  message: string,
  type = 'invalid_request_error',
  headers = {},
) => jsonReply({ error: { message, type, code, param: null } }, status, headers);

const OPENAI_FAULTS = {
  rateLimited: (seconds: string | null) =>
    openai(429, 'rate_limit_exceeded', 'Rate limit reached for requests', 'requests', retry(seconds)),
  overloaded: openai(503, null, 'The server is currently overloaded', 'server_error'),
  quota: [
    openai(
      429,
      'insufficient_quota',
      'You exceeded your current quota, please check your plan',
      'insufficient_quota',
    ),
    openai(402, null, 'Insufficient credits'),
  ],
  badKey: [openai(401, 'invalid_api_key', 'Incorrect API key provided')],
  noModel: openai(404, 'model_not_found', 'The model `x` does not exist or you do not have access to it.'),
  notUnderstood: openai(400, null, 'an assistant message must be followed by its tool messages'),
  errorIn200: jsonReply({ error: { code: 502, message: 'upstream died' } }),
};

const chatBody = (message: object, finish_reason: string | null, model = 'gpt-4o') => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model,
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  usage: {
    prompt_tokens: 200,
    completion_tokens: 40,
    total_tokens: 240,
    prompt_tokens_details: { cached_tokens: 100 },
  },
});
const chatChunk = (delta: object, finish_reason: string | null = null) =>
  [null, { id: 'chatcmpl-1', model: 'gpt-4o', choices: [{ index: 0, delta, finish_reason }] }] as const;

const chat: Voice = {
  ...OPENAI_FAULTS,
  settings: { model_name: 'gpt-4o' },
  answer: (content, end = 'stop') => chatBody({ content }, end === 'unknown' ? 'a_new_reason' : end),
  calls: (...written) =>
    chatBody(
      {
        content: null,
        tool_calls: written.map((args, n) => ({
          id: `call_${n}`,
          type: 'function',
          function: { name: 'bash', arguments: args },
        })),
      },
      'tool_calls',
    ),
  begun: () => [chatChunk({ role: 'assistant', content: '' })],
  half: (text) => [...chat.begun(), chatChunk({ content: text })],
  events: (text) => [
    ...chat.half(text),
    chatChunk({}, 'stop'),
    [null, { id: 'chatcmpl-1', model: 'gpt-4o', choices: [], usage: chatBody({}, null).usage }],
    [null, '[DONE]'],
  ],
  errorEvents: (which) =>
    which === 'overloaded'
      ? [[null, { error: { message: 'overloaded', type: 'server_error', code: 503 } }]]
      : [
          [
            null,
            {
              error: { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' },
            },
          ],
        ],
  tooLong: [
    openai(
      400,
      'context_length_exceeded',
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    ),
    jsonReply(
      {
        object: 'error',
        message:
          "This model's maximum context length is 32768 tokens. However, you requested 33000 tokens. Please reduce the length of the messages.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
      400,
    ),
    openai(400, null, 'Input validation error: `inputs` must have less than 32768 tokens. Given: 40000'),
  ],
  refused: [
    openai(400, 'content_policy_violation', 'Your request was rejected.'),
    openai(403, null, 'Input was flagged by moderation'),
    jsonReply(chatBody({ content: null, refusal: 'I cannot.' }, 'stop')),
    jsonReply(chatBody({ content: 'So' }, 'content_filter')),
  ],
  empty: [jsonReply(chatBody({ content: null }, 'stop'))],
  badParameter: [
    jsonReply(
      { error: { message: 'Unsupported value', param: 'temperature', type: 'invalid_request_error' } },
      400,
    ),
    jsonReply({ detail: [{ loc: ['body', 'temperature'], msg: 'Input should be less than 2' }] }, 422),
  ],
  otherModel: chatBody({ content: 'Look.' }, 'stop', 'gpt-4o-2024-08-06'),
};

const response = (rest: object) => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'gpt-5.1',
  error: null,
  output: [],
  usage: {
    input_tokens: 200,
    input_tokens_details: { cached_tokens: 100 },
    output_tokens: 40,
    total_tokens: 240,
  },
  ...rest,
});
const said = (text: string) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
});
const failed = (code: string, message: string) =>
  response({ status: 'failed', error: { code, message }, usage: null });

const responses: Voice = {
  ...OPENAI_FAULTS,
  settings: { model_name: 'gpt-5.1', dialect: 'responses' },
  answer: (text, end = 'stop') =>
    response({
      output: [said(text)],
      ...(end === 'stop'
        ? {}
        : {
            status: 'incomplete',
            incomplete_details: { reason: end === 'length' ? 'max_output_tokens' : 'a_new_reason' },
          }),
    }),
  calls: (...written) =>
    response({
      output: written.map((args, n) => ({
        type: 'function_call',
        id: `fc_${n}`,
        call_id: `call_${n}`,
        name: 'bash',
        arguments: args,
      })),
    }),
  begun: () => [
    [
      'response.created',
      { type: 'response.created', response: response({ status: 'in_progress', usage: null }) },
    ],
  ],
  half: (text) => [
    ...responses.begun(),
    ['response.output_text.delta', { type: 'response.output_text.delta', output_index: 0, delta: text }],
  ],
  events: (text) => [
    ...responses.half(text),
    ['response.output_item.done', { type: 'response.output_item.done', output_index: 0, item: said(text) }],
    ['response.completed', { type: 'response.completed', response: responses.answer(text) }],
  ],
  errorEvents: (which) =>
    which === 'overloaded'
      ? [
          [
            'response.failed',
            { type: 'response.failed', response: failed('server_error', 'The server had an error') },
          ],
        ]
      : [
          [
            'response.failed',
            { type: 'response.failed', response: failed('context_length_exceeded', 'too long') },
          ],
        ],
  tooLong: [
    openai(400, 'context_length_exceeded', 'Your input exceeds the context window of this model.'),
    jsonReply(failed('context_length_exceeded', 'Your input exceeds the context window of this model.')),
  ],
  refused: [
    openai(400, 'invalid_prompt', 'Invalid prompt: your prompt was flagged.'),
    jsonReply(
      response({ output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'I cannot.' }] }] }),
    ),
    jsonReply(
      response({
        status: 'incomplete',
        incomplete_details: { reason: 'content_filter' },
        output: [said('So')],
      }),
    ),
  ],
  empty: [jsonReply(response({})), jsonReply(response({ output: [said('')] }))],
  badParameter: [
    jsonReply(
      { error: { message: 'Unsupported parameter', param: 'temperature', type: 'invalid_request_error' } },
      400,
    ),
  ],
  otherModel: response({ output: [said('Look.')], model: 'gpt-5.1-2025-11-13' }),
};

const claudeUsage = { input_tokens: 100, cache_read_input_tokens: 100, cache_creation_input_tokens: 0 };
const claude = (content: readonly object[], stop_reason: string | null, rest: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-x',
  content,
  stop_reason,
  usage: { ...claudeUsage, output_tokens: 40 },
  ...rest,
});
const anthropic = (status: number, type: string, message: string, headers = {}) =>
  jsonReply({ type: 'error', error: { type, message }, request_id: 'req_1' }, status, headers);
const event = (data: { readonly type: string }) => [data.type, data] as const;
const text = (value: string) => ({ type: 'text', text: value });

const messages: Voice = {
  settings: { model_name: 'anthropic/claude-x' },
  answer: (content, end = 'stop') =>
    claude([text(content)], { stop: 'end_turn', length: 'max_tokens', unknown: 'a_new_reason' }[end]),
  calls: (...written) =>
    claude(
      written.map((args, n) => {
        const base = { type: 'tool_use', id: `toolu_${n}`, name: 'bash' };
        try {
          return { ...base, input: JSON.parse(args) as unknown };
        } catch {
          return { ...base, input: args };
        }
      }),
      'tool_use',
    ),
  begun: () => [
    event({
      type: 'message_start',
      ...{ message: claude([], null, { usage: { ...claudeUsage, output_tokens: 1 } }) },
    }),
    event({ type: 'ping' }),
  ],
  half: (content) => [
    ...messages.begun(),
    event({ type: 'content_block_start', ...{ index: 0, content_block: text('') } }),
    event({ type: 'content_block_delta', ...{ index: 0, delta: { type: 'text_delta', text: content } } }),
  ],
  events: (content) => [
    ...messages.half(content),
    event({ type: 'content_block_stop', ...{ index: 0 } }),
    event({ type: 'message_delta', ...{ delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } } }),
    event({ type: 'message_stop' }),
  ],
  errorEvents: (which) => [
    event({
      type: 'error',
      ...{
        error:
          which === 'overloaded'
            ? { type: 'overloaded_error', message: 'Overloaded' }
            : {
                type: 'invalid_request_error',
                message: 'prompt is too long: 210000 tokens > 200000 maximum',
              },
      },
    }),
  ],
  rateLimited: (seconds) =>
    anthropic(429, 'rate_limit_error', 'This request would exceed your rate limit', retry(seconds)),
  overloaded: anthropic(529, 'overloaded_error', 'Overloaded'),
  quota: [
    anthropic(400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
    anthropic(402, 'billing_error', 'Your account has a billing problem'),
  ],
  badKey: [
    anthropic(401, 'authentication_error', 'invalid x-api-key'),
    anthropic(403, 'permission_error', 'Your API key does not have permission'),
  ],
  noModel: anthropic(404, 'not_found_error', 'model: claude-x'),
  tooLong: [
    anthropic(400, 'invalid_request_error', 'prompt is too long: 212345 tokens > 200000 maximum'),
    anthropic(
      400,
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    anthropic(413, 'request_too_large', 'Request exceeds the maximum size'),
    jsonReply(claude([text('So')], 'model_context_window_exceeded')),
  ],
  refused: [
    anthropic(400, 'invalid_request_error', 'Output blocked by content filtering policy'),
    jsonReply(claude([text('I cannot.')], 'refusal')),
    jsonReply(claude([], 'refusal')),
  ],
  empty: [
    jsonReply(claude([], 'end_turn')),
    jsonReply(claude([{ type: 'thinking', thinking: 'hm', signature: 's' }], 'end_turn')),
  ],
  badParameter: [
    anthropic(400, 'invalid_request_error', '`temperature` may only be set to 1 when thinking is enabled.'),
    anthropic(400, 'invalid_request_error', 'temperature: range: 0..1'),
  ],
  notUnderstood: anthropic(
    400,
    'invalid_request_error',
    'messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks',
  ),
  errorIn200: jsonReply({ type: 'error', error: { type: 'api_error', message: 'Internal server error' } }),
  otherModel: claude([text('Look.')], 'end_turn', { model: 'claude-x-20260101' }),
};

const google = (status: number, name: string, message: string, details: unknown[] = []) =>
  jsonReply({ error: { code: status, message, status: name, details } }, status);
const quotaOf = (quotaId: string) => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId }],
});
const retryInfo = (seconds: string) => ({
  '@type': 'type.googleapis.com/google.rpc.RetryInfo',
  retryDelay: `${seconds}s`,
});
const geminiUsage = {
  promptTokenCount: 200,
  cachedContentTokenCount: 100,
  candidatesTokenCount: 40,
  totalTokenCount: 240,
};
const generated = (parts: readonly object[], finishReason: string | null, rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, ...(finishReason ? { finishReason } : {}), index: 0 }],
  usageMetadata: geminiUsage,
  modelVersion: 'gemini-x',
  responseId: 'r1',
  ...rest,
});
const streamed = (parts: readonly object[]) => {
  const { usageMetadata: _last, ...chunk } = generated(parts, null);
  return chunk;
};

const gemini: Voice = {
  settings: { model_name: 'gemini/gemini-x' },
  answer: (content, end = 'stop') =>
    generated([{ text: content }], { stop: 'STOP', length: 'MAX_TOKENS', unknown: 'A_NEW_REASON' }[end]),
  calls: (...written) =>
    generated(
      written.map((args) => {
        try {
          return { functionCall: { name: 'bash', args: JSON.parse(args) as unknown } };
        } catch {
          return { functionCall: { name: 'bash', args } };
        }
      }),
      'STOP',
    ),
  begun: () => [[null, streamed([])]],
  half: (content) => [[null, streamed([{ text: content }])]],
  events: (content) => [...gemini.half(content), [null, generated([], 'STOP')]],
  errorEvents: (which) => [
    [
      null,
      {
        error:
          which === 'overloaded'
            ? { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' }
            : {
                code: 400,
                message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
                status: 'INVALID_ARGUMENT',
              },
      },
    ],
  ],
  rateLimited: (seconds) =>
    google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, requests per minute', [
      quotaOf('GenerateRequestsPerMinutePerProject'),
      ...(seconds === null || !/^\d+$/.test(seconds) ? [] : [retryInfo(seconds)]),
    ]),
  overloaded: google(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
  quota: [
    google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota', [
      quotaOf('GenerateRequestsPerDayPerProject'),
      retryInfo('30'),
    ]),
  ],
  badKey: [
    google(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
    ]),
    google(403, 'PERMISSION_DENIED', 'Method doesn’t allow unregistered callers.'),
  ],
  noModel: google(404, 'NOT_FOUND', 'models/gemini-x is not found for API version v1beta'),
  tooLong: [
    google(
      400,
      'INVALID_ARGUMENT',
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    ),
  ],
  refused: [
    jsonReply({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 200 } }),
    jsonReply({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, candidates: [] }),
    jsonReply(generated([], 'SAFETY')),
    jsonReply({ ...generated([], null), candidates: [{ finishReason: 'RECITATION', index: 0 }] }),
  ],
  empty: [
    jsonReply(generated([], 'STOP')),
    jsonReply({ ...generated([], null), candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }),
  ],
  badParameter: [
    google(400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.', [
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'generation_config.temperature' }],
      },
    ]),
    google(
      400,
      'INVALID_ARGUMENT',
      'Invalid JSON payload received. Unknown name "temperature": Cannot find field.',
    ),
  ],
  notUnderstood: google(
    400,
    'INVALID_ARGUMENT',
    'Please ensure that the number of function response parts is equal to the number of function call parts.',
  ),
  errorIn200: jsonReply([{ error: { code: 500, message: 'Internal error', status: 'INTERNAL' } }]),
  otherModel: generated([{ text: 'Look.' }], 'STOP', { modelVersion: 'gemini-x-001' }),
};

export const VOICES: readonly (readonly [string, Voice])[] = [
  ['chat', chat],
  ['responses', responses],
  ['messages', messages],
  ['gemini', gemini],
];

/** A stream of these events, cut there. */
export const broken = (events: Events, after: 'silence' | 'reset'): RawReply => ({
  ...eventReply(events),
  after,
});
