// The grading rules of both harnesses: markers, fallback, missing and skipped tests, cut ids, exit codes, infra signatures.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { instanceReportText } from '../../src/formats/harness/instanceReport.ts';
import { type Expectation, gradeLog, gradeSafely, resolutionOf } from '../../src/grading/grade.ts';
import type { HarnessVersion } from '../../src/grading/parsers/logParser.ts';
import { findParser, officialRegistry } from '../../src/grading/parsers/parserRegistry.ts';

const START = "+ : '>>>>> Start Test Output'\n";
const END = "+ : '>>>>> End Test Output'\n";
const pytest = findParser(officialRegistry(), 'pytest')!;
const expected = (more: Partial<Expectation> = {}): Expectation => ({
  instanceId: 'owner__repo-1',
  version: '1.0',
  evalType: 'pass_and_fail',
  failToPass: ['t::a'],
  passToPass: ['t::b'],
  ...more,
});
const grade = (log: string, more: Partial<Expectation> = {}, harness: HarnessVersion = 'v5') =>
  gradeLog(expected(more), log, pytest, harness);
const run = (body: string, code?: number) =>
  `${START}${body}\n${END}${code === undefined ? '' : `>>>>> Test Exit Code: ${code}\n`}`;

test('reports agree byte for byte with those the official harness made of the same logs', () => {
  const cases = JSON.parse(
    readFileSync(join(import.meta.dirname, 'fixtures', 'report-golden.json'), 'utf8'),
  ) as {
    parser: string;
    id: string;
    log: string;
    type: Expectation['evalType'];
    f2p: string[];
    p2p: string[];
    report: string;
  }[];
  expect(cases.length).toBeGreaterThan(50);
  for (const { parser, id, log, type, f2p, p2p, report } of cases) {
    const found = gradeLog(
      { instanceId: id, version: '1', evalType: type, failToPass: f2p, passToPass: p2p },
      log,
      findParser(officialRegistry(), parser)!,
      'v5',
    );
    expect(instanceReportText({ [id]: found.verdict }), JSON.stringify(log)).toBe(report);
  }
});

describe('where results are looked for', () => {
  test('only between the markers, when there is something', () => {
    const log = `FAILED t::a\n${run('PASSED t::a\nPASSED t::b')}FAILED t::b\n`;
    expect(grade(log).verdict.resolved).toBe(true);
  });
  test('in the whole log when there is nothing between them (streams out of order)', () => {
    const log = `PASSED t::a\nPASSED t::b\n${run('')}`;
    const found = grade(log);
    expect(found.verdict.resolved).toBe(true);
    expect(found.read.fallback).toBe(true);
  });
  test('nowhere without both markers, or after a mark of failure', () => {
    for (const log of [
      `${START}PASSED t::a\nPASSED t::b`,
      `>>>>> Tests Timed Out\n${run('PASSED t::a\nPASSED t::b')}`,
    ]) {
      expect(grade(log).verdict).toMatchObject({ patch_successfully_applied: false, resolved: false });
      expect(grade(log).verdict.tests_status).toBeUndefined();
    }
  });
  test('carriage returns end lines, as Python reads them', () => {
    expect(grade(run('PASSED t::a\r\nPASSED t::b\rFAILED t::c')).verdict.resolved).toBe(true);
  });
});

describe('statuses', () => {
  test('a missing test failed', () => {
    expect(grade(run('PASSED t::a')).verdict.tests_status!.PASS_TO_PASS.failure).toEqual(['t::b']);
  });
  test('XFAIL passes, ERROR fails', () => {
    expect(grade(run('XFAIL t::a\nERROR t::b')).verdict.tests_status).toMatchObject({
      FAIL_TO_PASS: { success: ['t::a'] },
      PASS_TO_PASS: { failure: ['t::b'] },
    });
  });
  test('skipped: v5 fails F2P and keeps P2P; v4.1 puts it on no list', () => {
    const log = run('SKIPPED t::a\nSKIPPED t::b');
    expect(grade(log).verdict.tests_status).toMatchObject({
      FAIL_TO_PASS: { failure: ['t::a'] },
      PASS_TO_PASS: { success: ['t::b'] },
    });
    const old = grade(log, {}, 'v4.1').verdict;
    expect(old.tests_status!.FAIL_TO_PASS).toEqual({ success: [], failure: [] });
    expect(old.resolved).toBe(true);
  });
  test('an id cut inside its parameter takes names that begin with it, if they agree (v5)', () => {
    const cut = { failToPass: ['t::c[x'], passToPass: [] };
    expect(grade(run('PASSED t::c[x-1]\nXFAIL t::c[x-2]'), cut).verdict.resolved).toBe(true);
    expect(grade(run('PASSED t::c[x-1]\nFAILED t::c[x-2]'), cut).verdict.resolved).toBe(false);
    expect(grade(run('PASSED t::c[x-1]'), cut, 'v4.1').verdict.resolved).toBe(false);
    expect(grade(run('PASSED t::c[x]1'), { failToPass: ['t::c[x]'], passToPass: [] }).verdict.resolved).toBe(
      false,
    );
  });
  test('fail_only: only a reported failure fails', () => {
    const only = { evalType: 'fail_only' as const };
    expect(grade(run('FAILED t::z\nERROR t::a'), only).verdict.resolved).toBe(true);
    expect(grade(run('FAILED t::a'), only).verdict.resolved).toBe(false);
  });
});

describe('evidence and exit code (v5)', () => {
  test('nothing parsed and no sign of a run: not even fail_only passes', () => {
    const silent = run('Executed 0 of 0');
    expect(grade(silent, { evalType: 'fail_only' }).verdict).toMatchObject({
      resolved: false,
      patch_successfully_applied: false,
    });
    expect(grade(run('Executed 3 of 3'), { evalType: 'fail_only' }).verdict.resolved).toBe(true);
    expect(grade(silent, { evalType: 'fail_only' }, 'v4.1').verdict.resolved).toBe(true);
  });
  test('a failing exit code without one failed test is a forged log', () => {
    const forged = run('PASSED t::a\nPASSED t::b', 1);
    expect(grade(forged).verdict.patch_successfully_applied).toBe(false);
    expect(grade(forged).read.notFound).toBe('exit_code_contradicts');
    expect(grade(forged, {}, 'v4.1').verdict.resolved).toBe(true);
    expect(grade(run('PASSED t::a\nPASSED t::b\nFAILED t::z', 1)).verdict.resolved).toBe(true);
  });
  test('infra signatures are flagged and change nothing', () => {
    expect(grade('Killed\n').verdict).toMatchObject({
      infra_failure: true,
      infra_failure_reason: 'out_of_memory',
      resolved: false,
    });
    // The harness reads the file with line ends translated.
    expect(grade('x\r\nKilled\r\ny').verdict).toMatchObject({ infra_failure_reason: 'out_of_memory' });
    expect(grade('no tests ran in 0.1s').verdict).toMatchObject({
      infra_failure: false,
      infra_failure_reason: 'no_tests_collected',
    });
    expect(Object.keys(grade('Killed', {}, 'v4.1').verdict)).not.toContain('infra_failure');
    expect(grade(run('PASSED t::a\nPASSED t::b\nKilled')).verdict.infra_failure).toBe(false);
  });
});

test('resolution: full, partial, no', () => {
  const lists = (success: string[], failure: string[]) => ({ success, failure });
  const status = (f2p: ReturnType<typeof lists>, p2p: ReturnType<typeof lists>) =>
    resolutionOf({
      FAIL_TO_PASS: f2p,
      PASS_TO_PASS: p2p,
      FAIL_TO_FAIL: lists([], []),
      PASS_TO_FAIL: lists([], []),
    });
  expect(status(lists(['a'], []), lists([], []))).toBe('RESOLVED_FULL');
  expect(status(lists(['a'], ['b']), lists(['c'], []))).toBe('RESOLVED_PARTIAL');
  expect(status(lists(['a'], []), lists([], ['c']))).toBe('RESOLVED_NO');
  expect(status(lists([], ['a']), lists(['c'], []))).toBe('RESOLVED_NO');
});

test('a parser that throws costs its own instance and says so', () => {
  const broken = () => {
    throw new TypeError('x is undefined');
  };
  const found = gradeSafely(expected(), run('PASSED t::a'), broken, 'v5');
  expect(found).toEqual({
    ok: false,
    message: expect.stringMatching(/owner__repo-1.*log parser gave up.*x is undefined/),
  });
});
