// What of a task's folder counts: `.harborignore` as git reads its own file, and folders that hold nothing.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readInstance, readRowHash } from '../../../src/dataset/dataset.ts';
import { harborFiles } from '../../../src/suites/harbor/harborIgnore.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';
import { planGrading } from '../../support/suites.ts';

const root = () => mkdtempSync(join(tmpdir(), 'harborignore-'));
const pathsIn = (task: string, folder: string) => harborFiles(task, folder).map(({ path }) => path);

const PATHS = [
  ...[
    'a',
    'a.log',
    'b.log',
    'keep.log',
    'deep/a',
    'deep/b.log',
    'deep/down/a',
    'deep/down/c.txt',
    'x y',
    'data/big.bin',
  ],
  ...[
    'data/small.txt',
    'cache/one',
    'deep/cache/two',
    'ab',
    'a1',
    'a2',
    'q?',
    '#hash',
    '!bang',
    'é',
    'trail ',
    'n/a/b/c',
  ],
];

/** As git leaves them out of the same folder. */
function gitsPaths(folder: string): string[] {
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, '-c', 'core.quotePath=false', ...args], { encoding: 'utf8' });
  git('init', '-q');
  const listed = git('ls-files', '--others', '--exclude-per-directory=.harborignore', '-z');
  rmSync(join(folder, '.git'), { recursive: true });
  return listed.split('\0').filter((path) => path !== '' && !path.endsWith('.harborignore'));
}

describe('.harborignore', () => {
  test.each([
    [{ '': '*.log\n!keep.log\n' }],
    [{ '': '/a\ncache/\n' }],
    [{ '': 'deep/**/a\n**/two\n' }],
    [{ '': 'data/*\n!data/small.txt\n' }],
    [{ '': 'data/\n!data/small.txt\n' }],
    [{ '': 'a[0-9]\nq\\?\n\\#hash\n\\!bang\n' }],
    [{ '': 'a[!1]\n?y\nx?y\n' }],
    [{ '': '# a comment\n\n   \ntrail\\ \nab   \n' }],
    [{ '': 'deep/\n', deep: '!a\n' }],
    [{ '': '*.log\n', deep: '!b.log\nc.txt\n' }],
    [{ '': 'n/**\n!n/a/b/c\n' }],
    [{ '': '**\n!*.txt\n' }],
    [{ '': 'a/b/c\ndown\n' }],
    [{ '': '/**/c.txt\né\r\n' }],
    [{ '': '/*\n!/deep\n/deep/*\n!/deep/down\n' }],
  ] as Record<string, string>[][])('%j leaves out what git does', (ignores) => {
    const task = root();
    const tests = join(task, 'tests');
    for (const path of PATHS) {
      mkdirSync(dirname(join(tests, path)), { recursive: true });
      writeFileSync(join(tests, path), path);
    }
    for (const [folder, text] of Object.entries(ignores))
      writeFileSync(join(tests, folder, '.harborignore'), text);
    const files = harborFiles(task, 'tests').filter(({ isFolder }) => !isFolder);
    expect(files.map(({ path }) => path).sort()).toEqual(gitsPaths(tests).sort());
  });

  test('is heeded in tests/ and solution/ alone, also of a step, and changes nothing where an image is built', () => {
    const task = harborTask(root(), 'task', {
      '.harborignore': '*\n',
      'environment/.harborignore': '*\n',
      'environment/data': 'x',
      'solution/.harborignore': 'data\n',
      'solution/data': 'x',
      'steps/one/tests/.harborignore': 'data\n',
      'steps/one/tests/data': 'x',
      'steps/one/tests/more': 'x',
    });
    expect(pathsIn(task, 'environment')).toEqual(['data']);
    expect(pathsIn(task, 'solution')).toEqual(['solve.sh']);
    expect(pathsIn(task, 'tests')).toEqual(['test.sh']);
    expect(pathsIn(task, 'steps')).toEqual(['one/tests/more']);
    writeFileSync(join(task, 'solution', 'Dockerfile'), 'FROM x\n');
    expect(pathsIn(task, 'solution')).toContain('data');
  });

  test('a link in what it leaves out refuses no task, and one to what it leaves out goes with it', async () => {
    const task = harborTask(root(), 'task', {
      'tests/.harborignore': 'private/\n*.lnk\n',
      'tests/private/secret': 'x',
    });
    symlinkSync('/etc/passwd', join(task, 'tests', 'private', 'out'));
    symlinkSync('/nowhere', join(task, 'tests', 'none.lnk'));
    symlinkSync('private/secret', join(task, 'tests', 'again'));
    symlinkSync('test.sh', join(task, 'tests', 'other.sh'));
    expect(pathsIn(task, 'tests')).toEqual(['other.sh', 'test.sh']);
    const read = await loadDataset(task);
    if (!read.ok) throw new Error('unread');
    const [row] = read.dataset.rows;
    expect(row!.refused).toBeUndefined();
    expect(planGrading(readInstance(row!), { harness: 'v5' }).ok).toBe(true);
  });

  test('a task whose test.sh it leaves out, and one with a line that is no pattern, are refused by name', async () => {
    const refusedWith = async (ignore: string) => {
      const read = await loadDataset(harborTask(root(), 'task', { 'tests/.harborignore': ignore }));
      return read.ok ? read.dataset.rows[0]!.refused : 'unread';
    };
    expect(await refusedWith('*.sh\n')).toBe('it has no tests/test.sh');
    expect(await refusedWith('ok\n[z-a]\n')).toBe(
      'line 2 of tests/.harborignore is no pattern of git: [z-a]',
    );
  });
});

test('folders that hold nothing are kept, and change the hash', async () => {
  const task = harborTask(root(), 'task');
  const bare = join(task, 'tests', 'repo.git');
  execFileSync('git', ['init', '-q', '--bare', '--template=', bare]);
  const folders = harborFiles(task, 'tests').flatMap(({ path, isFolder }) => (isFolder ? [path] : []));
  expect(folders).toEqual(
    expect.arrayContaining([
      'repo.git/objects/info',
      'repo.git/objects/pack',
      'repo.git/refs/heads',
      'repo.git/refs/tags',
    ]),
  );
  const hash = async () => {
    const read = await loadDataset(task);
    return read.ok && readRowHash(read.dataset.rows[0]!);
  };
  const before = await hash();
  rmSync(join(bare, 'refs', 'tags'), { recursive: true });
  expect(await hash()).not.toBe(before);
});
