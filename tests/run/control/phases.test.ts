// Phases: every wait has a name and a time; a stall aborts with its phase. A fake clock, no sleeping.
import { describe, expect, test } from 'vitest';
import { trackPhases } from '../../../src/run/control/phases.ts';
import type { StopReason } from '../../../src/run/control/stop.ts';

function fakeClock() {
  let now = 0;
  let timers: { at: number; fn: () => void }[] = [];
  return {
    now: () => now,
    setTimer: (fn: () => void, ms: number) => {
      const timer = { at: now + ms, fn };
      timers.push(timer);
      return { cancel: () => (timers = timers.filter((t) => t !== timer)) };
    },
    advance(ms: number) {
      now += ms;
      const due = timers.filter((t) => t.at <= now);
      timers = timers.filter((t) => t.at > now);
      for (const t of due) t.fn();
    },
  };
}

describe('phases', () => {
  test('stores begin and duration of each, in order', () => {
    const clock = fakeClock();
    const rows: string[] = [];
    const phases = trackPhases(
      { began: (s, n, o) => rows.push(`${s} ${n} @${o}`), ended: (s, d) => rows.push(`${s} +${d}`) },
      clock,
    );
    phases.begin('start');
    clock.advance(10);
    phases.begin('model');
    clock.advance(5);
    phases.end();
    expect(rows).toEqual(['0 start @0', '0 +10', '1 model @10', '1 +5']);
  });

  test('the time of writing a phase down is in the phases too, and none is after the last', () => {
    const clock = fakeClock();
    const durations: number[] = [];
    const phases = trackPhases(
      {
        began: () => clock.advance(7),
        ended: (_seq, duration) => {
          durations.push(duration);
          clock.advance(40);
        },
      },
      clock,
    );
    clock.advance(3);
    for (const name of ['start', 'model']) {
      phases.begin(name);
      clock.advance(10);
    }
    phases.end();
    expect(durations).toEqual([20, 57]);
    clock.advance(1000);
    expect([phases.elapsedMs(), phases.workingMs()]).toEqual([77, 77]);
  });

  test('waiting for others is elapsed time but not working time', () => {
    const clock = fakeClock();
    const phases = trackPhases({ began: () => {}, ended: () => {} }, clock);
    for (const [name, ms] of [
      ['pull', 100],
      ['model', 20],
      ['rate_wait', 50],
      ['backoff', 30],
    ] as const) {
      phases.begin(name);
      clock.advance(ms);
    }
    expect(phases.elapsedMs()).toBe(200);
    expect(phases.workingMs()).toBe(20);
  });

  test('a phase over its deadline stalls with its name; one that ended in time does not [T-63]', () => {
    const clock = fakeClock();
    const stalls: StopReason[] = [];
    const phases = trackPhases(
      { began: () => {}, ended: () => {} },
      { ...clock, deadlinesMs: { start: 1000, exec: 500 }, onStall: (s) => stalls.push(s) },
    );
    phases.begin('start');
    clock.advance(900);
    phases.begin('exec');
    clock.advance(400);
    expect(stalls).toEqual([]);
    clock.advance(200);
    expect(stalls[0]).toMatchObject({ reason: 'stalled', detail: 'exec' });
  });

  test('the same phase again is one phase', () => {
    const names: string[] = [];
    const phases = trackPhases({ began: (_s, n) => names.push(n), ended: () => {} }, fakeClock());
    phases.begin('model');
    phases.begin('model');
    expect(names).toEqual(['model']);
  });

  test('the same phase again is progress: calls of a program that overlap do not stall, the last of them does', () => {
    const clock = fakeClock();
    const stalls: StopReason[] = [];
    const ended: number[] = [];
    const phases = trackPhases(
      { began: () => {}, ended: (_seq, duration) => ended.push(duration) },
      { ...clock, deadlinesMs: { model: 2000 }, onStall: (s) => stalls.push(s) },
    );
    for (let call = 0; call < 5; call += 1) {
      phases.begin('model');
      clock.advance(1000);
    }
    expect(stalls).toEqual([]);
    clock.advance(1000);
    expect(stalls).toMatchObject([{ reason: 'stalled', detail: 'model' }]);
    phases.end();
    expect(ended).toEqual([6000]);
  });
});
