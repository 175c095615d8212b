// Why an attempt failed, as the head of its page and `swebatch show` say it.
import { describe, expect, test } from 'vitest';
import type { EvaluationDocument } from '../../src/viewer/documents/attemptDocuments.ts';
import { whyOf } from '../../src/viewer/documents/why.ts';
import { whyLines } from '../../src/viewer/trajectoryLines.ts';

const ended = { state: 'ended', exitReason: 'submitted', exitClass: 'agent', exitDetail: null, error: null };
const PATCH = `diff --git a/pkg/a.py b/pkg/a.py
--- a/pkg/a.py
+++ b/pkg/a.py
@@ -1,2 +1,3 @@
-old
+new
++ + plus
diff --git a/b.txt b/b.txt
@@ -0,0 +1 @@
+one
`;
const LOG = `setting up: Error: not of the tests
: '>>>>> Start Test Output'
collected 3 items
E       AssertionError: 1 != 2
FAILED tests/t.py::test_fix - AssertionError: 1 != 2
+ : '>>>>> End Test Output'
later Error: not of the tests either
`;
const verdict = (more: Partial<EvaluationDocument>) =>
  ({
    outcome: 'unresolved',
    resolved: 0,
    error: null,
    infraReason: null,
    log: LOG,
    tests: [
      { name: 'tests/t.py::test_fix', group: 'FAIL_TO_PASS', passed: false, line: 4 },
      { name: 'tests/t.py::test_old', group: 'PASS_TO_PASS', passed: false, line: null },
      { name: 'tests/t.py::test_kept', group: 'PASS_TO_PASS', passed: true, line: null },
    ],
    ...more,
  }) as EvaluationDocument;

describe('why an attempt failed', () => {
  test('an unresolved one names its tests, the first error of them, the end of their output and what it touched', () => {
    expect(whyOf('night', ended, PATCH, verdict({}))).toEqual({
      says: 'The patch was tested and does not resolve the instance.',
      notPassed: ['tests/t.py::test_fix'],
      broken: ['tests/t.py::test_old'],
      firstError: 'E       AssertionError: 1 != 2',
      logEnd: [
        'collected 3 items',
        'E       AssertionError: 1 != 2',
        'FAILED tests/t.py::test_fix - AssertionError: 1 != 2',
      ],
      touched: [
        { file: 'pkg/a.py', added: 2, removed: 1 },
        { file: 'b.txt', added: 1, removed: 0 },
      ],
      next: null,
    });
  });

  test('what is resolved or still runs has no such thing', () => {
    expect(whyOf('night', ended, PATCH, verdict({ resolved: 1, outcome: 'resolved' }))).toBeNull();
    expect(whyOf('night', { ...ended, state: 'running' }, '', undefined)).toBeNull();
  });

  test.each([
    ['model_unavailable', 'infra', 'resume night --retry infra', 'tries it again'],
    ['history_unsealed', 'infra', 'resume night --retry infra', 'would most likely end in the same way'],
    [
      'auth_failed',
      'config',
      'resume night',
      'helps after the cause is mended: it would end in the same way',
    ],
    ['orchestrator_lost', 'cancelled', 'resume night', 'tries it again'],
  ])('of %s the cause, and whether resume helps', (exitReason, exitClass, command, does) => {
    const why = whyOf('night', { ...ended, exitReason, exitClass, error: 'HTTP 503' }, '', undefined)!;
    expect(why).toMatchObject({ firstError: 'HTTP 503', next: { command, does } });
    expect(why.says).toMatch(/^It has no result: /);
  });

  test('a limit is said beside the verdict, and what was never graded names the command that grades it', () => {
    const limit = { ...ended, exitReason: 'limit_steps', exitClass: 'limit' };
    expect(whyOf('night', limit, PATCH, verdict({}))!.says).toContain('the step limit was reached');
    expect(whyOf('night', ended, PATCH, undefined)).toMatchObject({ next: { command: 'evaluate night' } });
    expect(whyOf('night', ended, '', undefined)).toMatchObject({ says: 'It left no patch.', next: null });
    const said = /^It submitted no patch; its work \(\d+ bytes\) was captured/;
    expect(whyOf('night', limit, '', undefined, PATCH)!.says).toMatch(said);
    const empty = verdict({ outcome: 'empty_patch' });
    expect(whyOf('night', limit, '', empty, PATCH)!.says).toMatch(said);
    expect(whyOf('night', limit, '', empty)!.says).toMatch(/^It left no patch\./);
    expect(whyOf('night', ended, PATCH, verdict({ outcome: 'infra', resolved: null }))!.next!.does).toBe(
      'grades it again',
    );
  });

  test('in a terminal nothing of it can steer, and many names are counted', () => {
    const tests = Array.from({ length: 12 }, (_, i) => ({
      name: `t${i}\u001b[2J`,
      group: 'FAIL_TO_PASS' as const,
      passed: false,
      line: null,
    }));
    const lines = [...whyLines(whyOf('night', ended, PATCH, verdict({ tests, log: 'a\u202eb' }))!)];
    expect(lines.join('\n')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    expect(lines).toContain('should pass now and does not (12):');
    expect(lines).toContain('  and 2 more');
    expect(lines).toContain('the patch touches pkg/a.py (+2 -1), b.txt (+1 -0)');
  });
});
