// Run reports, report text as Python writes it, reports of other graders.
import { describe, expect, test } from 'vitest';
import { pythonJson } from '../../src/base/python/json.ts';
import { byCodePoint } from '../../src/base/python/text.ts';
import { readInstanceReport } from '../../src/formats/harness/instanceReport.ts';
import { readRunReport, runReportText } from '../../src/formats/harness/runReport.ts';
import { summarizeEvaluation } from '../../src/grading/storedReports.ts';

describe('JSON as Python writes it', () => {
  test('indentation, empty lists and objects, escapes', () => {
    expect(pythonJson({ a: [], b: {}, c: ['é\u007f😀"\n'], d: null, e: true })).toBe(
      '{\n    "a": [],\n    "b": {},\n    "c": [\n        "\\u00e9\\u007f\\ud83d\\ude00\\"\\n"\n    ],\n    "d": null,\n    "e": true\n}',
    );
  });
  test('a Map keeps the order of keys that look like numbers', () => {
    expect(
      pythonJson(
        new Map([
          ['9', 'x'],
          ['1', 'y'],
        ]),
        1,
      ),
    ).toBe('{\n "9": "x",\n "1": "y"\n}');
  });
  test('ids sort by code point', () => {
    expect(['b', 'a-10', 'a-9', 'B', '\u{1F600}', '\uFFFD'].sort(byCodePoint)).toEqual([
      'B',
      'a-10',
      'a-9',
      'b',
      '\uFFFD',
      '\u{1F600}',
    ]);
  });
});

const prediction = (id: string, patch: string | null = 'x') => ({
  instance_id: id,
  model_name_or_path: 'm',
  model_patch: patch,
});
const input = {
  instanceIds: ['d', 'c', 'b', 'a', 'e', 'f'],
  predictions: [prediction('a'), prediction('b'), prediction('c', ''), prediction('d'), prediction('e')],
  completed: new Map([
    ['a', { report: { resolved: true } }],
    ['b', { report: { resolved: false }, infra: { reason: 'missing_module', tier: 'ambiguous' as const } }],
    ['d', { report: null, infra: { reason: 'out_of_memory', tier: 'environment' as const } }],
    ['e', { report: 'unreadable' as const }],
  ]),
};

describe('run report', () => {
  test('completed, unresolved, error, empty and incomplete as the harness counts them', () => {
    expect(summarizeEvaluation({ ...input, harness: 'v5' })).toEqual({
      total_instances: 6,
      submitted_instances: 5,
      completed_instances: 3,
      resolved_instances: 1,
      unresolved_instances: 1,
      infra_failure_instances: 1,
      ambiguous_failure_instances: 1,
      empty_patch_instances: 1,
      error_instances: 2,
      completed_ids: ['a', 'b', 'e'],
      incomplete_ids: ['f'],
      empty_patch_ids: ['c'],
      submitted_ids: ['a', 'b', 'c', 'd', 'e'],
      resolved_ids: ['a'],
      unresolved_ids: ['b'],
      infra_failure_ids: ['d'],
      ambiguous_failure_ids: ['b'],
      failure_reasons: new Map([
        ['b', 'missing_module'],
        ['d', 'out_of_memory'],
      ]),
      error_ids: ['d', 'e'],
      schema_version: 2,
    }); // prettier-ignore
  });
  test('the order of keys is that of the harness', () => {
    const leftovers = { containers: ['z'], images: [] };
    const keys = (harness: 'v5' | 'v4.1') =>
      Object.keys(JSON.parse(runReportText(summarizeEvaluation({ ...input, harness, leftovers }))));
    expect(keys('v5').slice(-5)).toEqual([
      'error_ids',
      'schema_version',
      'unstopped_instances',
      'unstopped_containers',
      'unremoved_images',
    ]);
    expect(keys('v4.1').slice(-5)).toEqual([
      'error_ids',
      'unstopped_instances',
      'unstopped_containers',
      'unremoved_images',
      'schema_version',
    ]);
    expect(keys('v4.1')).not.toContain('failure_reasons');
  });
});

describe('reports of others', () => {
  test("the harness's own run report comes back as the verdicts it states", () => {
    const read = readRunReport(runReportText(summarizeEvaluation({ ...input, harness: 'v5' })));
    expect(read.ok && read.value.kind).toBe('harness');
    expect(read.ok && Object.fromEntries(read.value.verdicts)).toEqual({
      a: 'resolved',
      b: 'unresolved',
      c: 'empty_patch',
      d: 'error',
      e: 'error',
      f: 'incomplete',
    });
  });
  test('the hosted service has pending and failed instead', () => {
    const read = readRunReport(
      '{"resolved_ids": ["a"], "unresolved_ids": [], "pending_ids": ["b"], "failed_ids": ["c"]}',
    );
    expect(read.ok && read.value.kind).toBe('sb-cli');
    expect(read.ok && Object.fromEntries(read.value.verdicts)).toEqual({
      a: 'resolved',
      b: 'pending',
      c: 'error',
    });
  });
  test('an instance report is read with and without the id around it', () => {
    const inner = { patch_successfully_applied: true, resolved: true };
    for (const text of [JSON.stringify({ x: inner }), JSON.stringify(inner)])
      expect(readInstanceReport(text, 'x')).toEqual({
        ok: true,
        value: { patch_is_None: false, patch_exists: true, ...inner },
      });
  });
  test('what is no report is refused with the reason', () => {
    expect(readRunReport('')).toMatchObject({ ok: false, message: expect.stringMatching(/not JSON/) });
    expect(readRunReport('{}')).toMatchObject({
      ok: false,
      message: expect.stringMatching(/no resolved_ids/),
    });
    expect(readInstanceReport('{"y": 1}', 'x')).toMatchObject({
      ok: false,
      message: 'it holds no verdict for x',
    });
  });
});
