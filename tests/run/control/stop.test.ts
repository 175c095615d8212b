// The stop ladder: what the first, second and third press do, and that each says what the next one does.
import { describe, expect, test, vi } from 'vitest';
import { createStopLadder, StopReason } from '../../../src/run/control/stop.ts';

describe('stop ladder', () => {
  test('first press stops starting and leaves the running alone', () => {
    const stop = createStopLadder({ onInterrupt: 'finish', graceS: 30, exitNow: () => {} });
    expect(stop.interrupt('SIGINT')).toMatch(/nothing new is started.*Again: capture/);
    expect(stop.why?.reason).toBe('cancelled');
    expect(stop.attempts.aborted).toBe(false);
  });

  test('second press ends the running as cancelled', () => {
    const stop = createStopLadder({ onInterrupt: 'finish', graceS: 30, exitNow: () => {} });
    stop.interrupt('SIGINT');
    expect(stop.interrupt('SIGINT')).toMatch(/up to 30 s.*Again: exit at once/);
    expect(stop.attempts.reason).toBeInstanceOf(StopReason);
    expect((stop.attempts.reason as StopReason).reason).toBe('cancelled');
  });

  test('third press exits', () => {
    const exitNow = vi.fn();
    const stop = createStopLadder({ onInterrupt: 'finish', graceS: 30, exitNow });
    for (let i = 0; i < 3; i++) stop.interrupt('SIGTERM');
    expect(exitNow).toHaveBeenCalledOnce();
    expect(stop.interruptedBy).toBe('SIGTERM');
  });

  test('an interrupt and a terminate that come together are an interrupt, whichever is handed over first', () => {
    for (const pair of [
      ['SIGINT', 'SIGTERM'],
      ['SIGTERM', 'SIGINT'],
    ] as const) {
      const stop = createStopLadder({ onInterrupt: 'finish', graceS: 30, exitNow: () => {} });
      for (const name of pair) stop.interrupt(name);
      expect([stop.stage, stop.interruptedBy]).toEqual([2, 'SIGINT']);
    }
  });

  test('the grace after the second press is kept: capturing ends in time for the removal, and that ends too', () => {
    const timers: { fn: () => void; ms: number }[] = [];
    const stop = createStopLadder({
      onInterrupt: 'finish',
      graceS: 30,
      exitNow: () => {},
      setTimer: (fn, ms) => timers.push({ fn, ms }),
    });
    stop.interrupt('SIGINT');
    expect(timers).toEqual([]);
    stop.interrupt('SIGINT');
    expect(timers.map((t) => t.ms)).toEqual([20_000, 30_000]);
    timers[0]!.fn();
    expect([stop.captureEnds.aborted, stop.graceEnds.aborted]).toEqual([true, false]);
    timers[1]!.fn();
    expect(stop.graceEnds.reason).toMatchObject({ message: expect.stringContaining('stop_grace_s') });
  });

  test('with on_interrupt capture the first press already ends the running', () => {
    const stop = createStopLadder({ onInterrupt: 'capture', graceS: 30, exitNow: () => {} });
    stop.interrupt('SIGINT');
    expect(stop.stage).toBe(2);
    expect(stop.attempts.aborted).toBe(true);
  });

  test('the first reason to stop starting is the one that is told', () => {
    const stop = createStopLadder({ onInterrupt: 'finish', graceS: 30, exitNow: () => {} });
    stop.stopStarting('budget_stopped', 'budget');
    stop.interrupt('SIGINT');
    expect(stop.why?.reason).toBe('budget_stopped');
  });

  test('a halt ends what runs now and nothing that begins later; an interrupt still ends that', () => {
    const stop = createStopLadder({ onInterrupt: 'capture', graceS: 30, exitNow: () => {} });
    const running = stop.attempts;
    const reason = new StopReason('disk_full', 'full');
    stop.halt(reason);
    expect(running.reason).toBe(reason);
    expect(stop.why).toBeNull();
    const later = stop.attempts;
    expect(later.aborted).toBe(false);
    stop.interrupt('SIGINT');
    expect((later.reason as StopReason).reason).toBe('cancelled');
    stop.halt(reason);
    expect(stop.attempts.aborted).toBe(true);
  });
});
