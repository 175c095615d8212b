// What a package may write: files below its own folder, within limits, and only where its hash is the registry's.
import { mkdtempSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import tar from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { PACKAGE_LIMITS, programTar } from '../../../src/environment/programs/packageTar.ts';
import { chooseVariant, type Program } from '../../../src/environment/programs/program.ts';
import { type PackedFile, packageAt } from '../../support/agents/packages.ts';

const dir = mkdtempSync(join(tmpdir(), 'packages-'));
let made = 0;
const file = () => join(dir, `${++made}.tgz`);

interface Unpacked {
  readonly name: string;
  readonly type: string;
  readonly mode: string;
  readonly content: string;
}

async function unpacked(
  packages: Parameters<typeof programTar>[0],
  limits = PACKAGE_LIMITS,
): Promise<Unpacked[]> {
  const extract = tar.extract();
  Readable.from(programTar(packages, limits))
    .on('error', (error) => extract.destroy(error))
    .pipe(extract);
  const entries: Unpacked[] = [];
  for await (const entry of extract) {
    const parts: Buffer[] = [];
    for await (const part of entry) parts.push(part as Buffer);
    const { name, type, mode = 0 } = entry.header;
    entries.push({
      name,
      type: type ?? '',
      mode: mode.toString(8),
      content: Buffer.concat(parts).toString(),
    });
  }
  return entries;
}

describe('a program from its packages', () => {
  test('files go below the folder of their package, folders come before them, and modes are 644 or 755', async () => {
    const one = await packageAt(
      file(),
      [
        { name: 'package/bin/run', content: '#!/bin/sh\n', mode: 0o4775 },
        { name: 'package/', type: 'directory' },
        { name: 'package/README', content: 'hello', mode: 0o600 },
      ],
      'one',
    );
    const two = await packageAt(file(), [{ name: 'anything/else.js', content: 'x'.repeat(200_000) }], 'two');
    const entries = await unpacked([one, two]);
    expect(entries.map(({ name, type, mode }) => [name, type, mode])).toEqual([
      ['one/', 'directory', '755'],
      ['one/bin/', 'directory', '755'],
      ['one/bin/run', 'file', '755'],
      ['one/README', 'file', '644'],
      ['two/', 'directory', '755'],
      ['two/else.js', 'file', '644'],
    ]);
    expect(entries[3]!.content).toBe('hello');
    expect(entries[5]!.content).toHaveLength(200_000);
  });

  test.each<[string, PackedFile, RegExp]>([
    ['a path that climbs', { name: 'package/../../etc/passwd', content: 'x' }, /leads out of its folder/],
    ['a path that climbs first', { name: '../package/x', content: 'x' }, /leads out of its folder/],
    ['an absolute path', { name: '/etc/passwd', content: 'x' }, /is absolute/],
    ['a backslash', { name: 'package/..\\x', content: 'x' }, /holds a backslash/],
    ['a symbolic link', { name: 'package/l', type: 'symlink', linkname: '/etc' }, /which is a symlink/],
    ['a hard link', { name: 'package/l', type: 'link', linkname: 'package/x' }, /which is a link/],
    ['a pipe', { name: 'package/p', type: 'fifo' }, /which is a fifo/],
  ])('%s is refused', async (_, entry, message) => {
    const bad = await packageAt(file(), [{ name: 'package/x', content: 'x' }, entry]);
    await expect(unpacked([bad])).rejects.toThrow(message);
  });

  test('too many bytes or files are refused', async () => {
    const large = await packageAt(file(), [{ name: 'package/x', content: 'x'.repeat(1001) }]);
    await expect(unpacked([large], { bytes: 1000, entries: 10 })).rejects.toThrow(/too large to unpack/);
    const many = await packageAt(
      file(),
      Array.from({ length: 11 }, (_, n) => ({ name: `package/${n}`, content: '' })),
    );
    await expect(unpacked([many], { bytes: 1000, entries: 10 })).rejects.toThrow(/too large to unpack/);
    await expect(unpacked([large, many], { bytes: 1001, entries: 12 })).resolves.toHaveLength(13);
  });

  test('another file under the name of the package is refused, also one that is cut short or no archive', async () => {
    const one = await packageAt(file(), [{ name: 'package/x', content: 'x'.repeat(5000) }]);
    const other = await packageAt(file(), [{ name: 'package/x', content: 'y' }]);
    await expect(unpacked([{ ...one, file: other.file }])).rejects.toThrow(
      /is not the package that was added/,
    );
    truncateSync(one.file, 40);
    await expect(unpacked([one])).rejects.toThrow(/cannot be unpacked|is not the package/);
    writeFileSync(one.file, 'no archive');
    await expect(unpacked([one])).rejects.toThrow(/cannot be unpacked/);
    await expect(unpacked([{ ...one, file: join(dir, 'nothing') }])).rejects.toThrow(/cannot be unpacked/);
  });
});

describe('the variant of a program for an image', () => {
  const program = (...libcs: ('glibc' | 'musl' | null)[]): Program => ({
    name: 'demo@1.0.0',
    architecture: 'amd64',
    variants: libcs.map((libc) => ({ libc, packages: [] })),
  });
  const libc = (choice: ReturnType<typeof chooseVariant>) =>
    choice.ok ? choice.variant.libc : choice.message;

  test('is that of its C library, or the static one', () => {
    expect(libc(chooseVariant(program('glibc', 'musl'), { architecture: 'amd64', libc: 'musl' }))).toBe(
      'musl',
    );
    expect(libc(chooseVariant(program('glibc', 'musl'), { architecture: '', libc: 'glibc' }))).toBe('glibc');
    expect(libc(chooseVariant(program(null), { architecture: 'amd64', libc: undefined }))).toBe(null);
  });

  test('is said to be missing with what there is', () => {
    expect(libc(chooseVariant(program('glibc'), { architecture: 'amd64', libc: 'musl' }))).toBe(
      'demo@1.0.0 is there for glibc, and the image has musl',
    );
    expect(libc(chooseVariant(program('glibc'), { architecture: 'arm64', libc: 'glibc' }))).toBe(
      'demo@1.0.0 was added for amd64, and the image is for arm64',
    );
  });
});
