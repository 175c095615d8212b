/** A report as blocks, made once and rendered for a terminal, for Markdown or as HTML. Strings are raw: each renderer escapes its own way. */

import { wellFormed } from '../../base/replaceUnits.ts';
import { percent } from '../../base/text/numbers.ts';
import { formatCost, withDollars } from '../../money.ts';
import type { Money } from '../measure/accounting.ts';
import type { Interval, Proportion } from '../statistics/proportions.ts';

export interface Bar {
  readonly label: string;
  /** The value in the unit of `max`. */
  readonly value: number;
  readonly low?: number;
  readonly high?: number;
  readonly text: string;
}

/** A label and its value. */
export type Fact = readonly [label: string, value: string];

type Row = readonly string[];

export type Block =
  | { readonly kind: 'heading'; readonly level: 1 | 2 | 3; readonly text: string }
  | { readonly kind: 'facts'; readonly rows: readonly Fact[] }
  | {
      readonly kind: 'table';
      readonly head: Row;
      readonly align: readonly ('left' | 'right')[];
      readonly rows: readonly Row[];
    }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'warning'; readonly text: string }
  /** `onTerminal`: how many of them a terminal shows; the other renderers, and JSON, show all. */
  | {
      readonly kind: 'ids';
      readonly label: string;
      readonly ids: readonly string[];
      readonly onTerminal?: number | undefined;
    }
  /** Verbatim lines of text, such as a diff. */
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  /** Only where pictures can be shown; its numbers are in a table nearby. */
  | { readonly kind: 'bars'; readonly title: string; readonly max: number; readonly bars: readonly Bar[] };

export type Document = readonly Block[];

/** The most names from a container that are shown: it may have written thousands. */
export const NAMES_SHOWN = 12;

/** One function for each kind of block that reports are written with. */
export const block = {
  heading: (level: 1 | 2 | 3, text: string): Block => ({ kind: 'heading', level, text }),
  facts: (rows: readonly Fact[]): Block => ({ kind: 'facts', rows }),
  text: (text: string): Block => ({ kind: 'text', text }),
  warning: (text: string): Block => ({ kind: 'warning', text }),
  lines: (lines: readonly string[]): Block => ({ kind: 'lines', lines }),
  ids: (label: string, ids: readonly string[], onTerminal?: number): Block => ({
    kind: 'ids',
    label,
    ids,
    onTerminal,
  }),
  /** `right` names the columns of numbers, which are aligned to the right. */
  table: (head: Row, rows: readonly Row[], right: Row = []): Block => ({
    kind: 'table',
    head,
    align: head.map((column) => (right.includes(column) ? 'right' : 'left')),
    rows,
  }),
};

/** A name of ours is shorter by far; a longer one is foreign data. */
const LONGEST_KEY = 200;

const snake = (key: string): string =>
  key.length > LONGEST_KEY ? key : key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** Keys are ours (never data such as instance ids), so renaming them cannot merge two. */
export function toJson(value: unknown): unknown {
  // JSON has no infinity; an unbounded end of an interval is null.
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return wellFormed(value);
  return Object.fromEntries(Object.entries(value).flatMap(([k, v]) => withDollars(snake(k), toJson(v))));
}

export const jsonText = (value: unknown): string => `${JSON.stringify(toJson(value), null, 2)}\n`;

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

/** The same in words, where a sign could be read as its opposite: "4.0 points fewer". */
export const pointsInWords = (d: number): string => {
  const size = points(Math.abs(d));
  return size === '0.0' ? 'as many' : `${size} points ${d < 0 ? 'fewer' : 'more'}`;
};

/** Between 0 and 1, so that a mean reward is not read as a share of instances; names of other rewards may be of any size. */
export const reward = (x: number): string =>
  Math.abs(x) < 1000 ? x.toFixed(3).replace(/^-(0\.000)$/, '$1') : count(x);

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

/** Two digits of half an interval: with fewer, its ends are one number. */
export function dollarsWithin(interval: Interval | null): (nano: number) => string {
  const half = interval === null ? 0 : (interval.high - interval.low) / 2e9;
  if (!(half > 0)) return dollars;
  const digits = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(half))));
  return (one) => (Number.isFinite(one) ? `$${(one / 1e9).toFixed(digits)}` : 'unbounded');
}

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
