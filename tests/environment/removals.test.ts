// A container that is not removed when it is asked for is named, tried until it is gone, and named again where it stays.
import { expect, test } from 'vitest';
import { createRemovals } from '../../src/environment/container/removals.ts';
import type { Removed } from '../../src/environment/places/leftovers.ts';

const watch = { back: async () => undefined };

function removing(refusals: number, graceMs = 10_000, how: Removed = 'refused') {
  let asked = 0;
  const said: string[] = [];
  const removals = createRemovals({ watch, graceMs, waits: [1], warn: (text) => said.push(text) });
  const remove = async (): Promise<Removed> => {
    asked += 1;
    return asked > refusals ? 'gone' : how;
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
  const remove = () => (asked++ === 0 ? Promise.resolve<Removed>('refused') : new Promise<Removed>(() => {}));
  await removals.discard({ name: 'pod a', remove, byHand: 'rm' });
  await removals.close();
  expect(asked).toBe(2);
});

test('one that the engine does not answer for holds up nobody, and what to do is told once', async () => {
  const said: string[] = [];
  const removals = createRemovals({
    watch,
    graceMs: 30,
    waits: [1],
    patienceMs: 5,
    warn: (text) => said.push(text),
  });
  let asked = 0;
  const remove = (): Promise<Removed> =>
    asked++ < 4
      ? new Promise((resolve) => setTimeout(() => resolve('unanswered'), 10))
      : new Promise(() => {});
  await removals.discard({ name: 'container a', remove, byHand: 'docker rm -f a', freedBy: 'kill b' });
  expect(said).toEqual([
    'container a could not be removed: its engine does not answer for it; kill b; it is tried again',
  ]);
  await expect.poll(() => asked).toBe(5);
  await removals.close();
  expect(said.slice(1)).toEqual([
    'container a is still there: docker rm -f a removes it, or "swebatch clean" once this run has ended',
  ]);
});

test('a first removal that never ends does not hold up the end', async () => {
  const removals = createRemovals({ watch, graceMs: 20, waits: [1], patienceMs: 5 });
  await removals.discard({ name: 'container a', remove: () => new Promise(() => {}), byHand: 'rm' });
  await removals.close();
});
