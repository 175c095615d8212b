// Rows of SWE-Gym. `gym-golden.json` has made rows and logs with what the suite's own Python (SWE-Gym/SWE-Bench-Fork@242429c1:
// harness/test_spec.py, harness/grading.py) makes of them: hashes of scripts, and reports; null where it raises.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/sha256.ts';
import { gradeSafely } from '../../../src/grading/grade.ts';
import { findParser, officialRegistry } from '../../../src/grading/parsers/parserRegistry.ts';
import { resolveGradeSpec } from '../../../src/grading/specs/spec.ts';
import { normaliseRow } from '../../support/suites.ts';

interface Golden {
  readonly patches: readonly string[];
  readonly scripts: readonly (readonly [repo: string, version: string, patch: number, sha: string])[];
  readonly logs: readonly {
    readonly repo: string;
    readonly log: string;
    readonly f2p: readonly string[];
    readonly p2p: readonly string[];
    readonly report: Record<string, unknown> | null;
  }[];
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures/gym-golden.json'), 'utf8'),
) as Golden;

function specOf(row: Record<string, unknown>, harness: 'v5' | 'v4.1' = 'v5') {
  const read = normaliseRow({
    ...{ instance_id: 'a__b-7', base_commit: 'a'.repeat(40), problem_statement: 'x' },
    ...{ FAIL_TO_PASS: ['t.py::a'], ...row },
  });
  if (!read.ok) throw new Error(read.messages.join());
  return resolveGradeSpec(read.instance, { harness });
}

test.each(['v5', 'v4.1'] as const)("scripts are the suite's own, byte for byte, under %s", (harness) => {
  expect(golden.scripts.length).toBeGreaterThan(40);
  for (const [repo, version, patch, sha] of golden.scripts) {
    const found = specOf({ repo, version, test_patch: golden.patches[patch] }, harness);
    const where = `${repo} ${version}`;
    expect(found, where).toMatchObject({ ok: true, spec: { suite: 'swe-gym', harness: 'v4.1' } });
    if (found.ok) expect(sha256(found.spec.scriptToRun), where).toBe(sha);
  }
});

test('reports on 160 made logs are those of the suite, whatever harness is asked for', () => {
  const verdicts = golden.logs.map(({ report }) => report?.resolved);
  expect([true, false, undefined].filter((verdict) => verdicts.includes(verdict))).toHaveLength(3);
  for (const { repo, log, f2p, p2p, report } of golden.logs) {
    const version = repo === 'getmoto/moto' ? '5.0' : '2.7';
    const found = specOf({ repo, version, test_patch: 'x', FAIL_TO_PASS: f2p, PASS_TO_PASS: p2p });
    if (!found.ok) throw new Error(found.reason);
    const { spec } = found;
    const parser = findParser(officialRegistry(), spec.logParser)!;
    const graded = gradeSafely(spec, log, parser, spec.harness);
    expect(graded.ok ? graded.grade.verdict : null, JSON.stringify(log)).toEqual(report);
  }
});

test('a version that the suite does not know is not gradable, nor a repository that only looks like a key', () => {
  const row = { version: '99.0', test_patch: 'x' };
  expect(specOf({ ...row, repo: 'getmoto/moto' })).toMatchObject({
    ok: false,
    reason: expect.stringContaining('no test command is known for getmoto/moto version "99.0"'),
  });
  for (const repo of ['constructor', '__proto__', 'spyder-ide/spyder'])
    expect(specOf({ ...row, repo })).toMatchObject({ ok: false });
});

test('a row that brings its own script is graded by the rules of SWE-bench', () => {
  const own = { eval_script: 'pytest -rA t.py', log_parser: 'parse_log_pytest' };
  const found = specOf({ repo: 'getmoto/moto', version: '5.0', test_patch: 'x', ...own });
  expect(found).toMatchObject({ ok: true, spec: { source: 'row', harness: 'v5' } });
  expect(found.ok && found.spec.suite).toBeUndefined();
});
