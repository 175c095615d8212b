// In which order trials take their slots, with images that become ready in any order.
import { expect, test } from 'vitest';
import { runConfigSchema } from '../../../src/config/configSchema.ts';
import type { TrialImages } from '../../../src/run/places/trialImages.ts';
import type { PlannedTrial } from '../../../src/run/plannedTrial.ts';
import { createDelays, createTrialQueue, type TrialQueue } from '../../../src/run/schedule/trialQueue.ts';
import { openedRun } from '../openedRun.ts';

const trialOf = (n: number) =>
  ({
    id: n,
    image: `image-${n}`,
    arm: { environment: { environment_class: 'docker' } },
  }) as unknown as PlannedTrial;

const PREPARATION = { waits() {}, taken() {}, slotEmptying() {}, giveUp() {} };
const throws = (error: unknown) => {
  throw error;
};

function createQueue<Outcome>(
  workers: number,
  images: TrialImages | undefined,
  work: Pick<Parameters<typeof createTrialQueue<Outcome>>[1], 'attempt'> &
    Partial<Parameters<typeof createTrialQueue<Outcome>>[1]>,
): TrialQueue {
  return createTrialQueue<Outcome>(openedRun({ config: runConfigSchema.parse({ workers }), images }), {
    ...{ preparation: PREPARATION, delays: createDelays(), isCancelled: () => false },
    ...{ attempted: () => undefined, onError: throws },
    ...work,
  });
}

/** The trials in the order of their starts. `readyAfter`: turns of the event loop until an image is there. */
async function starts(
  workers: number,
  count: number,
  readyAfter: (n: number) => number,
  isHere: (image: string) => boolean,
): Promise<number[]> {
  const started: number[] = [];
  const turns = async (n: number) => {
    for (let i = 0; i < n; i++) await new Promise((turn) => setImmediate(turn));
  };
  const queue = createQueue<number>(
    workers,
    {
      ahead: 3,
      isHere,
      ready: async (image) => {
        await turns(readyAfter(Number(image.slice(6))));
        return { failure: undefined };
      },
      mayStart: async () => {
        await turns(started.length === 0 ? 5 : 1);
        return true;
      },
      finish: async () => undefined,
    },
    {
      attempt: async ({ trial }) => {
        started.push(trial.id);
        await turns(3);
        return trial.id;
      },
    },
  );
  await queue.workThrough(Array.from({ length: count }, (_, n) => trialOf(n)));
  return started;
}

const inOrder = (count: number) => Array.from({ length: count }, (_, n) => n);

test.each([1, 2, 3, 6, 20])(
  'images that are here: the order of the dataset, with %d workers',
  async (workers) => {
    // The later an image, the sooner its engine answers.
    expect(
      await starts(
        workers,
        12,
        (n) => 30 - n,
        () => true,
      ),
    ).toEqual(inOrder(12));
  },
);

test('a trial whose image is pulled is overtaken, and holds up nobody', async () => {
  const order = await starts(
    1,
    4,
    (n) => (n === 0 ? 40 : 10 - n),
    (image) => image !== 'image-0',
  );
  expect(order).toEqual([1, 2, 3, 0]);
});

/** A queue whose trials end when they are told to. */
function heldQueue(workers: number) {
  const ends = new Map<number, () => void>();
  const slots = new Map<number, number>();
  const queue = createQueue<number>(workers, undefined, {
    isCancelled: (id) => id === 3,
    attempt: ({ trial, slot }) => {
      slots.set(trial.id, slot);
      return new Promise((resolve) => ends.set(trial.id, () => resolve(1)));
    },
    attempted: (trial) => void ends.delete(trial.id),
  });
  const settle = async () => {
    for (let i = 0; i < 20; i++) await new Promise((turn) => setImmediate(turn));
    return [...ends.keys()].sort((a, b) => a - b);
  };
  return { queue, ends, slots, settle };
}

test('more slots are used at once, fewer end nothing, and a cancelled trial never starts', async () => {
  const { queue, ends, slots, settle } = heldQueue(1);
  const all = queue.workThrough(inOrder(8).map(trialOf));
  expect(await settle()).toEqual([0]);
  queue.setWorkers(3);
  expect(await settle()).toEqual([0, 1, 2]);
  expect(new Set(slots.values())).toEqual(new Set([1, 2, 3]));
  queue.setWorkers(1);
  ends.get(0)!();
  ends.get(1)!();
  expect(await settle()).toEqual([2]);
  ends.get(2)!();
  expect(await settle()).toEqual([4]);
  // A probe runs alone, however many slots a person asks for, until the breaker lets all work.
  queue.limitSlots(1);
  queue.setWorkers(4);
  expect(await settle()).toEqual([4]);
  queue.allSlots();
  expect(await settle()).toEqual([4, 5, 6, 7]);
  expect(queue.workers()).toBe(4);
  for (const end of ends.values()) end();
  await all;
  expect(slots.has(3)).toBe(false);
});
