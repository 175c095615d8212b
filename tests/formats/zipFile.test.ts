// Single files of a zip archive: stored, deflate and zstd; bombs, damaged and foreign archives end with a sentence and bounded memory.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync, zstdCompressSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { openZip, ZipError } from '../../src/formats/inspect/evalFile.ts';
import { type ZipPart, zipBytes } from '../support/foreign/zipBytes.ts';

function file(bytes: Buffer): string {
  const dir = mkdtempSync(join(tmpdir(), 'zip-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, 'a.zip');
  writeFileSync(path, bytes);
  return path;
}

async function read(parts: readonly ZipPart[], name: string, most = 2 ** 20): Promise<string> {
  await using zip = await openZip(file(zipBytes(parts)));
  return (await zip.read(name, most)).toString('utf8');
}

const plain = Buffer.from('{"a": 1}'.repeat(100));
const deflated: ZipPart = { name: 'd', stored: deflateRawSync(plain), method: 8, plain };

test('stored, deflate and zstd are read; of two files of one name the last counts', async () => {
  const parts: ZipPart[] = [
    { name: 's', stored: plain, method: 0 },
    deflated,
    { name: 'z', stored: zstdCompressSync(plain), method: 93, plain },
    { name: 's', stored: Buffer.from('newer'), method: 0 },
  ];
  expect(await read(parts, 's')).toBe('newer');
  for (const name of ['d', 'z']) expect(await read(parts, name)).toBe(plain.toString());
});

test.each([8, 93])(
  'a bomb (method %i) stops at the bound, also when the archive claims to be small',
  async (method) => {
    const zeros = Buffer.alloc(50_000_000);
    const stored = method === 8 ? deflateRawSync(zeros) : zstdCompressSync(zeros);
    const honest: ZipPart = { name: 'b', stored, method, plain: zeros };
    await expect(read([honest], 'b')).rejects.toThrow(/^b is longer than 1 MB$/);
    await expect(read([{ ...honest, claimedSize: 10 }], 'b')).rejects.toThrow(/^b is longer than 1 MB$/);
  },
);

test.each<[string, ZipPart, RegExp]>([
  ['a wrong length', { ...deflated, claimedSize: 7 }, /d is damaged: its length or checksum/],
  ['another content', { ...deflated, plain: Buffer.from('x'.repeat(plain.length)) }, /d is damaged/],
  ['broken compression', { ...deflated, stored: Buffer.alloc(40, 0xff) }, /d cannot be read: invalid/],
  ['encryption', { ...deflated, flags: 1 }, /d is encrypted/],
  ['a method that nobody knows', { ...deflated, method: 12 }, /not known here \(12\)/],
])('%s is an error of its own', async (_what, part, message) => {
  const failed = read([part], 'd');
  await expect(failed).rejects.toBeInstanceOf(ZipError);
  await expect(failed).rejects.toThrow(message);
});

test('a name that leaves the folder, an archive that is cut off and a file that is none are refused', async () => {
  for (const name of ['../x', '/etc/passwd', 'a/../../x'])
    await expect(read([{ ...deflated, name }], 'd')).rejects.toThrow(/directory cannot be read: .*path/);
  const whole = zipBytes([deflated, { ...deflated, name: 'e' }]);
  for (let at = 0; at < whole.length; at++)
    await expect(openZip(file(whole.subarray(0, at)))).rejects.toBeInstanceOf(ZipError);
  await expect(openZip(file(Buffer.from('hello')))).rejects.toThrow(/no zip archive, or cut off/);
  await expect(read([deflated], 'f')).rejects.toThrow(/^f is not in it$/);
});

test('files that lie over each other are refused before any is read: one body, and a body within a body', async () => {
  const same: ZipPart[] = [deflated, { ...deflated, name: 'e', at: 0 }];
  const inner = zipBytes([{ name: 'i', stored: plain, method: 0 }]);
  const outer: ZipPart = { name: 'o', stored: inner, method: 0 };
  const within: ZipPart = { name: 'i', stored: plain, method: 0, at: 31 };
  for (const parts of [
    same,
    same.toReversed().map((part) => ({ ...part, name: `${part.name}2` })),
    [outer, within],
  ])
    await expect(openZip(file(zipBytes(parts)))).rejects.toThrow(/^its files lie over each other: /);
});

test('of all files together so much is read, whatever each claims', async () => {
  const megabyte = Buffer.alloc(2 ** 20, 'x');
  const parts = ['a', 'b', 'c', 'd'].map(
    (name): ZipPart => ({ name, stored: deflateRawSync(megabyte), method: 8, plain: megabyte }),
  );
  parts[1] = { ...parts[1]!, claimedSize: 10 };
  await using zip = await openZip(file(zipBytes(parts)), 2.5 * 2 ** 20);
  expect((await zip.read('a', 2 ** 21)).length).toBe(2 ** 20);
  await expect(zip.read('b', 2 ** 21)).rejects.toThrow(/b is damaged/);
  await expect(zip.read('c', 2 ** 21)).rejects.toThrow(
    /^c is not read: the archive unpacks to more than 2 MB$/,
  );
  await expect(zip.read('d', 2 ** 21)).rejects.toThrow(/^d is not read/);
});
