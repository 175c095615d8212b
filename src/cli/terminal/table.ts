/** Plain columns for a terminal, and the numbers of a run as every verb shows them. */
import { columns, pad, shorten } from '../../base/text/columns.ts';
import { formatCost } from '../../money.ts';
import type { Spent } from '../../store/records/runs.ts';

const LEAST = 6;
const terminalWidth = (): number => Math.max(80, process.stdout.isTTY ? process.stdout.columns : 0);

/** Shortens the widest columns until the table fits. The first one names the row and is never cut. `--json` has everything. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width = terminalWidth(),
): string {
  const widths = head.map((h, i) => rows.reduce((most, r) => Math.max(most, columns(r[i] ?? '')), h.length));
  const over = () => widths.reduce((a, b) => a + b, 2 * (widths.length - 1)) - width;
  // What is wider than the whole table is so by megabytes at worst: the loop below takes one column at a time.
  for (let i = 1; i < widths.length; i++) widths[i] = Math.min(widths[i]!, Math.max(LEAST, width));
  while (over() > 0) {
    const widest = widths.indexOf(Math.max(...widths.slice(1)), 1);
    if (widest < 1 || widths[widest]! <= LEAST) break;
    widths[widest] = widths[widest]! - 1;
  }
  const line = (cells: readonly string[]) =>
    cells
      .map((c, i) => pad(shorten(c, widths[i]!), widths[i]!))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((w) => '-'.repeat(w))), ...rows.map(line)].join('\n');
}

/** "agent 3 · infra 1" */
export const countsText = (counts: Readonly<Record<string, number>>, between = ' · '): string =>
  Object.entries(counts)
    .map(([name, n]) => `${name} ${n}`)
    .join(between);

/** With "≥" while the cost of a call is unknown. */
export const spentText = ({ nano, unknownCalls }: Pick<Spent, 'nano' | 'unknownCalls'>): string =>
  `${unknownCalls > 0 ? '≥ ' : ''}${formatCost(nano)}`;
