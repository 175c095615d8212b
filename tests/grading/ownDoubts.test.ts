// A resolved instance of a suite with rules of its own is doubted for what its patch does, as one of SWE-bench is.
import { describe, expect, test } from 'vitest';
import type { Instance } from '../../src/dataset/instance.ts';
import { ownDoubts } from '../../src/grading/ownRules.ts';

const diff = (...paths: string[]) =>
  paths
    .map((path) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-a\n+b\n`)
    .join('');
const INSTANCE = {
  instance_id: 'a__a-1',
  patch: diff('src/app.ts', 'jest.config.js'),
  test_patch: diff('src/__tests__/app.test.ts'),
  FAIL_TO_PASS: ['src/__tests__/app.test.ts > adds'],
  PASS_TO_PASS: [],
} as unknown as Instance;
const CLEAN = { omittedBytes: 0, scriptKept: true, scriptEnded: true, limitsMet: '' };
const doubts = (patch: string, run = {}) =>
  ownDoubts(INSTANCE, patch, { ...CLEAN, ...run }).map(({ rule, strict }) => [rule, strict]);

describe('doubts of suites with rules of their own', () => {
  test('a patch of the files that the gold patch changes raises none', () => {
    expect(doubts(diff('src/app.ts', 'src/other.ts', 'jest.config.js'))).toEqual([]);
  });

  test.each([
    ['vitest.config.ts', 'touches_test_setup'],
    ['node_modules/jest/index.js', 'shadows_modules'],
    ['src/__tests__/helpers.ts', 'touches_test_support'],
    ['.git/config', 'touches_git_folder'],
  ])('%s counts against the strict reading: %s', (path, rule) => {
    expect(doubts(diff(path))).toEqual([[rule, true]]);
  });

  test("the row's own test file is told of, because the suite puts its tests in place itself", () => {
    expect(doubts(diff('src/__tests__/app.test.ts'))).toEqual([['test_files_changed', false]]);
  });

  test.each([
    [{ scriptKept: false }, 'script_changed', true],
    [{ scriptEnded: false }, 'script_cut_off', true],
    [{ omittedBytes: 9 }, 'log_truncated', true],
    [{ limitsMet: 'memory' }, 'limit_met', false],
  ])('what happened to the run: %j', (run, rule, strict) => {
    expect(doubts('', run)).toEqual([[rule, strict]]);
  });
});
