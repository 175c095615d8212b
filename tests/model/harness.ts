/** Clocks that need no waiting, a listener that remembers, and a model wired to a fake server. */

import type { Clock } from '../../src/model/limits/clock.ts';
import type { CallListener, CallRecord, Message, ModelFactory } from '../../src/model/model.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import {
  type FakeModelServer,
  type FakeServerOptions,
  startFakeModelServer,
} from '../support/fakeModelServer.ts';

/** Every sleep is over at once, and time has moved by it. */
export function autoClock() {
  let now = 1_000_000;
  const slept: number[] = [];
  const clock: Clock = {
    now: () => now,
    wall: () => Date.UTC(2026, 10, 21) + now,
    async sleep(ms, signal) {
      if (signal?.aborted) throw signal.reason;
      slept.push(ms);
      now += ms;
    },
    random: () => 0.5,
  };
  return { clock, slept };
}

/** Time stands still until `advance`. */
export function manualClock() {
  let now = 0;
  const sleepers = new Set<{ due: number; wake: () => void }>();
  const watchers = new Set<() => void>();
  const clock: Clock = {
    now: () => now,
    wall: () => Date.UTC(2026, 10, 21) + now,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        const sleeper = { due: now + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
        for (const watcher of watchers) watcher();
      });
    },
    random: () => 0.5,
  };
  return {
    clock,
    /** Wakes whoever is due, in order, and lets what follows from it happen. */
    async advance(ms: number): Promise<void> {
      now += ms;
      for (const sleeper of [...sleepers].sort((a, b) => a.due - b.due)) {
        if (sleeper.due > now) continue;
        sleepers.delete(sleeper);
        sleeper.wake();
      }
      await new Promise((resolve) => setImmediate(resolve));
    },
    sleeping: () => sleepers.size,
    untilSleeping(count: number): Promise<void> {
      if (sleepers.size >= count) return Promise.resolve();
      return new Promise((resolve) => {
        const watcher = () => {
          if (sleepers.size < count) return;
          watchers.delete(watcher);
          resolve();
        };
        watchers.add(watcher);
      });
    },
  };
}

export function recorder() {
  const began: { try: number; estimateNano: number | null }[] = [];
  const calls: CallRecord[] = [];
  const phases: string[] = [];
  const listener: CallListener = {
    began: (call) => void began.push({ try: call.try, estimateNano: call.estimateNano }),
    ended: (call) => void calls.push(call),
    phase: (phase) => void phases.push(phase),
  };
  return { listener, began, calls, phases };
}

export const KEY = 'sk-test-0123456789abcdef';
export const ASK: readonly Message[] = [{ role: 'user', content: 'What now?' }];

export const configOf = (settings: Record<string, unknown>) =>
  modelConfigSchema.parse({ model_name: 'gpt-4o', ...settings });

export interface Wired extends AsyncDisposable {
  readonly server: FakeModelServer;
  readonly factory: ModelFactory;
  readonly slept: readonly number[];
}

/** A server with a script and a factory that asks it; back-off takes no time. */
export async function wire(
  options: FakeServerOptions,
  settings: Record<string, unknown> = {},
  clock?: Clock,
): Promise<Wired> {
  const server = await startFakeModelServer(options);
  const auto = autoClock();
  const factory = await createModelFactory(configOf({ base_url: server.url, ...settings }), {
    apiKey: KEY,
    clock: clock ?? auto.clock,
  });
  return {
    server,
    factory,
    slept: auto.slept,
    async [Symbol.asyncDispose]() {
      await factory.close();
      await server.close();
    },
  };
}

export const modelOf = (wired: Wired, instanceId = 'a__a-1') =>
  wired.factory.create({ instanceId, epoch: 1 });

/** The row of a call that went well. */
export const callRecord = (more: Partial<CallRecord> = {}): CallRecord => ({
  ...{
    try: 0,
    state: 'ok',
    startedAt: 0,
    latencyMs: 1,
    statusCode: 200,
    errorCode: null,
    errorMessage: null,
  },
  ...{ modelAsked: 'm', modelAnswered: 'm', responseId: null, fingerprint: null, finishReason: 'stop' },
  ...{
    rawUsage: null,
    usage: null,
    priceVersion: null,
    costNano: 0,
    providerCostNano: null,
    requestBytes: 1,
  },
  notes: [],
  ...more,
});
