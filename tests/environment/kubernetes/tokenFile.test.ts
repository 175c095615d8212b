// The field `tokenFile` of a kubeconfig, which the client package does not read.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tokenFileOf } from '../../../src/environment/kubernetes/cluster.ts';
import { tempDir } from '../../support/cli.ts';

test('is that of the first file that names the user, relative to it', () => {
  const dir = tempDir();
  mkdirSync(join(dir, 'a'));
  const [first, second] = [join(dir, 'a', 'config'), join(dir, 'config')];
  writeFileSync(first, 'users: [{name: one, user: {tokenFile: ../token}}, {name: none, user: {token: x}}]');
  writeFileSync(
    second,
    'users: [{name: one, user: {tokenFile: /else}}, {name: two, user: {tokenFile: /two}}]',
  );
  const paths = [join(dir, 'missing'), first, second];
  expect(tokenFileOf('one', paths)).toBe(join(dir, 'token'));
  expect(tokenFileOf('two', paths)).toBe('/two');
  expect(tokenFileOf('none', paths)).toBeUndefined();
  expect(tokenFileOf('three', paths)).toBeUndefined();
});

test.each(['', '[]', 'users: 7', 'users: [{name: one}]', 'users: [{name: one, user: {tokenFile: 7}}]'])(
  '%j names none',
  (text) => {
    const path = join(tempDir(), 'config');
    writeFileSync(path, text);
    expect(tokenFileOf('one', [path])).toBeUndefined();
  },
);
