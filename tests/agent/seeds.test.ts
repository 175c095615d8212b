// The names, defaults and texts of the seeds are ours; docs/appendix/seeds.md has where everything else of them is.
import { describe, expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { templatesOf } from '../../src/agent/loop/templates.ts';
import * as api from '../../src/index.ts';
import { render } from '../../src/template/render.ts';

test('the names of the seeds are exported as they stand [S-62]', () => {
  const names =
    'DefaultAgent NonTerminatingException FormatError ExecutionTimeoutError TerminatingException Submitted LimitsExceeded successResponse errorResponse isAgentSuccess isAgentError mapModelErrorCodeToAgentErrorCode mapToolErrorCodeToAgentErrorCode getUserFriendlyMessage mapErrorToCode Tool';
  expect(names.split(' ').filter((name) => !(name in api))).toEqual([]);
  // Types leave nothing at run time: this line compiles or it does not.
  const given: api.Tool.Result = { title: 't', metadata: {}, output: 'o' };
  const codes: [api.AgentErrorCode, api.ModelErrorCode, api.ToolErrorCode] = [
    'TIMEOUT',
    'TIMEOUT',
    'TIMEOUT',
  ];
  const response: api.ModelResponse<string> | api.AgentResponse<string> = {
    success: true,
    result: 'r',
    message: 'm',
  };
  const metadata: api.ProviderErrorMetadata = {
    provider: 'p',
    model: 'm',
    statusCode: 1,
    retryAfter: 1,
    originalError: 1,
  };
  const retry: Pick<api.RetryConfig, 'enabled'> = { enabled: true };
  expect([given, codes, response, metadata, retry]).toHaveLength(5);
});

describe('texts', () => {
  const config = agentConfigSchema.parse({});
  const templates = templatesOf(config);
  test("the defaults of AgentConfig are the seed's [S-01]", () => {
    expect(config).toMatchObject({
      system_template: 'You are a helpful assistant that can do anything.',
      instance_template:
        "Your task: {{task}}. Please reply with a single shell command in triple backticks. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.",
      step_limit: 0,
      cost_limit: 3,
      protocol: 'bash-block',
    });
  });
  test("the timeout message is the seed's [S-02]", () => {
    expect(render(templates.timeout, { action: { action: 'sleep 300' }, output: 'part' })).toBe(
      'The last command <command>sleep 300</command> timed out and has been killed.\nThe output of the command was:\n <output>\npart\n</output>\nPlease try another command and make sure to avoid those requiring interactive input.',
    );
  });
  test("the format error message is the seed's [S-03]", () => {
    expect(render(templates.format_error, { actions: ['a', 'b'], finish_reason: 'stop' })).toBe(
      'Please always provide EXACTLY ONE action in triple backticks, found 2 actions.\n\nPlease format your action in triple backticks as shown in <response_example>.\n\n<response_example>\nHere are some thoughts about why you want to perform the action.\n\n```bash\n<action>\n```\n</response_example>',
    );
  });
});
