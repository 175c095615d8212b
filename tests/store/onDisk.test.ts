// Who waits until a row is on the disk shares one sync of the log with everybody else who waits.
import type * as fs from 'node:fs';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { onDisk } from '../../src/store/onDisk.ts';
import { tempDir } from '../support/cli.ts';
import { freshStore } from './storeFixtures.ts';

const syncs = vi.hoisted(() => ({
  begun: 0,
  hold: null as Promise<void> | null,
  error: null as Error | null,
}));

vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const fdatasync = (fd: number, done: (error: Error | null) => void) => {
    syncs.begun += 1;
    const { hold, error } = syncs;
    if (error) done(error);
    else if (hold) void hold.then(() => real.fdatasync(fd, done));
    else real.fdatasync(fd, done);
  };
  return { ...real, fdatasync };
});

beforeEach(() => {
  Object.assign(syncs, { begun: 0, hold: null, error: null });
});

const written = () => {
  const store = freshStore(join(tempDir(), 'swebatch.db'));
  const write = () => {
    store.exec('CREATE TABLE IF NOT EXISTS t (x)');
    store.exec('INSERT INTO t VALUES (1)');
  };
  write();
  return { store, write };
};

test('512 slots that wait at the same time cost one sync', async () => {
  const { store } = written();
  await Promise.all(Array.from({ length: 512 }, () => onDisk(store)));
  expect(syncs.begun).toBe(1);
});

test('what was written while a sync runs waits for the next one', async () => {
  const { store, write } = written();
  const disk = Promise.withResolvers<void>();
  syncs.hold = disk.promise;
  const first = onDisk(store);
  await vi.waitFor(() => expect(syncs.begun).toBe(1));
  write();
  let safe = false;
  const second = onDisk(store).then(() => {
    safe = true;
  });
  disk.resolve();
  await first;
  expect(safe).toBe(false);
  await second;
  expect(syncs.begun).toBe(2);
});

test('a disk that fails is an error of the record, and the next sync is tried', async () => {
  const { store } = written();
  syncs.error = new Error('EIO: i/o error');
  await expect(onDisk(store)).rejects.toMatchObject({ name: 'StorageError', code: 'write_failed' });
  syncs.error = null;
  await onDisk(store);
  expect(syncs.begun).toBe(2);
});

test('a database in memory has no disk to wait for', async () => {
  await onDisk(freshStore());
  expect(syncs.begun).toBe(0);
});

test.skipIf(process.platform !== 'linux')(
  'a closed database lets go of its log when the sync that runs has ended',
  async () => {
    const { store } = written();
    const log = `${store.name}-wal`;
    const targetOf = (name: string): string => {
      try {
        return readlinkSync(join('/proc/self/fd', name));
      } catch {
        return '';
      }
    };
    const held = () => readdirSync('/proc/self/fd').filter((name) => targetOf(name).startsWith(log));
    const disk = Promise.withResolvers<void>();
    syncs.hold = disk.promise;
    const first = onDisk(store);
    await vi.waitFor(() => expect(syncs.begun).toBe(1));
    store[Symbol.dispose]();
    await new Promise((turned) => setImmediate(turned));
    expect(held()).toHaveLength(1);
    disk.resolve();
    await first;
    await new Promise((turned) => setImmediate(turned));
    expect(held()).toEqual([]);
  },
);
