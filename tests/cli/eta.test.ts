// The remaining time that a person sees.
import { expect, test } from 'vitest';
import { eta } from '../../src/cli/terminal/progressState.ts';

test('with history it is the forecast and a margin; without, a range from what has finished', () => {
  expect(eta([], 5, 2, 100_000)).toBe('1:40-2:15');
  expect(eta([10_000, 10_000], 4, 2)).toBe('0:20-0:30');
  expect(eta([], 4, 2)).toBe('?');
  expect(eta([10_000], 0, 2, 100_000)).toBe('0:00');
});
