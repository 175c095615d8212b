// Trajectories in format 1.1, made by our own agent in each of its three forms, replay equal: also without the raw outputs.
import { describe, expect, test } from 'vitest';
import type { AgentConfig } from '../../../src/agent/agentConfig.ts';
import { createAgent } from '../../../src/agent/loop/agent.ts';
import { replayTrajectory } from '../../../src/agent/replay/playTrajectory.ts';
import type { ModelReply } from '../../../src/model/model.ts';
import { dollarsToNano } from '../../../src/money.ts';
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
} from '../fakes.ts';

/** A reply as a chat completion would have brought it. */
function billed(given: ModelReply, dollars: number): ModelReply {
  const { extra: _, ...message } = given.message;
  const raw = {
    choices: [{ message, finish_reason: given.finishReason }],
    usage: { cost: dollars },
    created: 1,
  };
  return { ...given, raw, costNano: dollarsToNano(dollars) };
}

async function record(more: Partial<AgentConfig>, replies: ModelReply[], outcomes: Outcome[]) {
  const settings = config({
    observation_template:
      '<rc>{{ output.returncode }}</rc>{% if output.exception_info is defined and output.exception_info %}!{{ output.exception_info }}{% endif %}\n{% if output.output | length < 10000 %}{{ output.output }}{% else %}{{ output.output[:5000] }}[{{ output.output | length - 10000 }}]{{ output.output[-5000:] }}{% endif %}',
    ...more,
  });
  const agent = createAgent({
    instanceId: 'a__a-1',
    model: fakeModel(replies.map((r) => billed(r, 0.125))),
    environment: fakeEnvironment(outcomes),
    config: settings,
  });
  const ended = await agent.run('the task\nwith {{ braces }}');
  return {
    trajectory_format: 'mini-swe-agent-1.1',
    instance_id: 'a__a-1',
    info: {
      exit_status: ended.exitStatus,
      submission: ended.submission,
      model_stats: { instance_cost: replies.length * 0.125, api_calls: replies.length },
      mini_version: '2.4.6',
      config: { agent: settings, model: {}, environment: { cwd: '/testbed', timeout: 60 } },
    },
    messages: JSON.parse(JSON.stringify(ended.messages)),
  };
}
type Recorded = Awaited<ReturnType<typeof record>>;

/** As programbench saves them: without the raw outputs. */
const stripped = (given: Recorded): Recorded => ({
  ...given,
  messages: given.messages.map((m: { extra?: Record<string, unknown> }) => {
    const { raw_output: _, ...extra } = m.extra ?? {};
    return { ...m, extra };
  }),
});

const blocks = () => [bash('ls'), reply('no block'), bash('big'), bash('s')];
const tools = () => [
  calls(call('a', { command: 'ls' }), call('b', { command: 'pwd' })),
  reply('no call'),
  calls(call('c', { command: 'big' })),
  calls(call('d', { command: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' })),
];
const big = () => result(`${'h'.repeat(6000)}middle${'t'.repeat(6000)}`, { exitCode: 1 });

describe.each<[string, Partial<AgentConfig>, () => ModelReply[], Outcome[]]>([
  ['ours, bash-block', {}, blocks, [result('a\n'), big(), submitted('p\n')]],
  [
    'ours, tool-call',
    { protocol: 'tool-call' },
    tools,
    [result('a\n'), result('b'), big(), submitted('p\n')],
  ],
  ['compat 1', { compat: 'mini-swe-agent-1' }, blocks, [result('a\n'), big(), submitted('p\n')]],
  ['compat 2, text', { compat: 'mini-swe-agent-2' }, blocks, [result('a\n'), big(), submitted('p\n')]],
  [
    'compat 2, tools',
    { compat: 'mini-swe-agent-2', protocol: 'tool-call' },
    tools,
    [result('a\n'), result('b'), big(), submitted('p\n')],
  ],
])('%s', (_name, more, replies, outcomes) => {
  test('replays equal', async () => {
    const replayed = await replayTrajectory(await record(more, replies(), outcomes));
    expect(replayed.differences).toEqual([]);
    expect(replayed.messages.total).toBeGreaterThan(7);
    expect(replayed.elided).toEqual([]);
  });
  test('also without raw outputs, saying what was elided', async () => {
    const replayed = await replayTrajectory(stripped(await record(more, replies(), outcomes)));
    expect(replayed.differences).toEqual([]);
    expect(replayed.elided.map((e) => e.characters)).toEqual([2006]);
  });
  test('a changed template is seen', async () => {
    const given = stripped(await record(more, replies(), outcomes));
    const agent = { ...given.info.config.agent, observation_template: 'other {{ output.output }}' };
    const replayed = await replayTrajectory({
      ...given,
      info: { ...given.info, config: { ...given.info.config, agent } },
    });
    expect(replayed.messages.equal).toBeLessThan(replayed.messages.total);
  });
});

test('limits, timeouts and format errors end a replay as they ended the recording', async () => {
  const bad = () => reply('no');
  for (const [more, replies, outcomes, status] of [
    [{ step_limit: 2 }, [bash('a'), bash('b')], [timedOut('part'), result('')], 'LimitsExceeded'],
    [{}, [bad(), bad(), bad()], [], 'RepeatedFormatError'],
    [{ cost_limit: 0.2 }, [bash('a'), bash('b')], [result(''), result('')], 'LimitsExceeded'],
  ] as [Partial<AgentConfig>, ModelReply[], Outcome[], string][]) {
    const given = await record(more, replies, outcomes);
    expect(given.info.exit_status).toBe(status);
    expect((await replayTrajectory(given)).differences).toEqual([]);
  }
});

test('the wall-clock limit ends a replay where it ended the recording: between steps, or in the middle of a command', async () => {
  const within = await record(
    { wall_time_limit_seconds: 5 },
    [bash('a'), bash('b'), bash('s')],
    [result('x'), result('y'), submitted('p')],
  );
  const last = { role: 'exit', content: 'the limit of 5 seconds was reached', extra: {} };
  const cutAt = (count: number) => ({
    ...within,
    info: {
      ...within.info,
      exit_status: 'TimeExceeded',
      submission: '',
      model_stats: { instance_cost: 0.25, api_calls: 2 },
    },
    messages: [...within.messages.slice(0, count), last],
  });
  expect(within.messages.map((m: { role: string }) => m.role).slice(0, 6)).toEqual([
    'system',
    'user',
    'assistant',
    'user',
    'assistant',
    'user',
  ]);
  for (const count of [6, 5]) expect((await replayTrajectory(cutAt(count))).differences).toEqual([]);
});

test('long output of a command that was killed is read back from its head and tail', async () => {
  const long = `${'h'.repeat(6000)}middle${'t'.repeat(6000)}`;
  const given = await record(
    { compat: 'mini-swe-agent-1' },
    [bash('a'), bash('s')],
    [timedOut(long), submitted('p\n')],
  );
  const replayed = await replayTrajectory(stripped(given));
  expect(replayed.differences).toEqual([]);
  expect(replayed.elided).toEqual([{ message: 3, characters: 2006 }]);
});

test('commands can run for real instead; then their outputs are compared with the recorded ones', async () => {
  const given = await record({}, blocks(), [result('a\n'), big(), submitted('p\n')]);
  const same = fakeEnvironment([result('a\n'), big(), submitted('p\n')]);
  expect((await replayTrajectory(given, { environment: same })).differences).toEqual([]);
  expect(same.commands).toEqual(['ls', 'big', 's']);
  const other = fakeEnvironment([result('changed\n'), big(), submitted('p\n')]);
  expect((await replayTrajectory(given, { environment: other })).differences.map((d) => d.where)).toEqual([
    3,
  ]);
});

test('an end from outside the agent is played up to where it happened', async () => {
  const given = await record({ step_limit: 2 }, [bash('a'), bash('b')], [result(''), result('x')]);
  given.info.exit_status = 'CalledProcessError';
  expect(await replayTrajectory(given)).toMatchObject({ exit_status_equal: false });
  const cut = { ...given, messages: given.messages.filter((m: { role: string }) => m.role !== 'exit') };
  cut.info.config.agent = { ...cut.info.config.agent, step_limit: 0 };
  expect((await replayTrajectory(cut)).differences).toEqual([]);
});

test('an observation that cannot be read back is told, and the rest is played', async () => {
  // The built-in template of version 1 prints a Python dict.
  const given = await record(
    { compat: 'mini-swe-agent-1', observation_template: 'Observation: {{output}}' },
    blocks(),
    [result('a\n'), big(), submitted('p\n')],
  );
  const replayed = await replayTrajectory(stripped(given));
  expect(replayed.differences.length).toBeGreaterThan(0);
});

test('what is no trajectory is refused', async () => {
  await expect(replayTrajectory({ trajectory_format: 'other' })).rejects.toThrow();
  const given = await record({ step_limit: 1 }, [bash('a')], [result('')]);
  await expect(replayTrajectory({ ...given, messages: [] })).rejects.toThrow(
    'a__a-1: the trajectory has no messages',
  );
});
