import { existsSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFolder } from '../../src/base/files/makeFolder.ts';

const root = (): string => mkdtempSync(join(tmpdir(), 'folder-'));

test('it makes every folder of a path and leaves one that is there', () => {
  const path = join(root(), 'a/b/c');
  makeFolder(path);
  makeFolder(path);
  expect(existsSync(path)).toBe(true);
});

test('where the kernel takes no names it fails and does not try for ever', () => {
  expect(() => makeFolder('/proc/no-such-process/results')).toThrow(/ENOENT/);
});

test('a file, or a link that leads nowhere, on the way is an error', () => {
  const dir = root();
  writeFileSync(join(dir, 'file'), '');
  symlinkSync('/nowhere/at/all', join(dir, 'link'));
  expect(() => makeFolder(join(dir, 'file/a'))).toThrow(/ENOTDIR/);
  expect(() => makeFolder(join(dir, 'link'))).toThrow(/EEXIST/);
});
