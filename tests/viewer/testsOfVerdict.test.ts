import { describe, expect, test } from 'vitest';
import { testsOf } from '../../src/viewer/documents/attemptDocuments.ts';

describe('tests of a verdict', () => {
  const report = (tests_status: object) => JSON.stringify({ 'a__b-1': { resolved: false, tests_status } });
  const status = {
    FAIL_TO_PASS: { success: ['t::ok'], failure: ['tests/x.py::test_bad', 'gone'] },
    PASS_TO_PASS: { success: [], failure: [] },
  };

  test('a failed test leads to the line that says so, not to an earlier mention', () => {
    const log = 'collecting tests/x.py::test_bad\nPASSED t::ok\nFAILED tests/x.py::test_bad - assert 0\nend';
    expect(testsOf(report(status), log)).toEqual([
      { name: 'tests/x.py::test_bad', group: 'FAIL_TO_PASS', passed: false, line: 3 },
      { name: 'gone', group: 'FAIL_TO_PASS', passed: false, line: null },
      { name: 't::ok', group: 'FAIL_TO_PASS', passed: true, line: null },
    ]);
  });

  test('Django names its tests by method and class', () => {
    const django = { FAIL_TO_PASS: { success: [], failure: ['test_it (app.tests.Case)'] } };
    const log = 'test_it (app.tests.Case) ... FAIL\nok';
    expect(testsOf(report(django), log)[0]!.line).toBe(1);
  });

  test.each([
    null,
    '',
    'not json',
    '[]',
    '{"a":{"b":{}}}',
    '{"tests_status":{"FAIL_TO_PASS":{"failure":"x"}}}',
  ])('a report like %s has no tests', (text) => {
    expect(testsOf(text, 'log')).toEqual([]);
  });
});
