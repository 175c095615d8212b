// A 400 that names a parameter ends the run at its first call, with the parameter and what to do; other 400s are of one attempt.
import { describe, expect, test } from 'vitest';
import { providerError } from '../../../src/model/dialects/providerError.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { parameterFix, rejectedParameter } from '../../../src/model/parameters/rejectedParameter.ts';
import { jsonReply, type RawReply, startRawServer } from '../../support/rawServer.ts';
import { ASK, autoClock, configOf, KEY, recorder } from '../harness.ts';

type Kwargs = Record<string, unknown>;

const openai = (message: string, rest: object = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...rest },
});
const anthropic = (message: string) => ({ type: 'error', error: { type: 'invalid_request_error', message } });
const google = (message: string, details: unknown[] = []) => ({
  error: { code: 400, status: 'INVALID_ARGUMENT', message, details },
});
const violation = (field: string) => [
  { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description: 'x' }] },
];

const named = (body: unknown, kwargs: Kwargs = {}) => rejectedParameter(providerError(body)!, kwargs);

describe('the parameter is found', () => {
  test.each<[string, unknown]>([
    [
      'temperature',
      openai("Unsupported value: 'temperature' does not support 0 with this model.", {
        param: 'temperature',
      }),
    ],
    ['temperature', openai("Unsupported value: 'temperature' does not support 0 with this model.")],
    [
      'max_tokens',
      openai(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      ),
    ],
    [
      'reasoning.effort',
      openai("Unsupported value: 'xhigh' is not supported", { param: 'reasoning.effort' }),
    ],
    ['foo', openai("Unknown parameter: 'foo'.")],
    ['foo', openai('Unrecognized request argument supplied: foo')],
    ['max_tokens', openai("Invalid 'max_tokens': integer above maximum value.")],
    [
      'max_tokens',
      openai('max_tokens is too large: 100000. This model supports at most 16384 completion tokens.'),
    ],
    [
      'temperature',
      {
        object: 'error',
        message: 'temperature must be non-negative, got -1.',
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    ],
    [
      'top_k',
      { detail: [{ type: 'int_parsing', loc: ['body', 'top_k'], msg: 'Input should be a valid integer' }] },
    ],
    [
      'foo',
      {
        object: 'error',
        message: { detail: [{ loc: ['body', 'foo'], msg: 'Extra inputs are not permitted' }] },
      },
    ],
    [
      'tools',
      {
        object: 'error',
        message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        code: 400,
      },
    ],
    [
      'temperature',
      {
        error: {
          message:
            "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature'], for model=gpt-5",
          code: '400',
        },
      },
    ],
    [
      'max_tokens',
      anthropic(
        'max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-x',
      ),
    ],
    ['temperature', anthropic('`temperature` may only be set to 1 when thinking is enabled.')],
    ['max_tokens', anthropic('`max_tokens` must be greater than `thinking.budget_tokens`.')],
    [
      'thinking.enabled.budget_tokens',
      anthropic('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024'),
    ],
    ['foo', anthropic('foo: Extra inputs are not permitted')],
    [
      'generation_config.temperature',
      google('Request contains an invalid argument.', violation('generation_config.temperature')),
    ],
    [
      'foo',
      google(
        'Invalid JSON payload received. Unknown name "foo" at \'generation_config\': Cannot find field.',
      ),
    ],
    [
      'maxOutputTokens',
      google(
        'Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).',
      ),
    ],
    [
      'thinkingConfig',
      google('The thinking budget 0 is invalid. Please choose a value between 128 and 32768.'),
    ],
  ])('%s', (expected, body) => expect(named(body)).toBe(expected));

  test('a setting of the user’s that a sentence names in passing', () => {
    const body = openai('this deployment has parallel_tool_calls turned off');
    expect(named(body, { parallel_tool_calls: true })).toBe('parallel_tool_calls');
    expect(named(body)).toBeNull();
    expect(named(openai('stop it'), { stop: ['x'] })).toBeNull();
  });
});

describe('what is of the conversation is no parameter', () => {
  test.each<[unknown]>([
    [openai("Invalid value for 'messages[3].content'", { param: 'messages[3].content' })],
    [openai("Invalid type for 'input[4].arguments'", { param: 'input[4]' })],
    [
      openai("An assistant message with 'tool_calls' must be followed by tool messages.", {
        param: 'messages.[4].role',
      }),
    ],
    [anthropic('messages.5.content.0.thinking.signature: Field required')],
    [anthropic('messages: text content blocks must be non-empty')],
    [anthropic('system: text content blocks must be non-empty')],
    [google('* GenerateContentRequest.contents[2].parts: contents.parts must not be empty.')],
    [google('Please ensure that function call turn comes immediately after a user turn.')],
    [google('bad', violation('contents[1].parts[0].function_response'))],
    [openai('Bad request')],
  ])('%j', (body) => expect(named(body)).toBeNull());
});

test('the fix names the setting as the configuration does', () => {
  expect(parameterFix('generation_config.max_output_tokens', { max_tokens: 9 })).toMatch(
    /^set model\.model_kwargs\.max_tokens .* \(it is 9\)$/,
  );
  expect(parameterFix('thinking.enabled.budget_tokens', { reasoning_effort: 'high' })).toContain(
    'reasoning_effort',
  );
  expect(parameterFix('thinkingConfig', { thinking: { type: 'enabled' } })).toContain(
    'model_kwargs.thinking',
  );
  expect(parameterFix('tools', {})).toContain('agent.protocol: bash-block');
  expect(parameterFix('max_tokens', {})).toContain('set model.model_kwargs.max_tokens');
  expect(parameterFix('stream_options', {})).toBe('set model.stream: false');
});

const OK = jsonReply({
  id: 'c',
  choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
});
const BAD = jsonReply(openai("Unsupported parameter: 'temperature' is not supported with this model."), 400);

async function asked(replies: readonly RawReply[]) {
  await using server = await startRawServer(replies);
  const { clock } = autoClock();
  const factory = await createModelFactory(
    configOf({ base_url: server.url, prices: 'free', model_kwargs: { temperature: 0 } }),
    { apiKey: KEY, clock },
  );
  const { listener, calls } = recorder();
  const answers = [];
  for (const _ of replies)
    answers.push(await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK, { listener }));
  await factory.close();
  return { answers, calls, requests: server.requests };
}

test('at the first call it is a matter of the configuration', async () => {
  const { answers, calls, requests } = await asked([BAD]);
  expect(requests).toHaveLength(1);
  expect(calls).toMatchObject([{ state: 'failed', statusCode: 400, costNano: 0 }]);
  expect(answers).toMatchObject([{ success: false, metadata: { kind: 'config', statusCode: 400 } }]);
  expect(answers[0]!.message).toMatch(
    /^temperature rejected \(400\) by 127\.0\.0\.1:\d+ for model gpt-4o — set model\.model_kwargs\.temperature to a value that it takes, or leave it out \(it is 0\); it said: "Unsupported/,
  );
});

test('after a call that succeeded it is a matter of that attempt', async () => {
  const { answers } = await asked([OK, BAD]);
  expect(answers).toMatchObject([{ success: true }, { success: false, metadata: { kind: 'rejected' } }]);
});

test('an answer that is asked to be longer than the whole context is a parameter; a long prompt is not', async () => {
  const vllm = (length: number) =>
    jsonReply(
      {
        object: 'error',
        type: 'BadRequestError',
        code: 400,
        message: `'max_tokens' or 'max_completion_tokens' is too large: ${length}. This model's maximum context length is 32768 tokens and your request has 30000 input tokens (${length} > 32768 - 30000).`,
      },
      400,
    );
  expect((await asked([vllm(40_000)])).answers).toMatchObject([{ metadata: { kind: 'config' } }]);
  expect((await asked([vllm(4000)])).answers).toMatchObject([{ metadata: { kind: 'context' } }]);
});
