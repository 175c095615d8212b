// The gate over thousands of simulated nights: where nothing changed it fails at most one in twenty, the drop that it reports is the true one in
// the mean, and it finds a loss at least as often as the paired test of the first measurement. Each figure is held with its own sampling error.
import { describe, expect, test } from 'vitest';
import { type GateCase, gateRates, RECIPES } from '../../scripts/statistics/gateErrors.ts';
import { seriesRates } from '../../scripts/statistics/gateSeries.ts';

const SIZES = [50, 100, 500];
const DISAGREEMENTS = [0.02, 0.05, 0.1, 0.2];
const AGAIN = [1, 3];
const POPULATIONS = ['mixed', 'coins', 'steady'] as const;
const INSTANCES = 300_000;

const cases = SIZES.flatMap((n) =>
  DISAGREEMENTS.flatMap((disagreement) => AGAIN.map((again) => ({ n, disagreement, again }))),
);
const title = ({ n, disagreement, again }: Pick<GateCase, 'n' | 'disagreement' | 'again'>) =>
  `${n} instances, ${100 * disagreement} % disagree, measured again ${again} times`;

describe.each(cases)('$n instances, $disagreement disagree, measured again $again times', (of) => {
  test.each(POPULATIONS)(
    'nothing changed (%s): at most one night in twenty fails, and the drop is 0',
    (population) => {
      const found = gateRates({ ...of, population, loss: null }, INSTANCES / of.n);
      console.log(`${title(of)}, ${population}: ${JSON.stringify(found)}`);
      expect(found.red).toBeLessThanOrEqual(0.05);
      expect(Math.abs(found.bias)).toBeLessThanOrEqual(0.003);
    },
  );
  test.each([0.05, 0.1].flatMap((drop) => (['broken', 'faded'] as const).map((how) => ({ how, drop }))))(
    'a loss of $drop ($how) is found as often as by the paired test, and reported as it is',
    (loss) => {
      const found = gateRates({ ...of, population: 'mixed', loss }, INSTANCES / of.n);
      console.log(`${title(of)}, ${loss.how} ${100 * loss.drop} %: ${JSON.stringify(found)}`);
      expect(found.red).toBeGreaterThanOrEqual(found.plain);
      expect(Math.abs(found.bias)).toBeLessThanOrEqual(0.003);
    },
  );
});

test.each(SIZES)('instances of the chance that most often looks like a rock that broke: %i of them', (n) => {
  for (const again of AGAIN) {
    const found = gateRates(
      { n, disagreement: 0, again, population: 'rocks', loss: null },
      (2 * INSTANCES) / n,
    );
    console.log(`${n} worst rocks, ${again} again: ${JSON.stringify(found)}`);
    expect(found.red).toBeLessThanOrEqual(0.05);
  }
});

test.each([
  { epochs: 2, n: 50 },
  { epochs: 3, n: 100 },
])(
  '$epochs epochs, $n instances: at most one night in twenty fails where nothing changed',
  ({ epochs, n }) => {
    for (const disagreement of [0.05, 0.2]) {
      const of = { n, disagreement, again: 3, population: 'mixed', loss: null, epochs } as const;
      const found = gateRates(of, 2000);
      console.log(`${title(of)}, ${epochs} epochs: ${JSON.stringify(found)}`);
      expect(found.red).toBeLessThanOrEqual(0.05);
    }
  },
);

describe('nights in a row', () => {
  const quiet = Object.entries(RECIPES).filter(
    ([name]) => !/max-drop 3%|remeasure 0|infrastructure loses|min-resolved/.test(name),
  );
  test.each(quiet)('nothing changed: %s', (_name, of) => {
    for (const population of POPULATIONS) {
      const series = Math.round(150_000 / 60 / of.n / (of.epochs ?? 1));
      const found = seriesRates({ ...of, population, nights: 60 }, series);
      console.log(`${population}: ${JSON.stringify({ ...found, lostAtFirst: undefined })}`);
      const nights = series * 59;
      expect(found.red).toBeLessThanOrEqual(0.05 + 2.6 * Math.sqrt((0.05 * 0.95) / nights));
      expect(found.trend).toBeLessThanOrEqual(0.05 + 2.6 * Math.sqrt((0.05 * 0.95) / series));
    }
  });
  test.each(['faded', 'broken'] as const)(
    'half a point is lost every night (%s): nine of ten series are red before five points are gone, from five nights on record',
    (how) => {
      const of = { n: 200, disagreement: 0.1, population: 'mixed', baseline: 'last', nights: 16 } as const;
      const { lostAtFirst } = seriesRates({ ...of, decay: { how, aNight: 0.005, quiet: 5 } }, 60);
      expect(
        lostAtFirst.filter((lost) => lost !== null && lost <= 0.05 + 1e-9).length,
      ).toBeGreaterThanOrEqual(54);
    },
  );
  test.each(['coins', 'steady'] as const)(
    'limits that fail many nights leave the tests at one night in twenty (%s)',
    (population) => {
      for (const disagreement of population === 'coins' ? [0.2] : [0.05, 0.1])
        for (const limit of [{ policy: { maxDrop: 0.03 } }, { resolvedLess: 0 }, { golden: 10, again: 0 }]) {
          const of = { n: 100, disagreement, population, baseline: 'last', nights: 60, ...limit } as const;
          const found = seriesRates(of, 12);
          console.log(`${population} ${disagreement} ${JSON.stringify(limit)}: ${found.tests}`);
          expect(found.tests).toBeLessThanOrEqual(0.05 + 2.6 * Math.sqrt((0.05 * 0.95) / (12 * 59)));
        }
    },
  );
  test('infrastructure that loses failures is red', () => {
    const of = { n: 100, disagreement: 0.2, population: 'mixed', baseline: 'last', nights: 10 } as const;
    const found = seriesRates({ ...of, infra: [0.4, 0.02] }, 20);
    expect(found.rules['infra-loss']).toBeGreaterThan(0.5);
  });
});

test.each(['broken', 'faded'] as const)(
  '--max-drop 3% with re-measurements is red as often as the paired test, and the drop is the true one (%s)',
  (how) => {
    for (const drop of [0.03, 0.05, 0.1]) {
      const of = {
        n: 500,
        disagreement: 0.2,
        again: 3,
        population: 'mixed',
        loss: { how, drop },
        limit: 0.03,
      } as const;
      const found = gateRates(of, 300);
      expect(found.red).toBeGreaterThanOrEqual(found.plain);
      expect(Math.abs(found.bias)).toBeLessThanOrEqual(0.005);
      if (drop === 0.1) expect(found.red).toBeGreaterThanOrEqual(0.98);
    }
  },
);
