// What the agent promises, against a scripted model and environment.
import { describe, expect, test } from 'vitest';
import type { AgentConfig } from '../../src/agent/agentConfig.ts';
import type { AgentCallbacks, CommandRecord } from '../../src/agent/contract.ts';
import { createAgent, DefaultAgent } from '../../src/agent/loop/agent.ts';
import { EnvironmentError } from '../../src/environment/environment.ts';
import type { Message } from '../../src/model/model.ts';
import { dollarsToNano } from '../../src/money.ts';
import {
  type Answer,
  bash,
  call,
  calls,
  config,
  fakeEnvironment,
  fakeModel,
  type Outcome,
  reply,
  result,
  SUBMIT,
  submitted,
  timedOut,
} from './fakes.ts';

function setUp(
  answers: Answer[],
  outcomes: Outcome[],
  more: Partial<AgentConfig> = {},
  callbacks: AgentCallbacks = {},
) {
  const model = fakeModel(answers);
  const environment = fakeEnvironment(outcomes);
  const parts = { instanceId: 'a__a-1', model, environment, config: config(more), callbacks };
  return { model, environment, parts, agent: createAgent(parts) };
}
const dear = (content: string, dollars = 1) => bash(content, { costNano: dollarsToNano(dollars) });
const roles = (messages: readonly Message[]) => messages.map((m) => m.role).join(' ');

describe('ends', () => {
  test('two steps, then the marker: Submitted with the text after the marker line, 2 calls, 6 messages [M-01, S-10]', async () => {
    const { agent, model } = setUp([bash('ls'), bash('submit')], [result('a\n'), submitted('diff\nline\n')]);
    const ended = await agent.run('fix it');
    expect(ended).toMatchObject({
      exitStatus: 'Submitted',
      submission: 'diff\nline\n',
      steps: 2,
      costNano: 0,
    });
    expect(Buffer.from(ended.submissionBytes!).toString()).toBe('diff\nline\n');
    expect(model.queries).toHaveLength(2);
    expect(roles(ended.messages)).toBe('system user assistant user assistant exit');
    expect(ended.messages.at(-1)).toMatchObject({
      content: 'diff\nline\n',
      extra: { exit_status: 'Submitted' },
    });
  });
  test('the same agent on a second task begins a new history; what it has used goes on counting [S-13]', async () => {
    const { agent, model } = setUp([bash('a'), bash('b')], [submitted('one\n'), submitted('two\n')], {
      step_limit: 2,
    });
    const first = await agent.run('first');
    const second = await agent.run('second');
    expect(roles(first.messages)).toBe('system user assistant exit');
    expect(roles(second.messages)).toBe('system user assistant exit');
    expect(model.queries[1]!.messages.map((m) => m.content)).toEqual(['system', 'task: second']);
    expect(await agent.run('third')).toMatchObject({ exitStatus: 'LimitsExceeded', limit: 'steps' });
  });
  test('step_limit 1 with two replies: LimitsExceeded after exactly one call [M-02, S-11]', async () => {
    const { agent, model } = setUp([bash('ls'), bash('ls')], [result(''), result('')], { step_limit: 1 });
    const ended = await agent.run('t');
    expect(ended).toMatchObject({ exitStatus: 'LimitsExceeded', limit: 'steps', submission: '', steps: 1 });
    expect(ended.submissionBytes).toBeUndefined();
    expect(model.queries).toHaveLength(1);
  });
  test('a call of $1 with cost_limit 0.5 ends after that call [M-03, S-29]', async () => {
    const { agent } = setUp([dear('ls'), dear('ls')], [result(''), result('')], { cost_limit: 0.5 });
    expect(await agent.run('t')).toMatchObject({
      exitStatus: 'LimitsExceeded',
      limit: 'cost',
      costNano: 1e9,
    });
  });
  test('cost exactly at the limit stops [S-26]', async () => {
    const { agent, model } = setUp([dear('ls'), dear('ls'), dear('x')], [result(''), result('')], {
      cost_limit: 2,
    });
    expect(await agent.run('t')).toMatchObject({ limit: 'cost' });
    expect(model.queries).toHaveLength(2);
  });
  test('limits of 0 are off [M-04, S-05]', async () => {
    const many = Array.from({ length: 30 }, () => dear('ls', 100));
    const { agent } = setUp([...many, bash('s')], [...many.map(() => result('')), submitted('')], {
      step_limit: 0,
      cost_limit: 0,
      token_limit: 0,
    });
    expect(await agent.run('t')).toMatchObject({ exitStatus: 'Submitted', steps: 31, submission: '' });
  });
  test('token_limit counts all tokens of all calls', async () => {
    const { agent } = setUp([bash('a'), bash('b'), bash('c')], [result(''), result('')], { token_limit: 30 });
    expect(await agent.run('t')).toMatchObject({ limit: 'tokens', steps: 2 });
  });
  test('a broken environment rejects with its error and makes no further call [S-30, S-44]', async () => {
    const died = new EnvironmentError('died', 'the container is gone', { sub: 'oom' });
    const errors: string[] = [];
    const { agent, model } = setUp(
      [bash('ls'), bash('ls')],
      [died],
      {},
      { onError: (_c, e) => errors.push(e.error) },
    );
    await expect(agent.run('t')).rejects.toBe(died);
    expect(model.queries).toHaveLength(1);
    expect(errors).toEqual(['TOOL_EXECUTION_ERROR']);
  });
  test('an abort of the caller rejects', async () => {
    const controller = new AbortController();
    const model = fakeModel([
      async ({ options }) => {
        controller.abort(new Error('stopped by the user'));
        options.signal?.throwIfAborted();
        return bash('ls');
      },
    ]);
    const agent = createAgent({
      instanceId: 'i',
      model,
      environment: fakeEnvironment([]),
      config: config(),
      signal: controller.signal,
    });
    await expect(agent.run('t')).rejects.toThrow('stopped by the user');
  });
});

describe('commands that time out', () => {
  test('one message tells of it with the partial output, and the run goes on to submit [M-05, M-06, S-09]', async () => {
    const { agent } = setUp([bash('sleep 99'), bash('s')], [timedOut('partial out'), submitted('p')]);
    const ended = await agent.run('t');
    expect(ended.exitStatus).toBe('Submitted');
    const told = ended.messages.filter((m) => String(m.content).includes('timed out'));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ role: 'user', extra: { raw_output: 'partial out', returncode: -1 } });
    expect(told[0]?.content).toContain('<command>sleep 99</command>');
    expect(told[0]?.content).toContain('partial out');
  });
  test('long partial output is cut [M-30]', async () => {
    const { agent } = setUp([bash('x'), bash('s')], [timedOut('y'.repeat(50_000)), submitted('p')]);
    const told = (await agent.run('t')).messages[3];
    expect(String(told?.content).length).toBeLessThan(11_000);
    expect(told?.content).toContain('40000 characters elided');
  });
  test('a timed-out command that printed the marker does not submit [M-38]', async () => {
    const { agent } = setUp([bash('x'), bash('s')], [timedOut(`${SUBMIT}\npatch`), submitted('real')]);
    expect(await agent.run('t')).toMatchObject({ submission: 'real', steps: 2 });
  });
  test('too many in a row end the attempt; one that works starts the count again', async () => {
    const slow = timedOut('');
    const { agent } = setUp(
      Array.from({ length: 6 }, () => bash('x')),
      [slow, result(''), slow, slow],
      { max_consecutive_timeouts: 2 },
    );
    expect(await agent.run('t')).toMatchObject({
      exitStatus: 'CommandTimeoutsExceeded',
      limit: 'command_timeouts',
      steps: 4,
    });
  });
});

describe('messages', () => {
  test('observations in order; the submitting command adds none [M-07]', async () => {
    const n = 20;
    const { agent } = setUp(
      [...Array.from({ length: n }, (_, i) => bash(`echo ${i}`)), bash('s')],
      [...Array.from({ length: n }, (_, i) => result(`out ${i}\n`)), submitted('p')],
    );
    const { messages } = await agent.run('t');
    const observed = messages.filter((m) => m.role === 'user').slice(1);
    expect(observed.map((m) => /out (\d+)/.exec(String(m.content))?.[1])).toEqual(
      Array.from({ length: n }, (_, i) => String(i)),
    );
  });
  test('own templates are rendered; the task is data, never a template [M-08, S-21]', async () => {
    const { agent } = setUp([bash('s')], [submitted('')], {
      system_template: 'I am {{ cwd }}',
      instance_template: 'Do: {{ task }} ({{ hint }})',
    });
    const { messages } = await agent.run('{{ 1 + 1 }} {% x %}', { hint: 'h' });
    expect(messages[0]?.content).toBe('I am /testbed');
    expect(messages[1]?.content).toBe('Do: {{ 1 + 1 }} {% x %} (h)');
  });
  test('counters are visible in templates [M-09, S-20]', async () => {
    const { agent } = setUp([dear('a'), dear('b'), bash('s')], [result(''), result(''), submitted('')], {
      observation_template:
        'Calls: {{ n_model_calls }}, Cost: {{ model_cost }}, left {{ step_limit - n_model_calls }}',
      step_limit: 10,
    });
    const { messages } = await agent.run('t');
    expect(messages[5]?.content).toBe('Calls: 2, Cost: 2.0, left 8');
  });
  test('a step adds a reply and an observation; both carry what an export needs [M-10, M-11, M-28, S-14]', async () => {
    const { agent } = setUp(
      [bash('ls', { costNano: 5e8 }), bash('s')],
      [result('o\n', { exitCode: 3 }), submitted('')],
    );
    const { messages } = await agent.run('t');
    expect(messages[2]?.extra).toEqual({
      actions: [{ command: 'ls' }],
      response: { content: expect.stringContaining('ls') },
      cost: 0.5,
      timestamp: expect.any(Number),
    });
    expect(messages[3]?.extra).toEqual({
      raw_output: 'o\n',
      returncode: 3,
      exception_info: '',
      timestamp: expect.any(Number),
    });
    expect(messages[3]?.content).toContain('<returncode>3</returncode>');
    const times = messages.map((m) => Number(m.extra?.timestamp));
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
  test('output is cut at exactly 10000 characters, with head, tail and count [M-29, S-22]', async () => {
    const lengths = [8000, 9999, 10_000, 11_000];
    const { agent } = setUp(
      [...lengths.map(() => bash('x')), bash('s')],
      [...lengths.map((n) => result(`${'h'.repeat(n - 1)}t`)), submitted('')],
    );
    const shown = (await agent.run('t')).messages
      .filter((m) => m.role === 'user')
      .slice(1)
      .map((m) => String(m.content));
    expect(shown.map((t) => t.includes('<output>'))).toEqual([true, true, false, false]);
    expect(shown[2]).toContain('0 characters elided');
    expect(shown[3]).toContain('1000 characters elided');
    expect(shown[3]).toContain(`${'h'.repeat(4999)}t\n</output_tail>`);
    expect(shown[3]).toContain('<returncode>0</returncode>');
  });
  test('bytes that the environment dropped are counted for the model', async () => {
    const { agent } = setUp(
      [bash('x'), bash('s')],
      [result('z'.repeat(20_000), { omittedBytes: 123456, totalBytes: 143456 }), submitted('')],
    );
    expect((await agent.run('t')).messages[3]?.content).toContain('123456 bytes omitted');
  });
  test('a command killed by the memory limit tells the model why', async () => {
    const { agent } = setUp(
      [bash('x'), bash('s')],
      [
        result('', {
          exitCode: 137,
          oomKilled: true,
          exceptionInfo: 'command killed: memory limit 256 MiB reached (rc 137)',
        }),
        submitted(''),
      ],
    );
    expect((await agent.run('t')).messages[3]?.content).toContain(
      '<exception>command killed: memory limit 256 MiB reached (rc 137)</exception>',
    );
  });
});

describe('malformed replies (bash-block)', () => {
  test('none, two, wrong language: told, still visible, recovered; 3 calls before the good one [M-14, S-08]', async () => {
    const two = reply('```bash\na\n```\n```bash\nb\n```');
    const { agent, model } = setUp([reply('none'), two, bash('s')], [submitted('p')]);
    const ended = await agent.run('t');
    expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 3 });
    const texts = ended.messages.map((m) => String(m.content));
    expect(texts.filter((t) => t.includes('EXACTLY ONE action'))).toHaveLength(2);
    expect(texts[3]).toContain('found 0 actions');
    expect(texts[5]).toContain('found 2 actions');
    expect(model.queries[1]?.messages[2]).toMatchObject({ role: 'assistant', content: 'none' });
    expect(ended.messages[3]?.extra).toMatchObject({ interrupt_type: 'FormatError', n_actions: 0 });
  });
  test('three in a row end the attempt after exactly three calls; a good step starts the count again [M-15, M-16, S-28]', async () => {
    const bad = reply('no');
    const three = setUp([bad, bad, bad, bad], []);
    expect(await three.agent.run('t')).toMatchObject({
      exitStatus: 'RepeatedFormatError',
      limit: 'format_errors',
      steps: 3,
    });
    const again = setUp([bad, bad, bash('ls'), bad, bad, bash('s')], [result(''), submitted('p')]);
    expect(await again.agent.run('t')).toMatchObject({ exitStatus: 'Submitted', steps: 6 });
    const off = setUp([bad, bad, bad, bad, bash('s')], [submitted('p')], {
      max_consecutive_format_errors: 0,
    });
    expect(await off.agent.run('t')).toMatchObject({ exitStatus: 'Submitted', steps: 5 });
  });
  test('billed format errors count against the cost limit [M-17]', async () => {
    const bad = reply('no', { costNano: 1e9 });
    const { agent } = setUp([bad, bad, bad, bad], [], { cost_limit: 2.5, max_consecutive_format_errors: 0 });
    expect(await agent.run('t')).toMatchObject({ limit: 'cost', costNano: 3e9, steps: 3 });
  });
  test('T-13: a reply cut off by the token limit is told so; three in a row end as format errors; the reply is kept [M-24]', async () => {
    const cut = reply('I was going to', { finishReason: 'length' });
    const { agent } = setUp([cut, cut, cut], []);
    const ended = await agent.run('t');
    expect(ended.exitStatus).toBe('RepeatedFormatError');
    expect(ended.messages[3]?.content).toContain('cut off');
    expect(ended.messages[2]?.extra?.response).toEqual({ content: 'I was going to' });
  });
  test('T-12: an empty reply is asked for again without a message; three in a row end the attempt [S-27]', async () => {
    const empty = reply('  \n');
    // The model layer calls a reply without choices or content a failure of kind "empty".
    const none: Answer = {
      success: false,
      error: 'INVALID_RESPONSE',
      message: 'empty',
      metadata: { kind: 'empty' },
    };
    const { agent, model } = setUp([empty, none, bash('ls'), empty, empty, empty], [result('')]);
    const ended = await agent.run('t');
    expect(ended).toMatchObject({ exitStatus: 'EmptyResponsesExceeded', limit: 'empty_responses', steps: 6 });
    expect(ended.messages.at(-1)?.content).toBe('3 empty responses in a row');
    expect(model.queries[2]?.messages).toEqual(model.queries[0]?.messages);
  });
});

test('a reply cut off before its first word is told so and leaves no empty message [M-24]', async () => {
  const { agent } = setUp([reply('', { finishReason: 'length' }), bash('s')], [submitted('p')]);
  const { messages } = await agent.run('t');
  expect(roles(messages)).toBe('system user user assistant exit');
  expect(messages[2]?.content).toContain('cut off');
});
test('calls of a tool that was not offered stay visible as text, so that nothing is left unanswered', async () => {
  const invented = { ...calls(call('c1', { command: 'ls' })), content: '' };
  const { agent, model } = setUp([invented, bash('s')], [submitted('p')]);
  await agent.run('t');
  const said = model.queries[1]?.messages[2];
  expect(said).not.toHaveProperty('tool_calls');
  expect(said?.content).toContain('ls');
});

describe('tool calls', () => {
  const tools = { protocol: 'tool-call' } as const;
  test('three calls keep their order and ids, and the tool is offered [M-23, M-28, S-15]', async () => {
    const { agent, model, environment } = setUp(
      [
        calls(call('c1', { command: 'a' }), call('c2', { command: 'b' }), call('c3', { command: 'c' })),
        calls(call('c4', { command: 's' })),
      ],
      [result('A'), result('B'), result('C'), submitted('p')],
      tools,
    );
    const { messages } = await agent.run('t');
    expect(environment.commands).toEqual(['a', 'b', 'c', 's']);
    expect(
      messages
        .filter((m) => m.role === 'tool')
        .map((m) => [m.tool_call_id, /\n(.)\n?<\/output>/.exec(String(m.content))?.[1]]),
    ).toEqual([
      ['c1', 'A'],
      ['c2', 'B'],
      ['c3', 'C'],
    ]);
    expect(model.queries[0]?.options.tools?.[0]?.function.name).toBe('bash');
    expect(messages[2]?.extra?.actions).toEqual([
      { command: 'a', tool_call_id: 'c1' },
      { command: 'b', tool_call_id: 'c2' },
      { command: 'c', tool_call_id: 'c3' },
    ]);
  });
  test('earlier outputs of a submitting turn are kept, later calls do not run', async () => {
    const { agent, environment } = setUp(
      [calls(call('c1', { command: 'a' }), call('c2', { command: 's' }), call('c3', { command: 'never' }))],
      [result('kept'), submitted('p')],
      tools,
    );
    const ended = await agent.run('t');
    expect(ended).toMatchObject({ exitStatus: 'Submitted', submission: 'p' });
    expect(roles(ended.messages)).toBe('system user assistant tool exit');
    expect(ended.messages[3]?.content).toContain('kept');
    expect(environment.commands).toEqual(['a', 's']);
  });
  test('a timeout in the middle of a turn answers its own call, and the others still run', async () => {
    const { agent } = setUp(
      [
        calls(call('c1', { command: 'slow' }), call('c2', { command: 'b' })),
        calls(call('c3', { command: 's' })),
      ],
      [timedOut('part'), result('B'), submitted('p')],
      tools,
    );
    const { messages } = await agent.run('t');
    expect(messages.slice(3, 5).map((m) => [m.role, m.tool_call_id])).toEqual([
      ['tool', 'c1'],
      ['tool', 'c2'],
    ]);
    expect(messages[3]?.content).toContain('timed out');
  });
  test('no call at all: a message of the user says so [M-13, M-23]', async () => {
    const { agent } = setUp([reply('I think'), calls(call('c', { command: 's' }))], [submitted('p')], tools);
    const { messages } = await agent.run('t');
    expect(messages[3]).toMatchObject({
      role: 'user',
      content: expect.stringContaining('No tool calls found'),
    });
    expect(messages[2]).toMatchObject({ role: 'assistant', content: 'I think' });
  });
});

describe('who is told', () => {
  test('the record hears of messages, commands and steps as they happen [S-18]', async () => {
    const heard: string[] = [];
    const commands: CommandRecord[] = [];
    const { agent } = setUp(
      [bash('ls'), bash('s')],
      [result('o'), submitted('p')],
      {},
      {
        onMessage: (c, m, i) => heard.push(`${c.step}:${i}:${m.role}`),
        onCommand: (_c, record) => commands.push(record),
        onStep: (c) => heard.push(`step ${c.step}`),
      },
    );
    await agent.run('t');
    expect(heard).toEqual([
      '0:0:system',
      '0:1:user',
      'step 1',
      '1:2:assistant',
      '1:3:user',
      'step 2',
      '2:4:assistant',
      '2:5:exit',
    ]);
    expect(commands.map((c) => [c.step, c.index, c.command])).toEqual([
      [1, 0, 'ls'],
      [2, 0, 's'],
    ]);
  });
  test('with a record, the history in memory leaves out what the record has', async () => {
    const recorded: Message[] = [];
    const callbacks = { onMessage: (_c: unknown, m: Message) => recorded.push(m) };
    const { agent } = setUp([bash('ls'), bash('s')], [result('o'), submitted('p')], {}, callbacks);
    const { messages } = await agent.run('t');
    expect(recorded[3]?.extra?.raw_output).toBe('o');
    expect(recorded[2]?.extra).toHaveProperty('response');
    expect(messages.some((m) => 'raw_output' in (m.extra ?? {}) || 'response' in (m.extra ?? {}))).toBe(
      false,
    );
    expect(messages.map((m) => m.content)).toEqual(recorded.map((m) => m.content));
  });
  test('a record that cannot be written ends the attempt with that error [S-58]', async () => {
    const broken = new Error('disk full');
    const { agent } = setUp(
      [bash('ls')],
      [result('o')],
      {},
      {
        onCommand: () => {
          throw broken;
        },
      },
    );
    await expect(agent.run('t')).rejects.toBe(broken);
  });
  test('a display that fails is left out, once told to onDebug [S-56]', async () => {
    const debug: string[] = [];
    let steps = 0;
    const { agent } = setUp(
      [bash('ls'), bash('s')],
      [result('o'), submitted('p')],
      {},
      {
        onStep: () => {
          steps += 1;
          throw new Error('no terminal');
        },
        onDebug: (message) => debug.push(message),
      },
    );
    expect((await agent.run('t')).exitStatus).toBe('Submitted');
    expect(steps).toBe(1);
    expect(debug).toEqual(['onStep failed, going on without it']);
  });
});

test('the loop can be extended by overriding one of its parts [S-12]', async () => {
  class Shouting extends DefaultAgent {
    override renderTemplate(template: string, vars = {}): string {
      return super.renderTemplate(template, vars).toUpperCase();
    }
  }
  const { parts } = setUp([bash('s')], [submitted('p')]);
  expect((await new Shouting(parts).run('quiet')).messages[1]?.content).toBe('TASK: QUIET');
});

const frozen = <T extends object>(value: T): T => {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) frozen(inner);
  return Object.freeze(value);
};

test('a configuration that several agents share is not changed by them [M-48]', async () => {
  const shared = frozen(config({ step_limit: 9, expose_fields: ['repo'] }));
  const work = () =>
    createAgent({
      instanceId: 'i',
      model: fakeModel([reply('no block'), bash('ls'), bash('submit')]),
      environment: fakeEnvironment([result('a\n'), submitted('patch\n')]),
      config: shared,
    }).run('task', { repo: 'a/a' });
  const ended = await Promise.all([work(), work()]);
  expect(ended.map((e) => e.exitStatus)).toEqual(['Submitted', 'Submitted']);
});

test('what is kept of a malformed reply goes to JSON, with its response and its cost [M-27]', async () => {
  const { messages } = await createAgent({
    instanceId: 'i',
    model: fakeModel([reply('no block', { costNano: 5 }), bash('submit')]),
    environment: fakeEnvironment([submitted('p')]),
    config: config(),
  }).run('task');
  const written = JSON.parse(JSON.stringify(messages)) as { role: string; content: string; extra?: object }[];
  expect(written.map((m) => m.role).slice(0, 4)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(written[2]).toMatchObject({ content: 'no block' });
  expect(JSON.stringify(written[2]!.extra)).toMatch(/"cost[^"]*":/);
});
