// An engine that is away, by a clock of the test's own: who waits, for how long, and what is told.
import { expect, test } from 'vitest';
import { createEngineWatch } from '../../../../src/environment/places/engineWatch.ts';

/** An engine that is away until `backAt`; each wait moves the clock. */
function engine({ backAt, limitMs = 3_600_000 }: { backAt: number; limitMs?: number }) {
  let clock = 0;
  const state = { backAt, pings: 0 };
  const said: string[] = [];
  const watch = createEngineWatch({
    limitMs,
    now: () => clock,
    ping: async () => {
      state.pings += 1;
      if (clock < state.backAt) throw new Error('connect ENOENT /x.sock');
    },
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      clock += ms;
    },
  });
  watch.follow({
    away: (reason) => said.push(`away: ${reason}`),
    back: (ms) => said.push(`back after ${ms}`),
    lost: (reason) => said.push(`lost: ${reason}`),
  });
  const at = (ms: number) => {
    clock = ms;
  };
  return { watch, state, said, at, now: () => clock };
}

test('one that answers is not waited for, and nothing is said', async () => {
  const { watch, said } = engine({ backAt: 0 });
  await watch.back();
  expect(said).toEqual([]);
  expect(watch.awayMs()).toBe(0);
  expect(watch.awaySince(0)).toBe(false);
});

test('an outage of minutes is waited for by everybody together, and told once [T-35]', async () => {
  const { watch, said, state, now } = engine({ backAt: 600_000 });
  await Promise.all([watch.back(), watch.back(), watch.back()]);
  expect(now()).toBeGreaterThanOrEqual(600_000);
  expect(now()).toBeLessThan(606_000);
  expect(said).toEqual(['away: connect ENOENT /x.sock', `back after ${now()}`]);
  expect(state.pings).toBeLessThan(130);
  expect(watch.awayMs()).toBe(now());
});

test('its time counts once, also while it lasts, and what began after it did not meet it', async () => {
  const { watch, state, at, now } = engine({ backAt: 1000 });
  await watch.back();
  const first = watch.awayMs();
  expect(watch.awaySince(0)).toBe(true);
  at(now() + 1);
  expect(watch.awaySince(watch.mark())).toBe(false);
  state.backAt = now() + 1000;
  watch.suspect();
  await watch.back();
  expect(watch.awayMs()).toBeGreaterThanOrEqual(first + 1000);
  expect(watch.awaySince(0)).toBe(true);
});

test('at the limit everybody is told why; afterwards it is only looked at, until it is back', async () => {
  const { watch, said, state, at, now } = engine({ backAt: Number.POSITIVE_INFINITY, limitMs: 60_000 });
  await expect(watch.back()).rejects.toMatchObject({
    code: 'daemon_lost',
    message: expect.stringContaining('it was waited for 1 min (run.stall.engine_s)'),
  });
  expect(said.at(-1)).toContain('lost: the container engine does not answer: connect ENOENT /x.sock');
  const { pings } = state;
  await expect(watch.back()).rejects.toMatchObject({ code: 'daemon_lost' });
  expect(state.pings).toBe(pings + 1);
  state.backAt = 0;
  await watch.back();
  at(now() + 1);
  expect(watch.awaySince(watch.mark())).toBe(false);
});

test('a signal ends one wait, and closing ends all', async () => {
  let wake = (): void => undefined;
  const watch = createEngineWatch({
    limitMs: 0,
    ping: () => Promise.reject(new Error('gone')),
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        wake = resolve;
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  });
  const stop = new AbortController();
  const mine = expect(watch.back(stop.signal)).rejects.toThrow('interrupted');
  const other = expect(watch.back()).rejects.toMatchObject({ code: 'daemon_lost' });
  stop.abort(new Error('interrupted'));
  await mine;
  wake();
  watch.close();
  await other;
});
