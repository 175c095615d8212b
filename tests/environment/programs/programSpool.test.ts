// A program as one archive of a known length: the same for each who reads it, made once, and refused where a package is not what was added.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { createProgramSpools } from '../../../src/environment/programs/packageTar.ts';
import { libcAmong, libcPaths, type ProgramVariant } from '../../../src/environment/programs/program.ts';
import { packageAt } from '../../support/agents/packages.ts';

const dir = mkdtempSync(join(tmpdir(), 'spool-'));
// What this process spools lies in a folder of its own: test files that run meanwhile spool programs too.
process.env.TMPDIR = dir;
/** Of more than one chunk, also when it is packed. */
const BIG = randomBytes(3_000_000).toString('base64');
const spools = createProgramSpools();
afterEach(() => spools.close());

async function variant(name: string): Promise<ProgramVariant> {
  const big = { name: 'package/lib/big', content: BIG };
  const one = await packageAt(join(dir, name), [
    { name: 'package/bin/run', content: name, mode: 0o755 },
    big,
  ]);
  return { libc: null, packages: [one] };
}

const spooledHere = () => readdirSync(dir).filter((name) => name.startsWith('swebatch-program-'));

test('each who reads it gets all of it, also at the same time, and no file has its name', async () => {
  const wanted = await variant('a.tgz');
  const [one, other] = await Promise.all([spools.ensure(wanted), spools.ensure(wanted)]);
  expect(spooledHere()).toEqual([]);
  // Read to the end while the other has only begun.
  const slow = other.read()[Symbol.asyncIterator]();
  const parts = [(await slow.next()).value as Buffer];
  const whole = await buffer(one.read());
  for (let next = await slow.next(); !next.done; next = await slow.next()) parts.push(next.value);
  expect(whole.length).toBe(one.bytes);
  expect(Buffer.concat(parts).equals(whole)).toBe(true);
  const archive = gunzipSync(whole);
  expect(archive.length).toBeGreaterThan(3_000_000);
  expect(archive.subarray(0, 512).toString()).toContain('demo/');
});

test('a package that was changed since is refused, and the one that is right again is taken', async () => {
  const wanted = await variant('b.tgz');
  const { file } = wanted.packages[0]!;
  // CaptureOptions, not made again: an archive holds the second it was made in.
  const right = readFileSync(file);
  await packageAt(file, [{ name: 'package/bin/run', content: 'changed' }]);
  await expect(spools.ensure(wanted)).rejects.toThrow('is not the package that was added');
  writeFileSync(file, 'no archive');
  await expect(spools.ensure(wanted)).rejects.toThrow('cannot be unpacked');
  writeFileSync(file, right);
  const whole = gunzipSync(await buffer((await spools.ensure(wanted)).read()));
  expect(whole.includes('demo/bin/run')).toBe(true);
  expect(whole.includes(BIG)).toBe(true);
});

test('the C library is told by which loaders are there', () => {
  const [glibc, musl, alpine] = libcPaths('amd64') as [string, string, string];
  const of = (...there: string[]) => libcAmong(new Set(there), 'amd64');
  expect(of(glibc)).toBe('glibc');
  expect(of(musl, alpine)).toBe('musl');
  expect(of(glibc, musl)).toBe('glibc');
  expect(of(glibc, musl, alpine)).toBe('musl');
  expect(of(alpine)).toBeUndefined();
  expect(libcAmong(new Set([glibc]), 'riscv64')).toBeUndefined();
  expect(libcPaths('riscv64')).toEqual([]);
});
