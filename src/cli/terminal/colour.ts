/** Colours where a terminal has them. NO_COLOR, FORCE_COLOR and TERM decide, as Node reads them; `--color` sets the first two. */
import { styleText } from 'node:util';
import type { ExitClass } from '../../outcome.ts';

type Style = Parameters<typeof styleText>[0];

export const paintErr = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr });

export const paintOut = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });

/** Red: nobody can say what the model would have done. Yellow: the model's own end, short of submitting. */
export const styleOfClass = (exitClass: ExitClass): Style => {
  if (exitClass === 'infra' || exitClass === 'config') return 'red';
  return exitClass === 'limit' || exitClass === 'model' ? 'yellow' : 'reset';
};

const OF_WORDS: Readonly<Record<string, Style | undefined>> = {
  complete: 'green',
  resolved: 'green',
  running: 'cyan',
  unresolved: 'yellow',
  empty_patch: 'yellow',
  paused: 'yellow',
  budget: 'yellow',
  interrupted: 'yellow',
  incomplete: 'red',
  failed: 'red',
  ungradable: 'red',
  infra: 'red',
};

/** A status of a run or an outcome of a grading, with the blanks around it. */
export const paintWord = (cell: string): string => {
  const style = OF_WORDS[cell.trim()];
  return style ? paintOut(style, cell) : cell;
};

/** What a line for people begins with says how much it matters. */
const OF_MARKS: readonly (readonly [mark: RegExp, style: Style])[] = [
  [/^(?:error|refused):/, ['red', 'bold']],
  [/^(?:warning|incomplete|interrupted)(?=[:;])/, 'yellow'],
];

export function paintMark(line: string): string {
  for (const [mark, style] of OF_MARKS) {
    const found = mark.exec(line)?.[0];
    if (found) return paintErr(style, found) + line.slice(found.length);
  }
  return line;
}
