// One room for everything that waits for a share of something.
import { expect, test } from 'vitest';
import { createRoom, createTurnstile } from '../../src/base/async/room.ts';
import fc from '../support/property.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Room for so many units. */
function unitsRoom(most: number) {
  let out = 0;
  const room = createRoom<number, () => void>((units) => {
    if (units > most) throw new Error('too large');
    if (out + units > most) return { laterMs: undefined };
    out += units;
    return {
      share: () => {
        out -= units;
        room.look(true);
      },
    };
  });
  return { room, out: () => out };
}

test('everybody who waits has said so, shares go out in order of arrival, and whoever leaves holds up nobody', async () => {
  const visitor = fc.record({ units: fc.integer({ min: 1, max: 5 }), gaveUp: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(visitor, { minLength: 1, maxLength: 30 }), async (visitors) => {
      const { room, out } = unitsRoom(4);
      const order: number[] = [];
      const told = new Set<number>();
      const held: (() => void)[] = [];
      const leavers: AbortController[] = [];
      const ends = visitors.map(({ units, gaveUp }, at) => {
        const stop = new AbortController();
        const before = room.waiting();
        const end = room
          .enter(units, stop.signal, () => told.add(at))
          .then(
            (leave) => {
              order.push(at);
              held.push(leave);
            },
            (error: Error) => expect(error.message).toMatch(/too large|gave up/),
          );
        expect(told.has(at)).toBe(room.waiting() > before);
        if (gaveUp && told.has(at)) leavers.push(stop);
        return end;
      });
      for (const stop of leavers) stop.abort(new Error('gave up'));
      for (let turn = 0; turn <= visitors.length; turn += 1) {
        await settle();
        expect(out()).toBeLessThanOrEqual(4);
        for (const leave of held.splice(0)) leave();
      }
      await Promise.all(ends);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      expect([room.waiting(), out()]).toEqual([0, 0]);
    }),
  );
});

test('an alarm looks again, and the line hears that it waits for a reason', async () => {
  let rings: (() => void) | undefined;
  let open = false;
  const room = createRoom<void, string>(
    () => (open ? { share: 'in' } : { laterMs: 5 }),
    () =>
      new Promise((resolve) => {
        rings = resolve;
      }),
  );
  let told = 0;
  const waiting = room.enter(undefined, undefined, () => {
    told += 1;
  });
  expect(told).toBe(1);
  rings!();
  await settle();
  expect(told).toBe(2);
  open = true;
  rings!();
  expect(await waiting).toBe('in');
  expect(told).toBe(2);
});

test('turns: no more than so many at one time; the rest say that they wait', async () => {
  const turns = createTurnstile(2);
  const ends: (() => void)[] = [];
  const waits: number[] = [];
  const work = () => new Promise<void>((resolve) => void ends.push(resolve));
  const all = [0, 1, 2, 3].map((at) => turns(work, undefined, () => waits.push(at)));
  await settle();
  expect([ends.length, waits]).toEqual([2, [2, 3]]);
  ends.shift()!();
  await settle();
  expect(ends).toHaveLength(2);
  const failing = expect(
    turns(
      () => Promise.reject(new Error('no')),
      undefined,
      () => {},
    ),
  ).rejects.toThrow('no');
  for (let turn = 0; turn < 3; turn += 1) {
    await settle();
    for (const end of ends.splice(0)) end();
  }
  await Promise.all(all);
  await failing;
});
