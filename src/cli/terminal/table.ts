/** Plain columns for a terminal, and the numbers of a run as every verb shows them. */
import { columns, longestWord, pad, shorten, wrapped } from '../../base/text/columns.ts';
import { formatCost } from '../../money.ts';
import type { Spent } from '../../store/records/runs.ts';
import { widthOf } from './context.ts';

const LEAST = 6;
/** A word, a date or a number: it says nothing when it is cut, so longer columns give way first. */
const SHORT = 12;
/** The columns of the terminal; a report in a pipe is laid out for a terminal of the usual width. */
const terminalWidth = (): number => (process.stdout.isTTY ? widthOf(process.stdout) : 80);
/** Sentences that are wider are hard to read. */
export const documentWidth = (): number => Math.min(100, terminalWidth());
/** The longest cell in a pipe, where no terminal limits a row: a longer one is nobody's to read. */
const IN_A_PIPE = 200;
const LONGEST_CELL = 1000;

const BLOCK = 1000;

/**
 * On a terminal the widest columns are narrowed until the table fits: a cell goes on in the next line, by whole words, and where that is not enough
 * each cell has a line of its own. Elsewhere a row is a line for other programs, as long as it is. The first column names the row and stays
 * whole. `--json` has everything.
 */
export const table = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width = terminalWidth(),
  paint?: PaintCell,
  wraps = process.stdout.isTTY === true,
): string => [...tableBlocks(head, rows, width, paint, wraps)].join('\n');

/** Gets the cell with the blanks around it, so that a colour changes no width. */
type PaintCell = (cell: string) => string;

/** The same in parts of many lines. The rows are gone through twice, so that half a million need not exist at the same time. */
export function* tableBlocks(
  head: readonly string[],
  rows: Iterable<readonly string[]>,
  width = terminalWidth(),
  paint: PaintCell = (cell) => cell,
  wraps = process.stdout.isTTY === true,
): Generator<string> {
  const widths = head.map((h) => h.length);
  const least = head.map(longestWord);
  for (const row of rows)
    for (const [i, cell] of row.entries()) {
      widths[i] = Math.max(widths[i] ?? 0, columns(cell));
      if (wraps) least[i] = Math.max(least[i] ?? 0, Math.min(WORD, longestWord(cell)));
    }
  const over = () => widths.reduce((a, b) => a + b, 2 * (widths.length - 1)) - width;
  // A cell that is wider than the whole table is so by megabytes at worst: the loop below takes one column at a time.
  const most = wraps ? Math.max(LEAST, width) : IN_A_PIPE;
  for (let i = 1; i < widths.length; i++) widths[i] = Math.min(widths[i]!, most);
  if (wraps) narrow(widths, least, over);
  const fitted = (c: string, i: number) => {
    const room = widths[i]! - columns(c);
    return room >= 0 ? c + ' '.repeat(room) : pad(shorten(c, widths[i]!), widths[i]!);
  };
  const oneLine = (cells: readonly string[]) => {
    const last = cells.length - 1;
    // The first one is a name.
    return cells
      .map((c, i) => (i === 0 ? fitted(c, i) : paint(i === last ? fitted(c, i).trimEnd() : fitted(c, i))))
      .join('  ')
      .trimEnd();
  };
  const line = (cells: readonly string[]): string => {
    if (!wraps || cells.every((c, i) => columns(c) <= widths[i]!)) return oneLine(cells);
    const parts = cells.map((c, i) => wrapped(shorten(c, LONGEST_CELL), widths[i]!));
    const height = Math.max(...parts.map((part) => part.length));
    return Array.from({ length: height }, (_, k) => oneLine(parts.map((part) => part[k] ?? ''))).join('\n');
  };
  if (wraps && over() > 0) {
    yield* asBlocks(head, rows, width, paint);
    return;
  }
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

/** The form where columns do not fit beside each other: a row is its name and, below it, a line for each of its cells. */
function* asBlocks(
  head: readonly string[],
  rows: Iterable<readonly string[]>,
  width: number,
  paint: PaintCell,
): Generator<string> {
  const names = Math.max(...head.slice(1).map(columns));
  for (const [name = '', ...cells] of rows)
    yield [
      name,
      ...cells.flatMap((cell, i) =>
        wrapped(shorten(cell, LONGEST_CELL), width - names - 4).map(
          (part, k) => `  ${pad(k === 0 ? head[i + 1]! : '', names)}  ${paint(part)}`,
        ),
      ),
    ].join('\n');
}

/** A longer one, such as an address, is broken. */
const WORD = 24;

function narrow(widths: number[], least: readonly number[], over: () => number): void {
  const long = widths.map((width) => width > SHORT);
  const widest = (some: (i: number) => boolean): number =>
    widths.reduce(
      (best, width, i) =>
        i > 0 && some(i) && width > (least[i] ?? LEAST) && width > (widths[best] ?? 0) ? i : best,
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

/** The spending, with "≥" while the cost of a call is unknown. */
export const spentText = ({ nano, unknownCalls }: Pick<Spent, 'nano' | 'unknownCalls'>): string =>
  `${unknownCalls > 0 ? '≥ ' : ''}${formatCost(nano)}`;
