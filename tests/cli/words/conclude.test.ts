// The last lines of a run: what is missing, and the command that goes on.
import { expect, onTestFinished, test, vi } from 'vitest';
import { conclude } from '../../../src/cli/conclude.ts';
import { proportion } from '../../../src/report/statistics/proportions.ts';
import type { RunOutcome } from '../../../src/run/run.ts';

function concluded(more: Partial<RunOutcome>): { code: number; said: string } {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  onTestFinished(() => write.mockRestore());
  const outcome = {
    ...{ run: 'night', root: 'results', status: 'incomplete', predictions: [], failures: [] },
    ...{ counts: { agent: 3, infra: 1 }, spent: { nano: 0, unknownCalls: 0 }, budgetNano: null },
    graded: { outcomes: { resolved: 1, infra: 2 }, ungraded: 2 },
    ...more,
  } as unknown as RunOutcome;
  const code = conclude(outcome, false);
  return { code, said: lines.join('') };
}

test('a run that lacks trials and verdicts names both, each with its command', () => {
  const { code, said } = concluded({});
  expect(code).toBe(3);
  expect(said).toContain('1 trial(s) ended for reasons that are not the model');
  expect(said).toContain('resume night --retry infra');
  expect(said).toContain('2 prediction(s) could not be graded; try "swebatch evaluate night');
});

test('a complete run that lacks verdicts is incomplete', () => {
  const { code, said } = concluded({ status: 'complete', counts: { agent: 4 } } as Partial<RunOutcome>);
  expect(code).toBe(3);
  expect(said).toContain('incomplete: 2 prediction(s) could not be graded');
});

test('text of the record steers no terminal', () => {
  const failures = [
    { reason: 'env_died', count: 1, instanceId: 'a__a-1\u001b[2J', message: 'it \u202eended' },
  ];
  const { said } = concluded({ failures } as unknown as Partial<RunOutcome>);
  expect(said).toContain('‹U+202E›');
  expect(said).not.toContain('\u001b');
});

test('the last line of several arms names the figure of each and the next command', () => {
  const arm = (name: string, resolved: number) => ({
    ...{ arm: name, graded: true, overInstances: null },
    resolved: proportion(resolved, 4),
  });
  const scores = [arm('a\u001b[2J', 3), arm('b', 1)];
  const last = (more: object) => {
    const { said } = concluded({ scores, ...more } as unknown as Partial<RunOutcome>);
    return said.trim().split('\n').at(-1);
  };
  const done = { status: 'complete', counts: { agent: 8 }, graded: { outcomes: {}, ungraded: 0 } };
  expect(last(done)).toMatch(
    /^resolved: a 3\/4 = 75\.0 % \[.*\] · b 1\/4 = 25\.0 % \[.*\]; next: "swebatch compare night/,
  );
  expect(last({})).toMatch(/; next: "swebatch resume night --retry infra/);
  expect(last({ ...done, graded: { outcomes: {}, ungraded: 1 } })).toMatch(
    /; next: "swebatch evaluate night/,
  );
  expect(last({ status: 'budget' })).toMatch(/; next: "swebatch resume night --cost-limit N/);
  expect(last({ ...done, scores: scores.slice(1) })).not.toMatch(/next:/);
});
