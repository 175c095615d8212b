/** Building blocks of the parsers that look at one line at a time. None of them goes back over a line more than a fixed number of times. */
import { eachLine } from '../../base/python/lines.ts';
import { digitsEnd, isDigitAt, isSpaceAt, strip, stripEnd } from '../../base/python/text.ts';
import { type HarnessDialect, type LogParser, type Status, StatusMap } from './logParser.ts';

export interface LineResult {
  readonly name: string;
  readonly status: Status;
}

/** A parser that reads each line by itself. */
export const byLine =
  (read: (line: string, found: StatusMap, dialect: HarnessDialect) => void): LogParser =>
  (log, { dialect }) => {
    const found = new StatusMap();
    eachLine(log, (line) => void read(line, found, dialect));
    return found;
  };

/** A parser that finds at most one test in each stripped line. */
export const stripped = (
  rule: (line: string, dialect: HarnessDialect) => LineResult | null | undefined,
): LogParser =>
  byLine((line, found, dialect) => {
    if (line === '') return;
    const result = rule(strip(line), dialect);
    if (result) found.set(result.name, result.status);
  });

/** The first of several fixed beginnings, and where the rest starts. */
export function opening<S extends string>(line: string, marks: readonly S[]): S | undefined {
  return marks.find((mark) => line.startsWith(mark));
}

export const skipSpaces = (text: string, at: number): number => {
  let next = at;
  while (isSpaceAt(text, next)) next++;
  return next;
};

/** Start of a last ` (12 ms)` (white space, digits, `ms` or `s`); the length of the text when there is none. */
export function durationStart(text: string): number {
  const open = text.lastIndexOf('(');
  if (open < 1 || !isSpaceAt(text, open - 1)) return text.length;
  const digits = digitsEnd(text, open + 1);
  if (digits === open + 1) return text.length;
  const unit = text.slice(skipSpaces(text, digits));
  return unit === 'ms)' || unit === 's)' ? open - 1 : text.length;
}

/** Start of a last ` 12 ms`, ` 12s`, ` 12` or ` [skipped]`, as vitest puts it behind a name. */
export function looseDurationStart(text: string): number {
  if (text.endsWith('[skipped]') && isSpaceAt(text, text.length - 10)) return text.length - 10;
  const bare = stripEnd(text.replace(/m?s?$/, ''));
  let digits = bare.length;
  while (isDigitAt(bare, digits - 1)) digits--;
  if (digits === bare.length || !isSpaceAt(bare, digits - 1)) return text.length;
  return digits - 1;
}

/** `<mark> <name> [duration]`, marks such as ✓ and ✕; `cut` finds where the duration starts. */
export function ticked(marks: Readonly<Record<string, Status>>, cut: (text: string) => number) {
  return (line: string): LineResult | undefined => {
    const status = marks[line.charAt(0)];
    if (status === undefined || !isSpaceAt(line, 1)) return undefined;
    const rest = line.slice(2);
    if (rest === '') return undefined;
    const end = cut(rest);
    return { name: end > 0 ? rest.slice(0, end) : rest, status };
  };
}

/** `<before> (<inside>)` at the end of the line with something on both sides: what stands before, as long as possible. */
export function beforeLastParens(line: string, from = 0): string | undefined {
  if (!line.endsWith(')')) return undefined;
  const open = line.lastIndexOf(' (', line.length - 4);
  return open > from ? line.slice(from, open) : undefined;
}

/** Drops ` in <path>` from the end (Redis names the file of a failed test). */
export function withoutPlace(name: string): string {
  let at = name.length;
  while (at > 0 && !isSpaceAt(name, at - 1)) at--;
  if (at === name.length) return name;
  const gap = stripEnd(name.slice(0, at));
  if (!gap.endsWith('in')) return name;
  const head = gap.slice(0, -2);
  const kept = stripEnd(head);
  return kept.length < head.length ? kept : name;
}

/** `(.*)` up to the last thing that `mark` finds, from `from` on; undefined when it finds none. `mark` must be global. */
export function lastMatch(text: string, mark: RegExp, from = 0): number | undefined {
  let last: number | undefined;
  mark.lastIndex = from;
  for (let match = mark.exec(text); match !== null; match = mark.exec(text)) last = match.index;
  return last;
}
