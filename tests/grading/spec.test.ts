// Grade specs: rows of every kind, scripts made from facts, hashes, and reasons where a row cannot be graded.

import { describe, expect, test } from 'vitest';
import {
  type GradeSpec,
  modifiedPaths,
  resolveGradeSpec,
  synthesiseScript,
  testDirectives,
  touchedPaths,
  withExitCode,
} from '../../src/grading/specs/spec.ts';
import { normaliseRow } from '../support/suites.ts';
import { hasData, OTHER_SPLITS, officialLogs, PYTHON_SPLITS, rowsOf, WITHOUT_DATA } from './officialData.ts';

const TEST_PATCH = [
  'diff --git a/tests/app/test_x.py b/tests/app/test_x.py',
  '--- a/tests/app/test_x.py',
  '+++ b/tests/app/test_x.py',
  '@@ -1 +1 @@',
  '-a',
  '+b',
  'diff --git a/tests/app/new.py b/tests/app/new.py',
  'new file mode 100644',
  '--- /dev/null',
  '+++ b/tests/app/new.py',
  '@@ -0,0 +1 @@',
  '+c',
  'diff --git a/tests/data.json b/tests/data.json',
  '--- a/tests/data.json',
  '+++ b/tests/data.json',
  '@@ -1 +1 @@',
  '-1',
  '+2',
  '',
].join('\n');

const row = (more: Record<string, unknown> = {}) => {
  const read = normaliseRow({
    instance_id: 'owner__repo-1',
    repo: 'pallets/flask',
    version: '2.0',
    base_commit: 'abc123',
    problem_statement: 'x',
    patch: '',
    test_patch: TEST_PATCH,
    FAIL_TO_PASS: ['t::a'],
    PASS_TO_PASS: [],
    ...more,
  });
  if (!read.ok) throw new Error(read.messages.join());
  return read.instance;
};
const spec = (more: Record<string, unknown> = {}, harness?: 'v5' | 'v4.1'): GradeSpec => {
  const found = resolveGradeSpec(row(more), harness ? { harness } : {});
  if (!found.ok) throw new Error(found.reason);
  return found.spec;
};
const reason = (more: Record<string, unknown>) => {
  const found = resolveGradeSpec(row(more));
  return found.ok ? undefined : found.reason;
};

test('a row that does not say how failures are told is read by its repository, as the harness of that time did', () => {
  const of = (repo: string, harness: 'v5' | 'v4.1', more = {}) =>
    spec({ repo, eval_script: 'x', log_parser: 'marked', ...more }, harness).evalType;
  expect(of('markedjs/marked', 'v4.1')).toBe('fail_only');
  expect(of('eslint/eslint', 'v5')).toBe('fail_only');
  expect(of('eslint/eslint', 'v4.1')).toBe('pass_and_fail');
  expect(of('pallets/flask', 'v5')).toBe('pass_and_fail');
  expect(of('markedjs/marked', 'v5', { eval_type: 'pass_and_fail' })).toBe('pass_and_fail');
});

describe('paths of a test patch', () => {
  test('all touched paths, only those that existed, and what is named on the command line', () => {
    expect(touchedPaths(TEST_PATCH)).toEqual(['tests/app/test_x.py', 'tests/app/new.py', 'tests/data.json']);
    expect(modifiedPaths(TEST_PATCH)).toEqual(['tests/app/test_x.py', 'tests/data.json']);
    expect(testDirectives('pallets/flask', TEST_PATCH)).toEqual(['tests/app/test_x.py', 'tests/app/new.py']);
    expect(testDirectives('django/django', TEST_PATCH)).toEqual(['app.test_x', 'app.new']);
  });
});

describe('where the script comes from', () => {
  test('the row itself', () => {
    const found = spec({ eval_script: '#!/bin/bash\necho hi\n', log_parser: 'tap', image: 'reg/own:1' });
    expect(found).toMatchObject({
      source: 'row',
      logParser: 'tap',
      image: 'reg/own:1',
      evalType: 'pass_and_fail',
    });
    expect(found.evalScript).toBe('#!/bin/bash\necho hi\n');
  });
  test('the tables, for a classic row of a known repository and version', () => {
    const found = spec();
    expect(found).toMatchObject({ source: 'tables', logParser: 'parse_log_flask' });
    expect(found.evalScript).toContain(
      '\npython -m pip install -e .\ngit checkout abc123 tests/app/test_x.py tests/app/new.py tests/data.json\n',
    );
    expect(found.evalScript).toContain('\npytest -rA tests/app/test_x.py tests/app/new.py\n');
    expect(found.image).toContain('sweb.eval.x86_64.owner_1776_repo-1:latest');
  });
  test('install_config, with the locale in front of both commands and existing files reset only', () => {
    const found = spec({
      repo: 'some/where',
      version: '0.1',
      install_config: {
        test_cmd: 'pytest -q',
        install: 'pip install .',
        log_parser: 'parse_log_pytest',
        python: '3.9',
        pre_install: null,
      },
    });
    expect(found).toMatchObject({ source: 'install_config', logParser: 'parse_log_pytest' });
    expect(found.evalScript).toContain(
      '\nLANG=C.UTF-8 LC_ALL=C.UTF-8 pip install .\ngit checkout abc123 tests/app/test_x.py tests/data.json\n',
    );
    expect(found.evalScript).toContain(
      '\nLANG=C.UTF-8 LC_ALL=C.UTF-8 pytest -q tests/app/test_x.py tests/app/new.py\n',
    );
  });
  test('nowhere: the reason names the instance and what is missing', () => {
    expect(reason({ repo: 'nobody/nothing' })).toMatch(
      /owner__repo-1 cannot be graded.*no test command is known for "nobody\/nothing"/,
    );
    expect(reason({ version: '99.9' })).toMatch(/pallets\/flask version "99.9"/);
    expect(reason({ eval_script: 'x', log_parser: 'nobody' })).toMatch(
      /no log parser is called "nobody".*grading\.parsers/,
    );
    expect(reason({ FAIL_TO_PASS: [] })).toMatch(/expects no tests/);
    expect(reason({ test_patch: '' })).toMatch(/neither an eval_script nor a test_patch/);
    expect(reason({ repo: 'some/where', install_config: { test_cmd: '' } })).toMatch(/no usable test_cmd/);
    expect(reason({ eval_script: 'x', log_parser: 'tap', image_assets: '{' })).toMatch(/image_assets/);
  });
});

describe('what runs', () => {
  const script =
    "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\ngit checkout x\n";
  test('v5 keeps the exit code of the tests, outside of what parsers see', () => {
    expect(withExitCode(script)).toBe(
      "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\npytest\nSWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\necho \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\ngit checkout x\n",
    );
    expect(withExitCode('echo no marker')).toBe('#!/bin/bash\nset -uxo pipefail\necho no marker\n');
  });
  test('v4.1 runs the script as it stands', () => {
    expect(spec({ eval_script: script, log_parser: 'tap' }, 'v4.1').scriptToRun).toBe(script);
    expect(spec({ eval_script: script, log_parser: 'tap' }).scriptToRun).toBe(withExitCode(script));
  });
  test('assets of the tests and of the patch, from text or object', () => {
    const assets = {
      test_patch: [{ path: 'a/b.png', url: 'https://x.example/b' }],
      patch: [{ path: 'c.png' }],
      problem_statement: ['u'],
    };
    const want = [
      { path: 'a/b.png', url: 'https://x.example/b' },
      { path: 'c.png', url: undefined },
    ];
    for (const image_assets of [assets, JSON.stringify(assets)])
      expect(spec({ eval_script: script, log_parser: 'tap', image_assets }).assets).toEqual(want);
  });
});

describe('the hash of a spec', () => {
  const base = { eval_script: 'x', log_parser: 'tap' };
  test('is the same for the same row and changes with everything that decides a verdict', () => {
    const hash = spec(base).specHash;
    expect(spec({ ...base, problem_statement: 'other words' }).specHash).toBe(hash);
    for (const change of [
      { eval_script: 'y' },
      { log_parser: 'jest' },
      { FAIL_TO_PASS: ['t::z'] },
      { PASS_TO_PASS: ['t::z'] },
      { image: 'i:2' },
      { eval_type: 'fail_only' },
    ])
      expect(spec({ ...base, ...change }).specHash, JSON.stringify(change)).not.toBe(hash);
  });
});

describe.skipIf(!hasData)(`official rows (${WITHOUT_DATA})`, () => {
  test('every row of the six published files has a grade spec', async () => {
    for (const split of [...PYTHON_SPLITS, ...OTHER_SPLITS]) {
      const bad = (await rowsOf(split))
        .map((instance) => resolveGradeSpec(instance))
        .filter((found) => !found.ok);
      expect(bad, split).toEqual([]);
    }
  });

  test('classic columns alone give the official script in 1046 of 1048 rows; the two others were mended by hand', async () => {
    const differing: string[] = [];
    let rows = 0;
    for (const split of PYTHON_SPLITS)
      for (const instance of await rowsOf(split)) {
        rows++;
        const { eval_script, log_parser, ...classic } = instance;
        const found = resolveGradeSpec({ ...classic, image: instance.image });
        expect(found.ok, instance.instance_id).toBe(true);
        if (found.ok && (found.spec.evalScript !== eval_script || found.spec.logParser !== log_parser))
          differing.push(instance.instance_id);
      }
    expect(rows).toBe(1048);
    expect(differing).toEqual(['astropy__astropy-8707', 'astropy__astropy-8872']);
  });

  test('under v4.1 they give the script that harness 4 ran, for every log that has one', async () => {
    const rows = new Map(
      (await rowsOf('SWE-bench_Verified_test')).map((instance) => [instance.instance_id, instance]),
    );
    const withScript = officialLogs().filter((entry) => entry.script !== undefined);
    expect(withScript.length).toBeGreaterThan(100);
    for (const { instanceId, script, name } of withScript) {
      const { eval_script, log_parser, ...classic } = rows.get(instanceId)!;
      const found = resolveGradeSpec(classic, { harness: 'v4.1' });
      expect(found.ok && found.spec.evalScript, name).toBe(script);
    }
  });
});

test('a patch with odd headers does not break the script', () => {
  const script = synthesiseScript(
    { repo: 'a/b', base_commit: 'c', test_patch: 'diff --git a/x\n+diff --git nothing' },
    { test_cmd: 'run' },
  );
  expect(script).toContain('git checkout c \n');
});
