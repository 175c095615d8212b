// What all slots of one model share: a closed gate after a 429, and a number of requests at a time that adapts.

import { describe, expect, test } from 'vitest';
import { createLimiter, type Release } from '../../src/model/limits/limiter.ts';
import fc from '../support/property.ts';
import { autoClock, manualClock } from './harness.ts';

/** Nothing has a clock that could stand still. */
const nobody = () => {};
const OK = { overloaded: false, succeeded: true };
const LIMITED = { overloaded: true, succeeded: false };

async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

describe('limiter', () => {
  test('without a limit everybody goes at once', async () => {
    const limiter = createLimiter(0, autoClock().clock);
    for (let n = 0; n < 100; n += 1) await limiter.acquire(undefined, nobody);
    expect(limiter.state()).toMatchObject({ limit: null, inFlight: 100, waiting: 0 });
  });

  test('max_concurrent holds the rest back, first come first served', async () => {
    const limiter = createLimiter(2, autoClock().clock);
    const first = await limiter.acquire(undefined, nobody);
    await limiter.acquire(undefined, nobody);
    const order: string[] = [];
    let waits = 0;
    const enter = async (name: string) => {
      const release = await limiter.acquire(undefined, () => {
        waits += 1;
      });
      order.push(name);
      return release;
    };
    const third = enter('third');
    const fourth = enter('fourth');
    expect(await settled(third)).toBe(false);
    expect(waits).toBe(2);
    first(OK);
    (await third)(OK);
    await fourth;
    expect(order).toEqual(['third', 'fourth']);
  });

  test('one 429 delays every slot, to the millisecond', async () => {
    const { clock, advance } = manualClock();
    const limiter = createLimiter(0, clock);
    const hit = await limiter.acquire(undefined, nobody);
    hit({ ...LIMITED, waitMs: 2000 });
    const others = [
      limiter.acquire(undefined, nobody),
      limiter.acquire(undefined, nobody),
      limiter.acquire(undefined, nobody),
    ];
    expect(limiter.state()).toMatchObject({ blockedMs: 2000, waiting: 3, rateLimited: 1 });
    await advance(1999);
    expect(await settled(Promise.race(others))).toBe(false);
    await advance(1);
    // The limit is 1 after the hit: they go one after the other.
    for (const other of others) (await other)(OK);
    expect(limiter.state()).toMatchObject({ inFlight: 0, waiting: 0, blockedMs: 0 });
  });

  test('a gate that opens while it is looked at holds up nobody', async () => {
    for (let waitMs = 0.5; waitMs < 8; waitMs += 1) {
      let at = 0;
      // Each look at the clock takes a millisecond.
      const now = () => at++;
      const limiter = createLimiter(1, { ...autoClock().clock, now });
      const first = await limiter.acquire(undefined, nobody);
      const second = limiter.acquire(undefined, nobody);
      first({ ...LIMITED, waitMs });
      expect(await settled(second), `${waitMs} ms`).toBe(true);
    }
  });

  test('whoever gives up when the gate is about to open takes nobody the alarm', async () => {
    let at = 0;
    const clock = { ...autoClock().clock, now: () => at, sleep: () => new Promise<void>(() => {}) };
    const limiter = createLimiter(1, clock);
    (await limiter.acquire(undefined, nobody))({ ...LIMITED, waitMs: 100 });
    const gaveUp = new AbortController();
    const impatient = limiter.acquire(gaveUp.signal, nobody);
    const other = limiter.acquire(undefined, nobody);
    at = 100;
    gaveUp.abort();
    await expect(impatient).rejects.toThrow();
    await other;
  });

  test('a second, longer wait moves the gate on', async () => {
    const { clock, advance } = manualClock();
    const limiter = createLimiter(0, clock);
    const [a, b] = [await limiter.acquire(undefined, nobody), await limiter.acquire(undefined, nobody)];
    a({ ...LIMITED, waitMs: 1000 });
    const waiting = limiter.acquire(undefined, nobody);
    b({ ...LIMITED, waitMs: 3000 });
    await advance(1000);
    expect(await settled(waiting)).toBe(false);
    await advance(2000);
    expect(await settled(waiting)).toBe(true);
  });

  test('429s halve the requests at a time, once for those that were out together', async () => {
    const limiter = createLimiter(16, autoClock().clock);
    const out: Release[] = [];
    for (let n = 0; n < 16; n += 1) out.push(await limiter.acquire(undefined, nobody));
    for (const release of out) release(LIMITED);
    expect(limiter.state().limit).toBe(8);
    (await limiter.acquire(undefined, nobody))(LIMITED);
    expect(limiter.state().limit).toBe(1);
    expect(limiter.state().changes.map((change) => change.limit)).toEqual([8, 1]);
  });

  test('successes win it back one by one up to max_concurrent', async () => {
    const limiter = createLimiter(4, autoClock().clock);
    const out: Release[] = [];
    for (let n = 0; n < 4; n += 1) out.push(await limiter.acquire(undefined, nobody));
    for (const release of out) release(LIMITED);
    expect(limiter.state().limit).toBe(2);
    for (let n = 0; n < 2 + 3; n += 1) (await limiter.acquire(undefined, nobody))(OK);
    expect(limiter.state().limit).toBe(4);
    for (let n = 0; n < 10; n += 1) (await limiter.acquire(undefined, nobody))(OK);
    expect(limiter.state().limit).toBe(4);
  });

  test('an unlimited model becomes unlimited again once it is as wide as it ever was', async () => {
    const limiter = createLimiter(0, autoClock().clock);
    const out: Release[] = [];
    for (let n = 0; n < 3; n += 1) out.push(await limiter.acquire(undefined, nobody));
    for (const release of out) release(LIMITED);
    expect(limiter.state().limit).toBe(1);
    for (let n = 0; n < 1 + 2 + 3; n += 1) (await limiter.acquire(undefined, nobody))(OK);
    expect(limiter.state().limit).toBeNull();
  });

  test('headers that say how much is left lower the limit until their reset', async () => {
    const { clock, advance } = manualClock();
    const limiter = createLimiter(8, clock);
    const release = await limiter.acquire(undefined, nobody);
    release({ ...OK, hint: { requestsLeft: 2, blockedMs: 0, resetMs: 5000 } });
    expect(limiter.state().limit).toBe(2);
    await advance(5000);
    expect(limiter.state().limit).toBe(8);
  });

  test('headers that say nothing is left close the gate until their reset', async () => {
    const { clock, advance } = manualClock();
    const limiter = createLimiter(8, clock);
    (await limiter.acquire(undefined, nobody))({
      ...OK,
      hint: { requestsLeft: 0, blockedMs: 700, resetMs: 700 },
    });
    const next = limiter.acquire(undefined, nobody);
    expect(await settled(next)).toBe(false);
    await advance(700);
    expect(await settled(next)).toBe(true);
  });

  test('whoever is aborted while waiting leaves the line, and no timer stays behind', async () => {
    const { clock, sleeping } = manualClock();
    const limiter = createLimiter(0, clock);
    (await limiter.acquire(undefined, nobody))({ ...LIMITED, waitMs: 600_000 });
    const stop = new AbortController();
    const waiting = limiter.acquire(stop.signal, nobody);
    expect(sleeping()).toBe(1);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    expect(limiter.state().waiting).toBe(0);
    expect(sleeping()).toBe(0);
  });

  test('releasing twice counts once', async () => {
    const limiter = createLimiter(1, autoClock().clock);
    const release = await limiter.acquire(undefined, nobody);
    release(OK);
    release(OK);
    expect(limiter.state().inFlight).toBe(0);
  });

  test('never more out than the limit, and nobody waits for ever, whatever comes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.record({ limited: fc.boolean(), wait: fc.integer({ min: 0, max: 50 }) }), {
          maxLength: 40,
        }),
        async (max, ends) => {
          const limiter = createLimiter(max, autoClock().clock);
          let served = 0;
          await Promise.all(
            ends.map(async ({ limited, wait }) => {
              const release = await limiter.acquire(undefined, nobody);
              expect(limiter.state().inFlight).toBeLessThanOrEqual(max);
              await null;
              served += 1;
              release({ overloaded: limited, succeeded: !limited, ...(limited ? { waitMs: wait } : {}) });
            }),
          );
          expect(served).toBe(ends.length);
          expect(limiter.state()).toMatchObject({ inFlight: 0, waiting: 0 });
        },
      ),
    );
  });
});
