// What did not run is told by its reason, with the command that would run it; CI takes only the reasons that are listed.
import { expect, test } from 'vitest';
import { notRun, type Skipped } from './support/notRun.ts';

const engine = (file: string, title = 'a run'): Skipped => ({ project: 'engine', file, title });

test('one line a reason: how many, why, and the command', () => {
  const { lines, unlisted } = notRun([
    engine('tests/e2e/run.test.ts'),
    engine('tests/e2e/run.test.ts', 'two arms'),
    { ...engine('tests/e2e/agentPrograms.test.ts'), note: 'codex@1 cannot be had from npm: offline' },
    { project: 'unit', file: 'tests/dataset/official.test.ts', title: 'rows' },
  ]);
  expect(lines).toEqual([
    'not run: 2 tests, because no Docker engine answers, or it has no registry or second engine beside it: node scripts/setup.mjs --for-tests && npx vitest run tests/e2e/run.test.ts',
    'not run: 1 test, because a package could not be fetched (codex@1 cannot be had from npm: offline): npx vitest run tests/e2e/agentPrograms.test.ts',
    'not run: 1 test, because published data is not beside the repository, in ../shared: npx vitest run tests/dataset/official.test.ts',
  ]);
  // Data that nobody may pass on is listed; an engine and packages are what CI installs.
  expect(unlisted).toBe(3);
});

test('a skip without a reason is told too, and is none that CI takes', () => {
  const { lines, unlisted } = notRun([{ project: 'unit', file: 'tests/base/async.test.ts', title: 'later' }]);
  expect(lines[0]).toMatch(/^not run: 1 test, because of a reason that .* does not list: npx vitest run /);
  expect(unlisted).toBe(1);
});

test('many files are named by their project', () => {
  const { lines } = notRun(Array.from({ length: 13 }, (_, n) => engine(`tests/faults/${n}.test.ts`)));
  expect(lines[0]).toMatch(/^not run: 13 tests, .* npx vitest run --project engine$/);
});

test('where everything ran nothing is told', () => {
  expect(notRun([])).toEqual({ lines: [], unlisted: 0 });
});
