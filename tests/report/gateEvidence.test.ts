// What measuring again may say: both directions alike, rocks alone for themselves, and an outage never against the night.
import { describe, expect, test } from 'vitest';
import { candidateFrom, compareNights, idOf, nightOf } from '../../scripts/statistics/simulatedNights.ts';
import { gate } from '../../src/report/gate/gate.ts';
import { gateDocument } from '../../src/report/gate/gateDocument.ts';
import type { GatePolicy } from '../../src/report/gate/rules.ts';
import { toMeasureAgain } from '../../src/report/gate/rules.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { seeded } from '../../src/report/statistics/resampling.ts';

/** `broken` instances that broke, `fixed` that got fixed, and others that were resolved on both nights. */
function nights(broken: number, fixed: number, n = 100, epochs: [number, number] = [1, 1]) {
  const side = (label: string, epochsOfIt: number, fails: (i: number) => boolean) =>
    nightOf(
      label,
      Array.from({ length: n }, (_, i) => (fails(i) ? 0 : 1)),
      seeded(1),
      epochsOfIt,
    );
  const a = side('a', epochs[0], (i) => i >= broken && i < broken + fixed);
  const b = side('b', epochs[1], (i) => i < broken);
  return { comparison: compareNights(a, b), b };
}
const idsOf = (from: number, count: number) => Array.from({ length: count }, (_, i) => idOf(from + i));
const all = (ids: readonly string[], ...results: boolean[]) => ids.map((id) => [id, results] as const);
const T = [true, true, true] as const;
const F = [false, false, false] as const;

function judged(
  { comparison, b }: ReturnType<typeof nights>,
  again: readonly (readonly [string, readonly boolean[]])[],
  streaks: readonly (readonly [string, number])[] = [],
  policy: GatePolicy = {},
) {
  return gate(comparison, candidateFrom(b), policy, new Map(again), new Map(streaks));
}
const ruleOf = (result: ReturnType<typeof judged>, name: string) => result.rules.find((r) => r.rule === name);

describe('what is measured again', () => {
  test('what got fixed only where so much broke that it could decide', () => {
    expect(toMeasureAgain(nights(6, 3).comparison)).toEqual(idsOf(0, 6));
    expect(toMeasureAgain(nights(7, 3).comparison)).toEqual(idsOf(0, 10));
    expect(toMeasureAgain(nights(0, 30).comparison)).toEqual([]);
  });
  test('what got fixed never where the nights have unequal epochs: chance would break and fix unequally often', () => {
    const { comparison } = nights(9, 3, 100, [1, 3]);
    expect(toMeasureAgain(comparison)).toEqual(idsOf(0, 9));
  });
});

describe('the confirmed test', () => {
  const both = nights(20, 12);
  test('fails where what broke fails again and what got fixed does not', () => {
    const again = [...all(idsOf(0, 12), ...F), ...all(idsOf(12, 8), ...T), ...all(idsOf(20, 12), ...T)];
    const found = judged(both, again);
    expect(found.p).toBeGreaterThan(0.05);
    expect(found).toMatchObject({ verdict: 'regressed', exitCode: 1 });
    expect(ruleOf(found, 'confirmed')).toMatchObject({ passed: false, ids: idsOf(0, 12) });
    expect(ruleOf(found, 'broken')).toMatchObject({ passed: true, ids: [] });
  });
  test('passes where both fail again alike, though every one of them is broken', () => {
    const again = [...all(idsOf(0, 12), ...F), ...all(idsOf(12, 8), ...T), ...all(idsOf(20, 12), ...F)];
    const found = judged(both, again);
    expect(found).toMatchObject({ passed: true, confirmation: { p: expect.closeTo(0.58, 1) } });
    expect(found.broken).toHaveLength(12);
  });
  test('counts an instance that an outage kept from being measured against a failure of the night', () => {
    const found = judged(both, all(idsOf(0, 12), ...F));
    expect(found.confirmation).toMatchObject({ broken: idsOf(0, 12), fixed: idsOf(20, 12) });
    expect(found.passed).toBe(true);
  });
  test('gives every instance as many measurements as the one with the fewest has', () => {
    // Those that got fixed were measured once, and failed; with three measurements each would have recovered.
    const again = [
      ...all(idsOf(0, 12), ...F),
      ...all(idsOf(12, 8), false, true, true),
      ...all(idsOf(20, 12), false),
    ];
    expect(judged(both, again).confirmation).toMatchObject({ broken: idsOf(0, 20), fixed: idsOf(20, 12) });
  });
  test('stands beside a limit: who bears a drop has not said that it is chance', () => {
    const again = [...all(idsOf(0, 20), ...F), ...all(idsOf(20, 12), ...T)];
    const found = judged(both, again, [], { maxDrop: 0.3 });
    expect([ruleOf(found, 'max-drop')!.passed, ruleOf(found, 'confirmed')!.passed]).toEqual([true, false]);
  });
});

describe('a rock that breaks', () => {
  const one = nights(1, 0);
  const again = all(idsOf(0, 1), ...F);
  test('fails the night by itself; one with a result fewer on record does not', () => {
    const found = judged(one, again, [[idOf(0), 12]]);
    expect(found).toMatchObject({ verdict: 'regressed', exitCode: 1, rocks: [idOf(0)] });
    expect(ruleOf(found, 'broken')!.text).toBe(
      '1 broken in every re-measurement, 1 of them a rock (at most 0); a rock was resolved in its last 12 results or more',
    );
    expect(renderTerminal(gateDocument(found, { a: 'a', b: 'b' }))).toContain(
      'Broken (1): a__a-000 (a rock)',
    );
    expect(judged(one, again, [[idOf(0), 11]])).toMatchObject({ passed: true, rocks: [] });
  });
  test('is none once it recovers, or was not measured again', () => {
    expect(judged(one, all(idsOf(0, 1), false, false, true), [[idOf(0), 999]]).rocks).toEqual([]);
    expect(judged(one, [], [[idOf(0), 999]])).toMatchObject({ passed: true, rocks: [] });
  });
  test('--max-broken tolerates so many of them', () => {
    const policy = { maxBroken: 1 };
    expect(judged(one, again, [[idOf(0), 99]], policy).passed).toBe(true);
    const two = nights(2, 0);
    const streaks = [
      [idOf(0), 99],
      [idOf(1), 99],
    ] as const;
    expect(judged(two, all(idsOf(0, 2), ...F), streaks, policy).passed).toBe(false);
  });
  test('needs fewer results with more epochs tonight, and far more where it was measured again once', () => {
    expect(judged(nights(1, 0, 100, [3, 3]), again, [[idOf(0), 11]]).rocks).toEqual([idOf(0)]);
    expect(judged(one, all(idsOf(0, 1), false), [[idOf(0), 30]]).rocks).toEqual([]);
  });
});

describe('a limit', () => {
  test('says how often chance alone exceeds it', () => {
    const found = judged(nights(12, 8), [], [], { maxDrop: 0.03 });
    expect(found).toMatchObject({ passed: false, drop: expect.closeTo(0.04, 12) });
    // P(12 or more of 20 broke)
    expect(found.chance).toBeCloseTo(0.2517, 4);
    expect(ruleOf(found, 'max-drop')!.text).toContain(
      'chance alone exceeds it on up to 25.2 % of such nights',
    );
    expect(found.warnings.join()).toContain('up to 25.2 % of nights on which nothing changed');
  });
  test('holds for the first measurement, whatever recovers: what is measured again was chosen by its result', () => {
    const half = [...all(idsOf(0, 2), ...F), ...all(idsOf(2, 10), ...T), ...all(idsOf(12, 8), ...T)];
    const found = judged(nights(12, 8), half, [], { maxDrop: 0.03 });
    expect(found).toMatchObject({ passed: false, drop: expect.closeTo(0.04, 12) });
    expect(ruleOf(found, 'max-drop')!.text).toContain(
      '10 of 12 that broke recovered when measured again, 8 of 8 that got fixed succeeded again',
    );
  });
  test('is broken by a loss that comes and goes, as the tests see it: 11.2 points of 500 with p < .0001', () => {
    const lost = nights(70, 14, 500);
    const again = [...all(idsOf(0, 70), false, true, false), ...all(idsOf(70, 14), true, false, true)];
    const found = judged(lost, again, [], { maxDrop: 0.03 });
    expect([found.drop, found.p! < 1e-4]).toEqual([expect.closeTo(0.112, 12), true]);
    expect(found).toMatchObject({ verdict: 'regressed', passed: false });
    expect(['max-drop', 'significance'].map((name) => ruleOf(found, name)!.passed)).toEqual([false, false]);
  });
  test('says what was lost and what was gained in words', () => {
    const lost = judged(nights(12, 8), [], [], { maxDrop: 0.03 });
    expect(ruleOf(lost, 'max-drop')!.text).toMatch(
      /^4\.0 points fewer resolved, of 100 matched \(95 %: 13\.1 fewer to 5\.0 more\); at most 3\.0 fewer; exact McNemar p = /,
    );
    const gained = judged(nights(1, 15), [], [], { maxDrop: 0.03 });
    expect(gained.drop).toBeLessThan(0);
    const text = renderTerminal(gateDocument(gained, { a: 'a', b: 'b' }));
    expect(text).toContain('14.0 points more resolved, of 100 matched');
    expect(text).not.toContain('-14');
    expect(ruleOf(judged(nights(3, 3), [], [], { maxDrop: 0.03 }), 'max-drop')!.text).toContain(
      'as many resolved',
    );
  });
});
