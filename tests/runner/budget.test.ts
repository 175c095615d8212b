// The run budget: reserve before, settle after, overshoot of at most one call a slot.
import { describe, expect, test } from 'vitest';
import { createBudget } from '../../src/runner/budget.ts';
import { StopReason } from '../../src/runner/exit.ts';

const DOLLAR = 1_000_000_000;

describe('run budget', () => {
  test('refuses the call that would not fit, before it is made', () => {
    const budget = createBudget(DOLLAR, 0);
    const settles = Array.from({ length: 5 }, () => budget.reserve(0.2 * DOLLAR));
    expect(() => budget.reserve(0.2 * DOLLAR)).toThrow(StopReason);
    for (const settle of settles) settle(0.2 * DOLLAR);
    expect(budget.spent()).toBe(DOLLAR);
    expect(budget.exhausted()).toBe(true);
  });

  test('money spent before a restart counts', () => {
    const budget = createBudget(DOLLAR, DOLLAR);
    expect(budget.exhausted()).toBe(true);
    expect(() => budget.reserve(1)).toThrow(/\$1\.00 is reached/);
  });

  test('a reservation is settled once, whatever arrives later', () => {
    const budget = createBudget(DOLLAR, 0);
    const settle = budget.reserve(0.5 * DOLLAR);
    settle(0.1 * DOLLAR);
    settle(0.1 * DOLLAR);
    expect(budget.spent()).toBe(0.1 * DOLLAR);
  });

  test('an unknown cost counts as its estimate against the limit', () => {
    const budget = createBudget(DOLLAR, 0);
    budget.reserve(0.9 * DOLLAR)(null);
    expect(() => budget.reserve(0.2 * DOLLAR)).toThrow(StopReason);
  });

  test('says 50, 80 and 100 % once each', () => {
    const seen: number[] = [];
    const budget = createBudget(DOLLAR, 0, (percent) => seen.push(percent));
    for (let i = 0; i < 10; i++) budget.reserve(0.1 * DOLLAR)(0.1 * DOLLAR);
    expect(seen).toEqual([50, 80, 100]);
  });

  test('says 100 % when the rest is too small for a call, once', () => {
    const seen: [number, number][] = [];
    const budget = createBudget(DOLLAR, 0, (percent, spent) => seen.push([percent, spent]));
    budget.reserve(0.6 * DOLLAR)(0.6 * DOLLAR);
    for (let i = 0; i < 3; i++) expect(() => budget.reserve(0.6 * DOLLAR)).toThrow(StopReason);
    expect(seen).toEqual([
      [50, 0.6 * DOLLAR],
      [100, 0.6 * DOLLAR],
    ]);
  });

  test('no limit means no limit', () => {
    const budget = createBudget(null, 0);
    budget.reserve(1e15)(1e15);
    expect(budget.exhausted()).toBe(false);
  });
});
