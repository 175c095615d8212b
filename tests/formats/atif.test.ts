// Attempts as ATIF: what the format's reference models (harbor, from PyPI) accept and read back, and where each message goes.
import { beforeAll, describe, expect, test } from 'vitest';
import { type AtifCall, type AtifSource, atifOf } from '../../src/formats/atif/writeAtif.ts';
import { trajectoryOf } from '../../src/formats/miniSweAgent/writeTrajectory.ts';
import type { ThreadCall } from '../../src/formats/trajectory.ts';
import { type HarborModels, harborModels } from '../support/python/harborModels.ts';

type Json = Record<string, unknown>;
interface Step extends Json {
  readonly source: string;
  readonly message: string;
  readonly metrics?: Json;
  readonly tool_calls?: Json[];
  readonly observation?: { readonly results: Json[] };
}
interface Document extends Json {
  readonly steps: Step[];
  readonly final_metrics: Json;
  readonly subagent_trajectories?: Document[];
}

const call = (step: number, more: Partial<AtifCall> = {}): AtifCall => ({
  ...{ step, call: null, state: 'ok', model_answered: 'm-2026', reasoning_tokens: 3, cost_nano: 1_000_000 },
  ...{ input_tokens: 100, cache_read_tokens: 20, cache_write_tokens: 5, output_tokens: 10, ...more },
});

const source = (messages: readonly Json[], more: Partial<AtifSource> = {}): AtifSource => ({
  ...{ number: 1, final: true, run: 'r', arm: 'main', instanceId: 'a__a-1', epoch: 1 },
  ...{ startedAt: '2026-01-02T03:04:05.000Z', endedAt: null, exitReason: 'submitted', exitClass: 'agent' },
  ...{
    exitStatus: 'Submitted',
    errorMessage: null,
    submission: null,
    steps: 2,
    costNano: 1,
    unknownCalls: 0,
  },
  config: { agent: { agent_class: 'default' }, model: { model_name: 'm' } },
  commands: [],
  messages: messages.map((message, seq) => ({
    ...{ seq, role: String(message.role), data: JSON.stringify(message) },
    created_at: '2026-01-02T03:04:06.000Z',
  })),
  ...{ calls: [], programCalls: [], ...more },
});

const uses = (id: string, name: string, args: string): Json => ({
  ...{ role: 'assistant', content: null },
  tool_calls: [{ id, type: 'function', function: { name, arguments: args } }],
});
const tool = (id: string, content: unknown): Json => ({ role: 'tool', tool_call_id: id, content });

/** Text actions, as the built-in agent has them; the second answer came at the second try. */
const builtIn = source(
  [
    { role: 'system', content: 'You are helpful.' },
    { role: 'user', content: 'Fix it.' },
    {
      role: 'assistant',
      content: '```bash\nls\n```',
      reasoning_content: 'I look first',
      extra: { timestamp: 1e9 },
    },
    { role: 'user', content: 'a b', extra: { returncode: 0 } },
    { role: 'assistant', content: 'no action' },
    { role: 'user', content: 'Please always give one action.' },
    { role: 'exit', content: 'diff', extra: {} },
  ],
  {
    calls: [call(1), call(2, { state: 'failed', cost_nano: null, input_tokens: null }), call(2)],
    commands: [{ message_seq: 3, output: Buffer.from('a b'), exit_code: 0, omitted_bytes: 0 }],
  },
);

const thread = (
  at: number,
  name: string,
  first: number,
  reply: number | null,
  label: string | null,
): ThreadCall => ({
  ...{ call: at, thread: name, first_message: first, reply_message: reply, label },
});
/** A title, a sub-agent that a tool starts, counted tokens, and a history that was rewritten. */
const program = source(
  [
    { role: 'user', content: 'Name this.' },
    { role: 'assistant', content: 'A name' },
    { role: 'system', content: 'You are an agent.' },
    { role: 'user', content: [{ type: 'text', text: 'Fix it.' }, { type: 'image_url' }] },
    uses('t1', 'task', '{"prompt":"look"}'),
    { role: 'user', content: 'look' },
    uses('s1', 'bash', 'no JSON'),
    tool('s1', 'found'),
    { role: 'assistant', content: 'It is in a.py.' },
    tool('t1', 'It is in a.py.'),
    tool('lost', 'nobody asked'),
    { role: 'assistant', content: 'said before' },
    { role: 'assistant', content: 'Done \ud800.' },
    { role: 'exit', content: '' },
  ],
  {
    config: { agent: { agent_class: 'claude-code@2.1.330' }, model: { model_name: 'anthropic/c' } },
    calls: [0, 1, 2, 3, 4, 5].map((at) => call(1, { call: at, cost_nano: at === 4 ? 0 : 1_000_000 })),
    programCalls: [
      thread(0, 'title', 0, 1, 'title'),
      thread(1, 'main', 2, 4, null),
      thread(2, 'sub-7', 5, 6, 'subagent:sub-7'),
      thread(4, 'count_tokens', 7, null, 'count_tokens'),
      thread(3, 'sub-7', 7, 8, 'subagent:sub-7'),
      thread(5, 'main', 9, 12, null),
    ],
  },
);
const silent = source([], { exitReason: 'env_died', exitStatus: null });

const documentOf = (from: AtifSource): Document => atifOf(from, '1.2.3') as Document;
const shape = ({ steps }: Document) =>
  steps.map(({ source: from, message, observation }) => [
    from,
    message,
    ...(observation?.results.map(({ content }) => content) ?? []),
  ]);

describe('an attempt of the built-in agent', () => {
  const document = documentOf(builtIn);

  test('has its outputs with the steps that asked for them, and its tries in their metrics', () => {
    expect(shape(document)).toEqual([
      ['system', 'You are helpful.'],
      ['user', 'Fix it.'],
      ['agent', '```bash\nls\n```', 'a b'],
      ['agent', 'no action'],
      ['user', 'Please always give one action.'],
    ]);
    expect(document.steps[2]).toMatchObject({
      ...{ timestamp: '2001-09-09T01:46:40.000Z', reasoning_content: 'I look first', model_name: 'm-2026' },
      metrics: { prompt_tokens: 125, completion_tokens: 10, cached_tokens: 20, cost_usd: 0.001 },
    });
    expect(document.steps[3]!.metrics!.extra).toMatchObject({ tries: 2, cost_is_lower_bound: true });
    expect(document).toMatchObject({
      ...{ schema_version: 'ATIF-v1.8', session_id: 'r/main/a__a-1/1/1' },
      agent: { name: 'swebatch', version: '1.2.3', model_name: 'm' },
      final_metrics: { total_steps: 5, total_completion_tokens: 30, total_cost_usd: 0.002 },
      extra: { instance_id: 'a__a-1', exit_reason: 'submitted' },
    });
    expect(document).not.toHaveProperty('subagent_trajectories');
  });
});

describe('an attempt of a program', () => {
  const document = documentOf(program);

  test('has its own conversation, and those of titles and sub-agents beside it', () => {
    expect(document.agent).toMatchObject({ name: 'claude-code', version: '2.1.330' });
    expect(shape(document)).toEqual([
      ['system', 'You are an agent.'],
      ['user', 'Fix it.\n[image_url]'],
      ['agent', '', 'It is in a.py.', 'nobody asked'],
      ['agent', 'said before'],
      ['agent', 'Done \ufffd.'],
    ]);
    expect(document.steps[3]).toMatchObject({ is_copied_context: true });
    expect(document.steps[3]).not.toHaveProperty('metrics');
    const subs = document.subagent_trajectories!;
    expect(subs.map((sub) => [sub.trajectory_id, ...shape(sub)])).toEqual([
      ['title', ['user', 'Name this.'], ['agent', 'A name']],
      ['sub-7', ['user', 'look'], ['agent', '', 'found'], ['agent', 'It is in a.py.']],
    ]);
    expect(subs[1]!.steps[1]!.tool_calls).toEqual([
      { tool_call_id: 's1', function_name: 'bash', arguments: { text: 'no JSON' } },
    ]);
    expect(subs.map(({ final_metrics }) => final_metrics.total_cost_usd)).toEqual([0.001, 0.002]);
    expect(document.final_metrics.total_cost_usd).toBe(0.005);
    expect(document.extra).toMatchObject({ count_tokens_calls: 1 });
  });

  test('refers to the sub-agent from the tool that started it', () => {
    const [first, second] = document.steps[2]!.observation!.results;
    expect(second).toMatchObject({ subagent_trajectory_ref: [{ trajectory_id: 'sub-7' }] });
    expect(first).toMatchObject({ source_call_id: 't1' });
    expect(second).not.toHaveProperty('source_call_id');
  });

  test('has the same conversations in our own format', async () => {
    const ours = (await trajectoryOf(program)) as { messages: Json[]; sub_trajectories: Json[] };
    expect(ours.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'assistant',
      'assistant',
      'exit',
    ]);
    expect(ours.sub_trajectories).toMatchObject([
      { id: 'title', label: 'title', model_calls: 1, messages: [{ role: 'user' }, { role: 'assistant' }] },
      { id: 'sub-7', model_calls: 2, messages: { length: 4 } },
      { id: 'count_tokens', model_calls: 1, messages: [] },
    ]);
    expect(await trajectoryOf(builtIn)).not.toHaveProperty('sub_trajectories');
  });
});

/** Two runs of the agent, each with a history of its own. */
const stepped = source(
  ['first', 'second'].flatMap((task_step) => [
    { role: 'system', content: 'You are helpful.', extra: { task_step } },
    { role: 'user', content: `Do the ${task_step} part.`, extra: { task_step } },
    { role: 'assistant', content: '```bash\nls\n```', extra: { task_step } },
    { role: 'exit', content: 'diff', extra: { task_step } },
  ]),
  { calls: [call(1), call(2)] },
);

test('an attempt at a task of several steps is one document, which says where each step of it belongs', () => {
  const { steps } = documentOf(stepped);
  expect(steps.map(({ source: from, extra }) => [from, extra])).toEqual(
    ['first', 'second'].flatMap((task_step) =>
      ['system', 'user', 'agent'].map((from) => [from, { task_step }]),
    ),
  );
});

test('an attempt in which nothing was said is a document with one step that says so', () => {
  expect(shape(documentOf(silent))).toEqual([['system', 'Nothing was said: env_died.']]);
});

describe('the reference models of harbor', () => {
  let models: HarborModels | string;
  beforeAll(async () => {
    models = await harborModels();
  });

  test('read every document as it is, and refuse what breaks the format', (context) => {
    if (typeof models === 'string') {
      // Where nothing may be skipped, PyPI is reached.
      expect(process.env.SWEBATCH_REQUIRE_DOCKER, models).toBeUndefined();
      return context.skip(models);
    }
    const documents = [builtIn, program, silent, stepped].map(documentOf);
    const wrong = { ...documents[0], steps: documents[0]!.steps.slice(1) };
    const judged = models.judge([...documents, wrong]);
    expect(judged.map(({ error }) => error?.split('\n')[1]?.trim() ?? null)).toEqual([
      ...[null, null, null, null],
      expect.stringMatching(/step_id: expected 1 /),
    ]);
    expect(judged.slice(0, 4).map(({ kept }) => kept)).toEqual(documents);
  });
});
