// The one table from what a provider did to what it means, row by row, in the words of real servers.
import { describe, expect, test } from 'vitest';
import { type CallFault, classify, mapErrorToCode, RETRYABLE_CODES } from '../../src/model/classify.ts';

const fault = (
  status: number,
  message = '',
  code: string | null = null,
  type: string | null = null,
): CallFault => ({
  status,
  message,
  code,
  type,
});

const rows: [string, CallFault, string, string, boolean][] = [
  ['401', fault(401, 'Incorrect API key provided'), 'AUTHENTICATION_ERROR', 'auth', false],
  ['403', fault(403, 'no access'), 'AUTHENTICATION_ERROR', 'auth', false],
  [
    '403 of a moderation',
    fault(403, 'Your chosen model requires moderation and your input was flagged for "violence"'),
    'INVALID_RESPONSE',
    'refusal',
    false,
  ],
  ['402', fault(402, 'Insufficient credits'), 'RATE_LIMITED', 'quota', false],
  [
    '404',
    fault(404, 'The model `gpt-9` does not exist', 'model_not_found'),
    'MODEL_NOT_FOUND',
    'not_found',
    false,
  ],
  ['408', fault(408), 'TIMEOUT', 'unavailable', true],
  ['409', fault(409), 'NETWORK_ERROR', 'unavailable', true],
  ['413', fault(413, 'Request Entity Too Large'), 'UNKNOWN', 'rejected', false],
  [
    '429',
    fault(429, 'Rate limit reached', 'rate_limit_exceeded', 'tokens'),
    'RATE_LIMITED',
    'unavailable',
    true,
  ],
  ['429 without a body', fault(429), 'RATE_LIMITED', 'unavailable', true],
  [
    '429 of an empty account',
    fault(429, 'You exceeded your current quota', 'insufficient_quota'),
    'RATE_LIMITED',
    'quota',
    false,
  ],
  [
    '429 of one request too large',
    fault(
      429,
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41000.',
      'rate_limit_exceeded',
      'tokens',
    ),
    'RATE_LIMITED',
    'rejected',
    false,
  ],
  ['500', fault(500, 'oops', null, 'server_error'), 'NETWORK_ERROR', 'unavailable', true],
  ['502', fault(502), 'NETWORK_ERROR', 'unavailable', true],
  ['503', fault(503), 'NETWORK_ERROR', 'unavailable', true],
  ['504', fault(504), 'NETWORK_ERROR', 'unavailable', true],
  [
    '529 of Anthropic',
    fault(529, 'Overloaded', null, 'overloaded_error'),
    'RATE_LIMITED',
    'unavailable',
    true,
  ],
  [
    'context, OpenAI',
    fault(400, "This model's maximum context length is 128000 tokens.", 'context_length_exceeded'),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, Anthropic',
    fault(400, 'prompt is too long: 210013 tokens > 200000 maximum', null, 'invalid_request_error'),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, Anthropic with output',
    fault(400, 'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000'),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, vLLM',
    fault(
      400,
      "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens in the messages",
      null,
      'BadRequestError',
    ),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, llama.cpp',
    fault(
      400,
      'the request exceeds the available context size, try increasing it',
      null,
      'exceed_context_size_error',
    ),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, Gemini',
    fault(
      400,
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'INVALID_ARGUMENT',
    ),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, SGLang',
    fault(400, "Requested token count exceeds the model's maximum context length of 32768 tokens."),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, Bedrock',
    fault(400, 'Input is too long for requested model.'),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'context, 422 of TGI',
    fault(422, 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192'),
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'policy, OpenAI',
    fault(400, 'Your request was rejected', 'content_policy_violation'),
    'INVALID_RESPONSE',
    'refusal',
    false,
  ],
  [
    'policy, reasoning models',
    fault(
      400,
      'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
      'invalid_prompt',
    ),
    'INVALID_RESPONSE',
    'refusal',
    false,
  ],
  [
    'policy, Azure',
    fault(
      400,
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      'content_filter',
    ),
    'INVALID_RESPONSE',
    'refusal',
    false,
  ],
  [
    'key, Gemini',
    fault(400, 'API key not valid. Please pass a valid API key.', 'INVALID_ARGUMENT'),
    'AUTHENTICATION_ERROR',
    'auth',
    false,
  ],
  [
    'credit, Anthropic',
    fault(400, 'Your credit balance is too low to access the Anthropic API.'),
    'RATE_LIMITED',
    'quota',
    false,
  ],
  ['model, OpenRouter', fault(400, 'foo/bar is not a valid model ID'), 'MODEL_NOT_FOUND', 'not_found', false],
  [
    'any other 400',
    fault(400, "Unknown parameter: 'top_k'.", 'unknown_parameter', 'invalid_request_error'),
    'UNKNOWN',
    'rejected',
    false,
  ],
  ['any other 422', fault(422, 'messages.0.role: Field required'), 'UNKNOWN', 'rejected', false],
  ['a redirect', fault(307), 'UNKNOWN', 'rejected', false],
  ['connect deadline', { transport: 'connect_timeout', message: '' }, 'TIMEOUT', 'unavailable', true],
  ['first byte deadline', { transport: 'first_byte', message: '' }, 'TIMEOUT', 'unavailable', true],
  ['idle deadline', { transport: 'idle', message: '' }, 'TIMEOUT', 'unavailable', true],
  ['total deadline', { transport: 'total', message: '' }, 'TIMEOUT', 'unavailable', true],
  ['refused', { transport: 'connect', message: 'ECONNREFUSED' }, 'NETWORK_ERROR', 'unavailable', true],
  ['reset', { transport: 'reset', message: '' }, 'NETWORK_ERROR', 'unavailable', true],
  ['cut', { transport: 'cut', message: '' }, 'NETWORK_ERROR', 'unavailable', true],
  ['HTML in a 200', { broken: true, message: '<html>' }, 'NETWORK_ERROR', 'unavailable', true],
  [
    'error object in a 200',
    { broken: true, status: 500, message: 'upstream' },
    'NETWORK_ERROR',
    'unavailable',
    true,
  ],
  [
    'error object without a code in a 200',
    { broken: true, status: null, message: 'something' },
    'NETWORK_ERROR',
    'unavailable',
    true,
  ],
  [
    'unexplained 400 in a 200',
    { broken: true, status: 400, message: 'Provider returned error' },
    'NETWORK_ERROR',
    'unavailable',
    true,
  ],
  [
    'context error in a 200',
    { broken: true, status: 400, message: 'maximum context length is 8192' },
    'CONTEXT_LENGTH_EXCEEDED',
    'context',
    false,
  ],
  [
    'rate limit in a 200',
    { broken: true, status: 429, message: 'slow down' },
    'RATE_LIMITED',
    'unavailable',
    true,
  ],
];

describe('classify', () => {
  test.each(rows)('%s', (_name, given, code, kind, retryable) => {
    expect(classify(given)).toEqual({ code, kind, retryable });
  });

  test('a status decides over the words of a message', () => {
    expect(classify(fault(500, 'rate limit, api key, timeout')).code).toBe('NETWORK_ERROR');
    expect(classify(fault(400, 'network timeout 429')).code).toBe('UNKNOWN');
  });

  test('words alone decide only where there is nothing else [S-53]', () => {
    expect(classify({ message: 'fetch failed' })).toMatchObject({ code: 'NETWORK_ERROR', retryable: true });
    expect(classify({ message: 'who knows' })).toMatchObject({ code: 'UNKNOWN', retryable: false });
  });

  test('only the codes of the seed are ever retried [S-47]', () => {
    for (const [, given] of rows) {
      const { code, retryable } = classify(given);
      if (retryable) expect(RETRYABLE_CODES).toContain(code);
    }
    expect([...RETRYABLE_CODES].sort()).toEqual(['NETWORK_ERROR', 'RATE_LIMITED', 'TIMEOUT']);
  });
});

describe('mapErrorToCode [S-40, S-53]', () => {
  test.each([
    ['Invalid API key', 'AUTHENTICATION_ERROR'],
    ['Unauthorized', 'AUTHENTICATION_ERROR'],
    ['Rate limit reached', 'RATE_LIMITED'],
    ['got 429', 'RATE_LIMITED'],
    ['Request timeout', 'TIMEOUT'],
    ['connect ECONNREFUSED 127.0.0.1:1', 'NETWORK_ERROR'],
    ['network is down', 'NETWORK_ERROR'],
    ['maximum context length', 'CONTEXT_LENGTH_EXCEEDED'],
    ['The model x does not exist', 'MODEL_NOT_FOUND'],
    ['provider not configured', 'PROVIDER_NOT_CONFIGURED'],
    ['provider not supported', 'PROVIDER_NOT_SUPPORTED'],
    ['Unexpected token < in JSON', 'INVALID_RESPONSE'],
    ['anything else', 'UNKNOWN'],
  ])('%s', (message, code) => {
    expect(mapErrorToCode(new Error(message))).toBe(code);
    expect(mapErrorToCode(message)).toBe(code);
  });

  test('takes anything without throwing', () => {
    for (const odd of [null, undefined, 7, {}, { message: 3 }, Symbol('x')])
      expect(mapErrorToCode(odd)).toBe('UNKNOWN');
  });
});
