// Logs of tests, patches, scripts of datasets.

import { examine } from '../../../src/grading/doubts/doubts.ts';
import { doubtfulPaths } from '../../../src/grading/doubts/patchDoubts.ts';
import { changedLines, patchedPaths } from '../../../src/grading/doubts/patchPaths.ts';
import { doubtfulText } from '../../../src/grading/doubts/patchText.ts';
import { gradeLog } from '../../../src/grading/grade.ts';
import { ParserError } from '../../../src/grading/parsers/logParser.ts';
import { OFFICIAL_PARSERS, SUITE_PARSERS } from '../../../src/grading/parsers/parserRegistry.ts';
import { classifyLog, MARK, readLog, suiteRan } from '../../../src/grading/readLog.ts';
import {
  type GradeSpec,
  gymResetPaths,
  modifiedPaths,
  synthesiseScript,
  testDirectives,
  touchedPaths,
  withExitCode,
} from '../../../src/grading/specs/spec.ts';
import { rewardFromJson, rewardFromText } from '../../../src/suites/harbor/verification.ts';
import {
  judgeR2e,
  r2eExpected,
  r2eGold,
  r2eStatement,
  r2eStatuses,
} from '../../../src/suites/r2eGym/r2eGym.ts';
import { withRestore } from '../../../src/suites/sweBench/sweBench.ts';
import { type Reader, readersOf } from './reader.ts';
import { LOG_OPENINGS } from './worstText.ts';

export const SPEC: GradeSpec = {
  instanceId: 'a__a-1',
  repo: 'a/a',
  version: '1',
  image: 'a',
  workdir: '/testbed',
  evalScript: 'git apply -v - <<EOF',
  scriptToRun: '',
  logParser: 'parse_log_pytest',
  evalType: 'pass_and_fail',
  failToPass: ['tests/test_a.py::test_a'],
  passToPass: [],
  testPatch: 'diff --git a/tests/test_a.py b/tests/test_a.py\n',
  goldPatch: 'diff --git a/a.py b/a.py\n',
  assets: [],
  harness: 'v5',
  source: 'row',
  specHash: '',
};

/** One name for each parser: several ids share one. */
const PARSERS = [
  ...new Map(Object.entries({ ...OFFICIAL_PARSERS, ...SUITE_PARSERS }).map(([id, parser]) => [parser, id])),
].map(([parser, id]) => ({ id, parser }));

/** As an evaluation reads a finished log: verdict, then doubts. */
function graded(log: string, logParser: string, evalType: GradeSpec['evalType']): void {
  const parser = OFFICIAL_PARSERS[logParser]!;
  const spec = { ...SPEC, logParser, evalType };
  examine(spec, '', gradeLog(spec, log, parser, 'v5'));
}

/** The log is the text, and the tests have printed the text. */
const gradings = (name: string, logParser: string, evalType: GradeSpec['evalType'] = 'pass_and_fail') => ({
  [`grading and doubts, ${name}`]: (text: string) => graded(text, logParser, evalType),
  [`grading and doubts, ${name}, between the markers`]: (text: string) =>
    graded(`${MARK.start}\n${text}\n${MARK.end}\n`, logParser, evalType),
});

const PATCH_WORDS = [
  '"NaN\\"',
  'diff --git "a/',
  'diff --git a/x b/',
  'diff --git a/a b/a\n',
  '--- "',
  '--- a/a\n',
  '\\303',
  '@@ -1,9 +1,9 @@\n',
  '@@ -1 +1 @@\n',
  'rename to ',
  'rename to a\n',
  'Index: ',
  '[case ',
  '[ISSUE]',
  '- - ',
  'X\t',
  ' b/',
  ' "',
  'tests/',
  'node_modules/',
  '.git/',
];

export const GRADING_READERS: readonly Reader[] = [
  ...readersOf({ rewardFromJson, rewardFromText }),
  ...PARSERS.flatMap(({ id, parser }) =>
    readersOf(
      {
        [`log parser ${id}`]: (text) => parser(text, { instanceId: 'a__a-1', version: '2.4', harness: 'v5' }),
        [`log parser ${id} (4.1)`]: (text) =>
          parser(text, { instanceId: 'a__a-1', version: '1.27', harness: 'v4.1' }),
      },
      { words: LOG_OPENINGS, refuses: [ParserError] },
    ),
  ),
  ...readersOf(
    {
      ...gradings('pytest', 'parse_log_pytest'),
      ...gradings('django', 'parse_log_django'),
      ...gradings('sympy', 'parse_log_sympy'),
      ...gradings('failures only', 'parse_log_chart_js', 'fail_only'),
      readLog: (text) => readLog(text, () => new Map(), { instanceId: 'a', version: '', harness: 'v5' }),
      'readLog of SWE-Gym': (text) =>
        readLog(text, () => new Map(), { instanceId: 'a', version: '', harness: 'v4.1' }, 'swe-gym'),
      r2eStatuses,
      judgeR2e: (text) => judgeR2e(new Map([['a', 'PASSED']]), text),
      suiteRan,
      classifyLog: (text) => classifyLog(text),
    },
    {
      words: [
        ...Object.values(MARK),
        `${MARK.exitCode}: `,
        `${MARK.start}\n${MARK.end}\n`,
        ' in ',
        `= ${'1'.repeat(980)} in \n`,
        `${'='.repeat(980)} in \n`,
        'tests finished: ',
        '1 passed in ',
        'Ran 1 tests in ',
        'Ran 1',
        'Applied patch ',
        'Applied patch a cleanly.\n',
        "error: pathspec '",
        'Tests: ',
        'Test Suites: 1 a, ',
        'Executed 1',
        '\n# tests ',
        'Killed\n',
        'Timeout error: 1',
        'PASSED tests/test_a.py::test_a\n',
        'short test summary info',
        '::',
        'FAILED a\n',
      ],
      refuses: [ParserError],
    },
  ),
  ...readersOf(
    {
      patchedPaths,
      changedLines,
      touchedPaths,
      modifiedPaths,
      gymResetPaths,
      'synthesiseScript of mypy': (text) =>
        synthesiseScript(
          { repo: 'python/mypy', base_commit: 'a', test_patch: text },
          { test_cmd: 'pytest -k' },
          'swe-gym',
        ),
      r2eStatement,
      r2eGold,
      r2eExpected,
      testDirectives: (text) => testDirectives('django/django', text),
      doubtfulPaths: (text) => doubtfulPaths(SPEC, text),
      doubtfulText: (text) => doubtfulText(SPEC, text),
      // More is not read, and this table should not measure its own replacements.
      'doubtfulText of added lines': (text) => {
        const added = text.slice(0, 3_000_000).replaceAll('\n', '\n+');
        return doubtfulText(SPEC, `--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,9999999 @@\n+${added}`);
      },
      'doubtfulPaths of a row': (text) =>
        doubtfulPaths({ ...SPEC, testPatch: text, failToPass: [text] }, text),
      'doubtfulPaths of one path': (text) =>
        doubtfulPaths(SPEC, `--- a/${text.replaceAll('\n', '')}\n+++ b/${text.replaceAll('\n', '')}\n`),
      'doubtfulPaths of a row with one path': (text) => {
        const path = text.replaceAll('\n', '');
        return doubtfulPaths(
          { ...SPEC, testPatch: `diff --git a/${path} b/${path}\n`, failToPass: [`${path}::a`] },
          '',
        );
      },
      'examine a patch': (text) =>
        examine(SPEC, text, gradeLog(SPEC, 'a', OFFICIAL_PARSERS.parse_log_pytest!, 'v5')),
      withExitCode,
      withRestore: (text) => withRestore(text, ['cp a b']),
    },
    { words: [...PATCH_WORDS, `${MARK.end}\n`] },
  ),
];
