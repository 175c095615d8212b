// Several nights with `--baseline last`: a regression stays one until it is mended, and every night that is no baseline is named with the reason.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import { findBaseline } from '../../src/results/night/gateRun.ts';
import { judgeRun } from '../../src/results/night/judgeRun.ts';
import type { Store } from '../../src/store/open.ts';
import {
  beginVerdict,
  endVerdict,
  leaveUnjudged,
  runAwaitsVerdict,
  setBaseline,
} from '../../src/store/records/baselines.ts';
import { type RunStatus, removeRun, runById, runByName, setRunStatus } from '../../src/store/records/runs.ts';
import { openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const results = mkdtempSync(join(tmpdir(), 'swebatch-nights-'));
afterAll(() => rmSync(results, { recursive: true }));

const IDS = Array.from({ length: 20 }, (_, i) => `a__a-${String(i + 1).padStart(2, '0')}`);

/** A night on which the first `broken` instances fail. */
function night(db: Store, name: string, broken = 0, more: Partial<PlannedRun> = {}): void {
  recordRun(db, {
    name,
    ids: IDS,
    config: { run: {}, grading: {}, arms: [{ name: 'default' }] },
    happened: (id) => [{ outcome: IDS.indexOf(id) < broken ? 'unresolved' : 'resolved' }],
    ...more,
  });
}

const judge = (db: Store, run: string, baseline = 'last') =>
  judgeRun(db, { results, run, baseline, remeasure: 0 }, { env: {}, cwd: results, tell: () => {} });
const last = (db: Store, run: string) => {
  const { baseline, passedOver } = findBaseline(db, 'last', runByName(db, run)!);
  return [baseline?.name, passedOver];
};
const end = (db: Store, name: string, status: RunStatus) =>
  setRunStatus(db, runByName(db, name)!.id, status, '2026-11-21T01:00:00.000Z');

test('a fault that stays is a regression on every night, until it is mended', async () => {
  using db = openMemory();
  night(db, 'night-1');
  expect(await judge(db, 'night-1')).toMatchObject({ baseline: null, passedOver: [] });
  night(db, 'night-2', 10);
  expect(await judge(db, 'night-2')).toMatchObject({ baseline: 'night-1', exitCode: 1, passedOver: [] });
  const why = 'its gate failed: significance';
  night(db, 'night-3', 10);
  const third = await judge(db, 'night-3');
  expect(third).toMatchObject({
    ...{ baseline: 'night-1', exitCode: 1 },
    passedOver: [{ run: 'night-2', why }],
  });
  for (const file of ['gate.json', 'gate.md'])
    expect(readFileSync(join(results, 'night-3', file), 'utf8')).toContain('night-2');
  night(db, 'night-4');
  expect(await judge(db, 'night-4')).toMatchObject({
    ...{ baseline: 'night-1', exitCode: 0 },
    passedOver: [
      { run: 'night-3', why },
      { run: 'night-2', why },
    ],
  });
  night(db, 'night-5');
  expect(await judge(db, 'night-5')).toMatchObject({ baseline: 'night-4', exitCode: 0, passedOver: [] });
});

describe('the first night, which has no baseline', () => {
  const first = async (name: string, policy: GatePolicy, withoutBaseline?: 'fail') => {
    const db = openMemory();
    night(db, name, 5);
    const summary = join(results, `${name}.step.md`);
    const verdict = await judgeRun(
      db,
      { results, run: name, baseline: 'last', policy, withoutBaseline, remeasure: 0 },
      { env: { GITHUB_STEP_SUMMARY: summary }, cwd: results, tell: () => {} },
    );
    const read = (file: string) => readFileSync(join(results, name, file), 'utf8');
    return { db, verdict, read, step: readFileSync(summary, 'utf8') };
  };

  test('leaves all that a CI reads, and is green within its limits', async () => {
    const { db, verdict, read, step } = await first('first-1', { minResolved: 0.5, maxInfra: 0 });
    expect(verdict).toMatchObject({ baseline: null, arms: [], exitCode: 0, first: [{ arm: 'default' }] });
    expect(verdict.first[0]!.artifacts.map((path) => basename(path))).toEqual(
      expect.arrayContaining(['gate.json', 'gate.md', 'junit.xml', 'summary.json', 'summary.html']),
    );
    expect(JSON.parse(read('gate.json'))).toMatchObject({
      ...{ comparison: null, gate: { passed: true, verdict: 'inconclusive' } },
    });
    expect(read('junit.xml')).toMatch(/name="first-1" tests="20" failures="0" errors="0" skipped="5"/);
    expect(read('junit.xml')).toContain('unresolved; there is no baseline yet');
    expect(step).toContain('PASSED: inconclusive');
    expect(read('gate.md')).toContain('without a baseline');
    expect(step).toContain('no baseline yet: resolved 15/20');
    night(db, 'second', 5);
    expect(last(db, 'second')).toEqual(['first-1', []]);
    db.close();
  });

  test('is red where a limit is broken, and no baseline then', async () => {
    const { db, verdict, read, step } = await first('first-2', { mustPass: [IDS[0]!, IDS[19]!] });
    expect(verdict.exitCode).toBe(1);
    expect(read('junit.xml')).toContain(`name="${IDS[0]}" time="9.000"><failure`);
    expect(read('junit.xml')).toContain('name="must-pass" time="0.000"><failure');
    expect(step).toContain('FAILED');
    night(db, 'second', 5);
    expect(last(db, 'second')).toEqual([undefined, [{ run: 'first-2', why: 'its gate failed: must-pass' }]]);
    db.close();
  });

  test('fails where a baseline is required, and is the baseline of the next', async () => {
    const { db, verdict, read } = await first('first-3', {}, 'fail');
    expect(verdict.exitCode).toBe(1);
    expect(read('junit.xml')).toContain('name="baseline" time="0.000"><failure');
    night(db, 'second', 5);
    expect(last(db, 'second')).toEqual(['first-3', []]);
    db.close();
  });
});

test('a person can say that the new state is the right one, by a baseline of any name or by naming the run', async () => {
  using db = openMemory();
  night(db, 'night-1');
  night(db, 'night-2', 10);
  expect((await judge(db, 'night-2')).exitCode).toBe(1);
  night(db, 'night-3', 10);
  expect(await judge(db, 'night-3', 'night-2')).toMatchObject({ baseline: 'night-2', exitCode: 0 });
  // The verdict of night-3 is that of the last word about it.
  expect((await judge(db, 'night-3')).exitCode).toBe(1);
  setBaseline(db, 'accepted', runByName(db, 'night-2')!.id, '2026-11-21T01:00:00.000Z');
  expect(await judge(db, 'night-3')).toMatchObject({ baseline: 'night-2', exitCode: 0, passedOver: [] });
  night(db, 'night-4', 10);
  expect(last(db, 'night-4')).toEqual(['night-3', []]);
});

describe('a night is no baseline', () => {
  test.each<[RunStatus, string]>([
    ['budget', 'its budget ended it'],
    ['incomplete', 'it is incomplete'],
    ['interrupted', 'it was interrupted'],
    ['failed', 'it failed'],
    ['running', 'it has not ended'],
  ])('that is %s', (status, why) => {
    using db = openMemory();
    for (const name of ['night-1', 'night-2', 'night-3']) night(db, name);
    end(db, 'night-2', status);
    expect(last(db, 'night-3')).toEqual(['night-1', [{ run: 'night-2', why }]]);
  });
  test('that is not graded, or whose gate was not finished or is incomplete', () => {
    using db = openMemory();
    night(db, 'night-1');
    night(db, 'night-2', 0, { happened: () => [{}] });
    night(db, 'night-3');
    leaveUnjudged(db, 'night-3');
    night(db, 'night-4');
    const run_id = runByName(db, 'night-4')!.id;
    const verdict = beginVerdict(db, { run_id, arm: 'default', baseline: 'night-1', judged_at: '2026' });
    endVerdict(db, verdict, { verdict: 'inconclusive', exitCode: 3, failed: [] });
    night(db, 'night-5');
    expect(last(db, 'night-5')).toEqual([
      'night-1',
      [
        {
          run: 'night-4',
          why: 'its gate is incomplete: not all that broke could be measured again',
        },
        { run: 'night-3', why: 'its gate was not finished' },
        { run: 'night-2', why: 'it is not graded' },
      ],
    ]);
  });
  test('of which one arm failed; and where none is left, that is said', () => {
    using db = openMemory();
    night(db, 'night-1', 0, { arms: ['x', 'y'] });
    const run_id = runByName(db, 'night-1')!.id;
    for (const [arm, exitCode] of [
      ['x', 1],
      ['y', 0],
    ] as const)
      endVerdict(db, beginVerdict(db, { run_id, arm, baseline: null, judged_at: '2026' }), {
        ...{ verdict: 'regressed', exitCode },
        failed: exitCode === 1 ? ['broken', 'max-drop'] : [],
      });
    night(db, 'night-2', 0, { arms: ['x', 'y'] });
    expect(last(db, 'night-2')).toEqual([
      undefined,
      [{ run: 'night-1', why: 'its gate failed: broken, max-drop' }],
    ]);
  });
});

test('the arms of a night share its error rate', async () => {
  using db = openMemory();
  // 6 of 20 lost: p = .031.
  const arms = ['x', 'y'];
  const config = { run: {}, grading: {}, arms: arms.map((name) => ({ name })) };
  night(db, 'one-1');
  night(db, 'one-2', 6);
  expect((await judge(db, 'one-2')).exitCode).toBe(1);
  night(db, 'two-1', 0, { arms, config });
  night(db, 'two-2', 6, { arms, config });
  const both = await judge(db, 'two-2', 'two-1');
  expect([both.exitCode, both.arms.map(({ result }) => result.p! < 0.05)]).toEqual([0, [true, true]]);
  night(db, 'two-3', 8, { arms, config });
  expect((await judge(db, 'two-3', 'two-1')).exitCode).toBe(1);
});

test('a rock is one by the record: so many nights up to the baseline, without a failure between', async () => {
  using db = openMemory();
  const nights = 8;
  for (let i = 1; i <= nights; i++) night(db, `night-${i}`, 0);
  night(db, 'tonight', 1);
  recordRun(db, {
    name: 'tonight.again-1',
    ids: IDS.slice(0, 1),
    epochs: 3,
    manifest: { remeasures: { run: 'tonight' } },
    happened: () => [{ outcome: 'unresolved' }],
  });
  const found = await judge(db, 'tonight');
  expect(found).toMatchObject({ exitCode: 1, baseline: 'night-8' });
  expect(found.arms[0]!.result.rocks).toEqual(['a__a-01']);
  // One night less on record, and one instance proves nothing.
  expect((await judge(db, 'tonight', 'night-7')).exitCode).toBe(0);
  // A row that is another one now has no record.
  night(db, 'tomorrow', 1, { rowHashOf: () => 'new' });
  const other = await judge(db, 'tomorrow', 'night-8');
  expect(other.exitCode).toBe(0);
});

test('a run that is deleted takes its verdicts along', async () => {
  using db = openMemory();
  night(db, 'night-1');
  night(db, 'night-2', 10);
  await judge(db, 'night-2');
  const { id } = runByName(db, 'night-2')!;
  removeRun(db, id);
  expect(runById(db, id)).toBeUndefined();
  expect(db.prepare('SELECT count(*) AS n FROM verdicts').get()).toEqual({ n: 0 });
});

test('a night that was to be judged has one open verdict, whoever leaves or begins it, and none once it is judged', async () => {
  using db = openMemory();
  night(db, 'night-1');
  night(db, 'night-2');
  const { id } = runByName(db, 'night-2')!;
  const verdicts = () => db.prepare('SELECT baseline, exit_code FROM verdicts WHERE run_id = ?').all(id);
  expect(runAwaitsVerdict(db, id)).toBe(false);
  leaveUnjudged(db, 'night-2');
  leaveUnjudged(db, 'night-2');
  expect(runAwaitsVerdict(db, id)).toBe(true);
  expect(verdicts()).toEqual([{ baseline: null, exit_code: null }]);
  await judge(db, 'night-2');
  expect(runAwaitsVerdict(db, id)).toBe(false);
  expect(verdicts()).toEqual([{ baseline: 'night-1', exit_code: 0 }]);
  // Judged again: the verdict that it had stays, and the new one counts.
  leaveUnjudged(db, 'night-2');
  expect([runAwaitsVerdict(db, id), verdicts().length]).toEqual([true, 2]);
});
