// What providers outside of the largest say, over real HTTP, in the words that clients and gateways have kept of them (src/model/providerErrors.ts
// names where): what the model did counts against it, an empty account stops the run, and what nobody knows is nobody's.
import { describe, expect, test } from 'vitest';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { eventReply, jsonReply, type RawReply, startRawServer } from '../../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

async function asked(reply: RawReply, settings: Record<string, unknown> = {}) {
  await using server = await startRawServer([reply]);
  const factory = await createModelFactory(
    configOf({ base_url: server.url, prices: 'free', retry: { max_retries: 1 }, ...settings }),
    { apiKey: KEY, clock: autoClock().clock },
  );
  const answer = await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK);
  await factory.close();
  if (answer.success) throw new Error('answered');
  return { kind: answer.metadata?.kind, message: answer.message, requests: server.requests.length };
}

type Case = readonly [who: string, status: number, body: unknown, settings?: Record<string, unknown>];
const error = (message: string, rest: object = {}) => ({ error: { message, ...rest } });
const GOOGLE = { model_name: 'gemini/gemini-x' };
const CLAUDE = { model_name: 'anthropic/claude-x' };
const anthropic = (type: string, message: string) => ({ type: 'error', error: { type, message } });

const CASES: Readonly<Record<string, readonly Case[]>> = {
  context: [
    [
      'SambaNova',
      400,
      error(
        'The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.',
      ),
    ],
    [
      'watsonx',
      400,
      {
        errors: [
          {
            code: 'invalid_input_argument',
            message:
              "Invalid input argument for Model 'meta-llama/llama-3': the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model",
          },
        ],
        trace: 'f8a0',
        status_code: 400,
      },
    ],
    [
      'Cloudflare',
      413,
      {
        success: false,
        result: null,
        errors: [
          {
            code: 5021,
            message:
              'AiError: The estimated number of input and maximum output tokens (155740) exceeded this model context window limit (128000).',
          },
        ],
      },
    ],
    [
      'Cloudflare of late',
      400,
      error(
        "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256878 tokens: 31216 tokens from the input messages and 225662 tokens for the completion.",
      ),
    ],
    [
      'SiliconFlow',
      400,
      {
        code: 20015,
        message: 'length of prompt_tokens (68957) must be less than max_seq_len (65536).',
        data: null,
      },
    ],
    [
      'SiliconFlow with the answer',
      400,
      {
        code: 20015,
        message: 'max_total_tokens (33802) must be less than or equal to max_seq_len (32768)',
        data: null,
      },
    ],
    [
      "GitHub's models",
      413,
      error('Request body too large for gpt-4o model. Max size: 8000 tokens.', {
        code: 'tokens_limit_reached',
      }),
    ],
    [
      'Ark',
      400,
      error('Total tokens of image and text exceed max message tokens. Request id: 02', {
        code: 'InvalidParameter',
        type: 'BadRequest',
      }),
    ],
    ['Ark, by its code', 400, error('Too long.', { code: 'OutofContextError', type: 'BadRequest' })],
    ['DeepInfra', 500, error('Requested input length 99009 exceeds maximum input length 8192')],
    [
      'TensorRT-LLM',
      400,
      {
        object: 'error',
        message:
          'The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)',
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    ],
    ['SGLang', 400, error('Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).')],
    ['MiniMax', 200, { choices: null, base_resp: { status_code: 1039, status_msg: 'token limit' } }],
    [
      "OpenRouter's provider, in JSON",
      400,
      error('Provider returned error', {
        code: 400,
        metadata: {
          raw: JSON.stringify(error('prompt is too long: 210013 tokens > 200000 maximum')),
          provider_name: 'Anthropic',
        },
      }),
    ],
    [
      "OpenRouter's provider, in words",
      400,
      error('Provider returned error', {
        code: 400,
        metadata: { raw: "This model's maximum context length is 32768 tokens. However, you sent 40000." },
      }),
    ],
    ['Moonshot', 400, error('Your request exceeded model token limit : 262144')],
    ['Baidu', 400, error('Prompt tokens too long', { code: 'tokens_too_long' })],
  ],
  refusal: [
    [
      'OpenAI, of attacks',
      400,
      error('This request has been flagged for possible cybersecurity risk.', { code: 'cyber_policy' }),
    ],
    [
      'DashScope',
      400,
      error('<400> InternalError.Algo.DataInspectionFailed: Output data may contain inappropriate content.', {
        code: 'DataInspectionFailed',
      }),
    ],
    [
      'Ark',
      400,
      error('The request failed because the input text may contain sensitive information.', {
        code: 'InputTextSensitiveContentDetected.PolicyViolation',
        type: 'BadRequest',
      }),
    ],
    ['Ark of old', 400, error('may contain sensitive information', { code: 'SensitiveContentDetected' })],
    [
      'Z.ai',
      400,
      error('System detected potentially unsafe or sensitive content in input or generation.', {
        code: '1301',
      }),
    ],
    ['MiniMax', 200, { choices: null, base_resp: { status_code: 1027, status_msg: 'output new_sensitive' } }],
  ],
  bad_call: [
    [
      'Groq',
      400,
      error(
        "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        {
          type: 'invalid_request_error',
          code: 'tool_use_failed',
          failed_generation: '<function=bash>{"command": "ls"</function>',
        },
      ),
    ],
    [
      'Groq, a reply without form',
      400,
      error('Parsing failed. The model generated output that could not be parsed.', {
        type: 'invalid_request_error',
        code: 'output_parse_failed',
      }),
    ],
    [
      'Ollama',
      500,
      {
        error: `error parsing tool call: raw='{"command": "ls"}]', err=invalid character ']' after top-level value`,
      },
    ],
    [
      'llama.cpp',
      500,
      {
        error: { code: 500, message: 'Failed to parse input at pos 12: </tool_call>', type: 'server_error' },
      },
    ],
  ],
  quota: [
    [
      'Anthropic',
      400,
      anthropic(
        'invalid_request_error',
        'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
      ),
      CLAUDE,
    ],
    [
      'Anthropic, a workspace',
      429,
      anthropic('rate_limit_error', 'You have reached your specified workspace API usage limits.'),
      CLAUDE,
    ],
    [
      'DashScope',
      400,
      error('Access denied, please make sure your account is in good standing.', {
        code: 'Arrearage',
        type: 'Arrearage',
      }),
    ],
    [
      'litellm',
      400,
      error('Budget has been exceeded! Current cost: 15.07, Max budget: 15.0', {
        type: 'budget_exceeded',
        code: '400',
      }),
    ],
    [
      'xAI',
      403,
      {
        code: 'The caller does not have permission to execute the specified operation',
        error: 'Your team 0-1 has either used all available credits or reached its monthly spending limit.',
      },
    ],
    [
      'xAI, in a 429',
      429,
      {
        code: 'Some resource has been exhausted',
        error: 'Your team 0-1 has either used all available credits or reached its monthly spending limit.',
      },
    ],
    ['Bedrock, a day', 429, { message: 'Too many tokens per day, please wait before trying again.' }],
    [
      'OpenRouter, a day',
      429,
      error(
        'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
        { code: 429 },
      ),
    ],
    [
      'a plan of ChatGPT',
      429,
      error('The usage limit has been reached', { type: 'usage_limit_reached', resets_in_seconds: 3600 }),
    ],
    ['MiniMax', 200, { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }],
    ['Z.ai', 429, error('Your account is in arrears, please recharge.', { code: '1113' })],
    [
      'Ark',
      403,
      error('The request failed because your account has an overdue balance.', {
        code: 'AccountOverdueError',
      }),
    ],
    [
      'Ark, a service',
      403,
      error('Operation is denied because your account balance is overdue.', {
        code: 'OperationDenied.ServiceOverdue',
        type: 'Forbidden',
      }),
    ],
    [
      'Ark, what was free',
      429,
      error('Your account [21] has exhausted its free trial quota for the [doubao-x] model. Request ID: 02', {
        code: 'QuotaExceeded',
        type: 'TooManyRequests',
      }),
    ],
    [
      'Ark, a week of a plan',
      429,
      error('You have exceeded the weekly usage quota. It will reset at 2026-12-01 00:00:00.', {
        code: 'QuotaExceeded',
        type: 'TooManyRequests',
      }),
    ],
    [
      'Ark, no plan',
      400,
      error('Your account 21 does not have a valid coding plan subscription.', {
        code: 'InvalidSubscription',
        type: 'Forbidden',
      }),
    ],
    [
      'DashScope, what was free',
      403,
      error('The free tier of the model has been exhausted.', {
        code: 'AllocationQuota.FreeTierOnly',
        type: 'AllocationQuota.FreeTierOnly',
      }),
    ],
    ['DashScope, five hours of a plan', 429, error('hour allocated quota exceeded')],
    [
      'Z.ai, a plan that ended',
      429,
      error('Your GLM Coding Plan package has expired and is temporarily unavailable.', { code: '1309' }),
    ],
  ],
  /** Rates, though they speak of quotas and limits. */
  unavailable: [
    [
      'Gemini, a minute',
      429,
      {
        error: {
          code: 429,
          status: 'RESOURCE_EXHAUSTED',
          message: 'You exceeded your current quota, please check your plan and billing details.',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
              violations: [{ quotaId: 'GenerateRequestsPerMinutePerProject' }],
            },
          ],
        },
      },
      GOOGLE,
    ],
    ['OpenRouter, a minute', 429, error('Rate limit exceeded: free-models-per-min.', { code: 429 })],
    ['MiniMax', 200, { choices: null, base_resp: { status_code: 1002, status_msg: 'rate limit' } }],
    [
      'Ark, waiting jobs',
      429,
      error('The request has exceeded the quota. Request ID: 02', {
        code: 'QuotaExceeded',
        type: 'TooManyRequests',
      }),
    ],
    ['DashScope, at once', 429, error('concurrency allocated quota exceeded')],
    [
      'a gateway that quotes another in a 502',
      502,
      error('upstream said: "prompt is too long: 210013 tokens > 200000 maximum", which it never got'),
    ],
    [
      'a gateway that quotes a call in a 500',
      500,
      error('while logging "Failed to parse input at pos 12" the disk was full'),
    ],
  ],
  rejected: [
    ['nobody knows', 400, error('the flux is out of phase', { code: 'flux_error' })],
    ['nobody knows, in a list', 422, { errors: [{ code: 77, message: 'the flux is out of phase' }] }],
    ['a word alone', 400, error('The context service of this policy could not be read.')],
  ],
};

describe.each(Object.entries(CASES))('%s', (kind, cases) => {
  test.each(cases.map(([who, ...rest]) => [who, rest] as const))(
    '%s',
    async (_who, [status, body, settings]) => {
      // A rate would be waited for.
      const none = { retry: { max_retries: 1, max_retry_after_s: 0 } };
      expect((await asked(jsonReply(body, status), { ...none, ...settings })).kind).toBe(kind);
    },
  );
});

test('a quota names the account that has none left', async () => {
  const [, status, body] = CASES.quota![4]!;
  const { message, requests } = await asked(jsonReply(body, status), { api_key_env: 'XAI_API_KEY' });
  expect(message).toContain('on the account of $XAI_API_KEY');
  expect(message).toContain('monthly spending limit');
  expect(requests).toBe(1);
});

test('a call that Groq could not read, told inside a stream', async () => {
  const said = error('Failed to call a function. Please adjust your prompt.', {
    code: 'tool_use_failed',
    status_code: 400,
  });
  const { kind, requests } = await asked(eventReply([['error', said]]), { stream: true });
  expect([kind, requests]).toEqual(['bad_call', 1]);
});
