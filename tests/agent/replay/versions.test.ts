// Recordings of version 2 as its releases wrote them: what an older one did otherwise, what one kept and another did not, and what no replay
// can know. The shapes are those of the real agents, run at their tags over scripted replies.
import { describe, expect, test } from 'vitest';
import { replayTrajectory } from '../../../src/agent/replay/playTrajectory.ts';
import { UnplayableRecording } from '../../../src/agent/replay/readRecording.ts';

const OBSERVATION =
  '{% if output.exception_info %}<exception>{{ output.exception_info }}</exception>\n{% endif %}<returncode>{{ output.returncode }}</returncode>\n<output>\n{{ output.output }}</output>';
const NO_CALLS = 'No tool calls found in the response. Every response MUST include at least one tool call.';

interface Turn {
  role: string;
  content: string | null;
  [key: string]: unknown;
}

const body = (message: Record<string, unknown>, finish = 'tool_calls') => ({
  id: 'r',
  created: 1763500000,
  model: 'm',
  object: 'chat.completion',
  choices: [{ index: 0, finish_reason: finish, message: { role: 'assistant', ...message } }],
  usage: { prompt_tokens: 10, completion_tokens: 5 },
});
const toolCall = (id: string, args: unknown, name = 'bash') => ({
  id,
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
});

/** A turn as 2.x keeps it: the message of the response, beside it the response itself. */
const asks = (...calls: ReturnType<typeof toolCall>[]): Turn => {
  const message = { content: null, tool_calls: calls };
  return { role: 'assistant', ...message, extra: { response: body(message), cost: 0.125 } };
};
const answers = (id: string, content: string, extra: Record<string, unknown>): Turn => ({
  content,
  tool_call_id: id,
  role: 'tool',
  extra: { exception_info: '', ...extra },
});
const submits = (): Turn[] => [
  asks(toolCall('s', { command: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt' })),
  { role: 'exit', content: 'p\n', extra: { exit_status: 'Submitted', submission: 'p\n' } },
];

function recording(
  version: string,
  turns: Turn[],
  more: { agent?: object; cost?: number; calls?: number } = {},
) {
  return {
    info: {
      model_stats: { instance_cost: more.cost ?? 0.25, api_calls: more.calls ?? 2 },
      config: {
        agent: {
          system_template: 'system',
          instance_template: 'task: {{ task }}',
          step_limit: 250,
          cost_limit: 3,
          ...more.agent,
        },
        model: {
          model_name: 'm',
          observation_template: OBSERVATION,
          format_error_template: 'Tool call error:\n{{ error }}\nTry again.',
        },
        model_type: 'minisweagent.models.litellm_model.LitellmModel',
        environment: {
          cwd: '/testbed',
          timeout: 60,
          env: { PAGER: 'cat' },
          interpreter: ['bash', '-c'],
          executable: 'docker',
        },
      },
      mini_version: version,
      exit_status: turns.at(-1)!.extra && (turns.at(-1)!.extra as { exit_status: string }).exit_status,
      submission: (turns.at(-1)!.extra as { submission: string }).submission,
    },
    messages: [{ role: 'system', content: 'system' }, { role: 'user', content: 'task: fix it' }, ...turns],
    trajectory_format: 'mini-swe-agent-1.1',
    instance_id: 'a__a-1',
  };
}

const failed = (text: string, type: string, id = 'a') => {
  const info = `An error occurred while executing the command: ${text}`;
  return answers(id, `<exception>${info}</exception>\n<returncode>-1</returncode>\n<output>\npart</output>`, {
    raw_output: 'part',
    returncode: -1,
    exception_info: info,
    exception_type: type,
    exception: text,
  });
};

describe('what Python said about a command is in the recording, not in this replay', () => {
  test.each([
    [
      'a timeout, with the container that it ran in',
      "Command '['docker', 'exec', '-w', '/testbed', '-e', 'PAGER=cat', '0123456789abcdef', 'bash', '-c', 'sleep 99']' timed out after 60 seconds",
      'TimeoutExpired',
    ],
    [
      'a timeout of another engine',
      "Command '['podman', 'exec', '-w', '/testbed', 'f00', 'bash', '-c', 'sleep 99']' timed out after 60 seconds",
      'TimeoutExpired',
    ],
    ['an argument that is too long', "[Errno 7] Argument list too long: 'docker'", 'OSError'],
    ['text that is no UTF-8', "'utf-8' codec can't encode character '\\ud800'", 'UnicodeEncodeError'],
  ])('%s', async (_name, text, type) => {
    const given = recording('2.4.6', [
      asks(toolCall('a', { command: 'sleep 99' })),
      failed(text, type),
      ...submits(),
    ]);
    expect((await replayTrajectory(given)).differences).toEqual([]);
  });
});

const formatError = (error: string, extra: Record<string, unknown> = {}): Turn => ({
  role: 'user',
  content: `Tool call error:\n${error}\nTry again.`,
  extra: { interrupt_type: 'FormatError', ...extra },
});

describe('malformed replies', () => {
  const malformed = body({ content: 'no call' }, 'stop');
  test('since 2.4.6 they are counted', async () => {
    const given = recording(
      '2.4.6',
      [formatError(NO_CALLS, { response: malformed, cost: 0.125 }), ...submits()],
      { agent: { max_consecutive_format_errors: 3 } },
    );
    expect(await replayTrajectory(given)).toMatchObject({ differences: [], standIns: [] });
  });
  test('before, they were kept and not counted', async () => {
    const given = recording('2.4.0', [formatError(NO_CALLS, { response: malformed }), ...submits()], {
      agent: { max_consecutive_format_errors: 3 },
      cost: 0.125,
    });
    expect(await replayTrajectory(given)).toMatchObject({ differences: [], cost_equal: true });
  });
  test('before 2.3.1 they were not kept: one that earns the same answer stands in, and the result says so', async () => {
    const given = recording(
      '2.0.0',
      [
        formatError(NO_CALLS),
        formatError("Unknown tool 'python'."),
        formatError("Unknown tool 'py'.Missing 'command' argument in bash tool call."),
        formatError("Missing 'command' argument in bash tool call."),
        ...submits(),
      ],
      { cost: 0.125, calls: 5 },
    );
    expect(await replayTrajectory(given)).toMatchObject({ differences: [], standIns: [2, 3, 4, 5] });
  });
  test('before 2.4.0 there was no cap on them', async () => {
    const four = Array.from({ length: 4 }, () => formatError(NO_CALLS, { response: malformed }));
    const given = recording('2.3.1', [...four, ...submits()], { cost: 0.125, calls: 5 });
    expect((await replayTrajectory(given)).differences).toEqual([]);
    const capped = recording('2.4.0', [...four, ...submits()], {
      agent: { max_consecutive_format_errors: 3 },
      cost: 0.125,
    });
    expect((await replayTrajectory(capped)).differences).not.toEqual([]);
  });
});

describe('a changed byte is seen', () => {
  const turns = (): Turn[] => [
    asks(toolCall('a', { command: 'ls' })),
    answers('a', '<returncode>0</returncode>\n<output>\nx</output>', { raw_output: 'x', returncode: 0 }),
    ...submits(),
  ];
  test('of nothing', async () => {
    expect((await replayTrajectory(recording('2.4.6', turns()))).differences).toEqual([]);
  });
  test.each<[string, (t: ReturnType<typeof recording>) => void]>([
    ['in a reply’s text', (t) => (t.messages[2]!.content = 'thinking')],
    [
      'in a reply’s command',
      (t) => ((t.messages[2] as Turn).tool_calls = [toolCall('a', { command: 'lS' })]),
    ],
    [
      'in what the provider sent',
      (t) => {
        const extra = (t.messages[2] as unknown as { extra: { response: ReturnType<typeof body> } }).extra;
        extra.response = body({ content: null, tool_calls: [toolCall('a', { command: 'lS' })] });
      },
    ],
    [
      'in an observation',
      (t) => (t.messages[3]!.content = '<returncode>0</returncode>\n<output>\ny</output>'),
    ],
    ['in the exit status', (t) => (t.info.exit_status = 'Submittee')],
    ['in the submission', (t) => (t.info.submission = 'P\n')],
    ['in the cost', (t) => (t.info.model_stats.instance_cost += 2e-9)],
  ])('%s', async (_name, change) => {
    const given = recording('2.4.6', turns());
    change(given);
    expect((await replayTrajectory(given)).differences).not.toEqual([]);
  });
});

describe('ends from outside', () => {
  test('a command that never came back has no observation to compare', async () => {
    const given = recording(
      '2.4.6',
      [
        asks(toolCall('a', { command: 'ls' })),
        { role: 'exit', content: 'gone', extra: { exit_status: 'CalledProcessError', submission: '' } },
      ],
      { cost: 0.125, calls: 1 },
    );
    expect(await replayTrajectory(given)).toMatchObject({
      differences: [],
      messages: { equal: 3, total: 3 },
    });
  });
  test('version 1 wrote the text of the exception as the submission', async () => {
    const given = recording('1.17.5', [
      { role: 'assistant', content: 'x', extra: { exit_status: 'RetryError', submission: 'RetryError[x]' } },
    ]);
    const first = { ...given, trajectory_format: 'mini-swe-agent-1' };
    Object.assign(first.info.config.agent, { format_error_template: 'bad' });
    first.info.model_stats.instance_cost = null as unknown as number;
    first.messages.push({ role: 'user', content: 'bad' });
    expect(await replayTrajectory(first)).toMatchObject({ differences: [], submission_equal: true });
  });
});

describe('the response classes, which keep the response as the message itself', () => {
  const item = (id: string, command: string, more: object = {}) => ({
    ...{ object: 'response', id: 'resp_1', status: 'completed', model: 'm', ...more },
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'function_call', call_id: id, name: 'bash', arguments: JSON.stringify({ command }) },
    ],
    usage: { input_tokens: 10, output_tokens: 5 },
  });
  const conversation = (output = 'a\n') => {
    const { object: _, ...words } = { ...item('x', ''), output: [] };
    const dropped = { object: 'response', ...words };
    return recording(
      '2.4.6',
      [
        { ...item('c1', 'ls'), extra: { actions: [], cost: 0.125 } },
        {
          type: 'function_call_output',
          call_id: 'c1',
          output: `<returncode>0</returncode>\n<output>\n${output}</output>`,
          extra: { raw_output: 'a\n', returncode: 0, exception_info: '' },
        },
        {
          type: 'message',
          role: 'user',
          content: [{ type: 'input_text', text: `Tool call error:\n${NO_CALLS}\nTry again.` }],
          extra: { interrupt_type: 'FormatError', cost: 0.125, response: dropped },
        },
        {
          ...item('c2', 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt'),
          extra: { cost: 0.125 },
        },
        { role: 'exit', content: 'p\n', extra: { exit_status: 'Submitted', submission: 'p\n' } },
      ] as unknown as Turn[],
      { cost: 0.375, calls: 3 },
    );
  };
  test('are played', async () => {
    expect(await replayTrajectory(conversation())).toMatchObject({
      differences: [],
      messages: { equal: 7, total: 7 },
      standIns: [],
    });
  });
  test('and what was changed since is seen', async () => {
    const { differences } = await replayTrajectory(conversation('b\n'));
    expect(differences).toMatchObject([{ where: 3 }]);
  });
});

test('a recording without messages cannot be played, in words', async () => {
  const given = { ...recording('2.4.6', submits()), messages: [] };
  await expect(replayTrajectory(given)).rejects.toThrow(UnplayableRecording);
  await expect(replayTrajectory(given)).rejects.toThrow('has no messages');
});
test('a recording without its configuration cannot be played', async () => {
  const given = recording('2.4.6', submits());
  const bare = { ...given, info: { ...given.info, config: {} } };
  await expect(replayTrajectory(bare)).rejects.toThrow('does not hold the configuration');
});
