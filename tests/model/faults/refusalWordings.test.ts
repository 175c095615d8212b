// What real providers say of a request that they do not take: a full context and a refusal are statements about the model, and need a
// field or a sentence that says so; everything else is about the request.
import { describe, expect, test } from 'vitest';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { jsonReply, startRawServer } from '../../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

type Case = readonly [who: string, status: number, body: unknown];

const error = (message: string, rest: object = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...rest },
});
const anthropic = (message: string, type = 'invalid_request_error') => ({
  type: 'error',
  error: { type, message },
});
const google = (message: string) => ({ error: { code: 400, status: 'INVALID_ARGUMENT', message } });
const vllm = (message: string, rest: object = {}) => ({
  object: 'error',
  type: 'BadRequestError',
  code: 400,
  param: null,
  message,
  ...rest,
});

async function asked(status: number, body: unknown, settings: Record<string, unknown> = {}) {
  await using server = await startRawServer([jsonReply(body, status)]);
  const factory = await createModelFactory(
    configOf({ base_url: server.url, prices: 'free', retry: { max_retries: 1 }, ...settings }),
    { apiKey: KEY, clock: autoClock().clock },
  );
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
  await factory.close();
  if (answer.success) throw new Error('answered');
  return { kind: answer.metadata?.kind, message: answer.message, requests: server.requests.length };
}

const CONTEXT: readonly Case[] = [
  [
    'OpenAI',
    400,
    error(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
      { param: 'messages', code: 'context_length_exceeded' },
    ),
  ],
  [
    "OpenAI's Responses",
    400,
    error('Your input exceeds the context window of this model. Please adjust your input and try again.', {
      param: 'input',
      code: 'context_length_exceeded',
    }),
  ],
  [
    'Azure',
    400,
    {
      error: {
        message: "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        code: 'context_length_exceeded',
      },
    },
  ],
  ['Anthropic', 400, anthropic('prompt is too long: 210013 tokens > 200000 maximum')],
  [
    'Anthropic with the answer',
    400,
    anthropic(
      'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length or `max_tokens` and try again',
    ),
  ],
  ["Anthropic's bytes", 413, anthropic('Request exceeds the maximum size', 'request_too_large')],
  [
    'Gemini',
    400,
    google('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
  ],
  [
    'Vertex AI',
    400,
    google(
      'Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count and try again.',
    ),
  ],
  [
    'xAI',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    },
  ],
  ['Ollama', 400, error('prompt too long; exceeded max context length by 512 tokens')],
  [
    'Ollama as a fault of its own',
    500,
    error('the input length exceeds the context length', { type: 'api_error' }),
  ],
  [
    'vLLM',
    400,
    vllm(
      "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
    ),
  ],
  [
    'vLLM 0.10',
    400,
    vllm(
      "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 32768 tokens and your request has 30000 input tokens (4000 > 32768 - 30000).",
      { param: 'max_tokens' },
    ),
  ],
  [
    'vLLM 0.12',
    400,
    vllm(
      "You passed 32769 input tokens and requested 0 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32768 tokens. Please reduce the length of the input prompt.",
      { param: 'input_tokens' },
    ),
  ],
  [
    'vLLM 0.6',
    400,
    vllm(
      'The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.',
    ),
  ],
  ['vLLM with nothing left', 400, vllm('max_tokens must be at least 1, got -186.')],
  [
    "OpenAI's organisations",
    400,
    error(
      'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.',
    ),
  ],
  [
    'a server like OpenAI',
    400,
    error("This model's maximum context length has been exceeded. Please reduce the length of the messages."),
  ],
  [
    'xAI since 2026',
    400,
    {
      code: 'Client specified an invalid argument',
      error:
        'Failed to start sampling: [input_too_large] Current message (1149677 tokens) exceeds budget (975424 tokens)',
    },
  ],
  ['LM Studio 0.2', 400, { error: 'Input length 1581 exceeds context length 1500' }],
  [
    'Amazon Nova',
    400,
    {
      message:
        'The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.',
    },
  ],
  [
    'Claude at Bedrock',
    400,
    {
      message: 'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum',
    },
  ],
  [
    'two names of litellm',
    400,
    error('litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - too long', {
      type: null,
    }),
  ],
  ['SGLang', 400, vllm("The input (40000 tokens) is longer than the model's context length (32768 tokens).")],
  [
    'llama.cpp',
    400,
    {
      error: {
        code: 400,
        message: 'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 9000,
        n_ctx: 8192,
      },
    },
  ],
  [
    'LM Studio',
    400,
    {
      error:
        'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
    },
  ],
  [
    'OpenRouter',
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (138000 of text input, 2000 of tool input). Please reduce the length of either one.",
        code: 400,
      },
    },
  ],
  [
    'Mistral',
    400,
    {
      object: 'error',
      message:
        'Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_invalid_args',
      code: '3051',
    },
  ],
  [
    'Groq',
    400,
    error('Please reduce the length of the messages or completion.', {
      code: 'context_length_exceeded',
      param: 'messages',
    }),
  ],
  [
    'DeepSeek',
    400,
    error(
      "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    ),
  ],
  [
    'Together',
    422,
    error(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 10000 `inputs` tokens and 100 `max_new_tokens`',
    ),
  ],
  ['Bedrock', 400, { message: 'Input is too long for requested model.' }],
  [
    'Bedrock of others',
    400,
    { message: 'Too many input tokens. Max input tokens: 8192, request input token count: 9000 ' },
  ],
  ['Fireworks', 400, error('The prompt is too long: 40000, model maximum context length: 32767')],
  [
    'Moonshot',
    400,
    error('Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)'),
  ],
  ['MiniMax', 400, anthropic('invalid params, context window exceeds limit (2013)')],
  ['Z.ai', 400, { error: { code: '1261', message: 'Prompt exceeds max length' } }],
  [
    'DashScope',
    400,
    error('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]', {
      code: 'invalid_parameter_error',
    }),
  ],
  [
    'a proxy of litellm',
    400,
    error(
      "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - This model's maximum context length is 8192 tokens.",
      { code: '400' },
    ),
  ],
  [
    'a proxy of litellm, before it knows a provider',
    400,
    error(
      "litellm.BadRequestError: XaiException - This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
      { code: '400' },
    ),
  ],
];

const REFUSAL: readonly Case[] = [
  [
    'OpenAI',
    400,
    error('Invalid prompt: your prompt was flagged as potentially violating our usage policy.', {
      code: 'invalid_prompt',
    }),
  ],
  [
    'Azure',
    400,
    error(
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      {
        code: 'content_filter',
      },
    ),
  ],
  ['Anthropic', 400, anthropic('Output blocked by content filtering policy')],
  [
    'OpenRouter',
    403,
    {
      error: {
        code: 403,
        message: 'Your chosen model requires moderation and your input was flagged for "violence".',
      },
    },
  ],
  [
    'xAI',
    403,
    {
      code: 'The caller does not have permission',
      error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    },
  ],
  ['DeepSeek', 400, error('Content Exists Risk')],
  [
    'Moonshot',
    400,
    error('The request was rejected because it was considered high risk', { type: 'content_filter' }),
  ],
  [
    'DashScope',
    400,
    error('Input data may contain inappropriate content.', { code: 'data_inspection_failed' }),
  ],
  [
    'a proxy of litellm',
    400,
    error(
      'litellm.ContentPolicyViolationError: The response was filtered due to the prompt triggering the content management policy',
      { code: '400' },
    ),
  ],
];

/** The parameter that is named, and what stands in the configuration. */
const PARAMETER: readonly (readonly [
  who: string,
  status: number,
  body: unknown,
  name: string,
  kwargs?: Record<string, unknown>,
])[] = [
  [
    'OpenAI',
    400,
    error("Unknown parameter: 'context_window'.", { param: 'context_window' }),
    'context_window',
  ],
  ['OpenAI in words alone', 400, error("Unknown parameter: 'context_window'."), 'context_window'],
  [
    'a server of its own',
    400,
    error('max_tokens (200000) must be less than or equal to max_model_len (131072), the context length'),
    'max_tokens',
  ],
  ['a policy by name', 400, error('Invalid type for context_limit_policy'), 'context_limit_policy'],
  [
    'Groq',
    400,
    error(
      '`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less than the `context_window` for this model',
      { param: 'max_tokens' },
    ),
    'max_tokens',
  ],
  [
    'Groq of old',
    400,
    error('max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000'),
    'max_tokens',
  ],
  [
    'DeepSeek',
    400,
    error('Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'),
    'max_tokens',
  ],
  [
    'vLLM, an answer longer than the context',
    400,
    vllm(
      "This model's maximum context length is 8192 tokens. However, you requested 9016 tokens (16 in the messages, 9000 in the completion). Please reduce the length of the messages or completion.",
    ),
    'parameter',
  ],
  [
    'Anthropic',
    400,
    anthropic('max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens'),
    'max_tokens',
  ],
  [
    'OpenAI, the tool',
    400,
    error(
      "Invalid schema for function 'bash': 'properties' violates the policy that schemas of strict functions are complete.",
      { param: 'tools[0].function.parameters', code: 'invalid_function_parameters' },
    ),
    'tools',
  ],
  [
    'Azure, the tool in words alone',
    400,
    error('Invalid schema for function bash: the moderation policy field is not allowed'),
    'tools',
  ],
  ['xAI', 400, { code: 'x', error: 'Model grok-4 does not support parameter presencePenalty.' }, 'presence'],
  ['xAI of old', 400, { code: 'x', error: 'Argument not supported on this model: stop' }, 'stop'],
  [
    'Moonshot',
    400,
    error('invalid temperature: only 1 is allowed for this model', { type: 'invalid_request_error' }),
    'temperature',
  ],
  ['Anthropic of late', 400, anthropic('`temperature` is deprecated for this model.'), 'temperature'],
  ['Together', 422, error('Input validation error: `temperature` must be strictly positive'), 'temperature'],
  [
    'Bedrock',
    400,
    { message: 'Malformed input request: #: extraneous key [top_k] is not permitted' },
    'top_k',
  ],
  [
    'a server that says it in passing',
    400,
    error('a temperature of 0 makes no sense here'),
    'temperature',
    { temperature: 0 },
  ],
  [
    'what stands in extra_body',
    400,
    error("Unknown parameter: 'guided_json'."),
    'extra_body.guided_json',
    { extra_body: { guided_json: {} } },
  ],
];

const REJECTED: readonly Case[] = [
  [
    'OpenAI, one request over the limit of a minute',
    429,
    error(
      'Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must be reduced in order to run successfully.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
  ],
  [
    'Groq, one request over the limit of a minute',
    413,
    error(
      'Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 13105, please reduce your message size and try again.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
  ],
  [
    'OpenAI, a string of ten million characters',
    400,
    error(
      "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760, but got a string with length 10485761 instead.",
      { param: 'messages[3].content', code: 'string_above_max_length' },
    ),
  ],
  ['a proxy that counts bytes', 413, { error: 'Request Entity Too Large' }],
  ['a server that says little', 400, error('Bad request')],
  ['a sentence with the words of a context', 400, error('the context size field of your message is odd')],
  [
    'a sentence with the words of a policy',
    400,
    error('retention policy: content filter settings are missing'),
  ],
];

describe('a full context', () => {
  test.each(CONTEXT)('%s', async (_who, status, body) => {
    expect(await asked(status, body)).toMatchObject({ kind: 'context', requests: 1 });
  });
});

describe('a refusal', () => {
  test.each(REFUSAL)('%s', async (_who, status, body) => {
    expect(await asked(status, body)).toMatchObject({ kind: 'refusal', requests: 1 });
  });
});

describe('a parameter, named', () => {
  test.each(
    PARAMETER.map(([who, status, body, name, kwargs = {}]) => [who, status, body, name, kwargs] as const),
  )('%s', async (_who, status, body, name, model_kwargs) => {
    const { kind, message, requests } = await asked(status, body, { model_kwargs });
    expect([kind, requests]).toEqual(['config', 1]);
    expect(message).toContain(name);
  });
});

describe('anything else is a request that was rejected, whatever words it has', () => {
  test.each(REJECTED)('%s', async (_who, status, body) => {
    expect(await asked(status, body)).toMatchObject({ kind: 'rejected', requests: 1 });
  });
});
