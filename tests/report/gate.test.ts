// Gates: T-60 of the adversarial list to the letter, and every rule alone.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { compareSides } from '../../src/report/compare/compareSides.ts';
import { readSide, sideOfArm } from '../../src/report/compare/side.ts';
import { candidateOf, candidateOfSide, gate, remeasurementsOf } from '../../src/report/gate/gate.ts';
import { gateDocument, junitXml } from '../../src/report/gate/gateDocument.ts';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import {
  forecast,
  makespan,
  nightMs,
  type PastAttempt,
  undetectable,
} from '../../src/report/measure/forecast.ts';
import { historyOf } from '../../src/report/measure/history.ts';
import { renderMarkdown, renderTerminal } from '../../src/report/render/renderers.ts';
import { gateExit } from '../../src/results/night/gateRun.ts';
import { remeasure } from '../../src/results/night/judgeRun.ts';
import { loadRunData, type RunData } from '../../src/store/records/runData.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const good: Happened = { outcome: 'resolved' };
const bad: Happened = { outcome: 'unresolved' };
const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `a__a-${String(from + i).padStart(2, '0')}`);

function load(planned: PlannedRun): RunData {
  const db = openMemory();
  const data = loadRunData(db, recordRun(db, planned))!;
  db.close();
  return data;
}
const sideFor = (data: RunData) => sideOfArm(data, 'default');

function gated(a: RunData, b: RunData, policy: GatePolicy, again: readonly RunData[] = []) {
  const comparison = compareSides(sideFor(a), sideFor(b), { test: 'exact', seed: 1, draws: 100 });
  const candidate = candidateOf(b, 'default', sideFor(b));
  return gate(comparison, candidate, policy, remeasurementsOf(again.map(sideFor)));
}

describe('T-60', () => {
  // Night 1: 20 of 20 graded, instance 5 unresolved. Night 2: 03 and 04 newly broken, 05 fixed, 06 infra, 01 removed, 21 added.
  const night1 = load({
    name: 'night-1',
    ids: ids(1, 20),
    happened: (id) => [id === 'a__a-05' ? bad : good],
  });
  const night2 = load({
    name: 'night-2',
    ids: ids(2, 21),
    happened: (id) => {
      if (id === 'a__a-06') return [{ reason: 'env_died' }];
      return [id === 'a__a-03' || id === 'a__a-04' ? bad : good];
    },
  });
  const again = load({
    name: 'night-2-again',
    ids: ['a__a-03', 'a__a-04'],
    epochs: 3,
    happened: (id, _arm, epoch) => [id === 'a__a-04' && epoch > 1 ? good : bad],
  });
  const result = gated(night1, night2, { maxDrop: 0.02 }, [again]);

  test('the line', () => {
    expect(result.line).toBe(
      'matched 18: broken 1, flaky 1, fixed 1; not comparable 3 (infra 1, removed 1, added 1)',
    );
  });
  test('fails with exit code 1 and the broken id first', () => {
    expect(result).toMatchObject({ verdict: 'regressed', passed: false, exitCode: 1, broken: ['a__a-03'] });
    expect(result.flaky).toEqual([{ instanceId: 'a__a-04', resolved: 2, of: 3 }]);
    const text = renderTerminal(gateDocument(result, { a: 'night-1', b: 'night-2' }));
    expect(text.indexOf('a__a-03')).toBeGreaterThan(-1);
    expect(text.indexOf('a__a-03')).toBeLessThan(text.indexOf('a__a-04'));
    expect(text.trimStart().startsWith('Broken (1): a__a-03')).toBe(true);
  });
  test('max-drop is taken over matched instances only, with its p-value', () => {
    const rule = result.rules.find((r) => r.rule === 'max-drop')!;
    // Two broke and one got fixed, by the first measurement; what recovered is said beside it.
    expect(result.drop).toBeCloseTo((2 - 1) / 18, 12);
    expect(rule.text).toMatch(
      /^5\.6 points fewer resolved, of 18 matched \(95 %: [\d.]+ fewer to [\d.]+ more\); .*; exact McNemar p = 1.0000; 1 of 2 that broke recovered/,
    );
  });
  test('junit.xml is valid, fails only what broke, and calls the outage an error', () => {
    const xml = junitXml(night2, result);
    expect(xml.match(/<failure/g)).toHaveLength(1 + result.rules.filter((r) => !r.passed).length);
    expect(xml).toMatch(/name="a__a-03"[^>]*><failure message="broken/);
    expect(xml).toMatch(/name="a__a-06"[^>]*><error message="infra/);
    expect(xml).toMatch(/name="a__a-04"[^>]*><skipped message="flaky/);
    expect(balanced(xml)).toBe(true);
  });
  test('the step summary is Markdown with the broken id first', () => {
    const text = renderMarkdown(gateDocument(result, { a: 'night-1', b: 'night-2' }));
    expect(text.startsWith('**Broken** (1): a\\_\\_a-03')).toBe(true);
    expect(text).toContain('# FAILED: regressed');
  });
});

/** Every tag is closed in order: enough to catch an escape that is missing. */
function balanced(xml: string): boolean {
  const open: string[] = [];
  for (const [, close, name, self] of xml
    .replace(/<\?xml.*?\?>/, '')
    .matchAll(/<(\/?)([a-z]+)(?:\s[^<>]*?)?(\/?)>/g)) {
    if (self) continue;
    if (!close) open.push(name!);
    else if (open.pop() !== name) return false;
  }
  return open.length === 0 && !/&(?!amp;|lt;|gt;|quot;|#39;)/.test(xml);
}

describe('rules', () => {
  const base = load({ name: 'base', ids: ids(1, 10), happened: () => [good] });
  const night = (happened: (n: number) => readonly Happened[]) =>
    load({ name: 'night', ids: ids(1, 10), happened: (id) => happened(Number(id.slice(5))) });
  const rule = (result: ReturnType<typeof gated>, name: string) => result.rules.find((r) => r.rule === name);

  test('equal nights pass and show nothing', () => {
    expect(gated(base, base, {})).toMatchObject({ verdict: 'inconclusive', passed: true, exitCode: 0 });
  });
  test('everything broken that recovers is flaky, and passes', () => {
    const b = night((n) => [n === 1 ? bad : good]);
    const again = load({ ids: ids(1, 1), happened: () => [good] });
    expect(gated(base, b, {}, [again])).toMatchObject({ verdict: 'flaky', passed: true });
  });
  test('without a re-measurement a few broken ones are inconclusive and said to be unconfirmed', () => {
    const found = gated(
      base,
      night((n) => [n <= 2 ? bad : good]),
      {},
    );
    expect(found).toMatchObject({ verdict: 'inconclusive', passed: true, unconfirmed: ids(1, 2) });
    expect(found.warnings.join()).toContain('2 broken instance(s) were not measured again');
    expect(
      gated(
        base,
        night((n) => [n <= 7 ? bad : good]),
        {},
      ),
    ).toMatchObject({ verdict: 'regressed', exitCode: 1 });
  });
  test('a re-measurement that ended as infra confirms nothing', () => {
    const again = load({ ids: ids(1, 1), happened: () => [{ reason: 'env_died' }] });
    expect(
      gated(
        base,
        night((n) => [n === 1 ? bad : good]),
        {},
        [again],
      ).unconfirmed,
    ).toEqual(ids(1, 1));
  });
  test('more resolved, significantly, is improved', () => {
    const weak = load({ ids: ids(1, 10), happened: () => [bad] });
    expect(gated(weak, base, {})).toMatchObject({ verdict: 'improved', passed: true });
  });
  test('min-resolved is over valid results', () => {
    const b = night((n) => [n <= 2 ? { reason: 'env_died' } : good]);
    expect(rule(gated(base, b, { minResolved: 1 }), 'min-resolved')!.passed).toBe(true);
    expect(
      gated(
        base,
        night((n) => [n === 1 ? bad : good]),
        { minResolved: 0.95 },
      ),
    ).toMatchObject({ exitCode: 1 });
  });
  test('must-pass fails for what was not measured at all', () => {
    const b = night((n) => [n === 1 ? { reason: 'env_died' } : good]);
    const found = gated(base, b, { mustPass: ids(1, 3) });
    expect(rule(found, 'must-pass')).toMatchObject({ passed: false, ids: ids(1, 1) });
    expect(rule(gated(base, base, { mustPass: ['unknown-1'] }), 'must-pass')!.passed).toBe(false);
  });
  test('max-infra and max-cost', () => {
    const b = night((n) => [n <= 2 ? { reason: 'env_died' } : good]);
    expect(rule(gated(base, b, { maxInfra: 0.1 }), 'max-infra')!.passed).toBe(false);
    expect(rule(gated(base, b, { maxInfra: 0.2 }), 'max-infra')!.passed).toBe(true);
    expect(rule(gated(base, b, { maxCostNano: 10e9 }), 'max-cost')!.passed).toBe(true);
    expect(rule(gated(base, b, { maxCostNano: 9e9 }), 'max-cost')!.passed).toBe(false);
    const unknown = night(() => [{ ...good, cost: null }]);
    expect(rule(gated(base, unknown, { maxCostNano: 9e9 }), 'max-cost')!.passed).toBe(false);
  });
  test('no trial at all fails', () => {
    expect(gated(base, load({ ids: ids(1, 10), happened: () => [] }), {})).toMatchObject({
      matched: 0,
      exitCode: 1,
    });
  });
  test('instances of one night only are a warning, or a failure when asked', () => {
    const b = load({ ids: ids(2, 11), happened: () => [good] });
    expect(gated(base, b, {}).warnings.join()).toContain('2 instance(s) are in one of the runs only');
    expect(gated(base, b, { setChanges: 'fail' }).exitCode).toBe(1);
    expect(gated(base, b, { setChanges: 'allow' }).warnings).toEqual([]);
  });
  test('a tolerance that the set cannot see is said', () => {
    const found = gated(
      base,
      night((n) => [n === 1 ? bad : good]),
      { maxDrop: 0.2 },
    );
    expect(found.passed).toBe(true);
    expect(found.warnings.join()).toContain('cannot be told from noise');
  });
});

test('what only its grading lost counts as infrastructure', () => {
  const base = load({ name: 'base', ids: ids(1, 10), happened: () => [good] });
  const b = load({
    name: 'night',
    ids: ids(1, 10),
    happened: (id) => [id === 'a__a-01' ? { outcome: 'infra', resolved: null } : good],
  });
  expect(gated(base, b, { maxInfra: 0.05 }).rules.find((r) => r.rule === 'max-infra')).toMatchObject({
    passed: false,
    text: expect.stringContaining('1/10'),
  });
});

describe('loss by infrastructure', () => {
  const base = load({
    name: 'base',
    ids: ids(1, 99),
    happened: (id) => [Number(id.slice(5)) <= 33 ? bad : good],
  });
  const lostOnes = (lost: (n: number) => boolean) =>
    gated(
      base,
      load({
        name: 'night',
        ids: ids(1, 99),
        happened: (id) => {
          const n = Number(id.slice(5));
          return lost(n) ? [{ reason: 'env_died' }] : [n <= 33 ? bad : good];
        },
      }),
      {},
    );
  test('that hits failures more often than successes is a rule of its own, and no worse result', () => {
    const found = lostOnes((n) => n <= 12 || n === 40);
    expect(found).toMatchObject({ passed: false, exitCode: 1, verdict: 'inconclusive' });
    expect(found.rules.filter((r) => !r.passed)).toEqual([
      {
        rule: 'infra-loss',
        passed: false,
        text: expect.stringMatching(
          /^infrastructure lost 12 of 33 that the baseline failed and 1 of 66 that it resolved: p < \.0001 \(below 0\.0025 fails\)/,
        ),
        ids: ids(1, 12),
      },
    ]);
  });
  test('that hits both alike fails nothing', () => {
    expect(lostOnes((n) => n % 8 === 0)).toMatchObject({ passed: true });
  });
  const reported = (report: object) => {
    const file = join(mkdtempSync(join(tmpdir(), 'swebatch-report-')), 'm.r.json');
    writeFileSync(file, JSON.stringify(report));
    return readSide(file);
  };
  test("of a harness's report are its errors, and nothing else is known of them", () => {
    const before = reported({ resolved_ids: ids(1, 99) });
    const errors = reported({ resolved_ids: [], error_ids: ids(1, 99), submitted_ids: ids(1, 99) });
    const found = gate(
      compareSides(before, errors, { test: 'exact', seed: 1, draws: 100 }),
      candidateOfSide(errors),
      { maxInfra: 0.05 },
    );
    expect(found.rules.find((r) => r.rule === 'max-infra')).toMatchObject({
      passed: false,
      text: expect.stringContaining('99/99 = 100.0 %'),
    });
  });
  test("what a harness's report has no prediction for is in the other night only", () => {
    const all = reported({ resolved_ids: ids(1, 20), submitted_ids: ids(1, 20) });
    const some = reported({
      resolved_ids: ids(1, 15),
      submitted_ids: ids(1, 15),
      incomplete_ids: ids(16, 20),
    });
    for (const [a, b] of [[all, some] as const, [some, all] as const]) {
      const comparison = compareSides(a, b, { test: 'exact', seed: 1, draws: 100 });
      expect(gate(comparison, candidateOfSide(b), {}).warnings.join()).toContain(
        '5 instance(s) are in one of the runs only',
      );
      expect(gate(comparison, candidateOfSide(b), { setChanges: 'fail' }).exitCode).toBe(1);
    }
  });
});

test('junit.xml is red only where the gate is: what it let pass is skipped with the reason', () => {
  const base = load({ name: 'base', ids: ids(1, 10), happened: () => [good] });
  const b = load({
    name: 'night',
    ids: ids(1, 10),
    happened: (id) => [id === 'a__a-01' ? bad : good],
  });
  const unconfirmed = gated(base, b, {});
  expect(unconfirmed.passed).toBe(true);
  expect(junitXml(b, unconfirmed)).not.toContain('<failure');
  expect(junitXml(b, unconfirmed)).toMatch(/name="a__a-01"[^>]*><skipped message="broken: .*let it pass"/);
  const must = gated(base, b, { mustPass: ['a__a-01'] });
  expect(junitXml(b, must)).toMatch(/name="a__a-01"[^>]*><failure message="broken/);
  // Unresolved on both nights: only the rule that names it makes it a failure.
  const never = load({ name: 'never', ids: ids(1, 10), happened: (id) => [id === 'a__a-01' ? bad : good] });
  const named = gated(never, b, { mustPass: ['a__a-01'] });
  expect(junitXml(b, named)).toMatch(/name="a__a-01"[^>]*><failure message="not resolved/);
  expect(junitXml(b, gated(never, b, {}))).not.toContain('<failure');
});

test('what could not be measured again leaves the night incomplete; where nobody asked for it, inconclusive', () => {
  const base = load({ name: 'base', ids: ids(1, 10), happened: () => [good] });
  const b = load({ name: 'night', ids: ids(1, 10), happened: (id) => [id === 'a__a-01' ? bad : good] });
  const outage = load({ ids: ids(1, 1), happened: () => [{ reason: 'env_died' }] });
  const found = gated(base, b, {}, [outage]);
  expect([gateExit(found, true), gateExit(found, false)]).toEqual([3, 0]);
  expect(gateExit(gated(base, b, { minResolved: 1 }, [outage]), true)).toBe(1);
  const flaky = load({ ids: ids(1, 1), happened: () => [good] });
  expect(gateExit(gated(base, b, {}, [flaky]), true)).toBe(0);
});

test('measuring again spends what is left of the budget of the run, and nothing where nothing is left', async () => {
  const db = openMemory();
  recordRun(db, {
    name: 'spent',
    ids: ids(1, 2),
    config: { run: {}, grading: {}, arms: [{ name: 'default' }] },
    happened: () => [bad],
  });
  // Two calls at a dollar each.
  db.prepare("UPDATE runs SET budget_nano = 2e9 WHERE name = 'spent'").run();
  const run = runByName(db, 'spent')!;
  const again = { store: db, root: '.', run, arm: 'default', ids: ids(1, 1), epochs: 3 };
  expect(await remeasure(again, { env: {}, cwd: '.', tell: () => {} })).toBeUndefined();
  expect(runByName(db, 'spent.again-1')).toBeUndefined();
  db.close();
});

test('with epochs the drop is that of the first measurement, whatever recovers', () => {
  const base = load({ name: 'base', ids: ids(1, 10), epochs: 2, happened: () => [good] });
  const b = load({
    name: 'night',
    ids: ids(1, 10),
    epochs: 2,
    happened: (id) => [id === 'a__a-01' ? bad : good],
  });
  const again = load({
    ids: ids(1, 1),
    epochs: 2,
    happened: (_id, _arm, epoch) => [epoch === 1 ? good : bad],
  });
  const found = gated(base, b, { maxDrop: 0.05 }, [again]);
  expect(found.drop).toBeCloseTo(0.1, 12);
  expect(found).toMatchObject({ verdict: 'regressed', passed: false, broken: [] });
});

test('junit.xml of a verdict holds the arm that it is about', () => {
  const b = load({
    name: 'night',
    ids: ids(1, 2),
    arms: ['default', 'other'],
    happened: (id) => [id === 'a__a-01' ? bad : good],
  });
  const base = load({ name: 'base', ids: ids(1, 2), happened: () => [good] });
  const found = gated(base, b, { mustPass: ['a__a-01'] });
  expect(junitXml(b, found, 'default').match(/<testcase classname="a\/a"/g)).toHaveLength(2);
  expect(junitXml(b, found, 'default')).not.toContain('night/other');
  expect(junitXml(b)).toContain('night/other');
});

test('the verdict says how what changed did before', () => {
  const base = load({ name: 'base', ids: ids(1, 3), happened: () => [good] });
  const b = load({ name: 'night', ids: ids(1, 3), happened: (id) => [id === 'a__a-01' ? bad : good] });
  const night = (run: string, at: string, resolved: boolean) => ({
    run,
    at,
    instanceId: 'a__a-01',
    resolved,
  });
  const past = historyOf([night('n1', '1', true), night('n2', '2', false), night('n3', '3', true)]);
  const text = renderTerminal(gateDocument(gated(base, b, {}), { a: 'base', b: 'night' }, past));
  expect(text).toContain('Broken (1): a__a-01 (resolved 2 of 3 times before, flaky)');
});

test('junit of a report without a gate escapes what ids and reasons may hold', () => {
  const data = load({ name: 'r<&"', ids: ids(1, 2), happened: (id) => [id.endsWith('1') ? good : bad] });
  const xml = junitXml(data);
  expect(xml).toContain('name="r&lt;&amp;&quot;" tests="2" failures="1"');
  expect(balanced(xml)).toBe(true);
});

describe('history', () => {
  const night = (i: number, resolved: boolean | null) => ({
    run: `n${i}`,
    at: `2026-01-0${i}`,
    instanceId: 'x',
    resolved,
  });
  const labelOf = (...rs: (boolean | null)[]) => historyOf(rs.map((r, i) => night(i + 1, r)))[0]!;
  test('going back and forth is flaky, changing once is a change', () => {
    expect(labelOf(true, true, true).label).toBe('stable');
    expect(labelOf(true, true, false, false).label).toBe('changed');
    expect(labelOf(true, false, true)).toMatchObject({ label: 'flaky', flips: 2, resolved: { x: 2, n: 3 } });
    expect(labelOf(true).label).toBe('new');
  });
  test('a night without a verdict is no flip', () => {
    expect(labelOf(true, null, true)).toMatchObject({ label: 'stable', resolved: { x: 2, n: 2 } });
  });
  test('the flip of a coin is expected, that of a rock is not', () => {
    expect(labelOf(true, true, true, true, true, true, true, true, false).expected).toBeCloseTo(0.1, 12);
    expect(labelOf(true, false, true, false, true, false, false).expected).toBeCloseTo(0.5, 12);
  });
});

describe('forecast', () => {
  const past = (instanceId: string, repo: string, dollars: number, s: number) => ({
    model: 'm',
    instanceId,
    repo,
    costNano: dollars * 1e9,
    elapsedMs: s * 1000,
  });
  test('draws from the instance itself, then its repository, then anything', () => {
    const found = forecast(
      [past('a-1', 'a', 1, 10), past('b-1', 'b', 5, 50)],
      [
        { model: 'm', instanceId: 'a-1', repo: 'a' },
        { model: 'm', instanceId: 'b-2', repo: 'b' },
        { model: 'm', instanceId: 'c-1', repo: 'c' },
      ],
      { slots: 1, seed: 1 },
    );
    expect(found.basis).toEqual({ instance: 1, repo: 1, any: 1, none: 0, attempts: 2 });
    expect(found.costNano).toMatchObject({ low: 7e9, high: 11e9 });
    expect(found.timeMs).toMatchObject({ low: 70_000, high: 110_000 });
  });
  test('no history is no forecast, and unknown costs are not zero', () => {
    expect(forecast([], [{ model: 'm', instanceId: 'a', repo: '' }], { slots: 1, seed: 1 })).toMatchObject({
      costNano: null,
      timeMs: null,
    });
    const unknown = forecast(
      [{ ...past('a', '', 0, 5), costNano: null }],
      [{ model: 'm', instanceId: 'a', repo: '' }],
      {
        slots: 1,
        seed: 1,
      },
    );
    expect(unknown).toMatchObject({ costNano: null, timeMs: { middle: 5000 } });
  });
  test('an unknown cost is drawn by nothing: the next wider history stands for it', () => {
    const found = forecast(
      [{ ...past('a-1', 'a', 0, 5), costNano: null }, past('a-2', 'a', 4, 7), past('a-2', 'a', 4, 7)],
      [{ model: 'm', instanceId: 'a-1', repo: 'a' }],
      { slots: 1, seed: 1 },
    );
    expect(found.costNano).toEqual({ low: 4e9, middle: 4e9, high: 4e9 });
    expect(found.timeMs).toEqual({ low: 5000, middle: 5000, high: 5000 });
  });
  test("another model's past is no forecast", () => {
    const found = forecast([past('a-1', 'a', 1, 1)], [{ model: 'new', instanceId: 'a-1', repo: 'a' }], {
      slots: 1,
      seed: 1,
    });
    expect(found).toMatchObject({ costNano: null, timeMs: null, basis: { none: 1 } });
  });
  test('time holds grading and pulls where history knows them, and says where it does not', () => {
    const graded = { ...past('a-1', 'a', 1, 10), gradeMs: 4000 };
    const trials = [1, 2].map(() => ({ model: 'm', instanceId: 'a-1', repo: 'a', image: 'i' }));
    const at = (more: object, history: PastAttempt[] = [graded]) =>
      forecast(history, trials, { slots: 2, seed: 1, draws: 20, ...more });
    expect(at({})).toMatchObject({
      timeMs: { middle: 10_000 },
      timeHolds: { grading: null, pulls: null },
    });
    // Both end at 10 s and one grader takes them one after the other.
    expect(at({ graders: 1 })).toMatchObject({ timeMs: { middle: 18_000 }, timeHolds: { grading: true } });
    const pulls = { images: ['i'], parallel: 3, past: [{ image: 'i', ms: 30_000 }] };
    expect(at({ graders: 2, pulls })).toMatchObject({
      timeMs: { middle: 44_000 },
      timeHolds: { grading: true, pulls: true },
    });
    const ungraded = at({ graders: 1, pulls: { ...pulls, past: [] } }, [past('a-1', 'a', 1, 10)]);
    expect(ungraded).toMatchObject({
      timeMs: { middle: 10_000 },
      timeHolds: { grading: false, pulls: false },
    });
  });
  test('a trial waits for its image and its slot, a grading for a grader', () => {
    const trial = (agentMs: number, gradeMs: number, image?: string) => ({ agentMs, gradeMs, image });
    const one = { slots: 1, graders: 1 };
    expect(nightMs([], one)).toBe(0);
    expect(nightMs([trial(5, 3), trial(5, 3)], one)).toBe(13);
    // The one whose image is here goes first.
    expect(nightMs([trial(5, 0, 'late'), trial(5, 0)], one, new Map([['late', 4]]))).toBe(10);
    expect(nightMs([trial(5, 0, 'late'), trial(5, 0)], one, new Map([['late', 9]]))).toBe(14);
    expect(nightMs([trial(1, 10), trial(1, 10), trial(1, 10)], { slots: 3, graders: 2 })).toBe(21);
  });
  test('slots are filled in order', () => {
    expect(makespan([3, 1, 1, 1], 2)).toBe(3);
    expect(makespan([1, 1, 1, 3], 2)).toBe(4);
    expect(makespan([], 4)).toBe(0);
  });
  test('a night of 50 is told what it cannot see', () => {
    expect(100 * undetectable(50)!).toBeCloseTo(17.7, 1);
    expect(undetectable(1)).toBeNull();
  });
});
