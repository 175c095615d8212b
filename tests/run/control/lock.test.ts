// One lock a run: the second is refused by name, a dead owner's lock is taken over by one process alone, only the owner releases it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type Exclusively,
  type LockHolder,
  type LockResult,
  takeLock,
} from '../../../src/run/control/lock.ts';
import { openStore } from '../../../src/store/open.ts';
import { guarded } from '../../../src/store/writing.ts';

const holder = (pid: number): LockHolder => ({
  pid,
  pidStart: `${pid}0`,
  bootId: 'boot',
  host: 'host-a',
  since: '2026-01-01T00:00:00Z',
});
const path = () => join(mkdtempSync(join(tmpdir(), 'lock-')), 'run', 'lock.json');
const alone: Exclusively = (work) => work();
const take = (file: string, pid: number, alive: boolean) => takeLock(file, holder(pid), () => alive, alone);

describe('run lock', () => {
  test('the second taker is told who holds it', () => {
    const file = path();
    expect(take(file, 1, true).ok).toBe(true);
    const second = take(file, 2, true);
    expect(second).toMatchObject({ ok: false });
    expect(!second.ok && second.message).toContain('locked by pid 1 on host-a since 2026-01-01');
  });

  test('the lock of a dead process is taken over and said so', () => {
    const file = path();
    take(file, 1, true);
    expect(take(file, 2, false)).toMatchObject({ ok: true, tookOver: { pid: 1 } });
    expect(JSON.parse(readFileSync(file, 'utf8')).pid).toBe(2);
    expect(readdirSync(dirname(file))).toEqual(['lock.json']);
  });

  test('of two that find the same dead lock, the slower does not remove the lock of the faster [T-51]', () => {
    const file = path();
    take(file, 1, true);
    const database = join(dirname(file), 'swebatch.db');
    const [mine, theirs] = [openStore(database), openStore(database, { busyTimeoutMs: 1 })];
    const keptApart = (store: typeof mine) => (work: () => LockResult) =>
      guarded(store, () => store.transaction(work).immediate());
    const outcomes: unknown[] = [];
    const isAlive = () => {
      // While this one looks at the dead owner, another process comes to the same lock.
      try {
        outcomes.push(takeLock(file, holder(3), () => false, keptApart(theirs) as Exclusively).ok);
      } catch (error) {
        outcomes.push((error as { code?: string }).code);
      }
      return false;
    };
    const won = takeLock(file, holder(2), isAlive, keptApart(mine) as Exclusively);
    expect([won.ok, ...outcomes]).toEqual([true, 'busy']);
    expect(JSON.parse(readFileSync(file, 'utf8')).pid).toBe(2);
    expect(takeLock(file, holder(3), () => true, keptApart(theirs) as Exclusively).ok).toBe(false);
  });

  test('a lock that finds no room on the disk is not there at all: nobody sees half of it [T-51]', (context) => {
    const file = path();
    const folder = dirname(file);
    mkdirSync(folder);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
    } catch {
      return context.skip('mounting a file system needs root');
    }
    try {
      expect(() => writeFileSync(join(folder, 'full'), Buffer.alloc(2 ** 20))).toThrow(/ENOSPC/);
      expect(() => take(file, 1, true)).toThrow(/ENOSPC/);
      expect(existsSync(file)).toBe(false);
    } finally {
      execFileSync('umount', [folder]);
    }
  });

  test('a lock that is no lock does not block for ever', () => {
    const file = path();
    const first = take(file, 1, true);
    if (first.ok) first.release();
    writeFileSync(file, '{"pid": 1, "pidSt');
    expect(take(file, 2, true).ok).toBe(true);
  });

  test('release removes only the own lock', () => {
    const file = path();
    const first = take(file, 1, true);
    take(file, 2, false);
    if (first.ok) first.release();
    expect(existsSync(file)).toBe(true);
  });
});
