/** Numbers as people read them; a proportion always with its n and its interval. */
import { percent } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import type { Money } from '../measure/accounting.ts';
import type { Interval, Proportion } from '../statistics/proportions.ts';

const points = (x: number): string => (100 * x).toFixed(1);

/** "[46.8, 91.1]" */
export const range = ({ low, high }: Interval): string => `[${points(low)}, ${points(high)}]`;

/** "9/12 = 75.0 % [46.8, 91.1]" */
export const rate = ({ x, n, p, interval }: Proportion): string =>
  p === null || interval === null ? `0/0 –` : `${x}/${n} = ${percent(p)} ${range(interval)}`;

/** Percentage points with sign: "+1.8 pp [-1.4, +5.0]" */
export const pointDifference = (d: number, interval: Interval | null): string =>
  interval === null
    ? `${signed(d)} pp`
    : `${signed(d)} pp [${signed(interval.low)}, ${signed(interval.high)}]`;

/** Between 0 and 1, so that a mean reward is not read as a share of instances; names of other rewards may be of any size. */
export const reward = (x: number): string =>
  Math.abs(x) < 1000 ? x.toFixed(3).replace(/^-(0\.000)$/, '$1') : count(x);

export const signedReward = (x: number): string => {
  const text = reward(x);
  return x > 0 && text !== '0.000' ? `+${text}` : text;
};

const signed = (x: number): string => {
  const text = points(x);
  return x > 0 && text !== '0.0' ? `+${text}` : text === '-0.0' ? '0.0' : text;
};

export const pValue = (p: number): string =>
  p < 0.0001 ? 'p < .0001' : `p = ${p.toFixed(4).replace(/^0/, '')}`;

export const money = ({ nano, atLeast }: Money): string =>
  nano === null ? 'unknown' : `${atLeast ? '≥ ' : ''}${dollars(nano)}`;

/** Nano-dollars; a bootstrapped end may have no bound. */
export const dollars = (nano: number): string =>
  Number.isFinite(nano) ? formatCost(Math.round(nano)) : 'unbounded';

export const count = (n: number): string => {
  if (n < 10_000) return String(Math.round(n * 10) / 10);
  return n < 1_000_000 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1_000_000).toFixed(2)}M`;
};

export function duration(ms: number | null): string {
  if (ms === null) return '–';
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const minutes = Math.floor(Math.round(s) / 60);
  const rest = String(Math.round(s) % 60).padStart(2, '0');
  return minutes < 60
    ? `${minutes} m ${rest} s`
    : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} m`;
}

export const plural = (n: number, noun: string, many = `${noun}s`): string => `${n} ${n === 1 ? noun : many}`;
