// docs/traceability/seeds.md says the truth: what it names is there, and the seeds' texts and defaults are ours.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { AGENT_ERROR_CODES } from '../../src/agent/errors.ts';
import { templatesOf } from '../../src/agent/loop/templates.ts';
import * as api from '../../src/index.ts';
import { render } from '../../src/template/render.ts';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'traceability', 'seeds.md'), 'utf8');

describe('the page', () => {
  const named = [...page.matchAll(/`((?:src|tests)\/[^`\s]+\.ts)`/g)].map((m) => m[1] as string);
  test.each([...new Set(named)])('%s exists', (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });
  const tests = [...page.matchAll(/`(tests\/[^`]+)` › "([^"]+)"/g)].map(
    (m) => [m[1], m[2]] as [string, string],
  );
  test.each(tests)('%s has a test "%s"', (path, title) => {
    const plain = (text: string): string => text.replaceAll('\\', '').replaceAll(/['’"]/g, "'");
    expect(plain(readFileSync(join(root, path), 'utf8'))).toContain(plain(title));
  });
  test('every row of its tables names a test', () => {
    const rows = page
      .split('\n')
      .filter((line) => line.startsWith('| ') && !/^\| (seed|`AgentErrorCode`) \|/.test(line));
    expect(rows.length).toBeGreaterThan(100);
    expect(rows.filter((row) => !row.includes('`tests/'))).toEqual([]);
  });
  test('every code of the agent has its row', () => {
    expect(AGENT_ERROR_CODES.filter((code) => !page.includes(`| \`${code}\` |`))).toEqual([]);
  });
  test('what stays refused is what may be refused', () => {
    expect(page.match(/\*\*refused\*\*/g)).toHaveLength(2);
  });
});

test('the names of the seeds are exported as they stand', () => {
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
  test("the defaults of AgentConfig are the seed's", () => {
    expect(config).toMatchObject({
      system_template: 'You are a helpful assistant that can do anything.',
      instance_template:
        "Your task: {{task}}. Please reply with a single shell command in triple backticks. To finish, the first line of the output of the shell command must be 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'.",
      step_limit: 0,
      cost_limit: 3,
      protocol: 'bash-block',
    });
  });
  test("the timeout message is the seed's", () => {
    expect(render(templates.timeout, { action: { action: 'sleep 300' }, output: 'part' })).toBe(
      'The last command <command>sleep 300</command> timed out and has been killed.\nThe output of the command was:\n <output>\npart\n</output>\nPlease try another command and make sure to avoid those requiring interactive input.',
    );
  });
  test("the format error message is the seed's", () => {
    expect(render(templates.format_error, { actions: ['a', 'b'], finish_reason: 'stop' })).toBe(
      'Please always provide EXACTLY ONE action in triple backticks, found 2 actions.\n\nPlease format your action in triple backticks as shown in <response_example>.\n\n<response_example>\nHere are some thoughts about why you want to perform the action.\n\n```bash\n<action>\n```\n</response_example>',
    );
  });
});
