// A results root that cannot be one: told with what to do, before anything is made, and never waited for.
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeAndOpen, openForWriting, refuseRunName, refuseUnwritable } from '../../src/run/resultsRoot.ts';
import { cli } from '../support/cli.ts';

const dir = mkdtempSync(join(tmpdir(), 'results-folder-'));
const file = join(dir, 'file');
writeFileSync(file, '');
symlinkSync(join(dir, 'loop'), join(dir, 'loop'));
const predictions = join(dir, 'preds.json');
writeFileSync(
  predictions,
  JSON.stringify({ 'swebatch__cronwheel-23': { model_name_or_path: 'm', model_patch: '' } }),
);

const UNUSABLE: [string, RegExp][] = [
  ['/proc/results', /no folder can be made there/],
  ['/proc/self/fd/results/a', /no folder can be made there/],
  ['/sys/results', /no folder can be made there|you may not write|read-only/],
  [file, /file is a file/],
  [join(file, 'a/b'), /file is a file/],
  [join(dir, 'loop/a'), /links in a circle/],
  [join(dir, 'n'.repeat(300)), /too long/],
];
test.each(UNUSABLE)('%s is refused before anything is made', (root, why) => {
  for (const open of [refuseUnwritable, makeAndOpen]) expect(() => open(root)).toThrow(why);
});

test('one that is not there yet is made, with the folders above it', () => {
  const root = join(dir, 'a/b/c');
  expect(() => refuseUnwritable(root)).not.toThrow();
  expect(existsSync(root)).toBe(false);
  makeAndOpen(root).close();
  openForWriting(root).close();
  mkdirSync(join(dir, 'link-to'));
  symlinkSync(join(dir, 'link-to'), join(dir, 'link'));
  makeAndOpen(join(dir, 'link')).close();
});

test.each(['swebatch.db', 'swebatch.db-journal', 'SWEBATCH.DB-WAL'])(
  'no run is named %s as the record is',
  async (name) => {
    expect(() => refuseRunName(name)).toThrow(/a run cannot be named/);
    const root = join(dir, `named-${name}`);
    const dataset = ['--subset', 'datasets/demo/demo.jsonl', '--run-id', name, '-o', root];
    for (const args of [
      ['run', '-m', 'gpt-5.4', '--dry-run'],
      ['evaluate', predictions],
    ]) {
      const ended = await cli([...args, ...dataset]);
      expect(ended).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('a run cannot be named') as string,
      });
    }
    expect(existsSync(join(root, name, 'run.json'))).toBe(false);
  },
);

test.each([
  ['evaluate', predictions, '--subset', 'datasets/demo/demo.jsonl'],
  ['run', '--subset', 'datasets/demo/demo.jsonl', '-m', 'gpt-5.4', '--dry-run'],
])('%s says what to do and ends with 2', async (...args) => {
  const ended = await cli([...args, '-o', file]);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(
    /results cannot be kept in .*file is a file\n {2}name another results root with -o/,
  );
});

test('on a disk that is too small, or full, whatever would write there says so and ends with 2', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'small-'));
  const mount = (size: string) => execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  const demo = ['--subset', 'datasets/demo/demo.jsonl'];
  const run = ['run', ...demo, '-m', 'gpt-5.4'];
  const refused = async (args: readonly string[], says: RegExp) => {
    const ended = await cli([...args, '-o', join(path, 'out')], {
      env: { OPENAI_API_KEY: 'sk-test-0123456789' },
    });
    expect([args[0], ended.code, ended.stderr]).toEqual([args[0], 2, expect.stringMatching(says)]);
  };
  try {
    mount('3m');
  } catch {
    return context.skip('mounting a file system needs root');
  }
  try {
    const small = /cannot be kept in .*: its disk has 3 MiB in all, and a record needs more/;
    for (const args of [run, [...run, '--dry-run'], ['evaluate', predictions, ...demo]])
      await refused(args, small);
    execFileSync('mount', ['-o', 'remount,size=16m', path]);
    await refused(
      run,
      /its disk has 16 MiB in all, and run\.disk_floor keeps 2 GiB free: nothing could ever start/,
    );
    makeAndOpen(join(path, 'out')).close();
    const fill = (leaving: number) => {
      const { bavail, bsize } = statfsSync(path);
      appendFileSync(join(path, 'filling'), Buffer.alloc(bavail * bsize - leaving));
    };
    fill(600 * 1024);
    await refused(
      [...run, '-c', 'run.disk_floor=1m'],
      /its disk has 6\d\d KiB free, and run\.disk_floor keeps 1 MiB/,
    );
    fill(100 * 1024);
    for (const args of [
      [...run, '-c', 'run.disk_floor=0m'],
      ['evaluate', 'last'],
      ['resume', 'last'],
      ['delete', 'last'],
    ])
      await refused(args, /its disk is full \(.* free\): make room there/);
  } finally {
    execFileSync('umount', [path]);
  }
});

/** A disk that nobody can write, with an empty folder and one with a record. Only root may mount; null where nothing may. */
function readOnlyDisk(): { path: string; remove: () => void } | null {
  const path = mkdtempSync(join(tmpdir(), 'read-only-'));
  const mount = (...args: string[]) => execFileSync('mount', [...args, path], { stdio: 'ignore' });
  try {
    mount('-t', 'tmpfs', '-o', 'size=16m', 'tmpfs');
  } catch {
    return null;
  }
  mkdirSync(join(path, 'empty'));
  makeAndOpen(join(path, 'record')).close();
  mount('-o', 'remount,ro');
  return { path, remove: () => void execFileSync('umount', [path]) };
}

test('on a read-only disk each verb says what and what next, with exit code 2, and none asks for a report', async (context) => {
  const disk = readOnlyDisk();
  if (!disk) return context.skip('mounting a file system needs root');
  const demo = ['--subset', 'datasets/demo/demo.jsonl', '-m', 'gpt-5.4'];
  const cases: [verb: string[], folder: string, said: RegExp][] = [
    [['run', ...demo], 'empty', /cannot be kept in .*read-only\n {2}name another results root with -o/],
    [['ls'], 'empty', /no results database at .*name the results root with -o, or start a run first/],
    [['report', 'last'], 'empty', /no results database at .*start a run first/],
    [['run', ...demo], 'record', /cannot be kept in .*read-only\n {2}name another results root with -o/],
    [['resume', 'last'], 'record', /cannot be kept in .*read-only\n {2}name another results root with -o/],
    [['ls'], 'record', /cannot be opened: the file system is read-only\n {2}copy the folder/],
    [
      ['view', '--port', '0'],
      'record',
      /cannot be opened: the file system is read-only\n {2}copy the folder/,
    ],
    [['report', 'last'], 'record', /cannot be opened: the file system is read-only\n {2}copy the folder/],
  ];
  try {
    const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
    const all = cases.map(async ([verb, folder, said]) => {
      const ended = await cli([...verb, '-o', join(disk.path, folder)], { env: key });
      expect([verb[0], ended.code, ended.stderr]).toEqual([verb[0], 2, expect.stringMatching(said)]);
      expect(ended.stderr).not.toMatch(/report it/);
    });
    await Promise.all(all);
  } finally {
    disk.remove();
  }
});
