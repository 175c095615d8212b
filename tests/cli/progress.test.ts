// What a person sees of a run on a terminal; the terminal is a real one, made by script(1).
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { setColor } from '../../src/cli/flags/everyVerb.ts';
import { paintErr, paintMark } from '../../src/cli/terminal/context.ts';
import { createProgress, wrap } from '../../src/cli/terminal/progress.ts';
import {
  apply,
  doneText,
  newState,
  overallText,
  reasonsText,
  type State,
  slotRows,
} from '../../src/cli/terminal/progressState.ts';
import type { RunEvent } from '../../src/run/events.ts';

const trial = (trialId: number) => ({ trialId, instanceId: `a__a-${trialId}`, arm: 'm', epoch: 1 });
const stateAfter = (...events: RunEvent[]) => {
  const state = newState(2);
  for (const event of events) apply(state, event);
  return state;
};
const rowsOf = (state: State, rows: number, width = 78) =>
  slotRows(state, { now: Date.now(), idle: true, rows, width });
const started: RunEvent[] = [
  {
    type: 'run_started',
    run: 'r',
    planned: 3,
    toDo: 3,
    slots: 2,
    arms: 1,
    epochs: 1,
    budgetNano: 5e9,
    spentNano: 1e9,
  },
  { type: 'trial_started', trial: trial(1), slot: 1, attempt: 1 },
  { type: 'trial_started', trial: trial(2), slot: 2, attempt: 1 },
  { type: 'step', trial: trial(1), slot: 1, step: 1, costNano: 0.25e9 },
  { type: 'step', trial: trial(2), slot: 2, step: 2, costNano: null },
];
const ended: RunEvent = {
  type: 'trial_ended',
  trial: trial(1),
  slot: 1,
  attempt: 1,
  exitReason: 'submitted',
  exitClass: 'agent',
  detail: null,
  message: null,
  sealed: true,
  steps: 1,
  costNano: 0.25e9,
  elapsedMs: 10,
  patchBytes: 1,
};

describe('texts', () => {
  test('why an instance failed that is not the model’s fault stands below the slots; other ends leave the note', () => {
    const failed = (exitClass: 'infra' | 'limit'): RunEvent => ({
      ...ended,
      exitReason: exitClass === 'infra' ? 'env_start_failed' : 'limit_steps',
      exitClass,
      message: 'no space left',
    });
    expect(stateAfter(...started, failed('infra')).lastNote).toBe('a__a-1 env_start_failed: no space left');
    expect(stateAfter(...started, failed('limit')).lastNote).toBe('');
  });
  test('the cost of all counts what the running ones have spent, once', () => {
    expect(overallText(stateAfter(...started), Date.now())).toMatch(/^\$1\.25 of \$5\.00 /);
    expect(overallText(stateAfter(...started, ended), Date.now())).toMatch(/^\$1\.25 of \$5\.00 /);
  });
  test('what waits for its grading is shown, and counts as time that is left', () => {
    const [start, ...others] = started;
    const begin = { ...start!, toDo: 1, grading: { workers: 1, open: 1 } } as RunEvent;
    const graded: RunEvent = {
      type: 'graded',
      trial: trial(9),
      outcome: 'resolved',
      resolved: true,
      durationMs: 90_000,
    };
    const state = stateAfter(begin, ...others, ended, graded);
    expect(overallText(state, Date.now())).toMatch(/ETA 1:30-3:00 · resolved 1\/1 · 1 to grade$/);
    apply(state, { ...graded, trial: trial(1) });
    expect(overallText(state, Date.now())).toMatch(/ETA 0:00 · resolved 2\/2$/);
  });
  test('a budget without room for the next call is not called spent; a share of it is', () => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const progress = createProgress(2, 'plain');
    for (const percent of [80, 100])
      progress.listener({ type: 'budget', percent, spentNano: 80_000_000, budgetNano: 100_000_000 });
    progress.stop();
    const said = write.mock.calls.map(([text]) => String(text)).join('');
    expect(said).toContain('budget: 80 % ($0.08 of $0.10 spent)');
    expect(said).toContain(
      'run budget $0.10: $0.08 spent, and the next call could cost more than the $0.02 left',
    );
    expect(said).not.toContain('100 %');
    write.mockRestore();
  });
  test('a grading that could not judge says why, in its first line and without the name of the instance twice', () => {
    const message = 'a__a-1: reward.txt holds "nan", which is not a number\nlast output';
    const graded: RunEvent = {
      ...{ type: 'graded', trial: trial(1), outcome: 'infra', resolved: null, durationMs: 5, message },
    };
    const said = 'a__a-1 graded infra: reward.txt holds "nan", which is not a number';
    expect(stateAfter(...started, graded).lastNote).toBe(said);
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const progress = createProgress(2, 'plain');
    for (const event of [...started, graded]) progress.listener(event);
    progress.stop();
    const lines = write.mock.calls.map(([text]) => String(text)).join('');
    write.mockRestore();
    expect(lines).toContain(`${said}\n`);
  });
  test('a run that is stopping has no remaining time', () => {
    expect(overallText(stateAfter(...started, ended), Date.now())).toContain('ETA');
    const stopping: RunEvent = { type: 'stopping', stage: 1, reason: 'SIGINT', next: 'nothing new' };
    expect(overallText(stateAfter(...started, ended, stopping), Date.now())).not.toContain('ETA');
  });
  test('a run that is paused says so instead of a remaining time', () => {
    const paused: RunEvent = { type: 'paused', reason: 'a person paused the run' };
    expect(overallText(stateAfter(...started, ended, paused), Date.now())).toMatch(/ · paused$/);
    const resumed: RunEvent = { type: 'resumed', reason: 'a person lets the run go on' };
    expect(overallText(stateAfter(...started, ended, paused, resumed), Date.now())).toContain('ETA');
  });
  test('a slot shows instance, step, phase and cost; an unknown cost is not 0', () => {
    const state = stateAfter(...started, { type: 'phase', trial: trial(1), slot: 1, phase: 'exec' });
    state.workers = 3;
    const [first, second, third] = rowsOf(state, 5);
    expect(first).toMatch(/^ {2}1 a__a-1 +step {3}1 exec 0:00 +\$0\.25$/);
    expect(second).not.toContain('$0.00');
    expect(third).toBe('  3 idle');
  });
  test('a long id is cut at its left, where ids are alike, and keeps its column [M-54]', () => {
    const long: RunEvent = {
      type: 'trial_started',
      trial: { ...trial(3), instanceId: `${'long-organisation'.repeat(3)}__repo-4711` },
      slot: 1,
      attempt: 1,
    };
    const [row] = rowsOf(stateAfter(long), 5);
    expect(row).toMatch(/^ {2}1 …[a-z-]+__repo-4711 step {3}0 start/);
    expect(row!.indexOf(' step')).toBe(43);
  });
  test('slots that do not fit are counted', () => {
    const rows = rowsOf({ ...stateAfter(...started), workers: 20 }, 5);
    expect(rows).toHaveLength(5);
    expect(rows[4]).toBe('    16 more slots, 0 of them at work');
    expect(rowsOf({ ...stateAfter(...started), workers: 4 }, 5)).toHaveLength(4);
  });
  const at = (slot: number): RunEvent => ({ type: 'trial_started', trial: trial(slot), slot, attempt: 1 });
  test('where slots do not fit, those at work come first', () => {
    const far = rowsOf({ ...stateAfter(...started, at(17)), workers: 20 }, 5);
    expect(far.map((row) => row.trim().split(/ +/, 2).join(' '))).toEqual([
      ...['1 a__a-1', '2 a__a-2', '3 idle', '17 a__a-17', '16 more'],
    ]);
    const many = rowsOf({ ...stateAfter(...started, at(9), at(16), at(17)), workers: 20 }, 5);
    expect(many[3]).toMatch(/^ 16 a__a-16/);
    expect(many[4]).toBe('    16 more slots, 1 of them at work');
  });
  test('slots that "ctl workers" took away are shown until they are free, those that it added are counted', () => {
    const asked = (n: number): RunEvent => ({
      ...{ type: 'control', command: 'workers', argument: String(n), by: 'me' },
      ...{ done: true, answer: '' },
    });
    const fewer = stateAfter(...started, at(17), asked(2));
    expect(rowsOf(fewer, 5).map((row) => row.slice(0, 3))).toEqual(['  1', '  2', ' 17']);
    const more = stateAfter(...started, asked(30));
    expect(rowsOf(more, 5).at(-1)).toBe('    26 more slots, 0 of them at work');
  });
  test.each([78, 118])('arm and epoch are shown where there are several, in %d columns', (width) => {
    const [start] = started;
    const several = { ...start!, arms: 2, epochs: 3 } as RunEvent;
    const label = {
      ...trial(1),
      instanceId: 'django__django-11099',
      arm: 'openrouter_z-ai_glm-4.6',
      epoch: 2,
    };
    const begin: RunEvent = { type: 'trial_started', trial: label, slot: 1, attempt: 1 };
    const rows = rowsOf(stateAfter(several, begin), 2, width);
    expect(rows[0]).toMatch(/ {2}1 .*11099 +openrouter\S+ +ep 2 step {3}0 start 0:00 /);
    expect(rows[0]!.length).toBeLessThanOrEqual(width);
    expect(rowsOf(stateAfter(...started), 2, width)[0]).not.toMatch(/ep 1| m /);
  });
  test('a run that is resumed starts at what earlier sittings decided', () => {
    const [start] = started;
    const again = { ...start!, planned: 14, toDo: 10, sealed: 4 } as RunEvent;
    expect(doneText(stateAfter(again))).toBe('4/14');
    expect(doneText(stateAfter(again, ended))).toBe('5/14');
    const graded = { ...again, graded: { resolved: 3, total: 4 } } as RunEvent;
    expect(stateAfter(graded).graded).toEqual({ resolved: 3, total: 4 });
  });
  test('exit reasons are counted, the most frequent first [M-54]', () => {
    const again = (exitReason: 'submitted' | 'provider_error'): RunEvent =>
      ({ ...ended, exitReason }) as RunEvent;
    expect(reasonsText(stateAfter(again('provider_error'), again('submitted'), again('submitted')))).toBe(
      'submitted 2 · provider_error 1',
    );
  });
  test('a sentence wraps at words; what does not fit its rows is cut', () => {
    expect(wrap('one two three', 8, 2)).toEqual(['one two ', 'three   ']);
    expect(wrap('one two three four', 8, 2)).toEqual(['one two ', 'three f…']);
    expect(wrap('', 4, 2)).toEqual(['    ', '    ']);
  });
});

describe('colours', () => {
  const env = { ...process.env };
  afterEach(() => {
    process.env = { ...env };
    vi.restoreAllMocks();
  });

  test('--color says always or never, for the variables that everything reads', () => {
    const variables: NodeJS.ProcessEnv = { NO_COLOR: '1' };
    setColor(true, variables);
    expect(variables).toEqual({ FORCE_COLOR: '1' });
    setColor('auto', variables);
    expect(variables).toEqual({ FORCE_COLOR: '1' });
    setColor(false, variables);
    expect(variables).toEqual({ NO_COLOR: '1' });
  });

  test('FORCE_COLOR colours what goes into a file, NO_COLOR nothing', () => {
    delete process.env.NO_COLOR;
    process.env.FORCE_COLOR = '1';
    expect(paintErr('red', 'x')).toBe('\u001b[31mx\u001b[39m');
    expect(paintMark('warning: w')).toBe('\u001b[33mwarning\u001b[39m: w');
    delete process.env.FORCE_COLOR;
    process.env.NO_COLOR = '1';
    expect([paintErr('red', 'x'), paintMark('error: e')]).toEqual(['x', 'error: e']);
  });

  test('a CI gets lines, also where it gives a terminal', () => {
    let said = '';
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      said += String(text);
      return true;
    });
    const terminal = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY');
    Object.defineProperty(process.stderr, 'isTTY', { value: true, configurable: true });
    process.env.CI = '1';
    const progress = createProgress(2, 'auto');
    progress.listener(started[0]!);
    progress.stop();
    if (terminal) Object.defineProperty(process.stderr, 'isTTY', terminal);
    else delete (process.stderr as { isTTY?: boolean }).isTTY;
    expect(said).toMatch(/^\[0:00\] run r: 3 of 3 trials to do on 2 slots\n/);
    expect(said).not.toContain('\u001b');
  });
});

const SHOW = '\u001b[?25h';
const WRAP = '\u001b[?7h';
const onTerminal = (end: string): string => {
  const command = `stty rows 24 cols 80; ${process.execPath} ${join(import.meta.dirname, 'fixtures', 'bars.ts')} ${end}; echo code=$?`;
  return execFileSync('script', ['-qec', command, '/dev/null'], {
    encoding: 'utf8',
    stdio: 'pipe',
    timeout: 120_000,
  });
};

describe.skipIf(process.platform !== 'linux')('on a terminal', () => {
  test('what is said above the rows is not cut at the edge, as the rows are', () => {
    const shown = onTerminal('stop');
    const before = shown.slice(0, shown.indexOf('and its end'));
    expect(before.length).toBeLessThan(shown.length);
    expect(before.lastIndexOf(WRAP)).toBeGreaterThan(before.lastIndexOf('\u001b[?7l'));
  });
  test('a stop takes the rows away and says how it ended, in 80 columns', () => {
    const shown = onTerminal('stop');
    expect(shown).toContain('$1.25');
    expect(shown).toContain('warning: said above the rows');
    const rest = shown.slice(shown.lastIndexOf(SHOW));
    expect(rest).toContain(WRAP);
    expect(rest).toMatch(/0\/2 done in 0:\d\d/);
    expect(rest).not.toContain('a__a-1');
  });
  test('an exit without a stop gives cursor and line wrapping back', () => {
    const shown = onTerminal('exit');
    expect(shown).toContain('code=130');
    expect(shown.lastIndexOf(SHOW)).toBeGreaterThan(shown.lastIndexOf('\u001b[?25l'));
    expect(shown.lastIndexOf(WRAP)).toBeGreaterThan(shown.lastIndexOf('\u001b[?7l'));
  });
});
