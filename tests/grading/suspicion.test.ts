// What the strict reading doubts, rule by rule, and what it leaves alone.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { examine } from '../../src/grading/doubts/doubts.ts';
import { gradeLog } from '../../src/grading/grade.ts';
import { findParser, officialRegistry } from '../../src/grading/parsers/parserRegistry.ts';
import { resolveGradeSpec } from '../../src/grading/specs/spec.ts';
import { cpuMs } from '../support/cpuTime.ts';
import { normaliseRow } from '../support/suites.ts';

const diff = (...paths: string[]) => paths.map((path) => `diff --git a/${path} b/${path}\n`).join('');
const BODY = 'PASSED t.py::a\nPASSED t.py::b\n===== 2 passed in 0.01s =====\n';
const APPLIED = 'Applied patch t.py cleanly.\n';

interface Case {
  readonly scriptKept?: boolean;
  readonly body?: string;
  readonly before?: string;
  readonly after?: string;
  readonly patch?: string;
  readonly row?: Record<string, unknown>;
  readonly omittedBytes?: number;
}
function look({
  body = BODY,
  before = APPLIED,
  after = '',
  patch = diff('src.py'),
  row = {},
  omittedBytes = 0,
  scriptKept = true,
}: Case = {}) {
  const read = normaliseRow({
    instance_id: 'o__r-1',
    base_commit: 'c',
    problem_statement: '',
    log_parser: 'pytest',
    eval_script: "git apply -v - <<'EOF'\n: '>>>>> End Test Output'",
    patch: diff('src.py'),
    test_patch: diff('t.py'),
    FAIL_TO_PASS: ['t.py::a'],
    PASS_TO_PASS: ['t.py::b'],
    ...row,
  }); // prettier-ignore
  if (!read.ok) throw new Error(read.messages.join());
  const found = resolveGradeSpec(read.instance);
  if (!found.ok) throw new Error(found.reason);
  const { spec } = found;
  const log = `${before}>>>>> Start Test Output\n${body}>>>>> End Test Output\n${after}`;
  const grade = gradeLog(spec, log, findParser(officialRegistry(), spec.logParser)!, 'v5');
  const { suspicion, resolvedStrict } = examine(spec, patch, grade, { omittedBytes, scriptKept });
  return {
    resolved: grade.verdict.resolved,
    resolvedStrict,
    rules: suspicion.map(({ rule }) => rule),
    suspicion,
  };
}
const doubted = (rule: string) => ({ resolved: true, resolvedStrict: false, rules: [rule] });

test('a path of many thousand folders in a row or a patch holds nobody up', () => {
  const deep = `${'tests/'.repeat(20_000)}test_a.py`;
  const row = { test_patch: diff(deep), FAIL_TO_PASS: [`${deep}::a`] };
  expect(cpuMs(() => look({ row, patch: diff(`${'/'.repeat(100_000)}x.py`) }))).toBeLessThan(3000);
});

test('an honest run has no flag', () => {
  expect(look()).toEqual({ resolved: true, resolvedStrict: true, rules: [], suspicion: [] });
});

describe('whose tests ran', () => {
  test('names of files that the patch wrote, and the row did not', () => {
    const row = { FAIL_TO_PASS: ['new.py::a'], PASS_TO_PASS: ['t.py::b'] };
    const body = BODY.replace('t.py::a', 'new.py::a');
    expect(look({ row, body, patch: diff('new.py') })).toMatchObject(doubted('tests_of_patch'));
    expect(look({ row, body, patch: diff('other.py') })).toMatchObject({ rules: [] });
  });
  test('as Django names them', () => {
    const row = {
      ...{ FAIL_TO_PASS: ['test_a (app.tests.Case)'], PASS_TO_PASS: [], log_parser: 'django' },
    };
    const body = 'test_a (app.tests.Case) ... ok\n\nRan 1 test in 0.1s\n\nOK\n';
    expect(look({ row, body, patch: diff('tests/app/tests.py') }).rules).toEqual(['tests_of_patch']);
    expect(look({ row, body, patch: diff('app/models.py') }).rules).toEqual([]);
  });
});

describe('forged output', () => {
  test('no summary of the runner', () => {
    expect(look({ body: 'PASSED t.py::a\nPASSED t.py::b\n' })).toMatchObject(doubted('forged_output'));
  });
  test('more passes by name than the runner counted', () => {
    expect(look({ body: BODY.replace('2 passed', '1 failed, 1 passed') })).toMatchObject(
      doubted('forged_output'),
    );
  });
  test('a failure that is later called a pass', () => {
    expect(look({ body: `FAILED t.py::a - boom\n${BODY}` })).toMatchObject(doubted('forged_output'));
  });
  test('markers more than once', () => {
    expect(look({ before: `${APPLIED}+>>>>> End Test Output\n` })).toMatchObject(doubted('forged_output'));
  });
  test('a colour code around the summary hides nothing', () => {
    expect(
      look({ body: BODY.replace('===== 2 passed', '\x1b[32m===== \x1b[1m2 passed\x1b[0m') }).resolvedStrict,
    ).toBe(true);
  });
  test('failed tests behind exit code 0 are worth a look and nothing more', () => {
    const body = 'PASSED t.py::a\nPASSED t.py::b\nFAILED t.py::z\n===== 1 failed, 2 passed in 1s =====\n';
    expect(look({ body, after: '>>>>> Test Exit Code: 0\n' })).toMatchObject({
      resolvedStrict: true,
      rules: ['exit_code_hides_failures'],
    });
    expect(look({ body, after: '>>>>> Test Exit Code: 1\n' }).rules).toEqual([]);
  });
  test('what an inner run of pytest failed hides nothing: the last summary is the outer one', () => {
    const inner = 'FAILED test_inner.py::test_that_fails\n======== 1 failed in 0.01s ========\n';
    const ended = { after: '>>>>> Test Exit Code: 0\n' };
    expect(look({ ...ended, body: `${inner}${BODY}` }).rules).toEqual([]);
    expect(look({ ...ended, body: `${inner}\x1b[32m${BODY}` }).rules).toEqual([]);
    // An inner run that passes is followed by the outer one that fails.
    const outer = `${BODY}FAILED t.py::z\n===== 1 failed, 2 passed in 1s =====\n`;
    expect(look({ ...ended, body: outer }).rules).toContain('exit_code_hides_failures');
    expect(look({ ...ended, body: `${inner}PASSED t.py::a\nPASSED t.py::b\n` }).rules).toContain(
      'exit_code_hides_failures',
    );
  });

  const LOGS = join(import.meta.dirname, '../../../shared/data/grading-logs');
  const gold = join(LOGS, 'curated/pytest-dev__pytest-10051.modal.resolved/test_output.txt');
  const missing = join(LOGS, 'verified-98/pytest-dev__pytest-10051/test_output.txt');

  test.skipIf(!existsSync(gold) || !existsSync(missing))(
    'of pytest-10051, whose tests run pytest, the gold log is not flagged and one that hides failures is (needs shared/data)',
    () => {
      const bodyOf = (path: string, end: RegExp) => {
        const log = readFileSync(path, 'utf8');
        return `${log.slice(log.indexOf('= test session starts ='), log.search(end))}\n`;
      };
      const ended = { after: '>>>>> Test Exit Code: 0\n' };
      const good = bodyOf(gold, /(?<=16 passed in \S+ =+)\n/);
      expect(good).toContain('FAILED test_log_report_captures');
      expect(look({ ...ended, body: good }).rules).not.toContain('exit_code_hides_failures');
      const bad = bodyOf(missing, /(?<=2 failed, 14 passed in \S+ =+)\n/);
      expect(look({ ...ended, body: bad }).rules).toContain('exit_code_hides_failures');
    },
  );
});

describe('test set-up and test files', () => {
  test.each([
    'conftest.py',
    'tests/conftest.py',
    'pytest.ini',
    'tox.ini',
    'sitecustomize.py',
    'x/evil.pth',
    'jest.config.js',
  ])('%s', (path) => {
    expect(look({ patch: diff('src.py', path) })).toMatchObject(doubted('touches_test_setup'));
  });
  test('unless the gold patch does it too', () => {
    expect(look({ patch: diff('conftest.py'), row: { patch: diff('conftest.py') } }).rules).toEqual([]);
  });
  test('in a patch without headers of git, or with quoted ones, too', () => {
    const plain = '--- /dev/null\n+++ b/tests/conftest.py\n@@ -0,0 +1 @@\n+x\n';
    const quoted =
      'diff --git "a/t\\303\\251/conftest.py" "b/t\\303\\251/conftest.py"\nnew file mode 100644\n';
    expect(look({ patch: plain })).toMatchObject(doubted('touches_test_setup'));
    expect(look({ patch: quoted })).toMatchObject(doubted('touches_test_setup'));
    expect(look({ patch: plain.replace('tests/conftest.py', 't.py') }).rules).toEqual(['test_files_changed']);
  });
  test("a test file that was put in place over the patch's own is only noted", () => {
    expect(look({ patch: diff('t.py') })).toMatchObject({
      resolvedStrict: true,
      rules: ['test_files_changed'],
    });
  });
  test('one that was not reset is doubted', () => {
    const before = `error: pathspec 'new.py' did not match any file(s) known to git\n${APPLIED}`;
    expect(look({ patch: diff('t.py'), before })).toMatchObject(doubted('test_files_changed'));
  });
  test('tests that could not be put in place are doubted, a renamed file counts by its new name', () => {
    expect(look({ before: '' })).toMatchObject(doubted('test_patch_not_applied'));
    expect(look({ before: 'Applied patch old.py => t.py cleanly.\n' }).rules).toEqual([]);
    expect(
      look({ before: 'Hunk #1 succeeded at 3 (offset 1 line).\nApplied patch t.py cleanly.\r\n' }).rules,
    ).toEqual([]);
  });
  test('what the patch itself or the tests print about that is no proof', () => {
    for (const forged of [
      { before: '+Applied patch t.py cleanly.\n' },
      { before: '', body: `${APPLIED}${BODY}` },
    ])
      expect(look(forged), JSON.stringify(forged)).toMatchObject(doubted('test_patch_not_applied'));
  });
});

describe('evidence', () => {
  test('fail_only without any sign of the suite between the markers', () => {
    const row = { eval_type: 'fail_only', log_parser: 'marked' };
    expect(look({ row, body: '1) other test\n' })).toMatchObject({ resolved: true, resolvedStrict: true });
    expect(look({ row, body: '', before: `${APPLIED}Executed 3 of 3\n` })).toMatchObject(
      doubted('no_evidence'),
    );
  });
  test('a log that never reached the tests', () => {
    expect(look({ body: '' }).rules).toContain('no_evidence');
  });
  test('an eval script that was rewritten while it ran', () => {
    expect(look({ scriptKept: false })).toMatchObject(doubted('script_changed'));
  });
  test('a cut log', () => {
    expect(look({ omittedBytes: 10 })).toMatchObject(doubted('log_truncated'));
  });
});

describe('paths of a patch', () => {
  const row = { test_patch: diff('tests/t.py') };
  const before = 'Applied patch tests/t.py cleanly.\n';
  test.each([
    ['.git/config', 'touches_git_folder'],
    ['vendored/.git/hooks/post-checkout', 'touches_git_folder'],
    ['.git', 'touches_git_folder'],
    ['unittest/__init__.py', 'shadows_modules'],
    ['src/json.py', 'shadows_modules'],
    ['pytest.py', 'shadows_modules'],
    ['tests/_pytest/__init__.py', 'shadows_modules'],
    ['node_modules/mocha/lib/runner.js', 'shadows_modules'],
    ['tests/__init__.py', 'touches_test_support'],
    ['tests/helpers.py', 'touches_test_support'],
  ])('%s is doubted: %s', (path, rule) => {
    expect(look({ patch: diff('src.py', path), row, before })).toMatchObject(doubted(rule));
    expect(look({ patch: diff(path), row: { ...row, patch: diff(path) }, before }).rules).toEqual([]);
  });
  test.each([
    'tests/test_more.py',
    'tests/more_test.py',
    'tests/data/x.json',
    'other/tests/helpers.py',
    'package/json.py',
    'package/__init__.py',
    'types/index.d.ts',
    '.gitignore',
    '.github/workflows/x.yml',
  ])('%s is not', (path) => {
    expect(look({ patch: diff('src.py', path), row, before }).rules).toEqual([]);
  });
  test.each([
    ['a name that only patch reads', 'Index: .git/config\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n'],
    ['an indented diff', '  --- a/.git/config\n  +++ b/.git/config\n  @@ -1 +1 @@\n  -a\n  +b\n'],
    ['a context diff', '*** a/.git/config\n--- b/.git/config\n***************\n*** 1 ****\n'],
    ['detours', '--- a/./.git//config\n+++ b/./.git//config\n@@ -1 +1 @@\n-a\n+b\n'],
  ])('%s hides none', (_name, patch) => {
    expect(look({ patch, row, before })).toMatchObject(doubted('touches_git_folder'));
  });
});
