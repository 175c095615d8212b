// The remaining time that a person sees.
import { expect, test } from 'vitest';
import { etaWithGradings } from '../../src/cli/terminal/progressState.ts';

const eta = (durations: number[], remaining: number, slots: number, forecast?: number) =>
  etaWithGradings({ durations, remaining, slots, forecast }, { workers: 1, open: 0, durations: [0] });

test('with history it is the forecast and a margin; without, a range from what has finished', () => {
  expect(eta([], 5, 2, 100_000)).toBe('1:40-2:15');
  expect(eta([10_000, 10_000], 4, 2)).toBe('0:20-0:30');
  expect(eta([], 4, 2)).toBe('?');
  expect(eta([10_000], 0, 2, 100_000)).toBe('0:00');
});

test('gradings are work: the run is done when the last of them is', () => {
  const done = { durations: [60_000, 60_000], remaining: 0, slots: 4 };
  // Six open ones on two workers, 100 s each.
  expect(etaWithGradings(done, { workers: 2, open: 6, durations: [100_000] })).toBe('5:00-6:40');
  expect(etaWithGradings(done, { workers: 2, open: 6, durations: [] })).toBe('?');
  expect(etaWithGradings(done, { workers: 2, open: 0, durations: [100_000] })).toBe('0:00');
  // The trials take longer than what is to grade: the last grading comes after the last of them.
  const working = { durations: [600_000], remaining: 4, slots: 4 };
  expect(etaWithGradings(working, { workers: 4, open: 1, durations: [10_000] })).toBe('10:10-20:10');
  // The other way: grading is slower than the trials.
  expect(etaWithGradings(working, { workers: 1, open: 6, durations: [300_000] })).toBe('50:00-55:00');
});
