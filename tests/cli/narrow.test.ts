// On a narrow terminal a line leaves out whole parts, and the bar counts gradings as work.
import { expect, test } from 'vitest';
import { slotRows } from '../../src/cli/terminal/progress.ts';
import { apply, fitParts, newState, workDone } from '../../src/cli/terminal/progressState.ts';

const LINE = '$0.12 of $20.00 · 1:02 · ETA 3:00-4:10 · resolved 4/9 · 3 to grade';

test.each([20, 40, 58, 78])('at %i columns no word of a line is cut', (width) => {
  const shown = fitParts(LINE, width);
  expect(shown).toHaveLength(width);
  expect(LINE.startsWith(shown.trimEnd())).toBe(true);
  expect(`${LINE} · `.startsWith(`${shown.trimEnd()} · `)).toBe(true);
});

test('a row of a slot is as wide as the terminal, with its cost whole', () => {
  const state = newState();
  const label = { trialId: 1, instanceId: 'scikit-learn__scikit-learn-14894', arm: 'a', epoch: 1 };
  apply(state, { type: 'trial_started', slot: 1, trial: label } as never);
  for (const width of [58, 78]) {
    const [row] = slotRows(state, 1, 4, width);
    expect(row!.length).toBeLessThanOrEqual(width);
    expect(row).toMatch(/-14894 step {3}0 start 0:00 +\$0\.00$/);
  }
});

test('a trial whose grading is open is half done', () => {
  const state = { ...newState(), sealed: 1, done: 2, toDo: 4 };
  expect(workDone(state)).toBe(6);
  expect(workDone({ ...state, grading: { workers: 1, open: 2, durations: [] } })).toBe(4);
});
