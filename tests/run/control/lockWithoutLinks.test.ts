// Where the file system knows no hard links (exFAT, some shared folders) the lock is made in place, and holds as well.
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { takeLock } from '../../../src/run/control/lock.ts';

vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  linkSync: () => {
    throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
  },
}));

test('without hard links one of two wins, and a dead owner is replaced', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'lock-')), 'run', 'lock.json');
  const take = (pid: number, alive: boolean) =>
    takeLock(
      file,
      { pid, pidStart: '1', bootId: 'b', host: 'h', since: 'now' },
      () => alive,
      (work) => work(),
    );
  expect(take(1, true).ok).toBe(true);
  expect(take(2, true)).toMatchObject({ ok: false, holder: { pid: 1 } });
  expect(take(3, false)).toMatchObject({ ok: true, tookOver: { pid: 1 } });
  expect(JSON.parse(readFileSync(file, 'utf8')).pid).toBe(3);
});
