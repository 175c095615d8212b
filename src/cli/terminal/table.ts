/** Plain columns for a terminal, and the numbers of a run as every verb shows them. */
import { columns, pad, shorten } from '../../base/text/columns.ts';
import { formatCost } from '../../money.ts';
import type { Spent } from '../../store/records/runs.ts';

const LEAST = 6;
/** A word, a date or a number: it says nothing when it is cut, so longer columns give way first. */
const SHORT = 12;
const terminalWidth = (): number => Math.max(80, process.stdout.isTTY ? process.stdout.columns : 0);

const BLOCK = 1000;

/** Shortens the widest columns until the table fits. The first one names the row and is never cut. `--json` has everything. */
export const table = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width = terminalWidth(),
  paint?: PaintCell,
): string => [...tableBlocks(head, rows, width, paint)].join('\n');

/** Gets the cell with the blanks around it, so that a colour changes no width. */
type PaintCell = (cell: string) => string;

/** The same in parts of many lines. The rows are gone through twice, so that half a million need not exist at the same time. */
export function* tableBlocks(
  head: readonly string[],
  rows: Iterable<readonly string[]>,
  width = terminalWidth(),
  paint: PaintCell = (cell) => cell,
): Generator<string> {
  const widths = head.map((h) => h.length);
  for (const row of rows)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, columns(cell));
  const over = () => widths.reduce((a, b) => a + b, 2 * (widths.length - 1)) - width;
  // What is wider than the whole table is so by megabytes at worst: the loop below takes one column at a time.
  for (let i = 1; i < widths.length; i++) widths[i] = Math.min(widths[i]!, Math.max(LEAST, width));
  narrow(widths, over);
  const fitted = (c: string, i: number) => pad(shorten(c, widths[i]!), widths[i]!);
  const line = (cells: readonly string[]) => {
    const last = cells.length - 1;
    // The first one is a name.
    return cells
      .map((c, i) => (i === 0 ? fitted(c, i) : paint(i === last ? fitted(c, i).trimEnd() : fitted(c, i))))
      .join('  ')
      .trimEnd();
  };
  let lines = [line(head), line(widths.map((w) => '-'.repeat(w)))];
  for (const row of rows) {
    if (lines.length >= BLOCK) {
      yield lines.join('\n');
      lines = [];
    }
    lines.push(line(row));
  }
  yield lines.join('\n');
}

function narrow(widths: number[], over: () => number): void {
  const long = widths.map((width) => width > SHORT);
  const widest = (some: (i: number) => boolean): number =>
    widths.reduce(
      (best, width, i) => (i > 0 && some(i) && width > LEAST && width > (widths[best] ?? 0) ? i : best),
      -1,
    );
  while (over() > 0) {
    const found = widest((i) => long[i]!);
    const at = found === -1 ? widest(() => true) : found;
    if (at === -1) return;
    widths[at] = widths[at]! - 1;
  }
}

/** "agent 3 · infra 1" */
export const countsText = (counts: Readonly<Record<string, number>>, between = ' · '): string =>
  Object.entries(counts)
    .map(([name, n]) => `${name} ${n}`)
    .join(between);

/** With "≥" while the cost of a call is unknown. */
export const spentText = ({ nano, unknownCalls }: Pick<Spent, 'nano' | 'unknownCalls'>): string =>
  `${unknownCalls > 0 ? '≥ ' : ''}${formatCost(nano)}`;
