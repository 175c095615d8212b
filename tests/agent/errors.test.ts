// The seeds' error architecture: unions, helpers, codes, mappings, messages, Tool.Result, degradations.

import { describe, expect, test } from 'vitest';
import { findAgent, loadAgent } from '../../src/agent/agents.ts';
import {
  AGENT_ERROR_CODES,
  type AgentResponse,
  errorResponse,
  getUserFriendlyMessage,
  isAgentError,
  isAgentSuccess,
  isRetryableError,
  mapModelErrorCodeToAgentErrorCode,
  mapToolErrorCodeToAgentErrorCode,
  successResponse,
} from '../../src/agent/errors.ts';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { truncate, withFallback } from '../../src/agent/loop/degrade.ts';
import {
  ExecutionTimeoutError,
  FormatError,
  LimitsExceeded,
  NonTerminatingException,
  Submitted,
  TerminatingException,
  TimeExceeded,
} from '../../src/agent/loop/exceptions.ts';
import type * as Tool from '../../src/agent/tool.ts';
import { bashTool, TOOL_ERROR_CODES } from '../../src/agent/tool.ts';
import { contentText } from '../../src/base/text/contentText.ts';
import { MODEL_ERROR_CODES } from '../../src/model/model.ts';
import { bash, config, fakeEnvironment, fakeModel, result, submitted, timedOut } from './fakes.ts';

describe('responses', () => {
  test('helpers build and tell apart both sides of the union [S-33]', () => {
    const good: AgentResponse<number> = successResponse(1, 'done');
    const bad: AgentResponse<number> = errorResponse('TIMEOUT', 'too slow', {
      provider: 'openai',
      statusCode: 504,
    });
    expect([isAgentSuccess(good), isAgentError(good), isAgentSuccess(bad), isAgentError(bad)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(good).toEqual({ success: true, result: 1, message: 'done' });
    expect(bad).toEqual({
      success: false,
      error: 'TIMEOUT',
      message: 'too slow',
      metadata: { provider: 'openai', statusCode: 504 },
    });
    expect(errorResponse('UNKNOWN', 'x')).not.toHaveProperty('metadata');
  });
});

describe('codes', () => {
  test('the nineteen of the agent [S-39]', () => {
    expect([...AGENT_ERROR_CODES].sort()).toEqual(
      'AUTHENTICATION_ERROR CONFIG_ERROR CONTEXT_LENGTH_EXCEEDED INITIALIZATION_ERROR INVALID_RESPONSE IO_ERROR LLM_ASSIST_REQUIRED MAX_ITERATIONS_EXCEEDED MODEL_NOT_FOUND NETWORK_ERROR NOT_FOUND PERMISSION_DENIED PROVIDER_NOT_CONFIGURED PROVIDER_NOT_SUPPORTED RATE_LIMITED TIMEOUT TOOL_EXECUTION_ERROR UNKNOWN VALIDATION_ERROR'.split(
        ' ',
      ),
    );
  });
  test.each(MODEL_ERROR_CODES)('the model code %s maps to its own name [S-48]', (code) => {
    expect(mapModelErrorCodeToAgentErrorCode(code)).toBe(code);
  });
  test.each(TOOL_ERROR_CODES)('the tool code %s maps to its own name [S-42]', (code) => {
    expect(mapToolErrorCodeToAgentErrorCode(code)).toBe(code);
  });
  test('a code that nobody knows is UNKNOWN [S-46]', () => {
    expect(mapModelErrorCodeToAgentErrorCode('SOMETHING' as never)).toBe('UNKNOWN');
  });
  test('only rate limits, network errors and timeouts are worth a retry [S-47]', () => {
    expect(AGENT_ERROR_CODES.filter(isRetryableError).sort()).toEqual([
      'NETWORK_ERROR',
      'RATE_LIMITED',
      'TIMEOUT',
    ]);
  });
  test.each(AGENT_ERROR_CODES)(
    '%s has a message for people: a sentence, no jargon, a next step [S-38]',
    (code) => {
      const text = getUserFriendlyMessage(code, { provider: 'openai', model: 'gpt' });
      expect(text).toMatch(/^[A-Z].{20,}\.$/);
      expect(text).not.toMatch(/ECONN|ENOENT|undefined|[A-Z]+_[A-Z]+/);
    },
  );
  test('a known waiting time is in it', () => {
    expect(getUserFriendlyMessage('RATE_LIMITED', { retryAfter: 30 })).toContain('Wait 30 seconds');
  });
});

describe('exceptions', () => {
  test('the hierarchy of the seeds [S-07]', () => {
    const bad = new FormatError([{ role: 'user', content: 'a' }]);
    expect([
      bad instanceof NonTerminatingException,
      new ExecutionTimeoutError([]) instanceof NonTerminatingException,
    ]).toEqual([true, true]);
    const submittedEnd = new Submitted('p', Buffer.from('p'));
    expect(
      [submittedEnd, new LimitsExceeded('steps'), new TimeExceeded()].every(
        (e) => e instanceof TerminatingException,
      ),
    ).toBe(true);
    expect([submittedEnd.name, new LimitsExceeded('cost').name, bad.message]).toEqual([
      'Submitted',
      'LimitsExceeded',
      'a',
    ]);
  });
});

describe('Tool.Result', () => {
  const run = (outcome: Parameters<typeof fakeEnvironment>[0][0]) =>
    bashTool(fakeEnvironment([outcome])).execute({ command: 'ls -la\npwd' });
  test('what the agent executes gives title, metadata and output [S-35]', async () => {
    const given: Tool.Result<Tool.BashMetadata> = await run(result('out', { exitCode: 2 }));
    expect(given).toMatchObject({ title: 'ls -la', output: 'out', metadata: { exitCode: 2 } });
    expect(given.metadata.error).toBeUndefined();
  });
  test.each([
    [timedOut('part'), 'TIMEOUT'],
    [result('', { exitCode: 126 }), 'PERMISSION_DENIED'],
    [result('', { exitCode: 127 }), 'NOT_FOUND'],
    [result('', { exitCode: 137, exceptionInfo: 'killed' }), 'IO_ERROR'],
  ] as const)('failures are in the result, not thrown [S-41]', async (outcome, code) => {
    expect((await run(outcome)).metadata.error).toBe(code);
  });
  test('and are told in the output [S-36]', async () => {
    expect((await run(timedOut('part'))).output).toBe('part\nError: timed out after 60s');
  });
});

describe('degradation', () => {
  const heard = () => {
    const debug: [string, unknown][] = [];
    return { debug, onDebug: (message: string, data?: unknown) => debug.push([message, data]) };
  };
  test('withFallback gives the value, or the fallback and a debug message with the stack [S-59]', async () => {
    const { debug, onDebug } = heard();
    expect(
      await withFallback(
        () => 1,
        () => 2,
        'm',
        { onDebug },
      ),
    ).toBe(1);
    expect(
      await withFallback(
        () => Promise.reject(new Error('x')),
        () => 2,
        'm',
        { onDebug },
      ),
    ).toBe(2);
    expect(debug).toEqual([
      ['m', { error: 'x', name: 'Error', stack: expect.stringContaining('errors.test') }],
    ]);
  });
  const parts = (more: object) => ({
    instanceId: 'i',
    model: fakeModel([bash('a'), bash('b'), bash('s')]),
    environment: fakeEnvironment([result('o'.repeat(30_000)), result('second'), submitted('p')]),
    config: config(),
    ...more,
  });
  test('a summary that fails: truncated text [S-57]', async () => {
    const { debug, onDebug } = heard();
    const ended = await createAgent(
      parts({ callbacks: { onDebug }, summarize: () => Promise.reject(new Error('no')) }),
    ).run('t');
    expect(ended.messages[3]?.content).toMatch(/o\n… \d+ characters elided …\no/);
    expect(ended.messages[3]?.extra?.raw_output).toHaveLength(30_000);
    expect(debug[0]?.[0]).toBe('Summary failed, using truncation');
  });
  test('a summary that works is shown', async () => {
    const ended = await createAgent(
      parts({ summarize: async (text: string) => `${text.length} letters` }),
    ).run('t');
    expect(ended.messages[3]?.content).toContain('30000 letters');
  });
  test('a selection of history that fails: the task and the open turn [S-55]', async () => {
    const { debug, onDebug } = heard();
    const given = parts({
      callbacks: { onDebug },
      selectHistory: () => {
        throw new Error('no');
      },
    });
    await createAgent(given).run('t');
    expect(given.model.queries.map((q) => q.messages.length)).toEqual([2, 4, 4]);
    expect(given.model.queries[2]?.messages.map((m) => m.role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ]);
    expect(debug[0]?.[0]).toBe('History selection failed, going on without context');
  });
  test('a selection that works decides what is sent, not what is recorded', async () => {
    const given = parts({ selectHistory: (messages: readonly unknown[]) => messages.slice(0, 2) });
    const ended = await createAgent(given).run('t');
    expect(given.model.queries.map((q) => q.messages.length)).toEqual([2, 2, 2]);
    expect(ended.messages).toHaveLength(8);
  });
  test('structure that cannot be parsed: the text is kept [M-33, S-54]', () => {
    expect(contentText([{ type: 'text', text: 'a' }, { type: 'image' }, null, 'b', { text: 5 }])).toBe('ab');
    expect(contentText('plain')).toBe('plain');
    expect(contentText({ odd: true })).toBe('');
    expect(contentText(null)).toBe('');
  });
  test('truncate keeps head, tail and the count, by code points', () => {
    expect(truncate('short', 10)).toBe('short');
    expect(truncate('😀'.repeat(100), 60)).toMatch(/^😀+\n… 40 characters elided …\n😀+$/u);
  });
});

describe('a custom agent', () => {
  const here = import.meta.dirname;
  const parts = () => ({
    instanceId: 'i',
    model: fakeModel([]),
    environment: fakeEnvironment([]),
    config: config(),
  });
  test('the built-in one by name [M-20]', async () => {
    expect((await loadAgent('default', here)).create).toBe(createAgent);
  });
  test('a module of the user [M-20]', async () => {
    const { create } = await loadAgent('fixtures/customAgent.ts', here);
    expect((await create(parts()).run('t')).exitStatus).toBe('Custom');
  });
  test.each([
    ['fixtures/nothing.ts', /cannot be loaded/],
    ['fakes.ts', /exports no createAgent/],
  ])('%s: what is wrong is said [M-20, S-45]', async (path, text) => {
    const found = await findAgent(path, here);
    const message = expect.stringMatching(text) as string;
    expect(found).toMatchObject({ success: false, error: 'INITIALIZATION_ERROR', message });
    await expect(loadAgent(path, here)).rejects.toThrow(text);
  });
});
