// Nights in a row under one way to call the gate, as `run --baseline` would judge them: which are red, and how much is lost until one is.

import {
  firstNight,
  type GateResult,
  gate,
  LIMITS_ON_RESULTS,
  NOT_OF_THE_RECORD,
} from '../../src/report/gate/gate.ts';
import { type GatePolicy, goldenToMeasure, toMeasureAgain } from '../../src/report/gate/rules.ts';
import { alongRecord, NIGHTS_OF_A_RECORD, type NightScore } from '../../src/report/statistics/alongRecord.ts';
import { NIGHT_ERROR } from '../../src/report/statistics/nightTests.ts';
import { seeded } from '../../src/report/statistics/resampling.ts';
import {
  candidateFrom,
  compareNights,
  idOf,
  type Loss,
  lostToInfra,
  measuredAgain,
  nightOf,
  type Population,
  type Random,
  type Skills,
  skillsOf,
} from './simulatedNights.ts';

export interface Recipe {
  readonly n: number;
  readonly disagreement: number;
  readonly population: Population;
  readonly epochs?: number;
  /** `--remeasure`. */
  readonly again?: number;
  /** `fixed`: the first night. */
  readonly baseline: 'last' | 'fixed';
  readonly policy?: Omit<GatePolicy, 'mustPass'>;
  /** Ids that must pass: those that were resolved on so many nights before the first, all of them. */
  readonly golden?: number;
  /** `--min-resolved`, as so much less than what is true. */
  readonly resolvedLess?: number;
  /** Chance of a trial to be lost, where it would have failed and where it would have been resolved. */
  readonly infra?: readonly [failed: number, resolved: number];
  /** So much of the mean is lost every night after the first `quiet` nights. */
  readonly decay?: { readonly how: Loss; readonly aNight: number; readonly quiet: number };
  readonly nights: number;
  /** The tests too compare with a night that kept every limit, as they did before. */
  readonly chosenByLimits?: boolean;
}

interface SeriesNight {
  readonly failed: readonly string[];
  readonly lucky: boolean;
  /** Of the mean, since the first night. */
  readonly lost: number;
}

function seriesOf(recipe: Recipe, random: Random): SeriesNight[] {
  const { n, epochs = 1, again = 3, decay, policy: own = {} } = recipe;
  const skills = skillsOf(recipe.population, n, recipe.disagreement, random);
  const ids = skills.map((_, i) => idOf(i));
  const mean = skills.reduce((s, p) => s + p, 0) / n;
  const order = skills.map(() => random());
  const { golden } = recipe;
  const policy: GatePolicy = {
    ...own,
    ...(golden !== undefined && {
      mustPass: ids.filter((_, i) =>
        Array.from({ length: golden }, () => random() < skills[i]!).every(Boolean),
      ),
    }),
    ...(recipe.resolvedLess !== undefined && { minResolved: mean - recipe.resolvedLess }),
  };
  const past: { readonly side: ReturnType<typeof nightOf>; readonly failed: readonly string[] }[] = [];
  return Array.from({ length: recipe.nights }, (_, t): SeriesNight => {
    const lost = decay ? Math.max(0, t - decay.quiet + 1) * decay.aNight : 0;
    const now = faded(skills, order, decay?.how, lost / mean);
    const whole = nightOf(`night ${t}`, now, random, epochs);
    const side = recipe.infra ? lostToInfra(whole, recipe.infra, random) : whole;
    const candidate = candidateFrom(side);
    const remeasure = (asked: readonly string[]) =>
      again === 0 ? new Map<string, boolean[]>() : measuredAgain(asked, now, again, random);
    const judged = (): GateResult => {
      const reference =
        recipe.baseline === 'fixed' ? past[0] : past.findLast(({ failed }) => failed.length === 0);
      if (!reference)
        return firstNight(candidate, policy, false, remeasure(goldenToMeasure(policy, candidate)));
      const unchosen =
        recipe.baseline === 'fixed' || recipe.chosenByLimits
          ? reference
          : past.findLast(({ failed }) => failed.every((rule) => LIMITS_ON_RESULTS.has(rule)))!;
      const comparison = compareNights(reference.side, side);
      const tested = unchosen === reference ? comparison : compareNights(unchosen.side, side);
      const asked = new Set([
        ...[comparison, tested].flatMap((one) => toMeasureAgain(one)),
        ...goldenToMeasure(policy, candidate),
      ]);
      const record = [
        ...past.filter(
          ({ failed }, i) =>
            (recipe.baseline === 'fixed' && i === 0) || !failed.some((r) => NOT_OF_THE_RECORD.has(r)),
        ),
        { side },
      ].slice(-NIGHTS_OF_A_RECORD);
      const along = alongRecord(
        scoresOf(
          ids,
          record.map((r) => r.side),
        ),
        {
          ...{ since: 'night 0', nights: record.length, error: NIGHT_ERROR },
          fixed: recipe.baseline === 'fixed',
        },
      );
      const until = past.slice(0, past.indexOf(unchosen) + 1).map((r) => r.side);
      const streaks = new Map(tested.broken.map((id) => [id, streakOf(id, until)]));
      return gate(comparison, candidate, policy, remeasure([...asked]), streaks, along, tested);
    };
    const { rules, warnings } = judged();
    const failed = rules.flatMap((r) => (r.passed ? [] : [r.rule]));
    past.push({ side, failed });
    return { failed, lucky: warnings.some((w) => w.includes('was lucky')), lost };
  });
}

const faded = (skills: Skills, order: readonly number[], how: Loss | undefined, part: number): Skills =>
  how === undefined || part === 0
    ? skills
    : skills.map((p, i) => (how === 'faded' ? p * (1 - Math.min(1, part)) : order[i]! < part ? 0 : p));

function scoresOf(ids: readonly string[], sides: readonly ReturnType<typeof nightOf>[]): NightScore[][] {
  const rows = ids.map((): NightScore[] => []);
  for (const [night, { results }] of sides.entries()) {
    const [failed, resolved]: NightScore[] = [
      [night, false],
      [night, true],
    ];
    for (const [i, id] of ids.entries())
      for (const score of results.get(id)!.scores) rows[i]!.push(score ? resolved! : failed!);
  }
  return rows;
}

function streakOf(id: string, sides: readonly ReturnType<typeof nightOf>[]): number {
  let streak = 0;
  for (const { results } of sides.toReversed())
    for (const resolved of results.get(id)!.scores.toReversed()) {
      if (!resolved) return streak;
      streak++;
    }
  return streak;
}

const TESTS: ReadonlySet<string> = new Set(['broken', 'significance', 'confirmed', 'infra-loss', 'trend']);

const share = (xs: readonly boolean[]): number => xs.filter(Boolean).length / Math.max(1, xs.length);

/** Of `series` series: shares of nights and of series. */
export function seriesRates(recipe: Recipe, series: number, seed = 1) {
  const random = seeded(seed);
  const all = Array.from({ length: series }, () => seriesOf(recipe, random));
  const later = all.map((nights) => nights.slice(1));
  const redOften = later.map((nights) => share(nights.map(({ failed }) => failed.length > 0)) > 0.2);
  return {
    first: share(all.map(([night]) => night!.failed.length > 0)),
    /** Of the nights after the first. */
    red: share(later.flat().map(({ failed }) => failed.length > 0)),
    rules: Object.fromEntries(
      [
        ...Map.groupBy(
          later.flat().flatMap(({ failed }) => failed),
          (rule) => rule,
        ),
      ].map(([rule, found]) => [rule, found.length / later.flat().length]),
    ),
    /** Of the nights after the first: any test was red, whatever the limits said. */
    tests: share(later.flat().map(({ failed }) => failed.some((rule) => TESTS.has(rule)))),
    /** Of the series: `trend` was red on any night. */
    trend: share(all.map((nights) => nights.some(({ failed }) => failed.includes('trend')))),
    /** Of the series: any night after the first was red. */
    everRed: share(later.map((nights) => nights.some(({ failed }) => failed.length > 0))),
    /** Of the series: more than a fifth of the nights was red; and of these, the last night said that the baseline was lucky. */
    redOften: share(redOften),
    told: share(all.filter((_, i) => redOften[i]).map((nights) => nights.some(({ lucky }) => lucky))),
    /** What was lost on the first red night after the quiet ones; null where none was red. */
    lostAtFirst: all.map(
      (nights) => nights.find(({ failed, lost }) => failed.length > 0 && lost > 0)?.lost ?? null,
    ),
  };
}
