// Logs and patches of suites that are graded by rules of their own.

import { ParserError } from '../../../src/grading/parsers/logParser.ts';
import { livePytest } from '../../../src/suites/live/live.ts';
import { behind, shapeOf, withoutTail } from '../../../src/suites/multiSwe/shapes.ts';
import { passedIn, withoutBinaryHunks } from '../../../src/suites/pro/pro.ts';
import { rebenchShape, withoutTiming } from '../../../src/suites/rebenchV2/rebenchV2.ts';
import { readersOf } from './reader.ts';

const REBENCH = ['pytest', 'pytest_v2', 'sympy', 'gradle_custom', 'react_pdf'].map(
  (name) => `parse_log_${name}`,
);
const REPOS = [
  ...[
    'apache/dubbo',
    'google/gson',
    'mockito/mockito',
    'googlecontainertools/jib',
    'cli/cli',
    'grpc/grpc-go',
  ],
  ...['clap-rs/clap', 'jqlang/jq', 'yhirose/cpp-httplib', 'fmtlib/fmt', 'catchorg/catch2', 'iamkun/dayjs'],
  ...['darkreader/darkreader', 'axios/axios', 'sveltejs/svelte', 'kong/insomnia'],
];

export const SUITE_READERS = [
  ...readersOf(
    {
      livePytest,
      withoutTiming,
      passedIn,
      behind: (text) => behind(text, 'PASS '),
      withoutTail: (text) => withoutTail(text, /a$/),
      ...Object.fromEntries(
        REBENCH.map((id) => [
          `${id} of SWE-rebench V2`,
          (text: string) =>
            rebenchShape(undefined, id)!(text, { instanceId: 'a__b-1', version: '', harness: 'v5' }),
        ]),
      ),
      ...Object.fromEntries(
        REPOS.map((repo) => [`logs of ${repo}`, (text: string) => shapeOf(repo, 1)!(text)]),
      ),
    },
    {
      words: [
        'Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s - in a',
        ...[
          'Tests run: ',
          'Running ',
          '> Task :',
          ' > ',
          ' PASSED\n',
          '--- FAIL: ',
          'FAIL:',
          'test a ... ok\n',
          'PASS: a\n',
        ],
        ...[
          '[       OK ] a (',
          '1/1 Test #1: ',
          ' ....',
          '***Failed',
          '  passed ',
          'PASS ',
          '✓ ',
          '✕ a (1 ms)',
          '✔ ',
          '1) ',
        ],
        ...[
          'FAILED a - b\n',
          ' [1 ms]',
          ' in 1 msec',
          '(1s)',
          ' (1 tests) 1ms',
          ' (1s)\n',
          'XFAIL',
          'test_',
          ' [OK]\n',
        ],
      ],
      refuses: [ParserError],
    },
  ),
  ...readersOf(
    { withoutBinaryHunks },
    { words: ['diff --git a/a b/a\n', 'GIT binary patch\n', 'Binary files ', ' differ\n'] },
  ),
];
