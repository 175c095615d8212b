/** A report as blocks, made once and rendered for a terminal, for Markdown or as HTML. Strings are raw: each renderer escapes its own way. */

import { wellFormed } from '../../base/replaceUnits.ts';
import { withDollars } from '../../money.ts';

export interface Bar {
  readonly label: string;
  /** In the unit of `max`. */
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

/** Of names that a container wrote: there may be thousands. */
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

/** A name of ours is shorter by far; what is longer is somebody's data. */
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
