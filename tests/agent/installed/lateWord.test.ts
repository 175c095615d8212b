// A program that is told to end has its time from when the word is there: an engine that is slow to bring it takes nothing of it.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runProgram } from '../../../src/agent/installed/installedAgent.ts';
import { completeEnvironment } from '../../../src/environment/capabilities.ts';
import type { Environment } from '../../../src/environment/environment.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const ENDED = { exitCode: 0, output: 'written' };
const KILLED = { exitCode: -1, output: '', timedOut: true };
const never = new Promise<never>(() => undefined);

/** A program that writes for `writesMs` once it was told, and is never told where that is undefined. */
async function endOf(toldAfterMs: number | undefined, writesMs: number) {
  const timeIsUp = new AbortController();
  const ended = Promise.withResolvers<unknown>();
  const environment = completeEnvironment({
    putFile: async (path: string) => {
      if (!path.endsWith('/stop')) return;
      if (toldAfterMs === undefined) return never;
      await new Promise<void>((resolve) => setTimeout(resolve, toldAfterMs));
      setTimeout(() => ended.resolve(ENDED), writesMs);
    },
    execute: async (_line: string, { timeUp }: { timeUp: AbortSignal }) => {
      timeUp.addEventListener('abort', () => ended.resolve(KILLED));
      return ended.promise;
    },
  } as unknown as Environment);
  const running = runProgram({
    environment,
    launch: { command: 'agent', env: {}, files: {} },
    folders: { files: '/f', home: '/h', remove: async () => undefined },
    prompt: 'p',
    limitS: 0,
    timeUp: timeIsUp.signal,
    over: never,
  });
  await vi.advanceTimersByTimeAsync(0);
  timeIsUp.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  return running;
}

test.each([
  ['at once, and writes for nine seconds', 0, 9000, ENDED],
  ['after twelve seconds, and writes for nine', 12_000, 9000, ENDED],
  ['at once, and does not end', 0, 1_000_000, KILLED],
  ['never', undefined, 0, KILLED],
])('told %s', async (_when, toldAfterMs, writesMs, end) => {
  expect(await endOf(toldAfterMs, writesMs)).toBe(end);
});
