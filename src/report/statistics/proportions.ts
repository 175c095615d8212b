/** Intervals for one proportion. Wilson is what reports print; Wald is left out, because 0 of 10 would become ±0. */
import { normalQuantile } from './special.ts';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** A proportion that never travels without its n. `interval` is null only for n = 0. */
export interface Proportion {
  readonly x: number;
  readonly n: number;
  readonly p: number | null;
  readonly interval: Interval | null;
}

export const CONFIDENCE = 0.95;
/** Standard errors that an interval reaches to either side. */
export const Z = normalQuantile(1 - (1 - CONFIDENCE) / 2);

const clamp = (low: number, high: number): Interval => ({ low: Math.max(0, low), high: Math.min(1, high) });

export function wilson(x: number, n: number): Interval {
  check(x, n);
  const p = x / n;
  const centre = p + (Z * Z) / (2 * n);
  const half = Z * Math.sqrt((p * (1 - p)) / n + (Z * Z) / (4 * n * n));
  const scale = 1 + (Z * Z) / n;
  // At the ends the formula gives 0 and 1 up to rounding; say so exactly.
  return clamp(x === 0 ? 0 : (centre - half) / scale, x === n ? 1 : (centre + half) / scale);
}

export const proportion = (x: number, n: number): Proportion => ({
  x,
  n,
  p: n === 0 ? null : x / n,
  interval: n === 0 ? null : wilson(x, n),
});

function check(x: number, n: number): void {
  if (!(Number.isFinite(n) && n > 0 && x >= 0 && x <= n))
    throw new RangeError(`an interval needs 0 <= x <= n and n > 0, got x = ${x}, n = ${n}`);
}
