// How often the gate fails a night, simulated: where nothing changed (false alarms), and where something did (power), with the drop it reports.

import { gate } from '../../src/report/gate/gate.ts';
import { toMeasureAgain } from '../../src/report/gate/rules.ts';
import { resultsOfARock, rocksError } from '../../src/report/statistics/nightTests.ts';
import { seeded } from '../../src/report/statistics/resampling.ts';
import {
  after,
  candidateFrom,
  compareNights,
  type Loss,
  measuredAgain,
  nightOf,
  type Population,
  type Random,
  type Skills,
  skillOf,
  skillsOf,
} from './simulatedNights.ts';

export interface GateCase {
  readonly n: number;
  /** Share of pairs that disagree by chance. */
  readonly disagreement: number;
  /** Measurements of what changed. */
  readonly again: number;
  /** `rocks`: every instance has the chance that most often looks like a rock that broke. */
  readonly population: Population | 'rocks';
  /** Null: nothing changed. */
  readonly loss: { readonly how: Loss; readonly drop: number } | null;
  readonly epochs?: number;
  readonly limit?: number;
  /** Nights on record before the reference; default 60. */
  readonly record?: number;
}

export interface GateRates {
  readonly nights: number;
  /** Share of nights that failed. */
  readonly red: number;
  /** The same for the paired test of the first measurement alone. */
  readonly plain: number;
  /** Mean of the reported drop less the true one. */
  readonly bias: number;
  /** Share of nights on which each rule failed. */
  readonly rules: Readonly<Record<string, number>>;
}

export function gateRates(of: GateCase, nights: number, seed = 1): GateRates {
  const random = seeded(seed);
  const rules: Record<string, number> = {};
  let [red, plain, bias] = [0, 0, 0];
  for (let night = 0; night < nights; night++) {
    const before = populationOf(of, random);
    const now = of.loss ? after(before, of.loss.how, of.loss.drop, random) : before;
    const b = nightOf('b', now, random, of.epochs);
    const comparison = compareNights(nightOf('a', before, random, of.epochs), b);
    const again = of.again > 0 ? measuredAgain(toMeasureAgain(comparison), now, of.again, random) : new Map();
    const policy = of.limit === undefined ? {} : { maxDrop: of.limit };
    const streaks = recordOf(comparison.broken, before, of.record ?? 60, random);
    const result = gate(comparison, candidateFrom(b), policy, again, streaks);
    for (const { rule, passed } of result.rules) if (!passed) rules[rule] = (rules[rule] ?? 0) + 1 / nights;
    if (!result.passed) red++;
    if (comparison.test!.p < 0.05 && comparison.difference!.points < 0) plain++;
    bias += result.drop! - (mean(before) - mean(now));
  }
  return { nights, red: red / nights, plain: plain / nights, bias: bias / nights, rules };
}

const mean = (xs: Skills): number => xs.reduce((s, x) => s + x, 0) / xs.length;

function populationOf({ population, n, disagreement, again }: GateCase, random: Random): Skills {
  if (population !== 'rocks') return skillsOf(population, n, disagreement, random);
  const results = resultsOfARock(n, 1 + again, rocksError(0.05));
  return Array<number>(n).fill(results / (results + 1 + again));
}

/** The reference resolved them; and so did so many nights before it, without a failure between. */
function recordOf(
  ids: readonly string[],
  skills: Skills,
  nights: number,
  random: Random,
): Map<string, number> {
  return new Map(
    ids.map((id) => {
      const p = skillOf(skills, id);
      let streak = 1;
      while (streak <= nights && random() < p) streak++;
      return [id, streak];
    }),
  );
}

const POPULATIONS = ['mixed', 'coins', 'steady'] as const;
const percent = (x: number): string => (100 * x).toFixed(x < 0.0995 ? 1 : 0);

/** The table of docs/statistics.md: `npx node scripts/statistics/gateErrors.ts`. */
function gateTable(instances: number): string[] {
  const line = (n: number, disagreement: number, again: number): string => {
    const of = { n, disagreement, again, population: 'mixed' } as const;
    const nights = Math.round(instances / n);
    const quiet = POPULATIONS.map((population) => gateRates({ ...of, population, loss: null }, nights));
    const power = [0.05, 0.1].flatMap((drop) => {
      const loss = { how: 'broken', drop } as const;
      const [young, old] = [0, 60].map((record) => gateRates({ ...of, loss, record }, nights / 4));
      return [young!, old!];
    });
    const bias = [...quiet, ...power].reduce((most, r) => Math.max(most, Math.abs(r.bias)), 0);
    const found = [0, 2].map((i) => {
      const [young, old] = [power[i]!, power[i + 1]!];
      return `${percent(young.plain)} / ${percent(young.red)} / ${percent(old.red)}`;
    });
    const red = Math.max(...quiet.map((r) => r.red));
    return `| ${n} | ${100 * disagreement} % | ${again} | ${percent(red)} | ${(100 * bias).toFixed(2)} | ${found.join(' | ')} |`;
  };
  return [50, 100, 500].flatMap((n) =>
    [0.02, 0.05, 0.1, 0.2].flatMap((disagreement) => [1, 3].map((again) => line(n, disagreement, again))),
  );
}

if (import.meta.main) for (const line of gateTable(Number(process.argv[2] ?? 200_000))) console.log(line);
