// With many slots memory is given back when it has grown, and not all the time.
import { expect, test } from 'vitest';
import { whenGrown } from '../../src/cli/terminal/smallHeap.ts';

const MB = 2 ** 20;

/** A process of 100 MB. What it is at the next look, and how often it has been collected then; `leaves`: the MB after a collection. */
function grows(leaves: (mb: number) => number): (mb: number) => number {
  let mb = 100;
  let times = 0;
  const look = whenGrown(
    () => mb * MB,
    () => {
      times += 1;
      mb = leaves(mb);
    },
  );
  return (now) => {
    mb = now;
    look();
    return times;
  };
}

test('it is collected after each growth of 32 MiB, counted from what the last time left', () => {
  const at = grows(() => 110);
  expect([at(131), at(132), at(141), at(142)]).toEqual([0, 1, 1, 2]);
});

test('what is in use is not collected at every look', () => {
  const at = grows((mb) => mb);
  expect(Array.from({ length: 10 }, () => at(400))).toEqual(Array(10).fill(1));
});
