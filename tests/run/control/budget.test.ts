// The run budget: reserve before, settle after, overshoot of at most one call a slot.
import { describe, expect, test } from 'vitest';
import { createBudget } from '../../../src/run/control/budget.ts';
import { StopReason } from '../../../src/run/control/stop.ts';

const DOLLAR = 1_000_000_000;
/** Nothing has a clock that could stand still. */
const nobody = () => {};

describe('run budget', () => {
  test('refuses the call that would not fit, before it is made', () => {
    const budget = createBudget(DOLLAR, 0);
    for (let i = 0; i < 5; i++) budget.reserveNow(0.2 * DOLLAR)(0.2 * DOLLAR);
    expect(() => budget.reserveNow(0.2 * DOLLAR)).toThrow(StopReason);
    expect(budget.spent()).toBe(DOLLAR);
    expect(budget.exhausted()).toBe(true);
  });

  test('a call waits while others hold the money, and is made when they cost less than was reserved', async () => {
    const budget = createBudget(DOLLAR, 0);
    const first = [
      await budget.reserve(0.4 * DOLLAR, undefined, nobody),
      await budget.reserve(0.4 * DOLLAR, undefined, nobody),
    ];
    const waits: string[] = [];
    const third = budget.reserve(0.4 * DOLLAR, undefined, () => waits.push('waits'));
    expect(waits).toEqual(['waits']);
    first[0]!(0.01 * DOLLAR);
    (await third)(0.01 * DOLLAR);
    first[1]!(0.01 * DOLLAR);
    expect(budget.spent()).toBeCloseTo(0.03 * DOLLAR);
    expect(budget.exhausted()).toBe(false);
  });

  test('those that wait are refused once the others have spent the money', async () => {
    const budget = createBudget(DOLLAR, 0);
    const settles = await Promise.all(
      Array.from({ length: 5 }, () => budget.reserve(0.2 * DOLLAR, undefined, nobody)),
    );
    const late = [
      budget.reserve(0.2 * DOLLAR, undefined, nobody),
      budget.reserve(0.2 * DOLLAR, undefined, nobody),
    ];
    const refused = Promise.allSettled(late);
    for (const settle of settles) settle(0.2 * DOLLAR);
    expect((await refused).map((r) => r.status)).toEqual(['rejected', 'rejected']);
    await expect(late[0]).rejects.toThrow(/\$1\.00 is reached: \$1\.00 spent/);
    expect(budget.exhausted()).toBe(true);
  });

  test('waiting for money ends with the attempt', async () => {
    const budget = createBudget(DOLLAR, 0);
    await budget.reserve(0.9 * DOLLAR, undefined, nobody);
    const abort = new AbortController();
    const waiting = budget.reserve(0.9 * DOLLAR, abort.signal, () => {});
    const next = budget.reserve(0.05 * DOLLAR, undefined, () => {});
    abort.abort(new Error('interrupted'));
    await expect(waiting).rejects.toThrow('interrupted');
    // The one behind it was only waiting for its turn.
    await expect(next).resolves.toBeTypeOf('function');
  });

  test('first come, first served: a dear call is not passed by for ever', async () => {
    const budget = createBudget(DOLLAR, 0);
    const held = await budget.reserve(0.6 * DOLLAR, undefined, nobody);
    const order: string[] = [];
    const dear = budget.reserve(0.8 * DOLLAR, undefined, nobody).then((settle) => {
      order.push('dear');
      settle(0);
    });
    const cheap = budget.reserve(0.1 * DOLLAR, undefined, nobody).then(() => order.push('cheap'));
    held(0);
    await Promise.all([dear, cheap]);
    expect(order).toEqual(['dear', 'cheap']);
  });

  test('money spent before a restart counts', () => {
    const budget = createBudget(DOLLAR, DOLLAR);
    expect(budget.exhausted()).toBe(true);
    expect(() => budget.reserveNow(1)).toThrow(/\$1\.00 is reached/);
  });

  test('a reservation is settled once, whatever arrives later', () => {
    const budget = createBudget(DOLLAR, 0);
    const settle = budget.reserveNow(0.5 * DOLLAR);
    settle(0.1 * DOLLAR);
    settle(0.1 * DOLLAR);
    expect(budget.spent()).toBe(0.1 * DOLLAR);
  });

  test('an unknown cost counts as its estimate against the limit', () => {
    const budget = createBudget(DOLLAR, 0);
    budget.reserveNow(0.9 * DOLLAR)(null);
    expect(() => budget.reserveNow(0.2 * DOLLAR)).toThrow(StopReason);
  });

  test('says 50, 80 and 100 % once each', () => {
    const seen: number[] = [];
    const budget = createBudget(DOLLAR, 0, (percent) => seen.push(percent));
    for (let i = 0; i < 10; i++) budget.reserveNow(0.1 * DOLLAR)(0.1 * DOLLAR);
    expect(seen).toEqual([50, 80, 100]);
  });

  test('says 100 % when the rest is too small for a call, once', () => {
    const seen: [number, number][] = [];
    const budget = createBudget(DOLLAR, 0, (percent, spent) => seen.push([percent, spent]));
    budget.reserveNow(0.6 * DOLLAR)(0.6 * DOLLAR);
    for (let i = 0; i < 3; i++) expect(() => budget.reserveNow(0.6 * DOLLAR)).toThrow(StopReason);
    expect(seen).toEqual([
      [50, 0.6 * DOLLAR],
      [100, 0.6 * DOLLAR],
    ]);
  });

  test('no limit means no limit', () => {
    const budget = createBudget(null, 0);
    budget.reserveNow(1e15)(1e15);
    expect(budget.exhausted()).toBe(false);
  });
});

describe('a budget that a person changes', () => {
  test('more money lets calls start that would have been refused, and those that wait', async () => {
    const budget = createBudget(DOLLAR, 0);
    const first = await budget.reserve(0.9 * DOLLAR, undefined, nobody);
    const second = budget.reserve(0.5 * DOLLAR, undefined, nobody);
    budget.setLimit(2 * DOLLAR);
    const settle = await second;
    first(0.9 * DOLLAR);
    settle(0.5 * DOLLAR);
    expect(budget.exhausted()).toBe(false);
    expect(budget.limitNano).toBe(2 * DOLLAR);
    budget.setLimit(null);
    await expect(budget.reserve(1000 * DOLLAR, undefined, nobody)).resolves.toBeTypeOf('function');
  });

  test('less than is spent refuses calls that wait and all later ones', async () => {
    const seen: number[] = [];
    const budget = createBudget(10 * DOLLAR, 0, (percent) => seen.push(percent));
    (await budget.reserve(DOLLAR, undefined, nobody))(DOLLAR);
    const out = await budget.reserve(8 * DOLLAR, undefined, nobody);
    const waits = budget.reserve(2 * DOLLAR, undefined, nobody).then(
      () => 'granted',
      (error: Error) => error.message,
    );
    budget.setLimit(0.5 * DOLLAR);
    expect(await waits).toBe('the run budget of $0.50 is reached: $1.00 spent');
    expect(budget.exhausted()).toBe(true);
    await expect(budget.reserve(1, undefined, nobody)).rejects.toThrow('is reached');
    out(DOLLAR);
    budget.setLimit(5 * DOLLAR);
    expect(budget.exhausted()).toBe(false);
  });
});
