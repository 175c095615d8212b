// Whatever an attempt has to wait for, its clocks run only while it works itself: the wall-clock limit, the stalls, and the patience of its calls. In
// virtual time, through every room that a call of a model goes through.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gatewayConfigSchema } from '../../../src/agent/gateway/gatewayConfig.ts';
import { createSessionCore } from '../../../src/agent/gateway/session.ts';
import { createWaits } from '../../../src/agent/installed/installedAgent.ts';
import { type Deadline, startDeadline } from '../../../src/agent/loop/deadline.ts';
import { type HttpCall, type Shared, tryOnce } from '../../../src/model/http/httpCall.ts';
import { newExchange } from '../../../src/model/http/httpTransport.ts';
import type { TryAnswer } from '../../../src/model/http/httpTry.ts';
import type { Clock } from '../../../src/model/limits/clock.ts';
import { createLimiter } from '../../../src/model/limits/limiter.ts';
import { createRateShare } from '../../../src/model/limits/sharedRate.ts';
import { withRetries } from '../../../src/model/limits/withRetries.ts';
import type { Settle } from '../../../src/model/meteredCall.ts';
import type { CallListener, Wire } from '../../../src/model/model.ts';
import { createBudget } from '../../../src/run/control/budget.ts';
import { trackPhases } from '../../../src/run/control/phases.ts';
import { rateBooks } from '../../../src/run/record/rateBooks.ts';
import { sampleOf } from '../../agent/gateway/bodies.ts';
import { freshStore } from '../../store/storeFixtures.ts';
import { tempDir } from '../../support/cli.ts';
import fc from '../../support/property.ts';
import { configOf } from '../harness.ts';

/** Time that passes when everybody sleeps. */
function virtualTime() {
  let now = 0;
  const sleepers = new Set<{ due: number; wake: () => void }>();
  const clock: Clock = {
    now: () => now,
    wall: () => Date.UTC(2026, 10, 28) + now,
    random: () => 0.5,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { due: now + Math.max(0, ms), wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      }),
  };
  return {
    clock,
    timer(fire: () => void, ms: number) {
      const sleeper = { due: now + ms, wake: fire };
      sleepers.add(sleeper);
      return { cancel: () => void sleepers.delete(sleeper) };
    },
    async until<T>(work: Promise<T>): Promise<T> {
      let over = false;
      const ended = work.finally(() => {
        over = true;
      });
      ended.catch(() => undefined);
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (over) break;
        const next = [...sleepers].sort((a, b) => a.due - b.due)[0];
        if (!next) throw new Error('everybody waits for ever');
        sleepers.delete(next);
        now = Math.max(now, next.due);
        next.wake();
      }
      return await ended;
    },
  };
}

const PATIENCE_S = 20;
/** Shorter than most waits. */
const STALL_MS = 6_000;
const facts = { modelId: null, responseId: null, fingerprint: null, finishReason: 'stop', rawUsage: {} };
const usage = { input: 300, cacheRead: 0, cacheWrite: 0, output: 100, reasoning: 0 };

/** One call: how often it is refused first, with which Retry-After, and how long its answer takes. */
interface Said {
  readonly refusals: readonly number[];
  readonly ms: number;
}
interface Step {
  readonly workMs: number;
  /** Of one step: a program makes them at one time. */
  readonly calls: readonly Said[];
}
interface Night {
  readonly maxConcurrent: number;
  readonly rpm: number | null;
  readonly tpm: number | null;
  /** Headers of answers, from which limits are learned. */
  readonly learned: boolean;
  readonly together: number;
  /** A line in which nobody comes to his turn for so long has stalled. */
  readonly lineMs?: number;
  readonly attempts: readonly { readonly program: boolean; readonly steps: readonly Step[] }[];
}

async function play(night: Night) {
  const time = virtualTime();
  const { clock } = time;
  const config = configOf({
    prices: { input: 1, output: 1 },
    retry: { max_retries: 2, base_delay_ms: 500, max_delay_ms: 1000, max_retry_after_s: PATIENCE_S },
  });
  using store = freshStore(join(tempDir(), 'swebatch.db'));
  const shared: Pick<Shared, 'limiter' | 'rates' | 'clock' | 'accepted'> = {
    limiter: createLimiter(night.maxConcurrent, clock),
    rates: createRateShare({
      ...{ book: rateBooks(store)('one key'), configured: { rpm: night.rpm, tpm: night.tpm } },
      ...{ countsCached: true, longestPauseMs: PATIENCE_S * 1000, clock },
    }),
    clock,
    accepted: true,
  };
  const endpoint = {
    ...{ config, host: 'h', model: 'm', auth: undefined },
    dialect: { readUsage: () => ({ usage, cacheWrite1h: 0, notes: [] }) },
  } as unknown as HttpCall['endpoint'];
  const headers: Record<string, string> = night.learned
    ? {
        'x-ratelimit-limit-requests': '20',
        'x-ratelimit-remaining-requests': '19',
        'x-ratelimit-reset-requests': '3s',
      }
    : {};

  const callOf = ({ refusals, ms }: Said): HttpCall => {
    const ahead = [...refusals];
    const reply = {
      ...facts,
      message: { role: 'assistant', content: 'x' },
      content: 'x',
      toolCalls: [],
    } as const;
    const answer = { facts: null, body: null, reply: null, failure: null, characters: 0, notes: [] };
    return {
      ...{ endpoint, requestBytes: 1000, maxOutput: 100 },
      async send(signal): Promise<TryAnswer> {
        const refused = ahead.shift();
        if (refused !== undefined)
          return {
            ...answer,
            exchange: {
              ...newExchange(signal),
              status: 429,
              headers: refused > 0 ? { 'retry-after': `${refused}` } : {},
            },
            failure: {
              ...{ verdict: { code: 'RATE_LIMITED', kind: 'unavailable', retryable: true } },
              ...{ what: 'rate limited (429)', last: null },
            } as const,
          };
        await clock.sleep(ms, signal);
        return { ...answer, facts, reply, exchange: { ...newExchange(signal), status: 200, headers } };
      },
    };
  };
  const query = (call: HttpCall, listener: CallListener) =>
    withRetries({
      ...{ config: config.retry, clock, signal: undefined, answered: true },
      onBackoff: () => listener.phase?.('backoff'),
      ask: (tried) => tryOnce(shared, call, { listener }, tried),
    });

  // Room for so many calls at a time, which cost far less than they might.
  const calls = night.attempts.flatMap(({ steps }) => steps.flatMap((step) => step.calls));
  const tries = calls.reduce((sum, { refusals }) => sum + 1 + refusals.length, 0);
  const budget = createBudget(night.together * 1000 + tries, 0);

  const attempts = night.attempts.map(({ program, steps }) => {
    const deadline: Deadline = startDeadline({ limitS: 0, mode: 'interrupts', now: clock.now });
    const stalls: string[] = [];
    const phases = trackPhases(
      { began: () => {}, ended: () => {} },
      {
        now: clock.now,
        setTimer: time.timer,
        // Work is not limited here: a wait that is taken for work would be.
        deadlinesMs: { exec: STALL_MS, program: STALL_MS, rate_wait: night.lineMs ?? 0 },
        onStall: (stop) => stalls.push(stop.message),
      },
    );
    const waits = program ? createWaits((phase) => phases.begin(phase)) : undefined;
    let number = 0;
    const record = (): CallListener => {
      let settle: Settle = () => {};
      const call = number++;
      return deadline.listen({
        async wanted(_estimate, signal, tell) {
          settle = await budget.reserve(1000, signal, tell);
        },
        began: () => waits?.out(call),
        ended() {
          settle(1);
          waits?.ended(call);
        },
        phase: (phase) => (waits ? waits.says(call, phase) : phases.begin(phase)),
      });
    };
    const failed: string[] = [];
    const asks = async (said: Said, listener: CallListener) => {
      const response = await query(callOf(said), listener);
      if (!response.success) failed.push(response.message);
      return response;
    };
    const wire = (said: readonly Said[]): Wire => {
      const next = [...said];
      return {
        dialect: 'chat',
        model: 'm',
        send: async (_request, _sink, { listener } = {}) => ({
          response: await asks(next.shift()!, listener!),
          refused: null,
        }),
      };
    };
    const { request } = sampleOf('chat');
    const throughGateway = async (said: readonly Said[]) => {
      const model = { name: 'm', query: () => Promise.reject(new Error('unused')), templateVars: () => ({}) };
      // No two calls fit beside each other.
      const limits = { steps: 0, costDollars: 0, tokens: 900 };
      const config = gatewayConfigSchema.parse({});
      const spec = { attempt: 'a', model, limits, config, anyModel: true, listener: record };
      const core = createSessionCore(spec, wire(said));
      const answers = said.map((_, at) => {
        const body = { ...request, model: 'm', max_tokens: 800, user: `${at}` };
        const asked = { dialect: 'chat', operation: 'generate', model: 'm', query: '', headers: {} } as const;
        return core.ask({ ...asked, body: Buffer.from(JSON.stringify(body)) });
      });
      for (const answer of answers) await new Promise<void>((resolve) => answer.ended(resolve));
      expect(answers.map((answer) => answer.outcome()?.kind)).toEqual(said.map(() => 'whole'));
      await core.close();
    };
    const run = async () => {
      for (const { workMs, calls: said } of steps) {
        if (!program) phases.begin('exec');
        await clock.sleep(workMs);
        if (program) await throughGateway(said);
        else for (const one of said) await asks(one, record());
      }
      phases.end();
      deadline.stop();
      return { own, failed, stalls, chargedMs: deadline.elapsedMs(), workingMs: phases.workingMs() };
    };
    const own = steps.reduce(
      (sum, { workMs, calls: said }) => sum + workMs + said.reduce((all, { ms }) => all + ms, 0),
      0,
    );
    return run;
  });
  const ended = await time.until(Promise.all(attempts.map((run) => run())));
  return { ended, tookMs: clock.now() };
}

const said: fc.Arbitrary<Said> = fc.record({
  // Seconds; 0 says nothing. Each of them alone is within the patience of a call.
  refusals: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
  ms: fc.integer({ min: 1, max: 3000 }),
});
const night: fc.Arbitrary<Night> = fc.record({
  maxConcurrent: fc.integer({ min: 0, max: 3 }),
  rpm: fc.option(fc.integer({ min: 10, max: 40 })),
  tpm: fc.option(fc.integer({ min: 4000, max: 20_000 })),
  learned: fc.boolean(),
  together: fc.integer({ min: 1, max: 4 }),
  attempts: fc.array(
    fc.record({
      program: fc.boolean(),
      steps: fc.array(
        fc.record({
          workMs: fc.integer({ min: 0, max: STALL_MS - 2000 }),
          calls: fc.array(said, { minLength: 1, maxLength: 2 }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    { minLength: 2, maxLength: 7 },
  ),
});

test('the time that an attempt is charged is the time in which it worked itself, whatever it waits for', async () => {
  let waited = 0;
  await fc.assert(
    fc.asyncProperty(night, async (one) => {
      const { ended, tookMs } = await play(one);
      for (const { own, chargedMs, workingMs, failed, stalls } of ended) {
        expect(chargedMs).toBeCloseTo(own, 3);
        expect(workingMs).toBeLessThanOrEqual(own + 1);
        expect(failed).toEqual([]);
        expect(stalls).toEqual([]);
        waited += tookMs - own;
      }
    }),
    { numRuns: 60 },
  );
  expect(waited).toBeGreaterThan(60 * 10_000);
});

/** Longer than a stall: whoever does not say that he waits for it has stalled. */
const LONG_MS = STALL_MS + 2000;
const free: Night = {
  ...{ maxConcurrent: 0, rpm: null, tpm: null, learned: false, together: 100, lineMs: LONG_MS + 1000 },
  attempts: Array.from({ length: 5 }, () => ({
    program: false,
    steps: [1, 2].map((workMs) => ({ workMs, calls: [{ refusals: [], ms: LONG_MS }] })),
  })),
};

test.each<[room: string, only: Partial<Night>]>([
  ['the limiter', { maxConcurrent: 1 }],
  ['the requests of a minute', { rpm: 3 }],
  ['the tokens of a minute', { tpm: 2000 }],
  ['limits that were learned', { learned: true, rpm: null, maxConcurrent: 2 }],
  ['the budget', { together: 1 }],
  [
    'the budget, in programs',
    { together: 1, attempts: free.attempts.map((one) => ({ ...one, program: true })) },
  ],
])(
  'where only one room makes anybody wait, all in it say so, and hear that its line moves: %s',
  async (_room, only) => {
    const { ended, tookMs } = await play({ ...free, ...only });
    for (const { own, chargedMs, workingMs, failed, stalls } of ended) {
      expect(chargedMs).toBeCloseTo(own, 3);
      expect(workingMs).toBeLessThanOrEqual(own + 1);
      expect([...failed, ...stalls]).toEqual([]);
    }
    expect(tookMs).toBeGreaterThan(ended[0]!.own + LONG_MS);
  },
);
