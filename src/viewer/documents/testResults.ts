/** The tests that a verdict rests on, and the lines of the test output that mention the failed ones. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import type { EvaluationDocument } from './documents.ts';
import { lenientJson } from './lenient.ts';

const groupSchema = z.object({
  success: z.array(z.string()).catch([]),
  failure: z.array(z.string()).catch([]),
});
const GROUPS = ['FAIL_TO_PASS', 'PASS_TO_PASS', 'FAIL_TO_FAIL', 'PASS_TO_FAIL'] as const;

/** `tests_status` of a harness report, whether or not it is wrapped in the instance's id. */
function statusOf(report: unknown): Map<string, unknown> {
  if (!isRecord(report)) return new Map();
  const fields = new Map<string, unknown>(Object.entries(report));
  const direct = fields.get('tests_status');
  if (isRecord(direct)) return new Map(Object.entries(direct));
  for (const inner of fields.values()) {
    const nested = inner !== report ? statusOf(inner) : new Map<string, unknown>();
    if (nested.size > 0) return nested;
  }
  return new Map();
}

export function testsOf(report: string | null, log: string | null): EvaluationDocument['tests'] {
  const status = statusOf(lenientJson(report));
  const tests = GROUPS.flatMap((group) => {
    const parsed = groupSchema.safeParse(status.get(group));
    if (!parsed.success) return [];
    return [
      ...parsed.data.failure.map((name) => ({ name, group, passed: false })),
      ...parsed.data.success.map((name) => ({ name, group, passed: true })),
    ];
  });
  const find = lineFinder(log);
  return tests.map((test) => ({ ...test, line: test.passed ? null : find(test.name) }));
}

const VERDICT = /\b(FAILED|FAIL|ERROR|failed|not ok)\b|✕|✗/;

/** Finds the line that says a test failed, else the last one that names it; lines count from 1. */
function lineFinder(log: string | null): (test: string) => number | null {
  if (log === null) return () => null;
  const lines = log.split('\n');
  const loud = lines.flatMap((line, i) => (VERDICT.test(line) ? [i] : []));
  return (test) => {
    const said = loud.findLast((i) => lines[i]!.includes(test));
    if (said !== undefined) return said + 1;
    const short = test.split(/::|\s\(/).filter((part) => part !== '');
    const last = test.includes('::') ? short.at(-1) : short[0];
    const named = lines.findLastIndex((line) => line.includes(test) || (last ? line.includes(last) : false));
    return named >= 0 ? named + 1 : null;
  };
}
