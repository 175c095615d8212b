import { describe, expect, test } from 'vitest';
import { testsOf } from '../../src/viewer/documents/attemptDocuments.ts';
import type { TrialDocument } from '../../src/viewer/documents/documents.ts';
import { pairsOf, summarizePairs } from '../../src/viewer/documents/pairs.ts';

const row = (instance_id: string, verdict: string, epoch = 1): TrialDocument =>
  ({ instance_id, verdict, epoch }) as TrialDocument;

describe('pairs', () => {
  test('only instances with a verdict on both sides count, the others are named', () => {
    const a = [
      row('x', 'resolved'),
      row('y', 'resolved'),
      row('z', 'unresolved'),
      row('w', 'infra'),
      row('only-a', 'resolved'),
      row('n', 'unresolved'),
    ];
    const b = [
      row('n', 'unresolved'),
      row('x', 'resolved'),
      row('y', 'unresolved'),
      row('z', 'resolved'),
      row('w', 'resolved'),
      row('only-b', 'resolved'),
    ];
    const summary = summarizePairs(pairsOf(a, b));
    expect(summary.table).toEqual({ both: 1, aOnly: 1, bOnly: 1, neither: 1 });
    expect(summary.onlyA.map((pair) => pair.instanceId)).toEqual(['y']);
    expect(summary.onlyB.map((pair) => pair.instanceId)).toEqual(['z']);
    expect(summary.apart.map((pair) => pair.instanceId).sort()).toEqual(['only-a', 'only-b', 'w']);
  });

  test('epochs are paired with their own number, and odd names stay names', () => {
    const pairs = pairsOf(
      [row('__proto__', 'resolved', 1), row('__proto__', 'unresolved', 2)],
      [row('__proto__', 'resolved', 2), row('constructor', 'resolved')],
    );
    expect(
      pairs.map((pair) => `${pair.instanceId} ${pair.epoch} ${pair.a?.verdict} ${pair.b?.verdict}`),
    ).toEqual([
      '__proto__ 1 resolved undefined',
      '__proto__ 2 unresolved resolved',
      'constructor 1 undefined resolved',
    ]);
  });
});

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
