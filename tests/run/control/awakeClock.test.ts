// Time in which the process was stopped is nobody's: neither a stall nor a limit may fall due because of it.
import { describe, expect, test } from 'vitest';
import { awakeClock, trackPhases } from '../../../src/run/control/phases.ts';
import type { StopReason } from '../../../src/run/control/stop.ts';

function machine() {
  let at = 0;
  let look = () => {};
  const clock = awakeClock(
    () => at,
    (tick) => {
      look = tick;
      return { cancel: () => {} };
    },
  );
  return {
    clock,
    /** The process works and looks at its clock every second. */
    works(seconds: number) {
      for (let i = 0; i < seconds; i++) {
        at += 1000;
        look();
      }
    },
    /** As after SIGSTOP and SIGCONT: time has passed, no timer has fired. */
    stopped(seconds: number) {
      at += seconds * 1000;
    },
  };
}

describe('a clock that stands still with its process', () => {
  test('counts while the process works, and a busy moment too', () => {
    const { clock, works, stopped } = machine();
    works(10);
    stopped(4);
    works(1);
    expect(clock.now()).toBe(15_000);
  });

  test('an hour in which the process was stopped is a second at most [T-63]', () => {
    const { clock, works, stopped } = machine();
    works(10);
    stopped(3600);
    expect(clock.now()).toBeLessThanOrEqual(11_000);
    works(5);
    expect(clock.now()).toBeLessThanOrEqual(16_000);
  });

  test('a phase is not stalled by a stop of the process: its timer looks at the clock and waits for the rest [T-63]', () => {
    const { clock, works, stopped } = machine();
    const timers: { fn: () => void; ms: number }[] = [];
    const stalls: StopReason[] = [];
    const phases = trackPhases(
      { began: () => {}, ended: () => {} },
      {
        now: clock.now,
        deadlinesMs: { model: 60_000 },
        onStall: (stall) => stalls.push(stall),
        setTimer: (fn, ms) => {
          timers.push({ fn, ms });
          return { cancel: () => {} };
        },
      },
    );
    phases.begin('model');
    works(20);
    stopped(3600);
    timers.shift()!.fn();
    expect(stalls).toEqual([]);
    expect(timers[0]!.ms).toBeGreaterThan(35_000);
    works(60);
    timers.shift()!.fn();
    expect(stalls[0]).toMatchObject({ reason: 'stalled', detail: 'model' });
  });
});
