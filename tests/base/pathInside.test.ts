// Paths below a root: nothing that a name can hold leads out of it.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OutsideRootError, pathInside } from '../../src/base/files/pathInside.ts';
import { tempDir } from '../support/cli.ts';

test.each([
  ['..'],
  ['../x'],
  ['a/../../x'],
  ['a/../b'],
  ['.'],
  ['/etc/passwd'],
  ['a//b'],
  ['a/'],
  ['a\0b'],
  ['x'.repeat(256)],
  ['é'.repeat(128)],
  ['a', '..', '..', 'x'],
  [Array.from({ length: 40 }, () => 'y'.repeat(120)).join('/')],
])('%j is refused', (...parts) => {
  expect(() => pathInside('/tmp/root', ...parts)).toThrow(OutsideRootError);
});

test('names of one or several parts are joined; an empty part is none', () => {
  expect(pathInside('/r', '', 'a b', 'c/d', '..e', '...')).toBe('/r/a b/c/d/..e/...');
  expect(pathInside('/r')).toBe('/r');
  expect(pathInside('/r', 'x'.repeat(255))).toHaveLength(258);
});

test('links are followed inside the root only', () => {
  const home = tempDir();
  const root = join(home, 'root');
  mkdirSync(join(root, 'real'), { recursive: true });
  mkdirSync(join(home, 'root-beside'));
  writeFileSync(join(home, 'file'), '');
  symlinkSync('real', join(root, 'near'));
  symlinkSync(home, join(root, 'far'));
  symlinkSync('../root-beside', join(root, 'beside'));
  symlinkSync('../file', join(root, 'file'));
  symlinkSync('../nowhere', join(root, 'dangling'));
  symlinkSync('loop', join(root, 'loop'));
  expect(pathInside(root, 'near', 'new')).toBe(join(root, 'near', 'new'));
  for (const name of ['far', 'far/root/real', 'beside/x', 'file', 'dangling', 'loop', 'near/../far'])
    expect(() => pathInside(root, name), name).toThrow(OutsideRootError);
  // The root that a person named may be a link.
  symlinkSync(root, join(home, 'link'));
  expect(pathInside(join(home, 'link'), 'near')).toBe(join(home, 'link', 'near'));
});
