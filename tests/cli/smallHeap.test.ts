// With many slots memory is given back when it has grown, and not all the time.
import { expect, test } from 'vitest';
import { whenGrown } from '../../src/cli/terminal/smallHeap.ts';

const MB = 2 ** 20;

test('it is collected after each growth of 32 MiB, counted from what the last time left', () => {
  let bytes = 100 * MB;
  let times = 0;
  const look = whenGrown(
    () => bytes,
    () => {
      times += 1;
      bytes = 110 * MB;
    },
  );
  const at = (mb: number): number => {
    bytes = mb * MB;
    look();
    return times;
  };
  expect([at(131), at(132), at(141), at(142)]).toEqual([0, 1, 1, 2]);
});

test('what is in use is not collected at every look', () => {
  let bytes = 100 * MB;
  let times = 0;
  const look = whenGrown(
    () => bytes,
    () => {
      times += 1;
    },
  );
  bytes = 400 * MB;
  for (let n = 0; n < 10; n++) look();
  expect(times).toBe(1);
});
