// The remaining time that a person sees.
import { expect, test } from 'vitest';
import { etaText, newState } from '../../src/cli/terminal/progressState.ts';
import type { LiveRun, OpenGradings } from '../../src/run/liveRun.ts';

const eta = (
  { trials, workers, durations }: { trials: number; workers: number; durations: number[] },
  more: Partial<LiveRun> = {},
) => etaText({ ...newState(workers), planned: trials, durations, ...more }, 0);

test('with history it is the forecast and a margin; without, a range from what has finished', () => {
  const history = { expectedS: new Map([1, 2, 3, 4].map((trial) => [trial, 50])) };
  expect(eta({ trials: 4, workers: 2, durations: [] }, history)).toBe('1:40-2:15');
  expect(eta({ trials: 4, workers: 2, durations: [10_000, 10_000] })).toBe('0:20-0:30');
  expect(eta({ trials: 4, workers: 2, durations: [] })).toBe('?');
  expect(eta({ trials: 0, workers: 2, durations: [10_000] }, history)).toBe('0:00');
});

test('gradings are work: the run is done when the last of them is', () => {
  const done = { trials: 0, workers: 4, durations: [60_000, 60_000] };
  const withGradings = (trials: Parameters<typeof eta>[0], grading: OpenGradings) => eta(trials, { grading });
  // Six open ones on two workers, 100 s each.
  expect(withGradings(done, { workers: 2, open: 6, durations: [100_000] })).toBe('5:00-6:40');
  expect(withGradings(done, { workers: 2, open: 6, durations: [] })).toBe('?');
  expect(withGradings(done, { workers: 2, open: 0, durations: [100_000] })).toBe('0:00');
  // The trials take longer than what is to grade: the last grading comes after the last of them.
  const working = { trials: 4, workers: 4, durations: [600_000] };
  expect(withGradings(working, { workers: 4, open: 1, durations: [10_000] })).toBe('10:10-20:10');
  // The other way: grading is slower than the trials.
  expect(withGradings(working, { workers: 1, open: 6, durations: [300_000] })).toBe('50:00-55:00');
});
