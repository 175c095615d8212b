// What the nights since the accepted baseline say together: a decay that no two nights show, a baseline that was lucky, and golden ids by chance.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import { alongRecord, type NightScore } from '../../src/report/statistics/alongRecord.ts';
import { judgeRun } from '../../src/results/night/judgeRun.ts';
import type { Store } from '../../src/store/open.ts';
import { setBaseline } from '../../src/store/records/baselines.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { openMemory, recordRun } from './recordedRun.ts';

const results = mkdtempSync(join(tmpdir(), 'swebatch-record-'));
afterAll(() => rmSync(results, { recursive: true }));

const IDS = Array.from({ length: 60 }, (_, i) => `a__a-${String(i + 1).padStart(2, '0')}`);
const nameOf = (i: number): string => `night-${String(i).padStart(2, '0')}`;

/** The instances at the places of `failing` fail. */
function night(db: Store, i: number, failing: readonly number[]): void {
  recordRun(db, {
    name: nameOf(i),
    ids: IDS,
    config: { run: {}, grading: {}, arms: [{ name: 'default' }] },
    happened: (id) => [{ outcome: failing.includes(IDS.indexOf(id)) ? 'unresolved' : 'resolved' }],
  });
}
const judge = (db: Store, i: number, baseline = 'last', policy: GatePolicy = {}) =>
  judgeRun(
    db,
    { results, run: nameOf(i), baseline, policy, remeasure: 0 },
    { env: {}, cwd: results, tell: () => {} },
  );
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const failedRules = async (db: Store, i: number, baseline?: string): Promise<string[]> =>
  (await judge(db, i, baseline)).arms[0]?.result.rules.flatMap((r) => (r.passed ? [] : [r.rule])) ?? [];

test('a loss of one instance a night, which no two nights show, is red by the record, and stays so until it is accepted', async () => {
  using db = openMemory();
  const red: number[] = [];
  for (let i = 1; i <= 16; i++) {
    night(db, i, upTo(i <= 6 ? 0 : i - 6));
    const rules = await failedRules(db, i);
    if (rules.length > 0) red.push(i);
    if (rules.length > 0) expect(rules).toContain('trend');
  }
  expect(red[0]).toBeLessThanOrEqual(11);
  expect(red).toEqual(Array.from({ length: 17 - red[0]! }, (_, k) => red[0]! + k));
  setBaseline(db, 'accepted', runByName(db, nameOf(16))!.id, '2026-11-21T01:00:00.000Z');
  night(db, 17, upTo(10));
  expect(await failedRules(db, 17)).toEqual([]);
});

test('a loss that a night showed and the next one mended is no decay', async () => {
  using db = openMemory();
  for (let i = 1; i <= 8; i++) {
    night(db, i, [i % 3]);
    await judge(db, i);
  }
  night(db, 9, upTo(30));
  expect(await failedRules(db, 9)).toContain('significance');
  night(db, 10, [1]);
  expect(await failedRules(db, 10)).toEqual([]);
});

test('a model that solves others as often has not fallen', () => {
  const first = (lost: boolean): NightScore[] =>
    Array.from({ length: 12 }, (_, n): NightScore => [n, lost ? n < 6 : n >= 6]);
  const rows = [...upTo(10).map(() => first(true)), ...upTo(10).map(() => first(false))];
  const of = { since: 'a', nights: 12, error: 0.05, fixed: false };
  expect(alongRecord(rows, of)!.p).toBe(1);
  expect(alongRecord(rows.slice(0, 11), of)!.p).toBeLessThan(1e-6);
});

describe('a baseline that was lucky', () => {
  const series = async (first: readonly number[]) => {
    const db = openMemory();
    night(db, 1, first);
    for (let i = 2; i <= 9; i++)
      night(
        db,
        i,
        upTo(8).map((k) => (k * 5 + i) % 20),
      );
    const found = (await judge(db, 9, nameOf(1))).arms[0]!.result;
    db.close();
    return found;
  };
  test('is told by the nights since, and tonight is held against these', async () => {
    const found = await series([]);
    expect(found.warnings.join()).toMatch(
      /night-01 was lucky, or something was lost right after it: 100\.0 % resolved then and 93\.3 % in the 8 nights since .*against those nights alone tonight is not worse/,
    );
  });
  test('is not told of one like the others', async () => {
    expect((await series(upTo(4))).warnings.join()).not.toContain('lucky');
  });
});

describe('must-pass', () => {
  const again = (db: Store, of: number, resolved: (id: string) => boolean, ids: readonly string[]) =>
    recordRun(db, {
      name: `${nameOf(of)}.again-1`,
      ids,
      epochs: 3,
      manifest: { remeasures: { run: nameOf(of) } },
      happened: (id, _arm, epoch) => [{ outcome: epoch === 2 && resolved(id) ? 'resolved' : 'unresolved' }],
    });
  const policy = { mustPass: IDS.slice(0, 3) };
  test.each(['on the first night', 'on a later one'])(
    'what is resolved when measured again has passed, %s',
    async (when) => {
      using db = openMemory();
      const first = when === 'on the first night';
      if (!first) night(db, 1, [0, 1]);
      const i = first ? 1 : 2;
      night(db, i, [0, 1]);
      again(db, i, () => true, IDS.slice(0, 2));
      const found = await judge(db, i, 'last', policy);
      const result = first ? found.first[0]!.result : found.arms[0]!.result;
      expect(result.rules.find((r) => r.rule === 'must-pass')).toMatchObject({
        passed: true,
        text: '3 of 3 must-pass instances resolved; 2 of them when measured again',
      });
    },
  );
  test('one that fails every time has not, and the rule says how often chance does that', async () => {
    using db = openMemory();
    night(db, 1, [0, 1]);
    again(db, 1, (id) => id !== IDS[0], IDS.slice(0, 2));
    const { exitCode, first } = await judge(db, 1, 'last', policy);
    expect(exitCode).toBe(1);
    expect(first[0]!.result.rules.find((r) => r.rule === 'must-pass')).toMatchObject({
      ids: [IDS[0]],
      text: expect.stringContaining(
        'of 60 instances, those that were resolved 10 of 10 times fail so by chance on at most 1.4 % of nights',
      ),
    });
  });
});
