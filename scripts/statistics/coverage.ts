// How often the intervals of the reports hold the truth, and how often their tests find something where nothing is: simulated with truths that
// are known. `npx node scripts/statistics/coverage.ts` prints the tables of docs/appendix/simulations.md.

import { holm } from '../../src/report/compare/compareSides.ts';
import { forecast } from '../../src/report/measure/forecast.ts';
import { passTable, shareInterval } from '../../src/report/statistics/epochs.ts';
import { clustered, mean } from '../../src/report/statistics/means.ts';
import {
  cochranQ,
  differenceOfMeans,
  gainsOf,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
} from '../../src/report/statistics/paired.ts';
import { type Interval, wilson } from '../../src/report/statistics/proportions.ts';
import {
  bootstraps,
  costPerResolved,
  geometricMeans,
  seeded,
  signFlip,
} from '../../src/report/statistics/resampling.ts';
import { meanReward, pairedRewards } from '../../src/report/statistics/rewards.ts';
import { stratifiedEstimate } from '../../src/report/statistics/stratified.ts';
import { type Random, skillsOf } from './simulatedNights.ts';

export interface Row {
  readonly what: string;
  readonly says: number;
  /** What was asked of it, and what it gave; null where it refused. */
  readonly cells: readonly { readonly of: string; readonly got: number | null }[];
}

const holds = (truth: number, interval: Interval | null): boolean | null =>
  interval && interval.low <= truth + 1e-12 && truth <= interval.high + 1e-12;

/** The share of draws that held; draws that refused do not count. */
function share(draws: number, draw: () => boolean | null): number | null {
  let [n, hits] = [0, 0];
  for (let i = 0; i < draws; i++) {
    const found = draw();
    if (found === null) continue;
    n++;
    if (found) hits++;
  }
  return n < draws / 2 ? null : hits / n;
}

const times = <T>(n: number, one: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => one(i));
/** Box and Muller; the quantile by inversion took most of the time of this file. */
const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const successes = (n: number, p: number, random: Random): number =>
  times(n, () => random() < p).filter(Boolean).length;
const RATES = [0.1, 0.3, 0.5, 0.65, 0.9];

/** Over all rates, because the truth is not known; discrete counts make single rates go up and down. */
function overRates(draws: number, draw: (p: number) => boolean | null): number | null {
  const found = RATES.map((p) => share(draws, () => draw(p)));
  return found.every((x) => x !== null) ? mean(found) : null;
}

function proportions(draws: number, random: Random): Row[] {
  const sizes = [5, 10, 20, 50, 100, 500];
  return [
    {
      what: 'resolved of valid (Wilson)',
      says: 0.95,
      cells: sizes.map((n) => ({
        of: `n = ${n}`,
        got: overRates(draws, (p) => holds(p, wilson(successes(n, p, random), n))),
      })),
    },
    ...[2, 3, 5].map((epochs) => ({
      what: `mean over ${epochs} epochs, new instances`,
      says: 0.95,
      cells: sizes.map((n) => ({
        of: `n = ${n}`,
        got: share(draws, () => {
          // Chances of a U form: most instances nearly always or nearly never.
          const items = times(n, () => successes(epochs, skill(random), random) / epochs);
          return holds(MEAN_SKILL, shareInterval(items, n * epochs));
        }),
      })),
    })),
    ...(['passAtK', 'passHatK'] as const).map((which) => ({
      what: which === 'passAtK' ? 'pass@2 of 4 epochs' : 'pass^2 of 4 epochs',
      says: 0.95,
      cells: sizes.map((n) => ({
        of: `n = ${n}`,
        got: share(draws, () => {
          const items = times(n, () => ({ n: 4, c: successes(4, skill(random), random) }));
          return holds(which === 'passAtK' ? PASS_AT_2 : PASS_HAT_2, passTable(items, 2)[1]![which].interval);
        }),
      })),
    })),
  ];
}

/** 0.4 always, 0.2 never, the others uniform. */
const skill = (random: Random): number => {
  const kind = random();
  return kind < 0.4 ? 1 : kind < 0.6 ? 0 : random();
};
const MEAN_SKILL = 0.4 + 0.4 / 2;
const PASS_HAT_2 = 0.4 + 0.4 / 3;
const PASS_AT_2 = 0.4 + 0.4 * (2 / 3);

/** Repositories of SWE-bench Verified. */
const REPOSITORIES = [231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1];

/** How many of each stratum a sample of n holds, as `stratifiedSample` takes them. */
function allocation(n: number): number[] {
  const places = REPOSITORIES.flatMap((size, h) =>
    times(size, (k) => ({ h, size, place: k === 0 ? 0 : (k + 0.5) / size })),
  ).sort((a, b) => a.place - b.place || b.size - a.size);
  const taken = places.slice(0, n);
  return REPOSITORIES.map((_, h) => taken.filter((t) => t.h === h).length);
}

function stratifiedCell(n: number, draws: number, random: Random): number | null {
  const sampled = allocation(n);
  return overRates(draws, (rate) => {
    const outcomes = REPOSITORIES.map((size) => {
      const p = Math.min(1, Math.max(0, rate + 0.25 * (2 * random() - 1)));
      return times(size, () => Number(random() < p));
    });
    const strata = outcomes.map((own, h) => {
      const order = own.map((x) => [random(), x] as const).sort((a, b) => a[0] - b[0]);
      const resolved = order.slice(0, sampled[h]).reduce((s, [, x]) => s + x, 0);
      return { key: String(h), size: own.length, n: sampled[h]!, resolved };
    });
    return holds(mean(outcomes.flat()), stratifiedEstimate(strata)!.interval);
  });
}

function pairs(draws: number, random: Random): Row[] {
  const pair = (n: number, disagreement: number, drop: number) => {
    const skills = skillsOf('mixed', n, disagreement, random);
    const table = { both: 0, aOnly: 0, bOnly: 0, neither: 0 };
    for (const p of skills) {
      const a = random() < p;
      const b = random() < p && random() >= drop;
      table[a ? (b ? 'both' : 'aOnly') : b ? 'bOnly' : 'neither']++;
    }
    return table;
  };
  return [0, 0.1].flatMap((lost) =>
    [0.05, 0.2].map((disagreement) => ({
      what: `paired difference (Newcombe 10), ${100 * disagreement} % disagree, ${100 * lost} % lost`,
      says: 0.95,
      cells: [10, 20, 50, 100, 500].map((n) => ({
        of: `n = ${n}`,
        got: share(draws, () => {
          const truth = lost * (0.65 * (1 - 3 * disagreement) + (3 * disagreement) / 2);
          return holds(truth, newcombe10(pair(n, disagreement, lost)));
        }),
      })),
    })),
  );
}

function epochPairs(draws: number, random: Random): Row[] {
  const sides = [
    [3, 3],
    [1, 3],
  ] as const;
  /** `loss`: the share of the instances' chances that B lost. `few`: only so many of the instances are not sure. */
  const pairsOf = (n: number, [a, b]: (typeof sides)[number], few: number, loss: number) =>
    times(n, () => {
      const p = random() < few ? skill(random) : random() < 0.65 ? 1 : 0;
      const q = random() < loss ? 0 : p;
      return [successes(a, p, random) / a, successes(b, q, random) / b] as const;
    });
  return sides.flatMap((of) => [
    ...[1, 0.2, 0.05].flatMap((few) =>
      [0, 0.05].map((loss) => ({
        what: `difference of means, ${of[0]} and ${of[1]} epochs, ${100 * few} % vary${loss > 0 ? `, ${100 * loss} % lost` : ''}`,
        says: 0.95,
        cells: [2, 5, 10, 20, 50, 100, 500].map((n) => ({
          of: `n = ${n}`,
          got: share(n > 100 ? draws / 4 : draws, () => {
            const truth = -loss * (few * MEAN_SKILL + (1 - few) * 0.65);
            return holds(truth, differenceOfMeans(pairsOf(n, of, few, loss)).interval);
          }),
        })),
      })),
    ),
    {
      what: `sign-flip permutation, ${of[0]} and ${of[1]} epochs`,
      says: 0.05,
      cells: [10, 20, 50, 100].map((n) => ({
        of: `n = ${n}`,
        got: share(draws / 4, () => signFlip(gainsOf(pairsOf(n, of, 1, 0)), 1, 1000).p < 0.05),
      })),
    },
  ]);
}

/** The mean of a population of instances, and the rewards of one of them by two sides that are alike. */
interface Rewarded {
  readonly mean: number;
  readonly pair: () => readonly [number, number];
}
const REWARDS: Readonly<Record<string, (random: Random) => Rewarded>> = {
  'all or nothing': (random) => ({
    mean: MEAN_SKILL,
    pair: () => {
      const p = skill(random);
      return [Number(random() < p), Number(random() < p)];
    },
  }),
  'half of them partial': (random) => ({
    mean: 0.5 * MEAN_SKILL + 0.5 * 0.5,
    pair: () => {
      const p = skill(random);
      return random() < 0.5
        ? [Number(random() < p), Number(random() < p)]
        : [successes(4, 0.5, random) / 4, successes(4, 0.5, random) / 4];
    },
  }),
  'all or next to nothing': (random) => {
    const rate = RATES[Math.floor(random() * RATES.length)]!;
    const one = () => (random() < rate ? 1 : 0.02 * random());
    return { mean: rate + (1 - rate) * 0.01, pair: () => [one(), one()] };
  },
};

function rewards(draws: number, random: Random): Row[] {
  const cells = (
    of: readonly number[],
    each: number,
    draw: (found: Rewarded, pairs: (readonly [number, number])[]) => boolean | null,
    population: (random: Random) => Rewarded,
  ) =>
    of.map((n) => ({
      of: `n = ${n}`,
      got: share(each, () => {
        const found = population(random);
        return draw(found, times(n, found.pair));
      }),
    }));
  return Object.entries(REWARDS).flatMap(([kind, population]) => [
    {
      what: `mean reward, ${kind}`,
      says: 0.95,
      cells: cells(
        [5, 10, 20, 50, 100],
        draws,
        ({ mean: truth }, pairs) => {
          const values = pairs.map(([a]) => a);
          return holds(truth, meanReward(values, values.length)!.interval);
        },
        population,
      ),
    },
    {
      what: `paired difference of rewards, ${kind}`,
      says: 0.95,
      cells: cells(
        [5, 10, 20, 50, 100],
        draws,
        (_, pairs) => holds(0, pairedRewards(pairs, 1)!.interval),
        population,
      ),
    },
    ...(['sign', 'permutation'] as const).map((test) => ({
      what: `${test === 'sign' ? 'sign test' : 'sign-flip permutation'} of rewards, ${kind}`,
      says: 0.05,
      cells: cells(
        [10, 20, 50, 100],
        draws / 4,
        (_, pairs) => (pairedRewards(pairs, 1)![test]?.p ?? 1) < 0.05,
        population,
      ),
    })),
  ]);
}

function tests(draws: number, random: Random): Row[] {
  const discordant = (n: number, disagreement: number) => {
    const differing = successes(n, disagreement, random);
    const lost = successes(differing, 0.5, random);
    return [lost, differing - lost] as const;
  };
  const arms = (n: number) =>
    times(n, () => {
      const p = skill(random);
      return times(3, () => random() < p);
    });
  const mcnemars = [
    ['exact McNemar', mcnemarExact],
    ['mid-p McNemar', mcnemarMidP],
  ] as const;
  const sizes = [20, 50, 100, 500];
  return [
    ...mcnemars.map(([what, test]) => ({
      what: `${what}, 20 % disagree`,
      says: 0.05,
      cells: sizes.map((n) => ({
        of: `n = ${n}`,
        got: share(4 * draws, () => test(...discordant(n, 0.2)) < 0.05),
      })),
    })),
    {
      what: 'Cochran Q, three sides',
      says: 0.05,
      cells: sizes.map((n) => ({ of: `n = ${n}`, got: share(draws, () => cochranQ(arms(n))!.p < 0.05) })),
    },
    {
      what: 'Holm over three pairs, any',
      says: 0.05,
      cells: sizes.map((n) => ({
        of: `n = ${n}`,
        got: share(draws, () => {
          const rows = arms(n);
          const p = (
            [
              [0, 1],
              [0, 2],
              [1, 2],
            ] as const
          ).map(([i, j]) =>
            mcnemarExact(rows.filter((r) => r[i] && !r[j]).length, rows.filter((r) => !r[i] && r[j]).length),
          );
          return holm(p).some((x) => x < 0.05);
        }),
      })),
    },
    ...[0, 0.2].map((shared) => ({
      what: `by repository (CR1), ${shared === 0 ? 'instances independent' : 'repositories differ'}`,
      says: 0.05,
      cells: [50, 100, 500].map((n) => ({
        of: `n = ${n}`,
        got: share(draws, () => {
          const sampled = allocation(n);
          const own = sampled.map(() => shared * normal(random));
          const repos = sampled.flatMap((k, h) => times(k, () => h));
          const xs = repos.map((h) => own[h]! + normal(random));
          return clustered(xs, repos.map(String))!.test.p < 0.05;
        }),
      })),
    })),
  ];
}

/** Intervals of few units are the ones in doubt, and take no time: more draws, so that chance hides nothing and accuses nobody. */
export const drawsOfResources = (draws: number, n: number): number =>
  n <= 20 ? 4 * draws : n > 100 ? draws / 4 : draws;

function resources(draws: number, random: Random): Row[] {
  const cost = (spread: number) => Math.exp(spread * normal(random));
  return [
    ...[0.5, 1.5].map((spread) => ({
      what: `ratio of geometric means, logs spread by ${spread}`,
      says: 0.95,
      cells: [5, 6, 10, 20, 50, 100].map((n) => ({
        of: `n = ${n}`,
        got: share(drawsOfResources(draws, n), () =>
          holds(
            1,
            bootstraps([geometricMeans(times(n, () => [cost(spread), cost(spread)] as const))], 1, 1000)[0]
              ?.interval ?? null,
          ),
        ),
      })),
    })),
    ...[0.5, 1, 1.5].flatMap((spread) =>
      [1, 3].map((dearer) => ({
        what: `cost per resolved, logs of costs spread by ${spread}${dearer > 1 ? ', failures three times as dear' : ''}`,
        says: 0.95,
        cells: [6, 10, 20, 50, 100, 500].map((n) => ({
          of: `n = ${n}`,
          got: share(drawsOfResources(draws, n), () => {
            const rows = times(n, () => {
              const resolved = Number(random() < 0.6);
              return { cost: cost(spread) * (resolved ? 1 : dearer), resolved };
            });
            const truth = (Math.exp(spread ** 2 / 2) * (0.6 + 0.4 * dearer)) / 0.6;
            return holds(truth, costPerResolved(rows, 1, 1000)?.interval ?? null);
          }),
        })),
      })),
    ),
    ...[20, 100].map((n) => ({
      what: `forecast of a night of ${n}: cost, from other instances`,
      says: 0.9,
      cells: [20, 50, 200, 1000].map((past) => ({
        of: `${past} attempts known`,
        got: share(draws / 8, () => {
          const known = times(past, (i) => ({
            model: 'm',
            instanceId: `o-${i}`,
            repo: 'o',
            costNano: 1e9 * cost(1),
            elapsedMs: 1,
          }));
          const trials = times(n, (i) => ({ model: 'm', instanceId: `i-${i}`, repo: 'i' }));
          const truth = times(n, () => 1e9 * cost(1)).reduce((s, x) => s + x, 0);
          return holds(truth, forecast(known, trials, { slots: 1, seed: 1 }).costNano);
        }),
      })),
    })),
  ];
}

export function coverage(draws: number, seed = 1): Row[] {
  const random = seeded(seed);
  return [
    ...proportions(draws, random),
    {
      what: 'stratified sample by repository, whole dataset',
      says: 0.95,
      cells: [12, 13, 15, 20, 30, 50, 100].map((n) => ({
        of: `n = ${n}`,
        got: stratifiedCell(n, draws / 4, random),
      })),
    },
    ...pairs(draws, random),
    ...epochPairs(draws, random),
    ...resources(draws, random),
    ...tests(draws, random),
    // With numbers of its own: the other rows stay as they were.
    ...rewards(draws, seeded(seed)),
  ];
}

/** The columns of the first table; rows of other sizes have a table of their own. */
const SIZES = [2, 5, 6, 10, 20, 50, 100, 500].map((n) => `n = ${n}`);

function table({ what, says, cells }: Row): string {
  const percent = (got: number | null) => (got === null ? 'refused' : (100 * got).toFixed(1));
  const columns = cells.every(({ of }) => SIZES.includes(of))
    ? SIZES.map((size) => cells.filter(({ of }) => of === size).map(({ got }) => percent(got))[0] ?? '')
    : [cells.map(({ of, got }) => `${of}: ${percent(got)}`).join(', ')];
  return `| ${[what, 100 * says, ...columns].join(' | ')} |`;
}

if (import.meta.main) for (const row of coverage(Number(process.argv[2] ?? 4000))) console.log(table(row));
