// An attempt at a task of several steps, with an environment and an agent that do what the test says.
import { describe, expect, test } from 'vitest';
import { type AgentConfig, agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult } from '../../../src/agent/contract.ts';
import { textResult } from '../../../src/agent/loop/protocol.ts';
import { completeEnvironment } from '../../../src/environment/capabilities.ts';
import { type Environment, EnvironmentError } from '../../../src/environment/environment.ts';
import { ledAttempt } from '../../../src/run/attempt/suiteAttempt.ts';
import { createRecorder } from '../../../src/run/record/attemptJournal.ts';
import * as trials from '../../../src/store/records/trials.ts';
import {
  type KeptStep,
  keptSteps,
  type StepVerification,
  type TaskStep,
  workThroughSteps,
} from '../../../src/suites/harbor/steps.ts';
import type { OpenAttempt } from '../../../src/suites/suite.ts';
import { openedRun } from '../../run/openedRun.ts';
import { freshStore, planted } from '../../store/storeFixtures.ts';

interface Played {
  readonly config?: Partial<AgentConfig>;
  /** What the agent does with a step, by its name. */
  readonly agent?: (
    step: string,
    callbacks: AgentCallbacks,
    config: AgentConfig,
  ) => Partial<AgentResult> | Promise<Partial<AgentResult>>;
  readonly gates?: Readonly<Record<string, StepVerification>>;
  readonly steps?: readonly Partial<TaskStep>[];
  /** Exit code of a command. */
  readonly runs?: (command: string) => number;
  readonly keepWork?: () => Promise<string>;
}

const UNKNOWN = {
  ...{
    startedAt: 0,
    statusCode: 200,
    errorCode: null,
    errorMessage: null,
    modelAsked: 'm',
    modelAnswered: 'm',
  },
  ...{ responseId: null, fingerprint: null, finishReason: 'stop', rawUsage: null, priceVersion: null },
  ...{ providerCostNano: null, requestBytes: 1 },
};

const NAMES = ['one', 'two', 'three'];

async function play({
  config = {},
  agent = () => ({}),
  gates = {},
  steps = [],
  runs = () => 0,
  keepWork,
}: Played) {
  const events: string[] = [];
  const notes: string[] = [];
  let kept: readonly KeptStep[] = [];
  let images = 0;
  let now = 0;
  const environment = completeEnvironment({
    execute: async (command: string) => {
      if (command !== 'pwd') events.push(command);
      return textResult(command === 'pwd' ? '/work\n' : 'said', command === 'pwd' ? 0 : runs(command));
    },
    putFiles: async (files: readonly { path: string }[]) =>
      void events.push(...files.map(({ path }) => path)),
    keepWork: keepWork ?? (async () => `image:${++images}`),
  } as unknown as Environment);
  const seen: string[] = [];
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trials.trialsOf(store, run.id);
  trials.leaseTrial(store, trial!.id, 'me', 1);
  const { id } = trials.beginAttempt(store, trial!.id, { startedAt: 'now', slot: 1, config: '{}' });
  const recorder = createRecorder(openedRun({ store, row: run }), id, {
    onPhase: () => {},
    onStep: (step) => void seen.push(`step ${step}`),
    onCommand: ({ step, command }) => void seen.push(`${step}$ ${command}`),
  });
  const all: TaskStep[] = NAMES.map((name, i) => ({
    ...{ name, instruction: `do ${name}`, files: () => [] },
    verify: gates[name] && (async () => gates[name]!),
    ...steps[i],
  }));
  const open: OpenAttempt = {
    environment,
    beginPhase: () => {},
    note: (text) => void notes.push(text),
    gradeRequest: async () => ({}) as Awaited<ReturnType<OpenAttempt['gradeRequest']>>,
    orEnd: (work) => work,
  };
  const attempt = ledAttempt(open, {
    config: agentConfigSchema.parse(config),
    recorder,
    recordWork(work) {
      kept = keptSteps(work);
    },
    signal: new AbortController().signal,
    now: () => now,
    runAgent: async (instruction, own, to) => {
      const name = instruction.slice('do '.length);
      events.push(`agent ${name}`);
      now += 10_000;
      const result = await agent(name, to, own);
      const base = { exitStatus: 'Submitted', submission: name, messages: [], steps: 1, costNano: 5 };
      return { ...base, ...result };
    },
  });
  const ended = await workThroughSteps(all, attempt).then(
    (result) => ({ result, error: null }),
    (error: unknown) => ({ result: null, error: error as EnvironmentError }),
  );
  return { ...ended, events, notes, seen, kept, store };
}

describe('steps', () => {
  test('a step is charged what its agent worked, not what it waited for', async () => {
    const left: number[] = [];
    await play({
      config: { wall_time_limit_seconds: 12 },
      agent: (_step, _callbacks, { wall_time_limit_seconds }) => {
        left.push(wall_time_limit_seconds);
        return { workedMs: 1000 };
      },
    });
    expect(left).toEqual([12, 11, 10]);
  });

  test('are prepared, worked on and kept one after the other; the result is the last with the sums of all', async () => {
    const file = { path: 'setup.sh', content: new Uint8Array(), executable: false };
    const { result, events, kept, notes } = await play({
      steps: [{}, { files: () => [file], setup: 'setup.sh', healthcheck: 'healthy' }],
    });
    expect(events).toEqual([
      ...['agent one', '/work/setup.sh', 'bash ./setup.sh', 'healthy', 'agent two', 'agent three'],
    ]);
    expect(result).toMatchObject({ submission: 'three', steps: 3, costNano: 15 });
    expect(kept).toEqual(NAMES.map((step, i) => ({ step, image: `image:${i + 1}` })));
    expect(notes).toEqual(NAMES.map((name, i) => `step ${i + 1} of 3, ${name}: submitted`));
  });

  test('end at a gate that says so, with its verdict beside the end state', async () => {
    const { events, kept, notes } = await play({
      gates: {
        one: { goesOn: true, says: 'reward 1', verdict: { a: 1 } },
        two: { goesOn: false, says: 'too little', verdict: { a: 2 } },
      },
    });
    expect(events).toEqual(['agent one', 'agent two']);
    expect(kept.map(({ verdict }) => verdict)).toEqual([{ a: 1 }, { a: 2 }]);
    expect(notes.at(-1)).toBe('step two ends the attempt: too little. Not begun: three');
  });

  test('are no result where the place of a gate was away, and what was kept is in the record', async () => {
    const { error, kept } = await play({
      gates: { one: { goesOn: false, says: '', verdict: {}, lost: 'the engine is away' } },
    });
    expect(error).toBeInstanceOf(EnvironmentError);
    expect(error).toMatchObject({ code: 'start_failed', fromWithin: false });
    expect(error!.message).toContain('step one could not be verified: the engine is away');
    expect(kept).toEqual([{ step: 'one', image: 'image:1' }]);
  });

  test.each([
    ['LimitsExceeded', { limit: 'steps' }, 3],
    ['TimeExceeded', { limit: 'wall_time' }, 3],
    ['ModelFailed', { error: { code: 'X', message: 'm', metadata: { kind: 'refusal' } } }, 3],
    // Says nothing about the agent: nothing after it would.
    ['ModelFailed', { error: { code: 'X', message: 'm', metadata: { kind: 'unavailable' } } }, 1],
    ['ModelFailed', { error: { code: 'X', message: 'm', metadata: { kind: 'auth' } } }, 1],
  ] as const)('after an agent that ended with %s %j: %i are run', async (exitStatus, more, runs) => {
    const { events } = await play({
      agent: (step) => (step === 'one' ? ({ exitStatus, ...more } as Partial<AgentResult>) : {}),
    });
    expect(events).toHaveLength(runs);
  });
});

describe('limits', () => {
  test('are those of the attempt: each step has what is left, and its own time', async () => {
    const given: unknown[] = [];
    await play({
      config: { step_limit: 10, wall_time_limit_seconds: 100, cost_limit: 1 },
      steps: [{ agentS: 50 }, { agentS: 500 }, {}],
      agent: (_step, callbacks, config) => {
        const { step_limit, wall_time_limit_seconds, cost_limit } = config;
        given.push([step_limit, wall_time_limit_seconds, cost_limit]);
        const ctx = { instanceId: 'a', step: 1 };
        callbacks.onCallBegan?.(ctx, { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: 250_000_000 });
        // Its cost is not known: what was reserved counts.
        const call = { try: 0, state: 'ok', costNano: null, usage: null, latencyMs: 1, notes: [] };
        callbacks.onCallEnded?.(ctx, { ...UNKNOWN, ...call } as never);
        return { steps: 4 };
      },
    });
    expect(given).toEqual([
      [10, 50, 1],
      [6, 90, 0.75],
      [2, 80, 0.5],
    ]);
  });

  test('that are used up end the agent, and the steps that remain are kept as they were left', async () => {
    const { events, kept, result, notes } = await play({
      config: { step_limit: 4 },
      agent: () => ({ exitStatus: 'LimitsExceeded', limit: 'steps', steps: 4 }),
    });
    expect(events).toEqual(['agent one']);
    expect(kept).toHaveLength(3);
    expect(result).toMatchObject({ exitStatus: 'LimitsExceeded', limit: 'steps', steps: 4 });
    expect(notes.at(-1)).toBe('step 3 of 3, three: limit_steps');
  });
});

describe('whoever broke the container', () => {
  const setup = { files: () => [{ path: 's', content: new Uint8Array(), executable: false }], setup: 's' };

  test('in an earlier step has ended it; before the first step it is nobody', async () => {
    for (const [steps, fromWithin] of [
      [[setup], false],
      [[{}, setup], true],
      [[{}, { healthcheck: 'check' }], true],
    ] as const) {
      const { error } = await play({ steps, runs: () => 3 });
      expect(error).toMatchObject({ code: 'setup_failed', fromWithin });
    }
  });

  test('leaves a step without an end state in the record', async () => {
    let times = 0;
    const { error, kept } = await play({
      keepWork: async () => {
        times += 1;
        if (times === 2) throw new EnvironmentError('died', 'gone');
        return 'image:1';
      },
    });
    expect(error).toMatchObject({ code: 'died' });
    expect(kept).toEqual([
      { step: 'one', image: 'image:1' },
      { step: 'two', image: null },
    ]);
  });
});

test('messages, steps, commands and calls are counted through, and each message names its step', async () => {
  const { seen, store } = await play({
    agent: (step, callbacks) => {
      const ctx = { instanceId: 'a', step: 1, call: 0 };
      callbacks.onStep?.(ctx);
      callbacks.onCallBegan?.(ctx, { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: null });
      callbacks.onMessage?.(ctx, { role: 'user', content: step }, 0);
      callbacks.onMessage?.(ctx, { role: 'assistant', content: 'ok' }, 1);
      const command = { step: 1, index: 0, command: 'ls', result: textResult('', 0), startedAt: 0 };
      callbacks.onCommand?.(ctx, command);
      return { steps: 1 };
    },
  });
  expect(seen).toEqual(NAMES.flatMap((_, i) => [`step ${i + 1}`, `${i + 1}$ ls`]));
  const all = (sql: string) => store.prepare(sql).all();
  expect(all('SELECT step, call, try FROM model_calls ORDER BY id')).toEqual(
    NAMES.map((_, i) => ({ step: i + 1, call: i, try: 0 })),
  );
  expect(all('SELECT step, command FROM commands ORDER BY id')).toEqual(
    NAMES.map((_, i) => ({ step: i + 1, command: 'ls' })),
  );
  expect(
    all(`SELECT seq, content, json_extract(data, '$.extra.task_step') AS part FROM messages ORDER BY seq`),
  ).toEqual(
    NAMES.flatMap((name, i) => [
      { seq: 2 * i, content: name, part: name },
      { seq: 2 * i + 1, content: 'ok', part: name },
    ]),
  );
});
