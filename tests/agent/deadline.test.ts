// The wall-clock limit: checked before each query, and able to end a request or a command in flight.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { startDeadline } from '../../src/agent/loop/deadline.ts';
import { TimeExceeded } from '../../src/agent/loop/exceptions.ts';
import { createMeter } from '../../src/agent/loop/meter.ts';
import { EnvironmentError } from '../../src/environment/environment.ts';
import type { CallListener, CallRecord } from '../../src/model/model.ts';
import { callRecord } from '../model/harness.ts';
import { bash, config, fakeEnvironment, fakeModel, result, submitted } from './fakes.ts';

/** Never ends by itself; rejects as fetch does when its signal fires. */
const hang = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
  });

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});
const limited = { wall_time_limit_seconds: 10 };
const now = () => Date.now();

describe('the limit ends what is in flight', () => {
  test('a request to the model', async () => {
    const model = fakeModel([({ options }) => hang(options.signal)]);
    const agent = createAgent({
      instanceId: 'i',
      model,
      environment: fakeEnvironment([]),
      config: config(limited),
      now,
    });
    const ended = agent.run('t');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await ended).toMatchObject({ exitStatus: 'TimeExceeded', limit: 'wall_time', steps: 1 });
    expect(vi.getTimerCount()).toBe(0);
  });
  test('a command', async () => {
    const environment = fakeEnvironment([(_command, signal) => hang(signal)]);
    const agent = createAgent({
      instanceId: 'i',
      model: fakeModel([bash('sleep')]),
      environment,
      config: config(limited),
      now,
    });
    const ended = agent.run('t');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await ended).toMatchObject({ exitStatus: 'TimeExceeded' });
  });
  test('a broken environment at the same moment stays one', async () => {
    const died = new EnvironmentError('died', 'gone');
    const environment = fakeEnvironment([
      async (_command, signal) => {
        await hang(signal).catch(() => {});
        throw died;
      },
    ]);
    const agent = createAgent({
      instanceId: 'i',
      model: fakeModel([bash('x')]),
      environment,
      config: config(limited),
      now,
    });
    const ended = agent.run('t');
    ended.catch(() => {});
    await vi.advanceTimersByTimeAsync(10_000);
    await expect(ended).rejects.toBe(died);
  });
});

test('it is seen before the next query when nothing was in flight to end [M-12]', async () => {
  let clock = 0;
  const environment = fakeEnvironment([
    async () => {
      clock += 11_000;
      return result('');
    },
  ]);
  const model = fakeModel([bash('ls'), bash('ls')]);
  const agent = createAgent({
    instanceId: 'i',
    model,
    environment,
    config: config(limited),
    now: () => clock,
  });
  expect(await agent.run('t')).toMatchObject({ exitStatus: 'TimeExceeded', steps: 1 });
  expect(model.queries).toHaveLength(1);
});
test('0 is off', async () => {
  let clock = 0;
  const agent = createAgent({
    instanceId: 'i',
    model: fakeModel([bash('ls'), bash('s')]),
    environment: fakeEnvironment([result(''), submitted('p')]),
    config: config(),
    now: () => (clock += 1e9),
  });
  expect((await agent.run('t')).exitStatus).toBe('Submitted');
  expect(vi.getTimerCount()).toBe(0);
});
test('a timer that comes early looks again; nothing is left running', () => {
  let clock = 0;
  const deadline = startDeadline({ limitS: 10, mode: 'interrupts', now: () => clock });
  vi.advanceTimersByTime(10_000);
  expect(deadline.signal.aborted).toBe(false);
  deadline.check();
  clock = 10_000;
  vi.advanceTimersByTime(10_000);
  expect(deadline.signal.aborted).toBe(true);
  expect(() => deadline.check()).toThrow(TimeExceeded);
  deadline.stop();
  expect(vi.getTimerCount()).toBe(0);
});
test("the caller's abort passes through with its reason and is not a TimeExceeded", () => {
  const outer = new AbortController();
  const deadline = startDeadline({ limitS: 10, mode: 'interrupts', now, signal: outer.signal });
  const reason = new Error('stop');
  outer.abort(reason);
  expect(deadline.signal.reason).toBe(reason);
  expect(() => deadline.check()).not.toThrow();
  deadline.stop();
});

describe('the published agents', () => {
  const run = (compat: 'mini-swe-agent-1' | 'mini-swe-agent-2', clockStep: number) => {
    let clock = 0;
    const model = fakeModel([bash('a'), bash('b'), bash('s')]);
    const environment = fakeEnvironment([
      async () => {
        clock += clockStep;
        return result('');
      },
      result(''),
      submitted('p'),
    ]);
    return createAgent({
      instanceId: 'i',
      model,
      environment,
      config: config({ ...limited, compat }),
      now: () => clock,
    }).run('t');
  };
  test('2 looks only before a query, in whole seconds [M-12]', async () => {
    expect(await run('mini-swe-agent-2', 9_999)).toMatchObject({ exitStatus: 'Submitted' });
    expect(await run('mini-swe-agent-2', 10_000)).toMatchObject({ exitStatus: 'TimeExceeded', steps: 1 });
  });
});

describe('what the provider keeps us waiting is no time of the agent', () => {
  const quiet: CallListener = { began: () => undefined, ended: () => undefined };
  const begun = { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: null };
  const wrote = (output: number): CallRecord =>
    callRecord({ usage: { input: 1, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 } });
  const OUTAGE = callRecord({ state: 'failed', errorCode: 'NETWORK_ERROR' });
  function setUp(limitS = 56) {
    const deadline = startDeadline({ limitS, mode: 'interrupts', now });
    return { deadline, call: deadline.listen(quiet), pass: (s: number) => vi.advanceTimersByTime(s * 1000) };
  }
  const seconds = ({ elapsedMs }: { elapsedMs(): number }) => elapsedMs() / 1000;

  test('what listens between a call and the record passes on what the call has to wait for', () => {
    const recorded = new Promise<void>(() => {});
    const { deadline } = setUp();
    const call = deadline.listen(createMeter().listen({ ...quiet, began: () => recorded }));
    expect(call.began(begun)).toBe(recorded);
  });
  test('a rate limit, and the pause before the next try', () => {
    const { deadline, call, pass } = setUp(30);
    pass(5);
    void call.began(begun);
    pass(1);
    call.ended(callRecord({ state: 'failed', errorCode: 'RATE_LIMITED' }));
    call.phase?.('backoff');
    pass(40);
    call.phase?.('rate_wait');
    pass(40);
    expect(deadline.signal.aborted).toBe(false);
    void call.began(begun);
    pass(4);
    call.ended(wrote(20));
    expect(seconds(deadline)).toBe(9);
    pass(20);
    expect(deadline.signal.aborted).toBe(false);
    pass(1);
    expect(deadline.signal.aborted).toBe(true);
    deadline.stop();
  });

  test('room in the budget, also where the model does not say that it waits', async () => {
    const { deadline, pass } = setUp(30);
    const room = Promise.withResolvers<void>();
    const told: string[] = [];
    const call = deadline.listen({
      ...quiet,
      wanted: async (_estimate, _signal, waits) => {
        waits();
        await room.promise;
      },
      phase: (name) => told.push(name),
    });
    pass(5);
    const ask = call.wanted as (estimate: number | null, signal: undefined) => Promise<void>;
    const wanted = ask(1, undefined);
    pass(60);
    room.resolve();
    await wanted;
    void call.began(begun);
    pass(2);
    call.ended(wrote(20));
    expect(seconds(deadline)).toBe(7);
    expect(told).toEqual(['rate_wait']);
    deadline.stop();
  });

  test('a provider that is silent for 52 s, and answers in a line', () => {
    const { deadline, call, pass } = setUp();
    pass(2);
    void call.began(begun);
    pass(52);
    expect(deadline.signal.aborted).toBe(false);
    call.ended(wrote(40));
    expect(seconds(deadline)).toBe(2 + 12);
    deadline.stop();
  });

  test('a long answer is the work of the model, and ends the attempt with its last word', () => {
    const { deadline, call, pass } = setUp();
    void call.began(begun);
    pass(52);
    call.ended(wrote(2000));
    expect(seconds(deadline)).toBe(52);
    void call.began(begun);
    pass(5);
    expect(deadline.signal.aborted).toBe(true);
    deadline.stop();
  });

  test('tries that failed, however long they took', () => {
    const { deadline, call, pass } = setUp(30);
    for (let tried = 0; tried < 4; tried += 1) {
      void call.began(begun);
      pass(20);
      call.ended(OUTAGE);
      call.phase?.('backoff');
      pass(10);
    }
    expect(seconds(deadline)).toBe(0);
    deadline.stop();
  });

  test('of several calls all must wait', () => {
    const { deadline, call, pass } = setUp();
    const other = deadline.listen(quiet);
    void call.began(begun);
    other.phase?.('rate_wait');
    pass(8);
    expect(seconds(deadline)).toBe(8);
    pass(10);
    // The one that is out is late by now.
    expect(seconds(deadline)).toBe(10);
    call.ended(wrote(10));
    pass(5);
    expect(seconds(deadline)).toBe(10);
    void other.began(begun);
    pass(3);
    other.ended(wrote(10));
    pass(1);
    expect(seconds(deadline)).toBe(14);
    deadline.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
