// A container that is not removed when it is asked for is named, tried until it is gone, and named again where it stays.
import { expect, test } from 'vitest';
import { createRemovals } from '../../src/environment/container/removals.ts';

const watch = { back: async () => undefined };

function removing(refusals: number, graceMs = 10_000) {
  let asked = 0;
  const said: string[] = [];
  const removals = createRemovals({ watch, graceMs, waits: [1], warn: (text) => said.push(text) });
  const remove = async () => {
    asked += 1;
    return asked > refusals;
  };
  return {
    ...{ said, asked: () => asked, end: removals.close },
    discard: () => removals.discard({ name: 'pod a', remove, byHand: 'kubectl delete pod a' }),
  };
}

test('it is said with its name, tried again, and said when it is gone', async () => {
  const { discard, end, said, asked } = removing(1);
  await discard();
  await end();
  expect(asked()).toBe(2);
  expect(said).toEqual(['pod a could not be removed; it is tried again', 'pod a is removed now']);
});

test('one that is removed at once is not spoken of', async () => {
  const { discard, end, said } = removing(0);
  await discard();
  await end();
  expect(said).toEqual([]);
});

test('while the run works it is tried for as long as it takes', async () => {
  const { discard, said, asked } = removing(50);
  await discard();
  await expect.poll(() => said.at(-1)).toBe('pod a is removed now');
  expect(asked()).toBe(51);
});

test('at the end of the run it is tried until it is gone', async () => {
  const { discard, end, said } = removing(20);
  await discard();
  await end();
  expect(said.at(-1)).toBe('pod a is removed now');
});

test('the end of the run waits no longer than the grace, and names what stays', async () => {
  const { discard, end, said, asked } = removing(Number.POSITIVE_INFINITY, 50);
  await discard();
  await end();
  expect(asked()).toBeGreaterThan(1);
  expect(said.at(-1)).toBe(
    'pod a is still there: kubectl delete pod a removes it, or "swebatch clean" once this run has ended',
  );
});

test('a removal without an answer does not hold up the end', async () => {
  const removals = createRemovals({ watch, graceMs: 20, waits: [1] });
  let asked = 0;
  const remove = () => (asked++ === 0 ? Promise.resolve(false) : new Promise<boolean>(() => {}));
  await removals.discard({ name: 'pod a', remove, byHand: 'rm' });
  await removals.close();
  expect(asked).toBe(2);
});
