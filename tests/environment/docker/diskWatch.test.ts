// The watch over the writable layer where the storage driver has no quota.
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { createDiskWatch, createQuotaProbe } from '../../../src/environment/docker/diskWatch.ts';

/** Looks that the test answers. */
function looks() {
  const open: ((bytes: number) => void)[] = [];
  let begun: () => void = () => undefined;
  const measure = () =>
    new Promise<number>((resolve) => {
      open.push(resolve);
      begun();
    });
  const nextLook = () =>
    new Promise<void>((resolve) => {
      begun = resolve;
    });
  return { open, measure, nextLook };
}
const tick = () => new Promise((done) => setImmediate(done));

describe('disk watch', () => {
  test('what a look finds after its command is told to the next one', async () => {
    const { open, measure, nextLook } = looks();
    const watch = createDiskWatch(measure, 100, 0);
    const told: number[] = [];
    const first = nextLook();
    const unwatch = watch((bytes) => told.push(bytes));
    await first;
    unwatch();
    open[0]!(101);
    await tick();
    expect(told).toEqual([]);
    watch((bytes) => told.push(bytes))();
    expect(told).toEqual([101]);
  });

  test('one look at a time, however many commands pass meanwhile', async () => {
    const { open, measure, nextLook } = looks();
    const watch = createDiskWatch(measure, 100, 0);
    const first = nextLook();
    const unwatch = watch(() => undefined);
    await first;
    unwatch();
    for (let i = 0; i < 5; i += 1) {
      const end = watch(() => undefined);
      await new Promise((done) => setTimeout(done, 2));
      end();
    }
    expect(open.length).toBe(1);
  });

  test('at the limit nothing is told; an engine that does not answer stops nobody', async () => {
    const watch = createDiskWatch(() => Promise.reject(new Error('no answer')), 100, 0);
    const told: number[] = [];
    const unwatch = watch((bytes) => told.push(bytes));
    await new Promise((done) => setTimeout(done, 5));
    unwatch();
    expect(told).toEqual([]);
  });

  test('no limit, no watch', () => {
    const { open, measure } = looks();
    createDiskWatch(measure, 0, 0)(() => undefined)();
    expect(open).toEqual([]);
  });
});

test('an engine that does not say which driver it has is asked again for the next container', async () => {
  let asked = 0;
  const docker = {
    info: async () => {
      asked += 1;
      if (asked === 1) throw new Error('the Docker daemon took the request and gave no answer within 60 s');
      return { Driver: 'btrfs' };
    },
  } as unknown as Docker;
  const { bytes } = createQuotaProbe(docker, '1g');
  expect([await bytes(), await bytes(), await bytes()]).toEqual([0, 1024 ** 3, 1024 ** 3]);
  expect(asked).toBe(2);
});
