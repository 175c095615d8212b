/** Resampling with a stored seed: sign-flip permutation, and bootstraps over instances. The same seed gives the same answer anywhere. */
import { mean, quantile, sum } from './means.ts';
import { CONFIDENCE, type Interval } from './proportions.ts';
import { normalCdf, studentCritical } from './special.ts';

/** mulberry32: 32 bits of state are plenty for ten thousand resamples, and it is the same on every machine. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Permutation {
  readonly p: number;
  readonly method: 'exact' | 'sampled';
  readonly nonZero: number;
  readonly draws: number;
  readonly seed: number;
}

const EXACT_UP_TO = 20;

/** Would signs given at random do as much? Two-sided; exact up to 20 non-zero differences, else `draws` samples. */
export function signFlip(differences: readonly number[], seed: number, draws = 10_000): Permutation {
  const xs = differences.filter((d) => d !== 0).map(Math.abs);
  const observed = Math.abs(sum(differences));
  // Sums of the same numbers in another order differ in the last bits.
  const reached = (total: number) => Math.abs(total) >= observed - 1e-12 * Math.max(1, observed);
  const base = { nonZero: xs.length, seed };
  if (xs.length === 0) return { ...base, p: 1, method: 'exact', draws: 1 };
  if (xs.length <= EXACT_UP_TO) {
    const all = 2 ** xs.length;
    let hits = 0;
    for (let signs = 0; signs < all; signs++) {
      let total = 0;
      for (let i = 0; i < xs.length; i++) total += (signs >>> i) & 1 ? xs[i]! : -xs[i]!;
      if (reached(total)) hits++;
    }
    return { ...base, p: hits / all, method: 'exact', draws: all };
  }
  const random = seeded(seed);
  let hits = 0;
  for (let draw = 0; draw < draws; draw++) {
    let total = 0;
    for (const x of xs) total += random() < 0.5 ? x : -x;
    if (reached(total)) hits++;
  }
  // The observed arrangement is one of those possible: a sampled p is never 0.
  return { ...base, p: (hits + 1) / (draws + 1), method: 'sampled', draws };
}

export interface Bootstrapped {
  readonly estimate: number;
  /** Null for fewer than six units: see `FEWEST_UNITS`. */
  readonly interval: Interval | null;
  readonly n: number;
  readonly draws: number;
  readonly seed: number;
}

/** Fewer units than this have too few resamples for the ends of an interval: it held 70 % for 95 with three, 91 with five however wide. */
const FEWEST_UNITS = 6;

/**
 * How much of the resamples each end leaves out. Plain percentiles are too short for few units (84 % for 95 with five), because resamples vary
 * less than samples do and their ends are not normal: so they are widened to what a t interval would reach (Hesterberg's expanded percentiles).
 */
function tailOf(n: number, confidence: number): number {
  const reach = studentCritical(1 - confidence, n - 1) * Math.sqrt(n / (n - 1));
  return normalCdf(-reach);
}

/** Percentile bootstrap over `n` units; `statistic` sees the drawn indices. Null when it cannot be computed on the data. */
export function bootstrap(
  n: number,
  statistic: (indices: readonly number[]) => number,
  seed: number,
  draws = 2000,
  confidence = CONFIDENCE,
): Bootstrapped | null {
  if (n < 2) return null;
  const estimate = statistic([...Array(n).keys()]);
  if (!Number.isFinite(estimate)) return null;
  if (n < FEWEST_UNITS) return { estimate, interval: null, n, draws: 0, seed };
  const random = seeded(seed);
  const values: number[] = [];
  const indices = new Array<number>(n);
  for (let draw = 0; draw < draws; draw++) {
    for (let i = 0; i < n; i++) indices[i] = Math.floor(random() * n);
    const value = statistic(indices);
    // A draw without a single resolved instance has no cost per resolved: it belongs to the upper tail.
    values.push(Number.isNaN(value) ? Number.POSITIVE_INFINITY : value);
  }
  const half = tailOf(n, confidence);
  const at = (q: number) => values.toSorted((a, b) => a - b)[Math.min(draws - 1, Math.floor(q * draws))]!;
  const finite = values.every(Number.isFinite);
  const interval = finite
    ? { low: quantile(values, half)!, high: quantile(values, 1 - half)! }
    : { low: at(half), high: at(1 - half) };
  return { estimate, interval, n, draws, seed };
}

/** Ratio A / B of geometric means of paired positive values; pairs with a value that is not positive are left out. */
export function ratioOfGeometricMeans(
  pairs: readonly (readonly [number, number])[],
  seed: number,
  draws = 2000,
): Bootstrapped | null {
  const logs = pairs.filter(([a, b]) => a > 0 && b > 0).map(([a, b]) => Math.log(a / b));
  return bootstrap(logs.length, (indices) => Math.exp(mean(indices.map((i) => logs[i]!))), seed, draws);
}

/** Total spent by number resolved, over instances. */
export function costPerResolved(
  rows: readonly { cost: number; resolved: number }[],
  seed: number,
  draws = 2000,
): Bootstrapped | null {
  const ratio = (indices: readonly number[]) => {
    let cost = 0;
    let resolved = 0;
    for (const i of indices) {
      cost += rows[i]!.cost;
      resolved += rows[i]!.resolved;
    }
    return resolved === 0 ? Number.POSITIVE_INFINITY : cost / resolved;
  };
  return bootstrap(rows.length, ratio, seed, draws);
}
