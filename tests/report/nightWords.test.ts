// What a person reads of a night: the verdict first, in words, each id once; and that limits choose no baseline of the tests.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { exportSummary } from '../../src/report/exportSummary.ts';
import { gateDocument } from '../../src/report/gate/gateDocument.ts';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import { mustPassWarning } from '../../src/report/gate/rules.ts';
import { verdictWords } from '../../src/report/gate/verdictWords.ts';
import { summarize } from '../../src/report/measure/summary.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import { findBaseline } from '../../src/results/night/gateRun.ts';
import { judgeRun } from '../../src/results/night/judgeRun.ts';
import { budgetEnd } from '../../src/run/control/budget.ts';
import { reportData } from '../../src/run/standing.ts';
import type { Store } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const results = mkdtempSync(join(tmpdir(), 'swebatch-words-'));
afterAll(() => rmSync(results, { recursive: true }));

const IDS = Array.from({ length: 40 }, (_, i) => `a__a-${String(i + 1).padStart(2, '0')}`);

/** `failed`: ids that are not resolved. */
function night(
  db: Store,
  name: string,
  failed: readonly string[] = [],
  more: Partial<PlannedRun> = {},
): void {
  recordRun(db, {
    name,
    ids: IDS,
    config: { run: {}, grading: {}, arms: [{ name: 'default' }] },
    happened: (id) => [{ cost: 10_000_000, outcome: failed.includes(id) ? 'unresolved' : 'resolved' }],
    ...more,
  });
}

const judge = (db: Store, run: string, policy: GatePolicy = {}) =>
  judgeRun(
    db,
    { results, run, baseline: 'last', remeasure: 0, policy },
    { env: {}, cwd: results, tell: () => {} },
  );
const read = (...path: string[]): string => readFileSync(join(results, ...path), 'utf8');

describe('a night on which nothing changed', () => {
  test('is "no change shown" to people, and inconclusive to programs; the verdict stands first', async () => {
    using db = openMemory();
    night(db, 'n1', ['a__a-01']);
    await judge(db, 'n1');
    night(db, 'n2', ['a__a-01']);
    const { arms } = await judge(db, 'n2');
    expect(arms[0]!.result.verdict).toBe('inconclusive');
    expect(read('n2', 'gate.md')).toContain(
      '# PASSED: no change shown (n2 against n1)'.replace(/[()]/g, '\\$&'),
    );
    expect(JSON.parse(read('n2', 'gate.json')).gate.verdict).toBe('inconclusive');
    expect(db.prepare(`SELECT verdict FROM verdicts ORDER BY id DESC LIMIT 1`).pluck().get()).toBe(
      'inconclusive',
    );
    const first = () => [
      read('n2', 'summary.md').split('\n', 1)[0],
      /<h1[^>]*>([^<]*)</.exec(read('n2', 'summary.html'))?.[1],
    ];
    const words = [
      String.raw`# PASSED: no change shown \(n2 against n1\)`,
      'PASSED: no change shown (n2 against n1)',
    ];
    expect(first()).toEqual(words);
    for (const file of ['gate.md', 'summary.md', 'summary.html'])
      expect(read('n2', file)).not.toContain('inconclusive');
    // The files that are made again from the record say the same.
    rmSync(join(results, 'n2', 'summary.md'));
    await exportSummary(
      reportData(db, runByName(db, 'n2')!.id)!,
      join(results, 'n2'),
      () => () => undefined as never,
    );
    expect(first()).toEqual(words);
  });

  test('of several arms has the verdict of each before the summary of all', async () => {
    using db = openMemory();
    for (const name of ['m1', 'm2'])
      night(db, name, [], {
        arms: ['x', 'y'],
        config: { run: {}, grading: {}, arms: [{ name: 'x' }, { name: 'y' }] },
      });
    await judge(db, 'm1');
    await judge(db, 'm2');
    const [x, y, rest] = read('m2', 'summary.md').split('\n\n');
    expect([x, y]).toEqual(
      ['x', 'y'].map((arm) => String.raw`# PASSED: no change shown \(m2/${arm} against m1/${arm}\)`),
    );
    expect(rest).toBe('# Run m2');
    expect(read('m2', 'y', 'summary.md')).toMatch(/^# PASSED: no change shown \\\(m2\/y against/);
  });

  test.each([
    [{ verdict: 'inconclusive', exitCode: 0, failed: [], baseline: 'n1' }, 'PASSED: no change shown'],
    [{ verdict: 'inconclusive', exitCode: 0, failed: [], baseline: null }, 'PASSED: inconclusive'],
    [
      { verdict: 'inconclusive', exitCode: 0, failed: [], baseline: 'n1', unconfirmed: 2 },
      'PASSED: inconclusive',
    ],
    [
      { verdict: 'inconclusive', exitCode: 1, failed: ['max-cost'], baseline: 'n1' },
      'FAILED: no change shown (max-cost)',
    ],
    [{ verdict: 'regressed', exitCode: 1, failed: ['broken'], baseline: 'n1' }, 'FAILED: regressed'],
    [{ verdict: 'improved', exitCode: 0, failed: [], baseline: 'n1' }, 'PASSED: improved'],
    [
      { verdict: 'flaky', exitCode: 3, failed: [], baseline: 'n1' },
      'INCOMPLETE: flaky, and not all that broke could be measured again',
    ],
  ])('%j: %s', (given, words) => {
    expect(verdictWords(given)).toBe(words);
  });
});

test('each id stands once in what a person reads, whatever rules hold it against the night', async () => {
  using db = openMemory();
  night(db, 'o1');
  await judge(db, 'o1');
  night(db, 'o2', IDS.slice(0, 15));
  const { arms } = await judge(db, 'o2', { maxDrop: 0.01, mustPass: [IDS[0]!, IDS[39]!] });
  const { result, past } = arms[0]!;
  const names = (rule: string) => result.rules.find((one) => one.rule === rule)!;
  expect(['max-drop', 'significance', 'must-pass'].map((rule) => names(rule).passed)).toEqual([
    false,
    false,
    false,
  ]);
  const text = renderTerminal(gateDocument(result, { a: 'o1', b: 'o2' }, past), 200);
  for (const id of IDS.slice(0, 15)) expect(text.split(id)).toHaveLength(2);
});

test('--max-cost counts what was measured again, and says how much of it that is', async () => {
  using db = openMemory();
  night(db, 'c1');
  await judge(db, 'c1');
  night(db, 'c2', ['a__a-01']);
  recordRun(db, {
    name: 'c2.again-1',
    ids: ['a__a-01'],
    epochs: 3,
    manifest: { remeasures: { run: 'c2' } },
    happened: () => [{ outcome: 'resolved', cost: 50_000_000 }],
  });
  const ruleOf = async (dollars: number) =>
    (await judge(db, 'c2', { maxCostNano: dollars * 1e9 })).arms[0]!.result.rules.find(
      (r) => r.rule === 'max-cost',
    );
  expect(await ruleOf(0.54)).toMatchObject({
    passed: false,
    text: 'cost $0.55, of it $0.15 for measuring again (at most $0.54)',
  });
  expect(await ruleOf(0.56)).toMatchObject({ passed: true });
});

test('a budget that ends a run before it is spent says why', () => {
  expect(budgetEnd(100_000_000, 100_000_000)).toBe('run budget $0.10 reached');
  expect(budgetEnd(100_000_000, 70_000_000)).toBe(
    'run budget $0.10: $0.07 spent, and the next call could cost more than the $0.03 left',
  );
});

describe('--must-pass', () => {
  const ids = ['a__a-01'];
  test.each([
    [0, 50, '100.0 %', '0 re-measurements'],
    [1, 20, '9.0 %', '1 re-measurement'],
    [2, 100, '8.9 %', '2 re-measurements'],
  ])(
    'with %i re-measurements says how often chance fails it, and asks for three',
    (again, n, rate, times) => {
      const said = mustPassWarning({ mustPass: ids, again }, n);
      expect(said).toContain(`with ${times} fails by chance on up to ${rate} of nights`);
      expect(said).toMatch(/--remeasure 3 makes that [\d.]+ %$/);
    },
  );
  test('with three, or without a list, nothing is said', () => {
    expect(mustPassWarning({ mustPass: ids, again: 3 }, 50)).toBe(false);
    expect(mustPassWarning({ again: 0 }, 50)).toBe(false);
  });
  test('the verdict says it too, of a night that passes as well', async () => {
    using db = openMemory();
    night(db, 'p1');
    const first = await judge(db, 'p1', { mustPass: ids });
    expect(first.first[0]!.result.warnings.join()).toContain('--remeasure 3 makes that');
    night(db, 'p2');
    const { arms } = await judge(db, 'p2', { mustPass: ids });
    expect(arms[0]!.result).toMatchObject({ passed: true });
    expect(arms[0]!.result.warnings.join()).toContain('--remeasure 3 makes that');
  });
});

describe('nights that broke only a limit', () => {
  test('are passed over by the limits, and not by the tests', async () => {
    using db = openMemory();
    const policy = { maxDrop: 0.03 };
    const few = IDS.slice(0, 5);
    night(db, 'q1');
    await judge(db, 'q1', policy);
    night(db, 'q2', few);
    const second = await judge(db, 'q2', policy);
    expect(second.arms[0]!.result.rules.flatMap((r) => (r.passed ? [] : [r.rule]))).toEqual(['max-drop']);
    // Ten of forty are far from the lucky night, and near to the one before.
    night(db, 'q3', IDS.slice(0, 10));
    const found = findBaseline(db, 'last', runByName(db, 'q3')!);
    expect([found.baseline?.name, found.unchosen?.name]).toEqual(['q1', 'q2']);
    const { result } = (await judge(db, 'q3', policy)).arms[0]!;
    expect(result.rules.flatMap((r) => (r.passed ? [] : [r.rule]))).toEqual(['max-drop']);
    expect(result).toMatchObject({ testedAgainst: 'q2' });
    expect(result.warnings.join()).toContain('the tests compare with q2');
    // What the tests see against it is still red, and named.
    night(db, 'q4', IDS.slice(0, 25));
    const fourth = (await judge(db, 'q4', policy)).arms[0]!.result;
    expect(fourth.rules.find((r) => r.rule === 'significance')).toMatchObject({
      passed: false,
      text: expect.stringMatching(/ against q3$/),
      ids: IDS.slice(10, 25),
    });
    // A test that failed takes the night out of both.
    night(db, 'q5');
    const next = findBaseline(db, 'last', runByName(db, 'q5')!);
    expect([next.baseline?.name, next.unchosen?.name]).toEqual(['q1', 'q3']);
  });
  test('the summary of a run names no verdict where there was none', () => {
    using db = openMemory();
    night(db, 's1');
    const data = reportData(db, runByName(db, 's1')!.id)!;
    expect(data.verdicts).toEqual([]);
    expect(summaryDocument(summarize(data), data.verdicts)[0]).toMatchObject({
      kind: 'heading',
      text: 'Run s1',
    });
  });
});
