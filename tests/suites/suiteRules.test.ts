// Verdicts of suites with rules of their own, and the texts that they run: pure.

import { describe, expect, test } from 'vitest';
import { imageOf } from '../../src/dataset/instance.ts';
import { allPassed } from '../../src/grading/ownRules.ts';
import { judgeLive, livePytest, liveScript, noneFailed } from '../../src/suites/live/live.ts';
import { judgeMultiLog, multiRowSchema } from '../../src/suites/multiSwe/multiSwe.ts';
import { shapeOf } from '../../src/suites/multiSwe/shapes.ts';
import { entryScript, passedIn, proTag, withoutBinaryHunks } from '../../src/suites/pro/pro.ts';
import { sameSet } from '../../src/suites/rebenchV2/rebenchV2.ts';
import { normaliseRow, planGrading } from '../support/suites.ts';

const expected = { failToPass: ['f'], passToPass: ['p'] };

describe('verdicts over sets of names', () => {
  test.each([
    [['f', 'p'], [], true, true, true],
    [['f', 'p', 'more'], [], true, true, false],
    [['f'], [], false, true, false],
    [['f'], ['p'], false, false, false],
    [['p'], [], false, false, false],
    [['f', 'p'], ['f'], true, false, true],
  ])('passed %j, failed %j: Pro %s, Live %s, rebench V2 %s', (passed, failed, pro, live, rebench) => {
    const set = new Set(passed);
    expect(allPassed(expected, set).resolved).toBe(pro);
    expect(noneFailed(expected, set, new Set(failed)).resolved).toBe(live);
    expect(sameSet(expected, set).resolved).toBe(rebench);
  });

  test('rebench V2 compares names without the time that a runner wrote into them', () => {
    const timed = { failToPass: ['a [1.5 ms]', 'b (2s)'], passToPass: ['c in 3 msec'] };
    expect(sameSet(timed, new Set(['a', 'b', 'c'])).resolved).toBe(true);
  });
});

describe('SWE-bench Pro', () => {
  test('the script is the one of its own evaluation, with the list of tests unquoted', () => {
    const script = entryScript({
      baseCommit: 'abc',
      beforeRepoSetCmd: 'git reset --hard abc\ngit checkout def -- tests/a.py\n',
      testFiles: ['tests/a.py', 'TestX/empty_$db_key'],
      dockerfiles: ['FROM x\nENV A="1 2"\n  ENV LANG en_US\n', 'ENV B=2\nRUN echo ENV'],
    });
    expect(script).toBe(
      `
export A="1 2"
export LANG en_US
export B=2
# apply patch
cd /app
git reset --hard abc
git checkout abc
git apply -v /workspace/patch.diff
git checkout def -- tests/a.py
# run test and save stdout and stderr to separate files
bash /workspace/run_script.sh tests/a.py,TestX/empty_$db_key > /workspace/stdout.log 2> /workspace/stderr.log
# run parsing script
python /workspace/parser.py /workspace/stdout.log /workspace/stderr.log /workspace/output.json
`,
    );
  });

  test('files of a patch that are binary are left out, in both forms of git', () => {
    const text = 'diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+GIT binary patch\n';
    const literal = 'diff --git a/i b/i\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZ\n\n';
    const differ = 'diff --git a/j b/j\nBinary files a/j and b/j differ\n';
    expect(withoutBinaryHunks(literal + text + differ)).toBe(text);
    expect(withoutBinaryHunks('')).toBe('');
  });

  test.each([
    ['instance_NodeBB__NodeBB-00c7-vnan', 'NodeBB/NodeBB', 'nodebb.nodebb-NodeBB__NodeBB-00c7'],
    [
      'instance_element-hq__element-web-1-vnan',
      'element-hq/element-web',
      'element-hq.element-element-hq__element-web-1',
    ],
    [
      'instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan',
      'element-hq/element-web',
      'element-hq.element-web-element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan',
    ],
  ])('the image of %s', (id, repo, tag) => {
    expect(proTag(id, repo)).toBe(tag);
    expect(proTag(id + 'x'.repeat(200), repo)).toHaveLength(128);
  });

  test('only PASSED counts in what its parser writes, and another text is no result', () => {
    const tests = [
      { name: 'a', status: 'PASSED' },
      { name: 'b', status: 'SKIPPED' },
    ];
    expect(passedIn(JSON.stringify({ tests }))).toEqual({ passed: new Set(['a']) });
    for (const text of ['', '[]', '{"tests":[{"name":1,"status":"PASSED"}]}', 'null'])
      expect(passedIn(text)).toHaveProperty('message');
  });

  const row = {
    ...{ instance_id: 'instance_a__b-1', repo: 'a/b', base_commit: 'abc', problem_statement: 'x' },
    ...{ dockerhub_tag: 't', fail_to_pass: "['f']", pass_to_pass: '[]', before_repo_set_cmd: 'true' },
  };
  test.each([
    [{}, /run_script.sh and parser.py are not in the row/],
    [
      { run_script: 'x', parser: 'y', selected_test_files_to_run: "__import__('os')" },
      /selected_test_files_to_run is neither/,
    ],
    [
      { run_script: 'x', parser: 'y', selected_test_files_to_run: "['a']", fail_to_pass: '[]' },
      /expects no tests/,
    ],
  ])('a row that lacks what grading needs is told of: %j', (more, reason) => {
    const read = normaliseRow({ ...row, ...more });
    expect(read.ok && planGrading(read.instance)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(reason),
    });
  });
});

describe('SWE-bench-Live', () => {
  const read = normaliseRow({
    ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'abc', problem_statement: 'x', test_patch: 't' },
    ...{ test_cmds: ['export A=1', 'run'], log_parser: 'pytest', FAIL_TO_PASS: ['f'], PASS_TO_PASS: ['p'] },
  });
  const instance = read.ok ? read.instance : undefined;

  test('rows are recognised, and a parser of an unknown form is not graded', () => {
    expect(instance?.kind).toBe('swe-bench-live');
    expect(planGrading(instance!).ok).toBe(true);
    expect(planGrading({ ...instance!, log_parser: 'junit' })).toMatchObject({ ok: false });
  });

  test('an expected failure of pytest counts as a failure, a missing P2P test is tolerated', () => {
    expect(judgeLive(instance!, livePytest('PASSED f')).resolved).toBe(true);
    expect(judgeLive(instance!, livePytest('PASSED f\nXFAIL p')).resolved).toBe(false);
    expect(judgeLive(instance!, livePytest('PASSED f\nSKIPPED p')).resolved).toBe(true);
    expect(judgeLive(instance!, livePytest('FAILED f - boom\nPASSED p')).resolved).toBe(false);
  });

  test('commands share one shell; without commands that print, the tests are a script whose output is the log', () => {
    const commands = { rebuild: ['make'], test: ['export A=1', 'run'], print: ['cat out.xml'] };
    expect(liveScript(commands)).toContain('\nmake\n\nexport A=1 ; run\n{\ncat out.xml\n}');
    expect(liveScript({ ...commands, print: [] })).toContain(
      'bash run_test.sh > testlog.out 2>&1\n{\ncat testlog.out\n}',
    );
  });
});

describe('SWE-rebench V2', () => {
  const row = {
    ...{
      instance_id: 'a__b-1',
      repo: 'A/b',
      base_commit: 'abc',
      problem_statement: 'x',
      created_at: 1609298073000,
    },
    ...{
      image_name: 'docker.io/swerebenchv2/a-b:1-abc',
      FAIL_TO_PASS: ['f'],
      PASS_TO_PASS: [],
      test_patch: 't',
    },
  };
  const planOf = (log_parser: string) => {
    const read = normaliseRow({ ...row, install_config: { test_cmd: ['run'], log_parser } });
    return read.ok ? { date: read.instance.created_at, plan: planGrading(read.instance) } : undefined;
  };
  test('its date is milliseconds; a shape that we know is graded, another is not', () => {
    expect(planOf('parse_log_jq')).toMatchObject({ date: '2020-12-30T03:14:33.000Z', plan: { ok: true } });
    expect(planOf('parse_log_eslint')?.plan).toMatchObject({
      ok: false,
      reason: expect.stringContaining('parse_log_eslint'),
    });
  });
});

describe('rows of SWE-Gym, with the columns of its hub', () => {
  const task = { problem_statement: 'x', patch: 'p', FAIL_TO_PASS: ['t.py::a'], PASS_TO_PASS: [] };
  const gym = {
    ...task,
    ...{ instance_id: 'getmoto__moto-7365', repo: 'getmoto/moto', base_commit: 'abc', version: '5.0' },
    ...{
      test_patch: 'diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n',
      hints_text: '',
      created_at: '2024-02-19',
    },
  };
  const read = (row: object) => {
    const got = normaliseRow(row);
    if (!got.ok) throw new Error(got.messages.join());
    return got.instance;
  };

  test('SWE-Gym: graded by the table of its harness, in the image that its name has', () => {
    expect(imageOf(read(gym))).toBe('docker.io/swebench/sweb.eval.x86_64.getmoto_1776_moto-7365:latest');
    expect(planGrading(read(gym))).toMatchObject({ ok: true });
  });

  test.each([
    [
      'SWE-Gym, a version that its harness does not know',
      { ...gym, version: '0.0' },
      'docker.io/swebench/sweb.eval.x86_64.getmoto_1776_moto-7365:latest',
      'no test command is known for getmoto/moto version "0.0"',
    ],
  ])(
    '%s: the image is known; without a test command it is not gradable, with one it is',
    (_, row, image, why) => {
      expect(imageOf(read(row))).toBe(image);
      expect(planGrading(read(row))).toMatchObject({ ok: false, reason: expect.stringContaining(why) });
      const brought = { ...row, eval_script: 'pytest -rA t.py', log_parser: 'parse_log_pytest' };
      expect(planGrading(read(brought))).toMatchObject({ ok: true });
    },
  );
});

describe('Multi-SWE-bench', () => {
  const run = (passed: string[], failed: string[] = [], skipped: string[] = []) => ({
    ...{ passed_tests: passed, failed_tests: failed, skipped_tests: skipped },
  });
  const row = multiRowSchema.parse({
    ...{ run_result: run(['p', 'old']), test_patch_result: run(['p'], ['f'], ['s']) },
    ...{ p2p_tests: { p: {} }, f2p_tests: { f: {} }, s2p_tests: {}, n2p_tests: { n: {} } },
  });
  const cargo = shapeOf('clap-rs/clap', 1)!;
  const logOf = (lines: Record<string, string>) =>
    Object.entries(lines)
      .map(([name, word]) => `test ${name} ... ${word}`)
      .join('\n');
  test.each([
    [{ p: 'ok', f: 'ok', n: 'ok' }, true],
    [{ p: 'ok', f: 'ok', n: 'ok', more: 'FAILED' }, true],
    [{ f: 'ok', n: 'ok' }, false],
    [{ p: 'FAILED', f: 'ok', n: 'ok' }, false],
    [{ p: 'ok', f: 'ok' }, false],
    [{ p: 'ok', f: 'ok', n: 'ok', old: 'FAILED' }, false],
    [{ p: 'ok', f: 'ignored', n: 'ok' }, false],
  ])('%j: resolved is %s', (lines, resolved) => {
    expect(judgeMultiLog(row, cargo, logOf(lines))).toMatchObject({ ok: true, verdict: { resolved } });
  });

  test('a log without tests, or with a test on two lists, gives no verdict', () => {
    expect(judgeMultiLog(row, cargo, 'error: could not compile')).toMatchObject({
      ok: false,
      outcome: 'invalid',
    });
    expect(judgeMultiLog(row, cargo, 'test a ... ok\ntest a ... FAILED')).toMatchObject({
      ok: false,
      outcome: 'invalid',
    });
  });

  const at = (repo: string, log: string, number = 1) => {
    const { passed, failed, skipped } = shapeOf(repo, number)!(log);
    return [[...passed], [...failed], [...skipped]];
  };
  test.each<[string, string, string[][]]>([
    [
      'fasterxml/jackson-core',
      '[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in a.B\n' +
        'Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.2 s <<< FAILURE! - in a.C\n' +
        'Tests run: 1, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0 s -- in a.D\nTests run: 6, Failures: 1, Errors: 0, Skipped: 1',
      [['a.B'], ['a.C'], ['a.D']],
    ],
    [
      'google/gson',
      'T E S T S\nRunning a.B\nnoise\nTests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec\nRunning a.C\nTests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!\nTests run: 6, Failures: 1, Errors: 0, Skipped: 0',
      [['a.B'], ['a.C'], []],
    ],
    [
      'mockito/mockito',
      '> Task :a:compile\n> Task :a:x NO-SOURCE\nA > b PASSED\nA > c FAILED\nA > c PASSED\n> Task :y FROM-CACHE',
      [['a:compile', 'A > b'], ['A > c'], ['a:x']],
    ],
    [
      'googlecontainertools/jib',
      '  > Task :y FROM-CACHE\nA > c FAILED\nA > d SKIPPED',
      [['y'], ['A > c'], []],
    ],
    [
      'cli/cli',
      '=== RUN TestA\n    --- PASS: TestA/b (0.00s)\n--- FAIL: TestC (0.1s)\nFAIL\tpkg\t0.1s\nok pkg',
      [['TestA/b'], ['TestC', 'pkg'], []],
    ],
    ['grpc/grpc-go', '    --- PASS: TestA/b (0.00s)\n--- FAIL: TestC/d (0.1s)', [['TestA'], ['TestC'], []]],
    [
      'jqlang/jq',
      'PASS: tests/a\nFAIL: tests/b\nSKIP: c\nPASS: two words',
      [['tests/a'], ['tests/b'], ['c']],
    ],
    [
      'yhirose/cpp-httplib',
      '[       OK ] A.b (3 ms)\n[  FAILED  ] A.c (1 ms)\n[  FAILED  ] 1 test.',
      [['A.b'], ['A.c'], []],
    ],
    [
      'fmtlib/fmt',
      ' 1/2 Test  #1: a.b-test ....   Passed    0.0 sec\n2/2 Test #2: c .....***Failed',
      [['a.b-test'], ['c'], []],
    ],
    [
      'catchorg/Catch2',
      '-- Performing Test HAS_X - Success\n1/2 Test  #1: A b ...   Passed    0.1 sec\n2/2 Test #2: C ......***Failed    1.0 sec',
      [['has_x', 'a b'], ['c'], []],
    ],
    [
      'iamkun/dayjs',
      'PASS test/a.js (1.2 s)\n  ✓ adds (3 ms)\n  ✓ f(x)\nFAIL test/b.js\n  ✕ breaks',
      [['test/a.js', 'test/a.js:adds', 'test/a.js:f(x)'], ['test/b.js', 'test/b.js:breaks'], []],
    ],
    ['axios/axios', '  ✔ gets (12ms)\n  1) breaks', [['gets'], ['breaks'], []]],
    ['sveltejs/svelte', '✓ a > b 12ms\n× c 3 ms', [['a > b'], ['c'], []]],
  ])('the logs of %s', (repo, log, sets) => {
    expect(at(repo, log)).toEqual(sets);
  });

  test('repositories and ranges whose logs have another shape are not known', () => {
    expect(shapeOf('mui/material-ui', 1)).toBeUndefined();
    expect(shapeOf('facebook/zstd', 2000)).toBeUndefined();
    expect(shapeOf('facebook/zstd', 3000)).toBeDefined();
    expect(shapeOf('expressjs/express', 1)).toBeUndefined();
  });
});
