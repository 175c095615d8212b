// The disk floor: below it the reserve is given up and the run told once; above it, with some distance, the run goes on.
import { existsSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDiskFloor, leastFree, reserveFile } from '../../../src/run/control/diskFloor.ts';

const GIB = 2 ** 30;

function watched(start: number | undefined) {
  let free = start;
  let look = () => {};
  const said: string[] = [];
  const held = { there: false };
  const floor = createDiskFloor({
    floorBytes: 2 * GIB,
    free: () => free,
    reserve: {
      bytes: GIB / 8,
      keep: () => {
        held.there = true;
      },
      giveUp: () => {
        const was = held.there;
        held.there = false;
        return was;
      },
    },
    setTimer: (fn) => {
      look = fn;
      return { cancel: () => said.push('cancelled') };
    },
  });
  floor.watch(
    (message) => said.push(`${message} reserve ${held.there}`),
    () => said.push('room'),
  );
  return {
    floor,
    said,
    held,
    at(bytes: number | undefined) {
      free = bytes;
      look();
    },
  };
}

test('low is told once with the figures, after the reserve was given up; room only with distance to the floor', () => {
  const { said, held, at, floor } = watched(10 * GIB);
  expect(held.there).toBe(true);
  at(1.9 * GIB);
  at(1.8 * GIB);
  expect(floor.low).toBe(true);
  at(2.1 * GIB);
  expect(said).toEqual(['disk_full 1.9 GiB < 2 GiB floor reserve false']);
  at(3 * GIB);
  expect(said.slice(1)).toEqual(['room']);
  expect(held.there).toBe(true);
  floor.close();
  expect(held.there).toBe(false);
  expect(said.at(-1)).toBe('cancelled');
});

test('a disk that is low from the start is told at once; one that cannot be seen stops nothing', () => {
  expect(watched(GIB).said).toEqual(['disk_full 1 GiB < 2 GiB floor reserve false']);
  expect(watched(undefined).said).toEqual([]);
});

test('a write that found no room gets the reserve, once, and the run is told right after', async () => {
  const { floor, said } = watched(10 * GIB);
  expect(floor.relieve()).toBe(true);
  expect(said).toEqual([]);
  await Promise.resolve();
  expect(said).toEqual(['disk_full 10 GiB < 2 GiB floor reserve false']);
  expect(floor.relieve()).toBe(false);
});

test('the reserve is a file with its blocks really taken', () => {
  const dir = mkdtempSync(join(tmpdir(), 'floor-'));
  const reserve = reserveFile(dir, 16 * 2 ** 20);
  reserve.keep();
  const { size, blocks } = statSync(join(dir, '.reserve'));
  expect(size).toBe(2 * 2 ** 20);
  expect(blocks * 512).toBeGreaterThanOrEqual(size);
  expect(reserve.giveUp()).toBe(true);
  expect(reserve.giveUp()).toBe(false);
  expect(existsSync(join(dir, '.reserve'))).toBe(false);
  expect(leastFree([dir, '/no/such/folder'])).toBeGreaterThan(0);
  expect(leastFree(['/no/such/folder'])).toBeUndefined();
});
