/** Resampling with a stored seed: sign-flip permutation, and bootstraps over instances. The same seed gives the same answer anywhere. */
import { quantile, sum, variance } from './means.ts';
import { CONFIDENCE, type Interval, wilson } from './proportions.ts';
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
function tailOf(n: number): number {
  const reach = studentCritical(1 - CONFIDENCE, n - 1) * Math.sqrt(n / (n - 1));
  return normalCdf(-reach);
}

/** A resampled statistic: `n` units, and the number that is computed from the drawn ones. */
export interface Statistic {
  readonly n: number;
  readonly of: (indices: Int32Array) => number;
  /** The bootstrap's interval is widened to hold this one. */
  readonly atLeast?: Interval | null;
}

/** Fills `indices` with the next draws of `seeded` and returns its state. Written out, because a comparison of 50,000 instances draws 10^8. */
function draw(indices: Int32Array, seed: number): number {
  const n = indices.length;
  let state = seed;
  for (let i = 0; i < n; i++) {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    indices[i] = Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
  }
  return state;
}

/**
 * 2,000 resamples, and 1,000 of more than 25,000 units: the ends of so short an interval vary by a tenth of a standard error at most, and a
 * thousand resamples of 50,000 instances take a third of a second.
 */
const drawsOf = (n: number): number => (n > 25_000 ? 1000 : 2000);

/** Percentile bootstraps with one seed. Statistics over the same number of units see the same draws. Null where one cannot be computed. */
export function bootstraps(
  statistics: readonly Statistic[],
  seed: number,
  wanted?: number,
): (Bootstrapped | null)[] {
  const found = new Map<Statistic, Bootstrapped>();
  for (const [n, group] of Map.groupBy(statistics, (statistic) => statistic.n)) {
    if (n < 2) continue;
    const draws = wanted ?? drawsOf(n);
    const indices = Int32Array.from({ length: n }, (_, i) => i);
    const known = group
      .map((statistic) => ({ statistic, estimate: statistic.of(indices), values: [] as number[] }))
      .filter(({ estimate }) => Number.isFinite(estimate));
    if (n < FEWEST_UNITS) {
      for (const { statistic, estimate } of known)
        found.set(statistic, { estimate, interval: null, n, draws: 0, seed });
      continue;
    }
    let state = seed | 0;
    for (let done = 0; done < draws && known.length > 0; done++) {
      state = draw(indices, state);
      for (const { statistic, values } of known) {
        const value = statistic.of(indices);
        // A draw without a single resolved instance has no cost per resolved: it belongs to the upper tail.
        values.push(Number.isNaN(value) ? Number.POSITIVE_INFINITY : value);
      }
    }
    for (const { statistic, estimate, values } of known)
      found.set(statistic, {
        estimate,
        interval: hull(percentiles(values, tailOf(n)), statistic.atLeast),
        n,
        draws,
        seed,
      });
  }
  return statistics.map((statistic) => found.get(statistic) ?? null);
}

function percentiles(values: readonly number[], half: number): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (q: number) => sorted[Math.min(values.length - 1, Math.floor(q * values.length))]!;
  return values.every(Number.isFinite)
    ? { low: quantile(values, half)!, high: quantile(values, 1 - half)! }
    : { low: at(half), high: at(1 - half) };
}

const hull = (a: Interval, b: Interval | null | undefined): Interval =>
  b ? { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) } : a;

/** Ratio A / B of geometric means of paired positive values; pairs with a value that is not positive are left out. */
export function geometricMeans(pairs: readonly (readonly [number, number])[]): Statistic {
  const logs = Float64Array.from(pairs.filter(([a, b]) => a > 0 && b > 0).map(([a, b]) => Math.log(a / b)));
  return {
    n: logs.length,
    of: (indices) => {
      let total = 0;
      for (let i = 0; i < indices.length; i++) total += logs[indices[i]!]!;
      return Math.exp(total / indices.length);
    },
  };
}

interface SpentOn {
  /** The cost of all attempts, also those that were tried again. */
  readonly cost: number;
  readonly resolved: number;
}

/** The money spent by the number resolved. Null where nothing is resolved. */
export function perResolved(rows: readonly SpentOn[]): number | null {
  const { n, of } = costAResolved(rows);
  const all = of(Int32Array.from({ length: n }, (_, i) => i));
  return Number.isFinite(all) ? all : null;
}

/** Total spent by number resolved, over instances. */
export function costAResolved(rows: readonly SpentOn[]): Statistic {
  const costs = Float64Array.from(rows.map((row) => row.cost));
  const resolved = Float64Array.from(rows.map((row) => row.resolved));
  return {
    n: rows.length,
    atLeast: ifLogNormal(rows),
    of: (indices) => {
      let cost = 0;
      let count = 0;
      for (let i = 0; i < indices.length; i++) {
        cost += costs[indices[i]!]!;
        count += resolved[indices[i]!]!;
      }
      return count === 0 ? Number.POSITIVE_INFINITY : cost / count;
    },
  };
}

/**
 * Costs have a long tail, and a sample of few holds nothing of it: no resample does then, and the bootstrap held 85 % for 95. So the interval is at
 * least what costs of a lognormal distribution would give: Cox's for their mean (Zhou and Gao 1997) and Wilson's for the share resolved, joined
 * on the scale of logarithms as Zou and Donner (2008) join two. Null where fewer than two cost something, or none is resolved.
 */
function ifLogNormal(rows: readonly SpentOn[]): Interval | null {
  const logs = rows.flatMap(({ cost }) => (cost > 0 ? [Math.log(cost)] : []));
  const spread = variance(logs);
  const resolved = sum(rows.map((row) => row.resolved));
  if (spread === null || resolved === 0) return null;
  const [k, n] = [logs.length, rows.length];
  const cost = sum(logs) / k + spread / 2 + Math.log(k / n);
  const half = studentCritical(1 - CONFIDENCE, k - 1) * Math.sqrt(spread / k + spread ** 2 / (2 * (k - 1)));
  // Of as many epochs as the instance with the most has: a number above 1 is no share.
  const most = rows.reduce((top, row) => Math.max(top, row.resolved), 0);
  const share = resolved / (n * most);
  const { low, high } = wilson(share * n, n);
  const middle = cost - Math.log(resolved / n);
  return {
    low: Math.exp(middle - Math.hypot(half, Math.log(high / share))),
    high: Math.exp(middle + Math.hypot(half, Math.log(share / low))),
  };
}

export const costPerResolved = (
  rows: readonly SpentOn[],
  seed: number,
  draws?: number,
): Bootstrapped | null => bootstraps([costAResolved(rows)], seed, draws)[0]!;
