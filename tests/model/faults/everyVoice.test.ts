// One table for all dialects: what a provider says means the same in whichever body it comes, and what it only repeats means nothing. Short bodies as
// providers send them, over real HTTP.
import { describe, expect, test } from 'vitest';
import { classify } from '../../../src/model/classify.ts';
import { providerError } from '../../../src/model/dialects/providerError.ts';
import type { Message } from '../../../src/model/model.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { jsonReply, startRawServer } from '../../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

/** No first request: the agent has filled a window by then. */
const LATER: readonly Message[] = [
  ...ASK,
  { role: 'assistant', content: 'So.' },
  { role: 'user', content: 'Go on.' },
];

async function asked(
  status: number,
  body: unknown,
  settings: Record<string, unknown> = {},
  messages: readonly Message[] = LATER,
) {
  await using server = await startRawServer([jsonReply(body, status)]);
  const retry = { max_retries: 1, max_retry_after_s: 0 };
  const factory = await createModelFactory(
    configOf({ base_url: server.url, prices: 'free', retry, ...settings }),
    { apiKey: KEY, clock: autoClock().clock },
  );
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(messages);
  await factory.close();
  if (answer.success) throw new Error('answered');
  return { kind: answer.metadata?.kind, message: answer.message, requests: server.requests.length };
}

/** A body of each dialect's maker around a sentence, with a code or type that says nothing more. */
const VOICES = {
  chat: {
    settings: {},
    body: (_status: number, message: string, code: string | null) => ({
      error: { message, type: 'invalid_request_error', param: null, code },
    }),
  },
  responses: {
    settings: { dialect: 'responses' },
    body: (_status: number, message: string, code: string | null) => ({ error: { message, code } }),
  },
  messages: {
    settings: { model_name: 'anthropic/claude-x' },
    body: (_status: number, message: string, code: string | null) => ({
      type: 'error',
      error: { type: code ?? 'invalid_request_error', message },
      request_id: 'req_1',
    }),
  },
  gemini: {
    settings: { model_name: 'gemini/gemini-x' },
    body: (status: number, message: string, code: string | null) => ({
      error: { code: status, message, status: code ?? 'INVALID_ARGUMENT' },
    }),
  },
} as const;

type Said = readonly [kind: string, status: number, message: string, code?: string];

const SAID: readonly Said[] = [
  ['context', 400, 'Prompt is too long'],
  ['context', 413, 'Prompt is too long'],
  ['context', 400, 'Input is too long for requested model.'],
  ['context', 400, 'Prompt length 40000 exceeds the available context size of 32768 tokens'],
  ['context', 400, 'Total message token length exceed model limit (10000000 tokens).'],
  [
    'context',
    400,
    'You passed 99073 input tokens and requested 32000 output tokens. However, the model’s context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens.',
  ],
  [
    'not_found',
    400,
    'The model `llama-x` has been decommissioned and is no longer supported.',
    'model_decommissioned',
  ],
  ['not_found', 400, 'The model `llama-x` has been decommissioned and is no longer supported.'],
  [
    'quota',
    412,
    'Account somebody is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.',
    'PRECONDITION_FAILED',
  ],
  ['quota', 403, 'Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys'],
  ['quota', 429, 'Tokens per day limit exceeded - too many tokens processed.', 'token_quota_exceeded'],
  [
    'quota',
    429,
    'Your project has exceeded its monthly spending cap. Please go to AI Studio.',
    'RESOURCE_EXHAUSTED',
  ],
  ['quota', 429, 'Your prepayment credits are depleted.', 'RESOURCE_EXHAUSTED'],
  ['quota', 403, 'Sorry, your account balance is insufficient', '30001'],
  ['quota', 403, 'not enough balance', 'NOT_ENOUGH_BALANCE'],
  ['quota', 402, 'You have exceeded your monthly included credits for Inference Providers.'],
  ['auth', 400, 'This organization has been disabled.'],
  ['not_found', 400, 'Model does not exist. Please check it carefully.'],
  ['not_found', 400, 'Model Not Exist'],
  ['context', 400, 'Requested tokens (11280) exceed context window of 2048'],
  ['auth', 400, 'User location is not supported for the API use.'],
  ['refusal', 400, 'blocked by the guardrail', 'guardrail_intervened'],
  ['refusal', 400, 'blocked', 'content_filtered'],
  [
    'unavailable',
    429,
    'Tokens per minute limit exceeded - too many tokens processed.',
    'token_quota_exceeded',
  ],
  // Sentences of one form, in the words of many.
  ['context', 400, 'The total length of all messages is too long.'],
  ['context', 400, 'Request size exceeds model context window'],
  [
    'context',
    400,
    'Input length 1048826 exceeds the maximum length 1048566. Request id: 02',
    'InvalidParameter',
  ],
  ['context', 400, 'tokens in request more than max tokens allowed', '1210'],
  ['context', 400, 'Input is too long for this model.'],
  ['context', 400, 'The input token count exceeds the maximum number of input tokens'],
  ['context', 400, 'The context window (272000 tokens) was exceeded'],
  ['context', 400, 'Request exceeds the maximum context window of this model'],
  ['context', 400, 'Input token length exceeds the maximum context length 32768'],
  [
    'context',
    403,
    'Input token count + max_tokens parameter must be less than the context length of the model being queried.',
  ],
  [
    'refusal',
    400,
    'This content was flagged for possible cybersecurity risk. If this seems wrong, rephrase.',
  ],
  [
    'refusal',
    400,
    "The prompt could not be submitted. This prompt contains sensitive words that violate Google's Responsible AI practices.",
  ],
  ['quota', 400, "You're out of extra usage. Add more at claude.ai/settings/usage and keep going."],
  ['quota', 429, 'You have exceeded your monthly quota', 'quota_exceeded'],
  ['quota', 429, 'You are using a Trial key, which is limited to 1000 API calls / month.'],
  ['quota', 429, 'Subscription quota exceeded. You can continue using free models.'],
  ['quota', 429, 'Monthly usage limit reached.', 'GoUsageLimitError'],
  ['quota', 429, 'Weekly usage limit reached. Resets in 6hr 29min.'],
  ['quota', 429, 'This request would exceed your organization’s monthly spend limit.', 'rate_limit_error'],
  ['quota', 429, "You've reached your monthly spending limit. Please contact support."],
  ['quota', 429, 'request reached organization TPD rate limit, current: 1506556, limit: 1500000'],
  ['quota', 429, "Gemini 2.5 Pro Preview doesn't have a free quota tier. Please use another."],
  [
    'quota',
    400,
    'litellm.BudgetExceededError: ExceededBudget: Crossed spend threshold. Spend=20.1, Budget=20',
  ],
  ['quota', 403, '该令牌额度已用尽 TokenStatusExhausted[sk-1***2]', 'new_api_error'],
  ['quota', 401, '该令牌额度已用尽 !token.UnlimitedQuota && token.RemainQuota = -1', 'one_api_error'],
  ['auth', 400, 'Authentication Error - Expired Key. Key Expiry time 2026-09-01', 'expired_key'],
  ['unavailable', 400, 'rate limit exceeded on this model'],
  ['unavailable', 400, 'Upstream error from Alibaba: Request rate increased too quickly.'],
  ['unavailable', 403, 'Rate Limit Exceeded'],
  [
    'unavailable',
    429,
    'This request would exceed your organization’s rate limit of 40,000 input tokens per minute.',
  ],
  [
    'not_found',
    400,
    '/chat/completions: Invalid model name passed in model=gpt-x. Call `/v1/models` to see them.',
  ],
  ['not_found', 400, 'Model id: deepseek-x, has no provider supported'],
  ['not_found', 400, 'model has been deactivated', 'model_is_deactivated'],
  ['not_found', 400, 'vendor/model-02-05:free is not a valid model ID'],
  // A type that says no more than a status does not beat one.
  ['auth', 401, 'no', 'api_error'],
  ['auth', 401, 'no', 'server_error'],
  ['quota', 402, 'pay first', 'api_error'],
  ['auth', 403, 'you have no access to this', 'server_error'],
  ['not_found', 404, 'no such thing', 'api_error'],
  ['not_found', 404, 'no such thing', 'internal_server_error'],
  ['not_found', 404, 'no such thing', 'error'],
  ['rejected', 400, 'the flux is out of phase', 'api_error'],
  ['rejected', 413, 'too much', 'server_error'],
  ['unavailable', 500, 'oops', 'invalid_request_error'],
  ['unavailable', 503, 'oops', 'permission_error'],
  ['auth', 400, 'invalid x-api-key', 'authentication_error'],
  // Not one of these is about the key: the next instance may be served.
  ['rejected', 403, 'Request stopped by the moderation layer.'],
  ['rejected', 403, 'Your message tripped a safety classifier and was not processed', 'permission_error'],
  ['rejected', 403, 'The flux was out of phase'],
  ['auth', 403, 'Request not allowed', 'forbidden'],
  ['auth', 403, 'Access denied.'],
];

/** Said by a message, a path or a name, and repeated by a server that found something else wrong. */
const REPEATED: readonly (readonly [status: number, message: string])[] = [
  [400, 'messages.3.content: "prompt is too long: 210013 tokens > 200000 maximum" is no valid JSON'],
  [400, "Invalid value for 'messages[3].content': 'prompt is too long: 5 tokens > 4 maximum'."],
  [400, 'Could not read the file /repo/docs/prompt is too long: 5 tokens > 4 maximum.md'],
  [400, 'No such file: output blocked by content filtering policy.txt'],
  [400, 'Unknown key: `output blocked by content filtering policy`'],
  [400, 'Unexpected field output blocked by content filtering policy in the request'],
  [422, 'tool result said prompt is too long: 5 tokens > 4 maximum'],
  [400, 'bad escape in {"cmd": "grep \\"maximum context length is 8192\\" -r ."}'],
  [400, 'The user wrote “insufficient credits” and a control character'],
  [400, "{'role': 'user', 'message': 'prompt is too long: 5 tokens > 4 maximum'} is not of type 'string'"],
  [500, 'crashed while logging "Input is too long for requested model."'],
  [400, 'messages.1: the answer named `a`. "Your credit balance is too low" is unexpected here'],
];

/** Every form in which a server has been seen to repeat what was sent, around every sentence that would count. */
const AROUND: readonly ((sentence: string) => string)[] = [
  (s) => `messages.3.content: ${s} is not valid JSON`,
  (s) => `messages[3].content: ${s} is not valid JSON`,
  (s) => `Could not tokenize the following input:\n${s}`,
  (s) => `Template could not be rendered for:\n\`\`\`\n${s}\n\`\`\``,
  (s) => `Expected an object but got ${s} at position 12`,
  (s) => `unexpected token, received ${s}`,
  (s) => `Jinja error near ${s} at row 3, column 4`,
  (s) => `Invalid message content (${s}) at index 4`,
  (s) => `tool_result content ${s} must be a list of blocks`,
  (s) => `unexpected content -> ${s}`,
  (s) => `invalid arguments: command=${s}`,
  (s) => `While handling messages[4] ("assistant"): ${s} -- unsupported role`,
  (s) => `The prompt starts with ${s} which has an unpaired surrogate`,
  (s) => `The last message contains ${s} followed by an invalid character`,
  (s) => `The message mentions ${s}`,
  (s) => `"bash" ${s}`,
  (s) => `Unexpected tag <error>${s}</error> in the conversation`,
  (s) => `The conversation goes wrong at index 2. It mentions: ${s}`,
  (s) => `messages must alternate: [user: hi, assistant: ${s}, assistant: ok]`,
  (s) => `Malformed input request: expected type: JSONArray, found: ${s}, please reformat your input.`,
  (s) =>
    `1 validation error for Request\n  Value error [type=value_error, input_value={'messages': [{'content': '${s}'}]}]`,
];
const SENTENCES = [
  'prompt is too long: 210013 tokens > 200000 maximum',
  'input length and max_tokens exceed context limit: 5000 + 300000 > 200000',
  'Request exceeds the maximum context window of this model',
  'Output blocked by content filtering policy',
  'Your credit balance is too low',
  'monthly usage limit reached',
  'invalid api key',
  'The model `x` does not exist',
  'rate limit exceeded',
];

test('what a server repeats is not said, whatever stands around it', async () => {
  const taken: string[] = [];
  for (const around of AROUND)
    for (const sentence of SENTENCES) {
      const error = providerError({ error: { message: around(sentence) } })!;
      const { kind } = classify({ ...error, status: 400 });
      if (kind !== 'rejected') taken.push(`${kind}: ${error.message}`);
    }
  expect(taken).toEqual([]);
});

describe.each(Object.entries(VOICES))('%s', (_dialect, { settings, body }) => {
  test.each(SAID.map(([kind, status, message, code = null]) => [kind, status, message, code] as const))(
    '%s: %i %s (%s)',
    async (kind, status, message, code) => {
      expect((await asked(status, body(status, message, code), settings)).kind).toBe(kind);
    },
  );
  test.each(REPEATED)('%i %s', async (status, message) => {
    const { kind } = await asked(status, body(status, message, null), settings);
    expect(kind).toBe(status < 500 ? 'rejected' : 'unavailable');
  });
});

describe('bodies of one provider', () => {
  test.each<readonly [who: string, kind: string, status: number, body: unknown]>([
    ['Amazon, in capitals', 'auth', 403, { Message: 'User: arn:aws:iam::1:user/x is not authorized' }],
    [
      'Amazon, without a header',
      'unavailable',
      400,
      { __type: 'com.amazon.coral.service#ThrottlingException', message: 'Too many tokens, please wait.' },
    ],
    ['a gateway', 'context', 400, { errorMessage: 'prompt is too long: 213462 tokens > 200000 maximum' }],
    [
      'litellm, a parameter as Python prints it',
      'not_found',
      400,
      { error: { message: 'Invalid model name passed in model=x', param: 'None', code: '400' } },
    ],
    ['litellm of old', 'not_found', 400, { detail: { error: '/chat/completions: Invalid model name' } }],
    [
      'SiliconFlow',
      'quota',
      402,
      { code: 30001, message: 'Sorry, your account balance is insufficient', data: null },
    ],
    [
      'Novita',
      'quota',
      403,
      { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'not enough balance', metadata: {} },
    ],
    [
      'Fireworks through litellm',
      'quota',
      412,
      {
        error: {
          message:
            'litellm.APIError: APIError: Fireworks_aiException - {"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit","param":null,"code":"PRECONDITION_FAILED","type":"error"},"request_id":"1"}. Received Model Group=glm\nAvailable Model Group Fallbacks=None',
          type: null,
          param: null,
          code: '412',
        },
      },
    ],
    [
      'vLLM through litellm',
      'context',
      400,
      {
        error: {
          message:
            'litellm.BadRequestError: OpenAIException - {"error":{"message":"You passed 98305 input tokens and requested 32768 output tokens. However, the model\'s context length is only 131072 tokens, resulting in a maximum input length of 98304 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}. Received Model Group=x',
          code: '400',
        },
      },
    ],
    [
      'an error as Python prints it',
      'context',
      400,
      {
        detail:
          "Error code: 400 - {'error': {'message': \"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.\", 'type': 'invalid_request_error', 'code': None}}",
      },
    ],
    [
      'OpenRouter, in an error of an error',
      'context',
      413,
      {
        error: {
          headers: {},
          error: {
            message: 'Provider returned error',
            code: 413,
            metadata: {
              raw: '{"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long"}}',
              provider_name: 'Google',
            },
          },
        },
        code: 413,
      },
    ],
    [
      'tabbyAPI of old',
      'context',
      400,
      { detail: 'Request length 71599 + 2048 is greater than max_seq_len 65536' },
    ],
    ['Snowflake', 'context', 400, { message: 'max tokens of 8192 exceeded', request_id: 'a' }],
    [
      'Google, a relay',
      'quota',
      429,
      {
        error: {
          message:
            '{\n  "error": {\n    "code": 429,\n    "message": "Your project has exceeded its monthly spending cap.",\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n',
          code: 429,
          status: 'Too Many Requests',
        },
      },
    ],
    [
      'vLLM before it asks',
      'config',
      400,
      {
        error: {
          message:
            'max_tokens=99000000 cannot be greater than max_model_len=max_total_tokens=32768. Please request fewer output tokens. (parameter=max_tokens, value=99000000)',
          type: 'BadRequestError',
          param: 'max_tokens',
          code: 400,
        },
      },
    ],
  ])('%s', async (_who, kind, status, body) => {
    expect((await asked(status, body)).kind).toBe(kind);
  });
});

describe('a window that max_tokens fills', () => {
  const newer = (input: number, output: number, window: number) =>
    VOICES.chat.body(
      400,
      `You passed ${input} input tokens and requested ${output} output tokens. However, the model's context length is only ${window} tokens, resulting in a maximum input length of ${window - output} tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${input})`,
      null,
    );
  const between = VOICES.chat.body(
    400,
    "This model's maximum context length is 102400 tokens. However, you requested 99000 output tokens and your prompt contains at least 3401 input tokens, for a total of at least 102401 tokens.",
    null,
  );
  test.each([
    ['all of it', newer(1, 32_768, 32_768)],
    ['nearly all of it', newer(3073, 128_000, 131_072)],
    ['in the words between', between],
    [
      "in Anthropic's",
      VOICES.chat.body(
        400,
        'input length and `max_tokens` exceed context limit: 5000 + 198000 > 200000',
        null,
      ),
    ],
  ])('on the first request is a setting: %s', async (_what, body) => {
    const { kind, message } = await asked(400, body, {}, ASK);
    expect(kind).toBe('config');
    expect(message).toContain('max_tokens');
  });
  test('later it is the conversation', async () => {
    expect((await asked(400, newer(3073, 128_000, 131_072))).kind).toBe('context');
  });
  test('a first request that is too long itself is no setting', async () => {
    expect((await asked(400, newer(130_049, 1024, 131_072), {}, ASK)).kind).toBe('context');
  });
});

test('a reply that quotes an error is read as far as it is one, and never without end', () => {
  for (const body of [{ type: 'error' }, { message: '{}' }, { message: '{"message": ""}' }, { error: '{' }])
    expect(providerError(body)?.message).toEqual(expect.any(String));
  const deep = Array.from({ length: 12 }).reduce<string>((text) => JSON.stringify({ error: text }), 'end');
  expect(providerError({ error: deep })?.message).toBe('end');
});
