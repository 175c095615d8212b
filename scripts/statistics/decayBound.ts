/**
 * How often any test could see a decay before 5 points are lost, that fails as often as it says whatever the chances of the instances are. Such a test
 * looks, for each instance, at nothing but the order of its results (how many it has is complete and sufficient for its chance), and of those the
 * likelihood ratio is the most powerful (Neyman and Pearson). This one is told what no gate knows: the population, and when the decay began and how it goes.
 */
import { seeded } from '../../src/report/statistics/resampling.ts';
import { type Loss, type Random, skillsOf } from './simulatedNights.ts';

interface Decay {
  readonly n: number;
  /** Of the population `mixed`. */
  readonly disagreement: number;
  readonly how: Loss;
  readonly aNight: number;
  /** Of the mean; the night on which so much is lost is the last. */
  readonly until: number;
}

const SURE = 0.65;
/** Chances over which the instances that are not sure are spread. */
const GRID = Array.from({ length: 100 }, (_, i) => (i + 0.5) / 100);

/** Shares of the chances that are gone on each night, the first night whole. */
function partsOf({ disagreement, aNight, until }: Decay): number[] {
  const mean = (1 - 3 * disagreement) * SURE + (3 * disagreement) / 2;
  return Array.from({ length: Math.round(until / aNight) + 1 }, (_, t) => (t * aNight) / mean);
}

/** The mean over instances of the chance of these results. */
function likelihood(
  results: readonly boolean[],
  parts: readonly number[],
  { how, disagreement }: Decay,
): number {
  const spread = 3 * disagreement;
  const alike = (p: number, from: number, to: number, part: (t: number) => number): number => {
    let product = 1;
    for (let t = from; t < to; t++) product *= results[t] ? p * (1 - part(t)) : 1 - p * (1 - part(t));
    return product;
  };
  const over = (of: (p: number) => number): number =>
    (1 - spread) * (SURE * of(1) + (1 - SURE) * of(0)) +
    spread * GRID.reduce((s, p) => s + of(p) / GRID.length, 0);
  const nights = parts.length;
  if (how === 'faded') return over((p) => alike(p, 0, nights, (t) => parts[t]!));
  // Whole until night b, and gone from then on.
  let sum = 0;
  for (let b = 1; b <= nights; b++) {
    const chance = b === nights ? 1 - parts[b - 1]! : parts[b]! - parts[b - 1]!;
    if (results.slice(b).every((resolved) => !resolved)) sum += chance * over((p) => alike(p, 0, b, () => 0));
  }
  return sum;
}

/** Of each order of results, the logarithm of how much likelier it is with the decay than without, among those with as many resolved. */
function ratios(decay: Decay): Float64Array {
  const parts = partsOf(decay);
  const nights = parts.length;
  const found = new Float64Array(2 ** nights);
  const sums = new Array<number>(nights + 1).fill(0);
  const orders = new Array<number>(nights + 1).fill(0);
  const resolvedOf = (bits: number) => Array.from({ length: nights }, (_, t) => ((bits >> t) & 1) === 1);
  const count = (bits: number) => resolvedOf(bits).filter(Boolean).length;
  for (let bits = 0; bits < found.length; bits++) {
    found[bits] = likelihood(resolvedOf(bits), parts, decay);
    sums[count(bits)]! += found[bits]!;
    orders[count(bits)]! += 1;
  }
  return found.map((x, bits) => Math.log((x / sums[count(bits)]!) * orders[count(bits)]!));
}

/** Share of decays that a test of this error sees at the last night; it looks at no other. */
export function decayBound(decay: Decay, errors: readonly number[], draws: number, seed = 1): number[] {
  const random = seeded(seed);
  const parts = partsOf(decay);
  const ratio = ratios(decay);
  const drawn = (lost: boolean): number => {
    let sum = 0;
    for (const p of skillsOf('mixed', decay.n, decay.disagreement, random))
      sum += ratio[order(p, lost, random)]!;
    return sum;
  };
  const order = (p: number, lost: boolean, at: Random): number => {
    const breaks = at();
    let bits = 0;
    for (const [t, part] of parts.entries()) {
      const gone = lost ? part : 0;
      const chance = decay.how === 'faded' ? p * (1 - gone) : breaks < gone ? 0 : p;
      if (at() < chance) bits |= 1 << t;
    }
    return bits;
  };
  const quiet = Array.from({ length: 20 * draws }, () => drawn(false)).sort((a, b) => b - a);
  const losing = Array.from({ length: draws }, () => drawn(true));
  return errors.map((error) => {
    const limit = quiet[Math.floor(error * quiet.length)]!;
    return losing.filter((x) => x > limit).length / draws;
  });
}
