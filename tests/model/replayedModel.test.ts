// A recorded run again: the same replies, failures, rows and costs, and a note where the environment answered differently.

import { describe, expect, test } from 'vitest';
import type { CallRecord, Message } from '../../src/model/model.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import {
  createReplayFactory,
  type Divergence,
  firstDifference,
  type RecordedReply,
} from '../../src/model/offline/replayed.ts';
import { ASK, autoClock, configOf, modelOf, recorder, wire } from './harness.ts';

const USAGE = { input: 10, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 };
const recorded = (
  content: string,
  more: Partial<Extract<RecordedReply, { message: Message }>> = {},
): RecordedReply => ({
  message: { role: 'assistant', content, extra: { cost: 1 } },
  finishReason: 'stop',
  modelId: 'gpt-4o-2024',
  usage: USAGE,
  costNano: 75_000,
  priceVersion: 'table@1',
  ...more,
});

/** One conversation whose replies are at hand. */
const createReplayModel = (
  replies: readonly RecordedReply[],
  options: Partial<Parameters<typeof createReplayFactory>[0]> = {},
) =>
  createReplayFactory({ name: 'replay', ...options, source: { repliesFor: async () => replies } }).create({
    instanceId: 'replay',
    epoch: 1,
  });

describe('replay', () => {
  test('gives the recorded replies with their recorded cost, which limits go by, and says that nothing was paid', async () => {
    const model = createReplayModel([recorded('one'), recorded('two', { costNano: null })]);
    const seen = recorder();
    expect(await model.query(ASK, seen)).toMatchObject({
      success: true,
      result: {
        content: 'one',
        message: { role: 'assistant', content: 'one' },
        usage: USAGE,
        costNano: 75_000,
        modelId: 'gpt-4o-2024',
      },
    });
    expect(await model.query(ASK, seen)).toMatchObject({ result: { content: 'two', costNano: null } });
    expect(seen.calls[0]).toMatchObject({
      state: 'ok',
      statusCode: null,
      costNano: 75_000,
      priceVersion: 'replayed: table@1',
      notes: ['replayed: nothing was paid'],
    });
  });

  test('a history that begins anew, as with the next step of a task, is compared from its beginning', async () => {
    const said = (content: string): Message => ({ role: 'user', content });
    const play = async (second: string, begins: boolean) => {
      const found: Divergence[] = [];
      const replies = [
        recorded('one', { observed: [said('first')] }),
        recorded('two', { observed: [said('second')], ...(begins && { begins }) }),
      ];
      const model = createReplayModel(replies, { onDivergence: (one) => void found.push(one) });
      await model.query([said('first')]);
      await model.query([said(second)]);
      return found.map(({ query, now }) => [query, now]);
    };
    expect(await play('second', true)).toEqual([]);
    expect(await play('other', true)).toEqual([[2, 'other']]);
    expect(await play('second', false)).toEqual([[2, null]]);
  });

  test('a recorded failure is that failure, after the tries that came before it, without their waits', async () => {
    await using wired = await wire({ replies: [{ status: 503, headers: { 'retry-after': '9' } }] });
    const original = recorder();
    const failure = await modelOf(wired).query(ASK, original);
    if (failure.success) throw new Error('expected a failure');

    const { clock, slept } = autoClock();
    const seen = recorder();
    const again = await createReplayModel([{ failure, failedTries: original.calls }], { clock }).query(
      ASK,
      seen,
    );
    expect(again).toEqual(failure);
    expect(slept).toEqual([]);
    const money = (calls: readonly CallRecord[]) =>
      calls.map((c) => [c.try, c.state, c.statusCode, c.costNano, c.errorCode]);
    expect(money(seen.calls)).toEqual(money(original.calls));
    expect(seen.began).toHaveLength(4);
  });

  test('the end of the recording is no reply, and says which instance', async () => {
    const model = createReplayModel([recorded('one')]);
    await model.query(ASK);
    const response = await model.query(ASK);
    expect(response).toMatchObject({ success: false, metadata: { kind: 'unavailable' } });
    expect(response.message).toContain('ends after 1 replies');
    expect((await createReplayModel([]).query(ASK)).message).toContain('holds no replies');
  });

  test('a tool call keeps its id, so that the answers still match', async () => {
    const call = { id: 'call_x', type: 'function', function: { name: 'bash', arguments: '{}' } } as const;
    const model = createReplayModel([
      recorded('', { message: { role: 'assistant', content: null, tool_calls: [call] } }),
    ]);
    expect(await model.query(ASK)).toMatchObject({ result: { toolCalls: [call] } });
  });
});

describe('divergence', () => {
  const says = (content: string): Message => ({ role: 'user', content });
  async function replayed(nowSecond: Message[]) {
    const found: Divergence[] = [];
    const model = createReplayModel(
      [recorded('one', { observed: [says('task')] }), recorded('two', { observed: [says('output 41')] })],
      { onDivergence: (divergence) => void found.push(divergence) },
    );
    await model.query([says('task')]);
    await model.query([says('task'), { role: 'assistant', content: 'one' }, ...nowSecond]);
    return found;
  }

  test('the same answers are no divergence', async () => {
    expect(await replayed([says('output 41')])).toEqual([]);
  });

  test('another answer is told with its query, its place, and where it differs', async () => {
    expect(await replayed([says('output 42')])).toEqual([
      {
        instanceId: 'replay',
        epoch: 1,
        query: 2,
        message: 2,
        recorded: 'output 41',
        now: 'output 42',
        difference: 'differs at character 8: recorded "output 41", now "output 42"',
      },
    ]);
  });

  test('a missing and an additional message are told too', async () => {
    expect(await replayed([])).toMatchObject([{ difference: 'the message is missing', now: null }]);
    expect(await replayed([says('output 41'), says('more')])).toMatchObject([
      { difference: 'the recording has no such message' },
    ]);
  });

  test('a long text is shown around the place that differs', () => {
    const text = 'x'.repeat(5000);
    expect(firstDifference(`${text}a`, `${text}b`).length).toBeLessThan(250);
  });
});

test('the factory needs a recording for replay:RUN, and asks it per instance and epoch', async () => {
  await expect(createModelFactory(configOf({ model_name: 'replay:r1' }), {})).rejects.toThrow(
    'no recorded run',
  );
  const asked: unknown[] = [];
  const factory = await createModelFactory(configOf({ model_name: 'replay:r1' }), {
    fetchReplay: async (run) => ({
      async repliesFor(instanceId, epoch) {
        asked.push([run, instanceId, epoch]);
        return [recorded('one'), recorded('two')];
      },
    }),
  });
  expect(factory).toMatchObject({ name: 'replay:r1', free: true });
  const model = factory.create({ instanceId: 'a__a-1', epoch: 2 });
  await model.query(ASK);
  await model.query(ASK);
  expect(asked).toEqual([['r1', 'a__a-1', 2]]);
});
