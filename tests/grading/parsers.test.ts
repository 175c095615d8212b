// Log parsers: agreement with the official ones on recorded answers, real forms of output, and the registry.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type HarnessVersion, ParserError } from '../../src/grading/parsers/logParser.ts';
import {
  extendRegistry,
  findParser,
  OFFICIAL_PARSERS,
  officialRegistry,
} from '../../src/grading/parsers/parserRegistry.ts';

interface Golden {
  readonly id: string;
  readonly dialect: HarnessVersion;
  readonly instance: string;
  readonly version: string;
  readonly log: string;
  /** null: the official parser raises. */
  readonly statuses: readonly (readonly [string, string])[] | null;
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'parser-golden.json'), 'utf8'),
) as Golden[];

function parse(
  id: string,
  log: string,
  more: { instance?: string; version?: string; harness?: HarnessVersion } = {},
) {
  const parser = findParser(officialRegistry(), id)!;
  const { instance = 'owner__repo-1', version = '', harness = 'v5' } = more;
  return Object.fromEntries(parser(log, { instanceId: instance, version, harness }));
}

describe('agreement with the official parsers (answers recorded from them)', () => {
  test.each(['v5', 'v4.1'] as const)(
    '%s: every recorded log gives the same names and statuses',
    (harness) => {
      const cases = golden.filter((entry) => entry.dialect === harness);
      expect(cases.length).toBeGreaterThan(20);
      for (const { id, log, statuses, instance, version } of cases) {
        const mine = () => parse(id, log, { instance, version, harness });
        if (statuses === null) expect(mine, `${id} on ${JSON.stringify(log)}`).toThrow(ParserError);
        else expect(mine(), `${id} on ${JSON.stringify(log)}`).toEqual(Object.fromEntries(statuses));
      }
    },
  );

  test('all 57 official ids are there, each with and without its prefix', () => {
    const ids = Object.keys(OFFICIAL_PARSERS);
    expect(ids).toHaveLength(57);
    for (const id of ids)
      expect(findParser(officialRegistry(), id.replace('parse_log_', ''))).toBe(OFFICIAL_PARSERS[id]);
  });
});

describe('Python', () => {
  test('pytest: the name ends at the first space, and the last line about a test counts', () => {
    const log =
      'PASSED t.py::a[x y]\nFAILED t.py::b - assert 1 == 2\nERROR t.py::c\nPASSED t.py::c\nPASSED\n';
    expect(parse('pytest', log)).toEqual({ 't.py::a[x': 'PASSED', 't.py::b': 'FAILED', 't.py::c': 'PASSED' });
  });
  test('pytest: a skip count is no test under v5, and is one under v4.1; [100%] is one under both', () => {
    const log = 'SKIPPED [2] t.py:3: no\nPASSED [100%]';
    expect(parse('pytest', log)).toEqual({ '[100%]': 'PASSED' });
    expect(parse('pytest', log, { harness: 'v4.1' })).toEqual({ '[2]': 'SKIPPED', '[100%]': 'PASSED' });
  });
  test('pytest_v2: keeps spaces in names under v5 and cuts them under v4.1', () => {
    const log =
      '\x1b[32mPASSED\x1b[0m t.py::\x1b[1ma[x y]\x1b[0m\nFAILED t.py::b[p - q] - boom\nt.py::old PASSED';
    expect(parse('pytest_v2', log)).toEqual({
      't.py::a[x y]': 'PASSED',
      't.py::b[p': 'FAILED',
      't.py::old': 'PASSED',
    });
    expect(parse('pytest_v2', log, { harness: 'v4.1' })).toEqual({
      't.py::a[x': 'PASSED',
      't.py::b[p': 'FAILED',
      't.py::old': 'PASSED',
    });
  });
  test('pytest_options: a path parameter keeps its last part', () => {
    const log = 'PASSED t::a[/home/me/x.txt]\nPASSED t::b[//net/x]\nPASSED t::c[/a/*]\nPASSED t::d[1]tail';
    expect(Object.keys(parse('pytest_options', log))).toEqual([
      't::a[/x.txt]',
      't::b[//net/x]',
      't::c[/a/*]',
      't::d[1]',
    ]);
  });
  test('django: docstrings as names, output between "..." and ok, interrupted lines', () => {
    const log = [
      'test_a (app.tests.A)',
      'A docstring names it ... ok',
      "test_s (app.tests.A) ... skipped 'no database'",
      'test_f (app.tests.A) ... FAIL',
      'test_p (app.tests.A) ... some output',
      'ok',
      'test_i (app.tests.I) ... Testing against Django installed in /x with up to 2 processes (0 silenced).',
      'ok',
      'ERROR: test_e (app.tests.A)',
    ].join('\n');
    expect(parse('django', log)).toEqual({
      'A docstring names it': 'PASSED',
      'test_s (app.tests.A)': 'SKIPPED',
      'test_f (app.tests.A)': 'FAILED',
      'test_p (app.tests.A)': 'PASSED',
      'test_i (app.tests.I)': 'PASSED',
      test_e: 'ERROR',
    });
  });
  test('sympy: headings of failures, then the verdict at the end of a line', () => {
    const log = '____ sympy/core/tests/test_a.py:test_x ____\ntest_x F\ntest_y ok\ntest_z E\n';
    expect(parse('sympy', log)).toEqual({
      'sympy/core/tests/test_a.py:test_x': 'FAILED',
      test_x: 'FAILED',
      test_y: 'PASSED',
      test_z: 'ERROR',
    });
  });
});

describe('Multilingual and Multimodal', () => {
  const cases: readonly (readonly [id: string, log: string, want: Record<string, string>])[] = [
    ['cargo', 'test a::b ... ok\ntest c ... FAILED\ntest d ... ignored', { 'a::b': 'PASSED', c: 'FAILED' }],
    [
      'gotest',
      '    --- PASS: TestA/x_(y) (0.00s)\n--- SKIP: TestB (0.1s)\n--- FAIL: TestC (1s)',
      { 'TestA/x_(y)': 'PASSED', TestB: 'SKIPPED', TestC: 'FAILED' },
    ],
    [
      'phpunit',
      'Cart (Shop\\Cart)\n ✔ Adds\n ✘ Removes\n ↩ Later',
      { 'Cart > Adds': 'PASSED', 'Cart > Removes': 'FAILED', 'Cart > Later': 'SKIPPED' },
    ],
    [
      'maven',
      '+ mvn -Dtest=A#x test\n+ mvn -Dtest=A#y test\nBUILD SUCCESS\nBUILD FAILURE',
      { 'A#x': 'PASSED', 'A#y': 'FAILED' },
    ],
    [
      'gradle_custom',
      'S > a PASSED\nS > b\nnoise here\nFAILED\n> Task :x FAILED',
      { 'S > a': 'PASSED', 'S > b': 'FAILED' },
    ],
    ['tap', 'ok 1 - adds\n  not ok 2 - removes\nok 3', { '- adds': 'PASSED', '- removes': 'FAILED' }],
    [
      'jest',
      '  ✓ adds (3 ms)\n  ✕ fails\n  ○ skipped later',
      { adds: 'PASSED', fails: 'FAILED', 'skipped later': 'SKIPPED' },
    ],
    ['jest_json', '[PASSED] a > b\n[FAILED] c\n[SKIPPED] d', { 'a > b': 'PASSED', c: 'FAILED' }],
    ['vitest', ' ✓ a > b 12ms\n × c\n ↓ d [skipped]', { 'a > b': 'PASSED', c: 'FAILED', d: 'SKIPPED' }],
    [
      'redis',
      '[ok]: Sorts (12 ms)\n[err]: Breaks in tests/unit/a.tcl\n[ignore]: Slow',
      { Sorts: 'PASSED', Breaks: 'FAILED', Slow: 'SKIPPED' },
    ],
    ['googletest', '[       OK ] A.b (0 ms)\n[  FAILED  ] A.c (1 ms)', { 'A.b': 'PASSED', 'A.c': 'FAILED' }],
    [
      'doctest',
      'x<doctest><TestCase name="t"><SubCase name="a &lt; b"><Expression success="true"/></SubCase><SubCase name="c"><SubCase name="d"><Expression success="false"/></SubCase></SubCase></TestCase></doctest>y',
      { 't > a < b': 'PASSED', 't > c': 'FAILED', 't > d': 'FAILED' },
    ],
    [
      'minitest',
      'CartTest#test_x. 0.01 s = .\nCartTest#test_y. 0.02 s = F',
      { 'CartTest#test_x': 'PASSED', 'CartTest#test_y': 'FAILED' },
    ],
    ['ruby_unit', 'test: adds:   .: (0.01)\nremoves: F', { adds: 'PASSED', removes: 'FAILED' }],
    ['marked', '1) a spec\nno\n12) b', { 'a spec': 'FAILED', b: 'FAILED' }],
    [
      'chart_js',
      '\x1b[31mChrome 109.0 (Linux x86_64) Legend should draw FAILED\x1b[39m\n',
      { 'Legend should draw ': 'FAILED' },
    ],
    [
      'react_pdf',
      'PASS a/b.test.js (1.5 s)\nFAIL c.test.js',
      { 'a/b.test.js': 'PASSED', 'c.test.js': 'FAILED' },
    ],
    ['p5js', '  1) suite\n       inner\n         test:\n', { 'suite:inner:test': 'FAILED' }],
  ];
  test.each(cases)('%s', (id, log, want) => {
    expect(parse(id, log)).toEqual(want);
  });

  test('characters beyond 16 bits and an XML declaration out of place, as the official parsers take them', () => {
    expect(parse('gradle_custom', '😀 PASSED\n😀a PASSED\nab PASSED\na PASSED')).toEqual({
      '😀a': 'PASSED',
      ab: 'PASSED',
    });
    expect(() => parse('doctest', '<doctest><?xml version="1.0"?></doctest>')).toThrow(ParserError);
  });
  test('maven under v4.1 gives each result to the latest command', () => {
    const log = '-Dtest=A#x\n-Dtest=A#y\nBUILD SUCCESS\nBUILD FAILURE';
    expect(parse('maven', log, { harness: 'v4.1' })).toEqual({ 'A#y': 'FAILED' });
  });
  test('two parsers choose by the instance and refuse one they do not know', () => {
    expect(parse('jekyll', 'Some scenario ....', { instance: 'jekyll__jekyll-8761' })).toEqual({
      'Some scenario': 'PASSED',
    });
    expect(() => parse('jekyll', '', { instance: 'jekyll__jekyll-1' })).toThrow(/jekyll__jekyll-1/);
  });
  test('names that look like numbers or like __proto__ are names', () => {
    const log = '1) __proto__\n2) 7\n3) constructor';
    const found = OFFICIAL_PARSERS.parse_log_marked!(log, { instanceId: 'a', version: '', harness: 'v5' });
    expect([...found.keys()]).toEqual(['__proto__', '7', 'constructor']);
  });
});

test('a parser of the user is added beside the official ones and may replace one', () => {
  const own = () => new Map([['x', 'PASSED']]);
  const registry = extendRegistry({ mine: own, parse_log_tap: own });
  expect(findParser(registry, 'mine')).toBe(own);
  expect(findParser(registry, 'tap')).toBe(own);
  expect(findParser(registry, 'parse_log_pytest')).toBe(OFFICIAL_PARSERS.parse_log_pytest);
  expect(findParser(registry, 'nobody')).toBeUndefined();
});
