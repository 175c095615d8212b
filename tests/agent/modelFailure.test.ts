// When the model cannot answer: ModelFailed with code and metadata, onError for people, and money that is counted all the same.
import { describe, expect, test } from 'vitest';
import type { AgentErrorResponse } from '../../src/agent/errors.ts';
import { createAgent } from '../../src/agent/loop/agent.ts';
import type { CallRecord, ModelErrorResponse, QueryOptions } from '../../src/model/model.ts';
import { callRecord } from '../model/harness.ts';
import { bash, config, fakeEnvironment, fakeModel, reply, result, submitted } from './fakes.ts';

const failure: ModelErrorResponse = {
  success: false,
  error: 'RATE_LIMITED',
  message: 'rate limited (429) after 8 tries',
  metadata: { provider: 'p', statusCode: 429, retryAfter: 2, kind: 'unavailable' },
};
test('a failed query ends the attempt with the code, the message and the metadata, told once to onError [S-37]', async () => {
  const errors: AgentErrorResponse[] = [];
  const debug: unknown[] = [];
  const agent = createAgent({
    instanceId: 'i',
    model: fakeModel([bash('ls'), failure]),
    environment: fakeEnvironment([result('')]),
    config: config(),
    callbacks: { onError: (_c, e) => errors.push(e), onDebug: (_m, data) => debug.push(data) },
  });
  const ended = await agent.run('t');
  expect(ended).toMatchObject({
    exitStatus: 'ModelFailed',
    submission: '',
    error: { code: 'RATE_LIMITED', message: failure.message, metadata: failure.metadata },
  });
  expect(ended.messages.at(-1)).toMatchObject({
    role: 'exit',
    content: failure.message,
    extra: { exception_str: failure.message },
  });
  expect(errors).toEqual([
    { success: false, error: 'RATE_LIMITED', message: failure.message, metadata: failure.metadata },
  ]);
  expect(debug).toHaveLength(1);
});
test('the step limit is told as MAX_ITERATIONS_EXCEEDED [S-43]', async () => {
  const errors: string[] = [];
  const agent = createAgent({
    instanceId: 'i',
    model: fakeModel([bash('ls')]),
    environment: fakeEnvironment([result('')]),
    config: config({ step_limit: 1 }),
    callbacks: { onError: (_c, e) => errors.push(e.error) },
  });
  await agent.run('t');
  expect(errors).toEqual(['MAX_ITERATIONS_EXCEEDED']);
});

describe('the meter', () => {
  const agentFor = (records: Partial<CallRecord>[], estimate: number | null, limit: number) => {
    const model = fakeModel([
      async ({ options }: { options: QueryOptions }) => {
        for (const more of records) {
          void options.listener?.began({
            try: more.try ?? 0,
            modelAsked: 'm',
            startedAt: 0,
            estimateNano: estimate,
          });
          options.listener?.ended(callRecord(more));
        }
        // A reply's own figure must not be counted a second time.
        return bash('ls', { costNano: 9e9 });
      },
      bash('s'),
    ]);
    return createAgent({
      instanceId: 'i',
      model,
      environment: fakeEnvironment([result(''), submitted('p')]),
      config: config({ cost_limit: limit }),
    }).run('t');
  };
  test('failed tries that were billed count, and nothing counts twice [S-23]', async () => {
    const ended = await agentFor(
      [
        { try: 0, state: 'failed', costNano: 4e8 },
        { try: 1, costNano: 5e8 },
      ],
      null,
      0,
    );
    expect(ended.costNano).toBe(9e8);
  });
  test('an unknown cost is unknown in the result, and limits use the estimate', async () => {
    expect((await agentFor([{ costNano: null }], 2e9, 0)).costNano).toBeNull();
    expect(await agentFor([{ costNano: null }], 2e9, 1)).toMatchObject({ limit: 'cost', costNano: null });
    expect(await agentFor([{ costNano: null }], null, 1)).toMatchObject({ exitStatus: 'Submitted' });
  });
});

test('in compat, a reply without text is malformed as it was there, and not asked for again', async () => {
  const empty: ModelErrorResponse = {
    success: false,
    error: 'INVALID_RESPONSE',
    message: 'empty',
    metadata: { kind: 'empty' },
  };
  const model = fakeModel([empty, reply(''), bash('s')]);
  const agent = createAgent({
    instanceId: 'i',
    model,
    environment: fakeEnvironment([submitted('p')]),
    config: config({ compat: 'mini-swe-agent-1', format_error_template: 'found {{ actions | length }}' }),
  });
  const ended = await agent.run('t');
  expect(ended.messages.map((m) => m.content)).toEqual([
    'system',
    'task: t',
    '',
    'found 0',
    '',
    'found 0',
    expect.anything(),
    'p',
  ]);
});
