import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { pause, retry, sleep, startTimer, within } from '../../src/base/async/timer.ts';

describe('timers', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('a timer fires once, begins anew with a sign of life, and 0 is no limit', () => {
    const fire = vi.fn();
    const timer = startTimer(100, fire);
    startTimer(0, fire);
    vi.advanceTimersByTime(80);
    timer.restart();
    vi.advanceTimersByTime(80);
    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1000);
    expect(fire).toHaveBeenCalledOnce();
  });

  test('more than a timer of Node holds does not fire at once', () => {
    const fire = vi.fn();
    const timer = startTimer(2 ** 40, fire);
    vi.advanceTimersByTime(1000);
    expect(fire).not.toHaveBeenCalled();
    timer.cancel();
  });

  test('work that is late is undefined', async () => {
    const late = within(new Promise(() => {}), 50);
    await vi.advanceTimersByTimeAsync(60);
    expect(await late).toBeUndefined();
    expect(await within(Promise.resolve(1), 50)).toBe(1);
  });
});

test('a sleep ends with the reason of its signal, a pause without one', async () => {
  const over = AbortSignal.abort(new Error('over'));
  await expect(sleep(10_000, over)).rejects.toThrow('over');
  await expect(pause(10_000, over)).resolves.toBeUndefined();
});

test('work is tried again as long as there is a wait for its failure', async () => {
  const waits: number[] = [];
  let tries = 0;
  const work = async () => {
    tries += 1;
    if (tries < 3) throw new Error(`try ${tries}`);
    return tries;
  };
  const options = {
    delayMs: (_: unknown, tried: number) => [1, 2][tried - 1],
    onWait: (_: unknown, ms: number) => waits.push(ms),
  };
  expect(await retry(work, options)).toBe(3);
  expect(waits).toEqual([1, 2]);
  tries = -5;
  await expect(retry(work, options)).rejects.toThrow('try -2');
});
