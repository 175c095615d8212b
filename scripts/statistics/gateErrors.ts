// How often the gate fails a night, simulated: where nothing changed (false alarms), and where something did (power), with the drop it reports.

import { gate } from '../../src/report/gate/gate.ts';
import { toMeasureAgain } from '../../src/report/gate/rules.ts';
import { resultsOfARock, rocksError } from '../../src/report/statistics/nightTests.ts';
import { seeded } from '../../src/report/statistics/resampling.ts';
import { decayBound } from './decayBound.ts';
import { type Recipe, seriesRates } from './gateSeries.ts';
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

/** Pairs of nights. */
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

/** Every recipe of docs/nightly.md, and every other option of the gate, on nights on which nothing changed. */
export const RECIPES: Readonly<Record<string, Omit<Recipe, 'population' | 'nights'>>> = (() => {
  const usual = { n: 100, disagreement: 0.2, baseline: 'last', infra: [0.005, 0.005] } as const;
  const files = { ...usual, policy: { maxInfra: 0.05 } };
  return {
    'cron, systemd, Actions, Kubernetes: `--baseline last --max-infra 5%`': files,
    'head of the page: the same, `--must-pass` with ids of 10 of 10': { ...files, golden: 10 },
    'the same, `--remeasure 1`': { ...files, golden: 10, again: 1 },
    'the same, `--remeasure 0`': { ...files, golden: 10, again: 0 },
    'the same, ids of 19 of 19, n = 500': { ...files, n: 500, golden: 19 },
    '`compare baseline RUN --gate --remeasure 3`, a fixed baseline': { ...usual, baseline: 'fixed' },
    '`--baseline last`, 3 epochs': { ...files, epochs: 3 },
    'a fixed baseline, 3 epochs': { ...usual, baseline: 'fixed', epochs: 3 },
    '`--max-drop 3%`': { ...files, policy: { maxDrop: 0.03 } },
    '`--max-drop 3%`, n = 500': { ...files, n: 500, policy: { maxDrop: 0.03 } },
    '`--max-drop 10%`': { ...files, policy: { maxDrop: 0.1 } },
    '`--min-resolved` 5 points below the truth': { ...files, resolvedLess: 0.05 },
    '`--max-broken 1`': { ...files, policy: { maxBroken: 1 } },
    'infrastructure loses 20 % of the failures, 2 % of the others': { ...usual, infra: [0.2, 0.02] },
    'infrastructure loses 5 % of all, `--max-infra 5%`': { ...files, infra: [0.05, 0.05] },
  };
})();

/** `effort`: instances times nights of each cell. */
function recipeTable(effort: number): string[] {
  return Object.entries(RECIPES).map(([name, of]) => {
    const nights = 60;
    const series = Math.max(8, Math.round(effort / nights / of.n / (of.epochs ?? 1)));
    const found = (['mixed', 'steady'] as const).map((population) =>
      seriesRates({ ...of, population, nights }, series),
    );
    const worst = (rate: (f: (typeof found)[number]) => number) => percent(Math.max(...found.map(rate)));
    const told = found.filter((f) => f.redOften > 0).map((f) => f.told);
    const rules = found.flatMap((f) => Object.entries(f.rules)).filter(([, x]) => x >= 0.005);
    const named = [...Map.groupBy(rules, ([rule]) => rule)].map(
      ([rule, xs]) => `${rule} ${percent(Math.max(...xs.map(([, x]) => x)))}`,
    );
    return `| ${name} | ${worst((f) => f.first)} | ${worst((f) => f.red)} | ${worst((f) => f.trend)} | ${worst((f) => f.redOften)}${told.length > 0 && of.baseline === 'fixed' ? ` (${percent(told.reduce((s, x) => s + x, 0) / told.length)} told)` : ''} | ${named.join(', ')} |`;
  });
}

/** `--max-drop 3%`, measured again three times: share of nights that are red / of those that the paired test alone finds (bias of the printed drop). */
function limitTable(nights: number): string[] {
  return (['broken', 'faded'] as const).flatMap((how) =>
    [100, 500].map((n) => {
      const cells = [0, 0.03, 0.05, 0.1, 0.2].map((drop) => {
        const of = { n, disagreement: 0.2, again: 3, population: 'mixed', loss: { how, drop } } as const;
        const found = gateRates({ ...of, limit: 0.03 }, nights);
        return `${percent(found.red)} / ${percent(found.plain)} (${(100 * found.bias).toFixed(2)})`;
      });
      return `| ${n} | ${how === 'broken' ? 'instances break for good' : 'every instance fails more often'} | ${cells.join(' | ')} |`;
    }),
  );
}

/** Half a point is lost every night, `--baseline last`. */
function decayTable(series: number): string[] {
  return (['faded', 'broken'] as const).flatMap((how) =>
    (
      [
        ['mixed', 0.1],
        ['mixed', 0.2],
      ] as const
    ).map(([population, disagreement]) => {
      const cells = [1, 5, 30].map((quiet) => {
        const of = { n: 200, disagreement, population, baseline: 'last', nights: quiet + 12 } as const;
        const { lostAtFirst } = seriesRates({ ...of, decay: { how, aNight: 0.005, quiet } }, series);
        const seen = lostAtFirst.filter((lost) => lost !== null && lost <= 0.05 + 1e-9).length / series;
        const sorted = lostAtFirst.map((lost) => lost ?? 0.065).sort((a, b) => a - b);
        return `${percent(seen)} (${(100 * sorted[Math.floor(series / 2)]!).toFixed(1)})`;
      });
      return `| ${how === 'faded' ? 'every instance fails more often' : 'instances break for good'} | ${population}, ${100 * disagreement} % | ${cells.join(' | ')} |`;
    }),
  );
}

/** Of records of 60 nights on which nothing changed, under the whole gate: nights that are red; records with any night red by `trend`, and by any rule. */
function sixtyTable(series: number): string[] {
  const recipe = RECIPES['cron, systemd, Actions, Kubernetes: `--baseline last --max-infra 5%`']!;
  return (
    [
      ['mixed', 0.1],
      ['mixed', 0.2],
      ['steady', 0.2],
    ] as const
  ).map(([population, disagreement]) => {
    const found = seriesRates({ ...recipe, population, disagreement, nights: 60 }, series);
    return `| ${population}, ${100 * disagreement} % | ${percent(found.red)} | ${percent(found.trend)} | ${percent(found.everRed)} |`;
  });
}

const LIMITS: Readonly<Record<string, Partial<Recipe>>> = {
  none: {},
  '`--max-drop 2%`': { policy: { maxDrop: 0.02 } },
  '`--max-drop 3%`': { policy: { maxDrop: 0.03 } },
  '`--max-drop 5%`': { policy: { maxDrop: 0.05 } },
  '`--min-resolved` at the truth': { resolvedLess: 0 },
  '`--must-pass`, 10 of 10, no re-measurement': { golden: 10, again: 0 },
  '`--max-drop 3%`, `--min-resolved` 2 points below the truth': {
    policy: { maxDrop: 0.03 },
    resolvedLess: 0.02,
  },
};

/** `--baseline last`, with limits that fail many nights: nights that any test fails, and before that `significance` alone, as they were and are. */
function chosenTable(nights: number): string[] {
  const populations = [
    ['coins', 0.2],
    ['steady', 0.05],
    ['steady', 0.1],
  ] as const;
  return Object.entries(LIMITS).flatMap(([name, more]) =>
    [50, 100, 500].map((n) => {
      const cells = populations.map(([population, disagreement]) => {
        const of = { n, disagreement, population, baseline: 'last', nights: 60, ...more } as const;
        const series = Math.max(4, Math.round((nights * Math.min(1, 100 / n)) / 59));
        const [before, now] = [true, false].map((chosenByLimits) =>
          seriesRates({ ...of, chosenByLimits }, series),
        );
        return `${percent(before!.tests)} / ${percent(now!.tests)}`;
      });
      return `| ${name} | ${n} | ${cells.join(' | ')} |`;
    }),
  );
}

/** Of the decay that begins with night 2, by the whole 5 % and by what the gate may spend on that night. */
function boundTable(draws: number): string[] {
  const tonight = 0.05 / (1.6 * 11 ** 1.5);
  return (['faded', 'broken'] as const).flatMap((how) =>
    [0.1, 0.2].map((disagreement) => {
      const decay = { n: 200, disagreement, how, aNight: 0.005, until: 0.05 };
      const cells = decayBound(decay, [0.05, tonight], draws).map(percent);
      return `| ${how === 'faded' ? 'every instance fails more often' : 'instances break for good'} | mixed, ${100 * disagreement} % | ${cells.join(' | ')} |`;
    }),
  );
}

/** The tables of docs/appendix/simulations.md: `npx node scripts/statistics/gateErrors.ts [nights|recipes|sixty|limit|chosen|decay|bound] [EFFORT]`. */
const TABLES: Readonly<Record<string, (effort?: number) => string[]>> = {
  nights: (effort = 200_000) => gateTable(effort),
  recipes: (effort = 300_000) => recipeTable(effort),
  sixty: (effort = 200) => sixtyTable(effort),
  limit: (effort = 600) => limitTable(effort),
  chosen: (effort = 6000) => chosenTable(effort),
  decay: (effort = 100) => decayTable(effort),
  bound: (effort = 2000) => boundTable(effort),
};

if (import.meta.main) {
  const [name, effort] = process.argv.slice(2);
  for (const table of name ? [TABLES[name]!] : Object.values(TABLES))
    for (const line of table(effort ? Number(effort) : undefined)) console.log(line);
}
