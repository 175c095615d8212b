// Which files a patch may write, in every form that git apply and patch accept.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { patchedPaths } from '../../src/grading/doubts/patchPaths.ts';

const NEW = '@@ -0,0 +1 @@\n+x = 1\n';

describe('forms of headers', () => {
  test.each([
    [
      "git's",
      `diff --git a/a b.py b/a b.py\nnew file mode 100644\n--- /dev/null\n+++ b/a b.py\t\n${NEW}`,
      ['a b.py'],
    ],
    [
      'plain, with dates',
      `--- old/t/x.py\t2024-01-01 00:00:00\n+++ new/t/x.py\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n`,
      ['t/x.py'],
    ],
    ['plain, a new file', `--- /dev/null\n+++ b/conftest.py\n${NEW}`, ['conftest.py']],
    ['carriage returns', `--- /dev/null\r\n+++ b/conftest.py\r\n@@ -0,0 +1 @@\r\n+x\r\n`, ['conftest.py']],
    [
      'quoted',
      'diff --git "a/t\\303\\251/x\\"y.py" "b/t\\303\\251/x\\"y.py"\nnew file mode 100644\n',
      ['té/x"y.py'],
    ],
    [
      'quoted on one side',
      'diff --git a/x.py "b/t\\tx.py"\nsimilarity index 100%\nrename from x.py\nrename to "t\\tx.py"\n',
      ['t\tx.py'],
    ],
    [
      'a renaming',
      'diff --git a/x.py b/conftest.py\nsimilarity index 100%\nrename from x.py\nrename to conftest.py\n',
      ['conftest.py'],
    ],
    ['a removal', '--- a/conftest.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n', ['conftest.py']],
  ])('%s', (_name, patch, want) => {
    expect(patchedPaths(patch)).toEqual(want);
  }); // prettier-ignore

  test('lines inside hunks are content', () => {
    const patch =
      '--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,3 @@\n keep\n--- a/conftest.py\n+++ b/conftest.py\n+more\n\\ No newline at end of file\n--- a/y.md\n+++ b/y.md\n@@ -1 +1 @@\n-a\n+b\n'; // prettier-ignore
    expect(patchedPaths(patch)).toEqual(['x.md', 'y.md']);
  });
  test('what is no patch names nothing', () => {
    expect(patchedPaths('')).toEqual([]);
    expect(patchedPaths('diff --git "a/never closed\n+++ \n@@ nonsense @@\n')).toEqual(['']);
  });
});

describe('what git writes is what is read', () => {
  let repo = '';
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repo, encoding: 'utf8' });
  beforeAll(() => {
    repo = mkdtempSync(join(tmpdir(), 'swebatch-paths-'));
    git('init', '-q');
  });
  afterAll(() => rmSync(repo, { recursive: true, force: true }));

  test('odd names, as git quotes them', () => {
    const names = [
      'a b/c.py',
      'té/conftest.py',
      'tab\there.py',
      'quote"d.py',
      'back\\slash.py',
      '日本.py',
      'x b/y.py',
    ];
    for (const name of names) {
      mkdirSync(join(repo, name, '..'), { recursive: true });
      writeFileSync(join(repo, name), 'x\n');
    }
    git('add', '-A');
    expect(patchedPaths(git('diff', '--cached')).toSorted()).toEqual(names.toSorted());
  }); // prettier-ignore
});
