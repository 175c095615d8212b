// Where the published agents differ from ours: one test for each field of the dialect.
import { describe, expect, test } from 'vitest';
import type { AgentConfig } from '../../src/agent/agentConfig.ts';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { templatesOf } from '../../src/agent/loop/templates.ts';
import type { ModelReply } from '../../src/model/model.ts';
import {
  bash,
  call,
  calls,
  config,
  fakeEnvironment,
  fakeModel,
  type Outcome,
  reply,
  result,
  submitted,
  timedOut,
} from './fakes.ts';

function run(more: Partial<AgentConfig>, replies: ModelReply[], outcomes: Outcome[], vars = {}) {
  const model = fakeModel(replies);
  const environment = fakeEnvironment(outcomes, vars);
  const ended = createAgent({ instanceId: 'i', model, environment, config: config(more) }).run('t');
  return { ended, model };
}
const V1 = { compat: 'mini-swe-agent-1' } as const;
const V2 = { compat: 'mini-swe-agent-2', protocol: 'tool-call' } as const;

describe('mini-swe-agent 1', () => {
  test('the assistant message is role and content only, the last message is of the user', async () => {
    const said = reply('```bash\ns\n```', {
      message: { role: 'assistant', content: '```bash\ns\n```', reasoning: 'r', refusal: null },
    });
    const { ended } = run(V1, [said], [submitted('p')]);
    const { messages } = await ended;
    expect(Object.keys(messages[2]!)).toEqual(['role', 'content', 'extra']);
    expect(messages[3]).toMatchObject({ role: 'user', content: 'p' });
  });
  test('a limit ends with an empty message of the user', async () => {
    const { ended } = run({ ...V1, step_limit: 1 }, [bash('ls')], [result('')]);
    expect((await ended).messages.at(-1)).toMatchObject({
      role: 'user',
      content: '',
      extra: { exit_status: 'LimitsExceeded' },
    });
  });
  test('no cap on format errors: five with step_limit 5 are LimitsExceeded after five calls', async () => {
    const { ended, model } = run(
      { ...V1, step_limit: 5 },
      Array.from({ length: 6 }, () => reply('no')),
      [],
    );
    expect((await ended).exitStatus).toBe('LimitsExceeded');
    expect(model.queries).toHaveLength(5);
  });
  test('the built-in observation prints the result as Python prints a dict [S-04]', async () => {
    const { ended } = run(V1, [bash('echo "it\'s"'), bash('s')], [result("it's\n"), submitted('')]);
    expect((await ended).messages[3]?.content).toBe(
      `Observation: {'output': "it's\\n", 'returncode': 0, 'action': 'echo "it\\'s"'}`,
    );
  });
  test('a timeout has its own template [M-30]', async () => {
    const { ended } = run(V1, [bash('x'), bash('s')], [timedOut('part\r\n'), submitted('')]);
    expect((await ended).messages[3]?.content).toBe(
      'The last command <command>x</command> timed out and has been killed.\nThe output of the command was:\n<output>\npart\r\n\n</output>\nPlease try another command and make sure to avoid those requiring interactive input.',
    );
  });
});

describe('mini-swe-agent 2', () => {
  test('a malformed reply is dropped and its response kept with the error [M-27]', async () => {
    const { ended, model } = run(
      V2,
      [reply('no call', { raw: { id: 'r1' }, costNano: 1e9 }), calls(call('c', { command: 's' }))],
      [submitted('p')],
    );
    const { messages } = await ended;
    expect(messages.map((m) => m.role)).toEqual(['system', 'user', 'user', 'assistant', 'exit']);
    expect(messages[2]?.extra).toMatchObject({
      interrupt_type: 'FormatError',
      response: { id: 'r1' },
      cost: 1,
    });
    expect(model.queries[1]?.messages).toHaveLength(3);
  });
  test('the first bad call fails the whole turn: nothing of it runs', async () => {
    const { ended } = run(
      V2,
      [calls(call('a', { command: 'ls' }), call('b', {})), calls(call('c', { command: 's' }))],
      [submitted('p')],
    );
    expect((await ended).messages[2]?.content).toBe("Missing 'command' argument in bash tool call.");
  });
  test('earlier outputs of a submitting turn are lost', async () => {
    const { ended } = run(
      V2,
      [calls(call('a', { command: 'ls' }), call('b', { command: 's' }))],
      [result('lost'), submitted('p')],
    );
    expect((await ended).messages.map((m) => m.role)).toEqual(['system', 'user', 'assistant', 'exit']);
  });
  test('a timeout is an observation that holds the whole command line of the engine', async () => {
    const vars = { env: { PAGER: 'cat' }, interpreter: ['bash', '-c'], timeout: 60 };
    const { ended } = run(
      V2,
      [calls(call('a', { command: "echo 'x'" })), calls(call('c', { command: 's' }))],
      [timedOut('part'), submitted('p')],
      vars,
    );
    const message = (await ended).messages[3]!;
    expect(message).toMatchObject({
      role: 'tool',
      tool_call_id: 'a',
      extra: { raw_output: 'part', returncode: -1 },
    });
    expect(message.content).toBe(
      `<exception>An error occurred while executing the command: Command '['docker', 'exec', '-w', '/testbed', '-e', 'PAGER=cat', 'c0ffee', 'bash', '-c', "echo 'x'"]' timed out after 60 seconds</exception>\n<returncode>-1</returncode>\n<output>\npart</output>`,
    );
  });
  test('the cap on format errors ends with the name of the status', async () => {
    const { ended } = run(V2, [reply('a'), reply('b'), reply('c')], []);
    expect((await ended).messages.at(-1)).toMatchObject({ role: 'exit', content: 'RepeatedFormatError' });
  });
  test('a limit ends with the name of the status', async () => {
    const { ended } = run({ ...V2, step_limit: 1 }, [calls(call('a', { command: 'ls' }))], [result('')]);
    expect((await ended).messages.at(-1)).toMatchObject({ role: 'exit', content: 'LimitsExceeded' });
  });
  test('the format error template sees only what concerns the reply [M-24]', async () => {
    const { ended } = run({ ...V2, format_error_template: '{{ step_limit }}' }, [reply('no')], []);
    await expect(ended).rejects.toThrow("'step_limit' is undefined");
  });
});

describe('defaults', () => {
  test('each agent has its own', () => {
    const of = (more: Partial<AgentConfig>) => templatesOf(config(more));
    expect(of(V1).format_error).toBe('Please always provide EXACTLY ONE action in triple backticks.');
    expect(of(V2).format_error).toBe('{{ error }}');
    expect(of({ ...V2, protocol: 'bash-block' }).format_error).toContain('found {{actions|length}} actions');
    expect(of({}).format_error).toContain(
      'EXACTLY ONE action in triple backticks, found {{actions|length}} actions',
    );
    expect(of({ protocol: 'tool-call' }).format_error).toContain('Tool call error: {{ error }}');
    expect(of({}).timeout).toContain("<command>{{action['action']}}</command> timed out and has been killed");
  });
  test('a template of the configuration wins', () => {
    expect(templatesOf(config({ timeout_template: 'x' })).timeout).toBe('x');
  });
});
