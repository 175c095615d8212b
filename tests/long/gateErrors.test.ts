// The gate over thousands of simulated nights: where nothing changed it fails at most one in twenty, the drop that it reports is the true one in
// the mean, and it finds a loss at least as often as the paired test of the first measurement. Each figure is held with its own sampling error.
import { describe, expect, test } from 'vitest';
import { type GateCase, gateRates } from '../../scripts/statistics/gateErrors.ts';

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
