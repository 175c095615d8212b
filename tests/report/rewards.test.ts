// Rewards beside verdicts: means and paired differences over instances, what is missing never counted as 0 unasked, and no test of too little.
import { describe, expect, test } from 'vitest';
import { compareDocument } from '../../src/report/compare/compareDocument.ts';
import { compareAll, compareSides } from '../../src/report/compare/compareSides.ts';
import { type Side, sideOfArm } from '../../src/report/compare/side.ts';
import { candidateOf, type GateResult, gate } from '../../src/report/gate/gate.ts';
import { gateDocument } from '../../src/report/gate/gateDocument.ts';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import { summarize } from '../../src/report/measure/summary.ts';
import { jsonText } from '../../src/report/render/document.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import { trialsCsv } from '../../src/report/render/trialsCsv.ts';
import { newcombe10 } from '../../src/report/statistics/paired.ts';
import { wilson } from '../../src/report/statistics/proportions.ts';
import { meanReward, pairedRewards } from '../../src/report/statistics/rewards.ts';
import { loadRunData, type RunData } from '../../src/store/records/runData.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const ids = (n: number) => Array.from({ length: n }, (_, i) => `a__a-${i + 1}`);
const place = (id: string): number => Number(id.slice(5));
const rewarded = (reward: number, rewards?: Record<string, number>): Happened => ({
  outcome: reward >= 1 ? 'resolved' : 'unresolved',
  reward,
  rewards: rewards ?? { reward },
});

function load(planned: Partial<PlannedRun> & Pick<PlannedRun, 'happened'>): RunData {
  const db = openMemory();
  const data = loadRunData(db, recordRun(db, { ids: ids(12), ...planned }))!;
  db.close();
  return data;
}
const sideFor = (data: RunData): Side => sideOfArm(data, data.arms[0]!.name);
const options = { test: 'exact', seed: 7, draws: 100 } as const;

describe('statistics of rewards', () => {
  test('rewards of 0 and 1 have the interval of the share that they are', () => {
    const { mean, interval } = meanReward([1, 1, 0, 1, 0, 0, 0, 0, 0, 0], 10)!;
    expect(mean).toBeCloseTo(0.3, 12);
    expect(interval).toEqual(wilson(3, 10));
    const pairs = [...Array(4).fill([0, 1]), ...Array(2).fill([1, 0]), ...Array(4).fill([1, 1])] as [
      number,
      number,
    ][];
    expect(pairedRewards(pairs, 1)!.interval).toEqual(
      newcombe10({ both: 4, aOnly: 4, bOnly: 2, neither: 0 }),
    );
  });

  test('equal rewards claim no certainty', () => {
    expect(meanReward([0.5, 0.5, 0.5], 3)!.interval).toEqual(wilson(1.5, 3));
    const { interval, difference, permutation, sign } = pairedRewards(
      [
        [0.5, 0.5],
        [0.5, 0.5],
        [0.5, 0.5],
      ],
      1,
    )!;
    expect(difference).toBe(0);
    expect(interval!.low).toBeLessThan(-0.3);
    expect(permutation).toBeNull();
    expect(sign).toEqual({ better: 0, worse: 0, p: null });
  });

  test('five differences are no test, six are', () => {
    const pairs = (n: number) => Array.from({ length: n }, () => [0.25, 0.5] as [number, number]);
    expect(pairedRewards(pairs(5), 1)).toMatchObject({ permutation: null, sign: { better: 5, p: null } });
    // All signs alike, or all of the other: 2 of 2^6 orders.
    expect(pairedRewards(pairs(6), 1)).toMatchObject({
      permutation: { p: 2 / 64, method: 'exact', seed: 1 },
      sign: { better: 6, worse: 0, p: expect.closeTo(2 / 64, 12) as number },
    });
  });

  test('ten differences or more have a t interval', () => {
    const gains = [0.1, 0.2, -0.1, 0.3, 0.25, 0.05, -0.2, 0.4, 0.15, 0.35];
    const { interval, method } = pairedRewards(
      gains.map((gain) => [0.4, 0.4 + gain] as const),
      1,
    )!;
    expect(method).toBe('t');
    // mean 0.15, standard error 0.061016, 2.262157 of them with 9 degrees of freedom.
    expect(interval!.low).toBeCloseTo(0.011986, 5);
    expect(interval!.high).toBeCloseTo(0.288014, 5);
  });

  test('none is null; one has no interval of a difference', () => {
    expect(meanReward([], 0)).toBeNull();
    expect(pairedRewards([], 1)).toBeNull();
    expect(pairedRewards([[0, 1]], 1)!.interval).toBeNull();
  });
});

describe('a report', () => {
  const data = load({
    happened: (id) =>
      place(id) <= 2
        ? [{ reason: 'env_died' }]
        : [rewarded(place(id) % 2 ? 1 : 0.5, { reward: place(id) % 2 ? 1 : 0.5, found: place(id) })],
  });
  const arm = summarize(data).arms[0]!;

  test('has the mean over valid instances, and beside it what a count of the missing as 0 would say', () => {
    expect(arm.reward).toEqual({
      ...{ n: 10, mean: 0.75, interval: wilson(7.5, 10) },
      missingAsZero: { missing: 2, mean: 7.5 / 12 },
      named: [{ name: 'found', n: 10, mean: 7.5 }],
    });
    expect(arm.resolved).toMatchObject({ x: 5, n: 10 });
    const text = renderTerminal(summaryDocument(summarize(data)));
    expect(text).toContain('0.750 [0.442, 0.919] mean of 10 instances (Wilson 95 %)');
    expect(text).toContain('0.625 with 2 missing trials as 0, as Harbor counts');
    expect(text).toContain('found: 7.500 mean of 10 instances');
  });

  test('what infrastructure took is run again by resume, where somebody else ran it not', () => {
    const ours = summarize(data);
    const said = (imported: boolean) => renderTerminal(summaryDocument({ ...ours, imported }));
    expect(said(false)).toContain('infrastructure failed, not the model (resume --retry infra)');
    expect(said(true)).toContain('infrastructure failed, not the model: ');
    expect(said(true)).not.toContain('resume');
  });

  test('a trial whose rewards have no "reward" counts as 0 in Harbor\'s mean, and as the mean of its names in ours', () => {
    const named = load({
      ids: ids(3),
      happened: (id) => [
        place(id) === 1 ? rewarded(0.5, { a: 0.25, b: 0.75 }) : rewarded(1, { reward: 1, a: 1 }),
      ],
    });
    const { reward } = summarize(named).arms[0]!;
    expect(reward!.mean).toBeCloseTo(2.5 / 3, 12);
    expect(reward!.missingAsZero).toEqual({ missing: 0, unnamed: 1, mean: 2 / 3 });
    expect(renderTerminal(summaryDocument(summarize(named)))).toContain(
      '0.667 with 1 trial without the name "reward" as 0, as Harbor counts',
    );
  });

  test('in JSON and CSV; a suite without rewards has neither key nor column', () => {
    expect(JSON.parse(jsonText(summarize(data))).arms[0].reward).toMatchObject({
      mean: 0.75,
      missing_as_zero: { missing: 2 },
    });
    const [header, , , third] = trialsCsv(data).split('\r\n');
    expect(header!.endsWith(',flags,reward,rewards')).toBe(true);
    expect(third!.endsWith(',1,"{""reward"":1,""found"":3}"')).toBe(true);
    const plain = load({ happened: () => [{ outcome: 'resolved' }] });
    expect(jsonText(summarize(plain))).not.toContain('reward');
    expect(trialsCsv(plain)).not.toContain('reward');
    expect(renderTerminal(summaryDocument(summarize(plain)))).not.toContain('reward');
  });

  test('over epochs an instance counts once', () => {
    const epochs = load({
      ids: ids(2),
      epochs: 2,
      happened: (id, _arm, epoch) =>
        id === 'a__a-2' && epoch === 2 ? [] : [rewarded(place(id) === 1 ? 0.5 : 1)],
    });
    expect(summarize(epochs).arms[0]!.reward).toMatchObject({
      n: 2,
      mean: 0.75,
      missingAsZero: { mean: 0.5 },
    });
  });

  test('a trial whose tests ran out of time has a reward of 0, as its verdict', () => {
    const late = load({
      ids: ids(2),
      happened: (id) => [place(id) === 1 ? rewarded(1) : { outcome: 'timeout', resolved: false }],
    });
    expect(summarize(late).arms[0]!.reward).toMatchObject({ n: 2, mean: 0.5 });
  });

  test('names that a container wrote are shown in part, and never as escapes', () => {
    const names = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`\u001b[2Jname-${i}`, i]));
    const many = load({ ids: ids(1), happened: () => [rewarded(1, { reward: 1, ...names })] });
    const text = renderTerminal(summaryDocument(summarize(many)));
    expect(text).not.toContain('\u001b[2J');
    expect(text).toContain('and 28 further names');
  });
});

describe('a comparison', () => {
  const a = load({ name: 'a', happened: (id) => [rewarded(place(id) <= 4 ? 1 : 0.25)] });
  const b = load({
    name: 'b',
    happened: (id) =>
      place(id) === 12
        ? [{ reason: 'env_died' }]
        : [rewarded(place(id) <= 4 ? 1 : 0.5, { reward: place(id) <= 4 ? 1 : 0.5, found: 2 })],
  });
  const compared = compareSides(sideFor(a), sideFor(b), options);

  test('has the paired difference over matched instances, with both tests and the seed', () => {
    expect(compared.reward).toMatchObject({
      ...{
        n: 11,
        method: 'Newcombe 10',
        sign: { better: 7, worse: 0, p: expect.closeTo(2 / 128, 12) as number },
      },
      permutation: { p: 2 / 128, method: 'exact', seed: 7 },
    });
    expect(compared.reward!.difference).toBeCloseTo((7 * 0.25) / 11, 12);
    expect(compared.reward!.missingAsZero!.difference).toBeCloseTo((7 * 0.25 - 0.25) / 12, 12);
    // The verdicts are the same on both sides, and say so.
    expect(compared).toMatchObject({ fixed: [], broken: [], test: { p: 1 } });
    const text = renderTerminal(compareDocument(compareAll([sideFor(a), sideFor(b)], options)));
    expect(text).toContain('B - A +0.159');
    expect(text).toContain('sign test p = .0156, sign-flip permutation (exact) p = .0156');
    expect(text).toContain('missing as 0: B - A +0.125 (n = 12)');
  });

  test('names of one side alone are not compared', () => expect(compared.reward!.named).toBeUndefined());

  test('against a side without rewards its verdicts count', () => {
    const plain = load({
      name: 'p',
      happened: (id) => [{ outcome: place(id) <= 4 ? 'resolved' : 'unresolved' }],
    });
    expect(compareSides(sideFor(plain), sideFor(a), options).reward!.difference).toBeCloseTo(
      (8 * 0.25) / 12,
      12,
    );
    expect(compareSides(sideFor(plain), sideFor(plain), options).reward).toBeUndefined();
    expect(JSON.stringify(compareAll([sideFor(plain), sideFor(plain)], options))).not.toContain('reward');
  });

  test('of three sides the permutations are adjusted by Holm', () => {
    const c = load({ name: 'c', happened: (id) => [rewarded(place(id) <= 4 ? 1 : 0.75)] });
    const all = compareAll([a, b, c].map(sideFor), options);
    for (const { reward } of all.comparisons)
      expect(reward!.pHolm).toBeGreaterThanOrEqual(reward!.permutation!.p);
    expect(renderTerminal(compareDocument(all))).toContain(', Holm p = ');
  });
});

describe('the gate', () => {
  const night = (low: number, name: string) =>
    load({ name, happened: (id) => [rewarded(place(id) <= 4 ? 1 : low)] });
  const gated = (a: RunData, b: RunData, policy: GatePolicy): GateResult =>
    gate(compareSides(sideFor(a), sideFor(b), options), candidateOf(b, 'default', sideFor(b)), policy);
  const rule = (result: GateResult, name: string) => result.rules.find((one) => one.rule === name);

  test('finds a loss of reward where every verdict stays the same', () => {
    const result = gated(night(0.5, 'a'), night(0.25, 'b'), {});
    expect(result).toMatchObject({ passed: false, exitCode: 1, verdict: 'regressed' });
    expect(rule(result, 'significance')!.text).toBe(
      'sign-flip permutation of rewards p = .0078 for less reward',
    );
    expect(renderTerminal(gateDocument(result, { a: 'a', b: 'b' }))).toContain(
      'Mean reward 0.667 before, 0.500 now: 0.167 less',
    );
    expect(gated(night(0.25, 'a'), night(0.5, 'b'), {})).toMatchObject({ passed: true, verdict: 'improved' });
  });

  test('a limit on the drop holds for the mean reward too', () => {
    const [a, b] = [night(0.5, 'a'), night(0.25, 'b')];
    expect(rule(gated(a, b, { maxDrop: 0.1 }), 'max-reward-drop')).toMatchObject({ passed: false });
    expect(rule(gated(a, b, { maxDrop: 0.2 }), 'max-reward-drop')).toMatchObject({ passed: true });
  });

  test('too few differences regress nothing, and a suite without rewards is judged by its verdicts', () => {
    const one = load({
      name: 'b',
      happened: (id) => [rewarded(place(id) <= 4 ? 1 : place(id) === 5 ? 0 : 0.5)],
    });
    expect(gated(night(0.5, 'a'), one, {})).toMatchObject({ passed: true });
    const plain = load({ happened: (id) => [{ outcome: place(id) <= 4 ? 'resolved' : 'unresolved' }] });
    const result = gated(plain, plain, { maxDrop: 0.1 });
    expect(rule(result, 'max-reward-drop')).toBeUndefined();
    expect(JSON.stringify(result)).not.toContain('reward');
  });
});
