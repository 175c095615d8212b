/** A log parser: a pure function from the text of a test run to the status of each test it names. */
import { eachLine } from '../../base/python/lines.ts';
import { isSpaceAt, SPACE, strip, tokens } from '../../base/python/text.ts';
import type { GradingConfig } from '../gradingConfig.ts';

export type HarnessVersion = GradingConfig['harness'];

/** Statuses that mean something to grading. A map can hold other words too: `PASSED:` is what a log said, and counts as nothing. */
export const STATUS_WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;
export type Status = (typeof STATUS_WORDS)[number];

export interface ParserContext {
  readonly instanceId: string;
  readonly version: string;
  readonly harness: HarnessVersion;
}

const passes = (status: string) => status === 'PASSED' || status === 'XFAIL';
const fails = (status: string) => status === 'FAILED' || status === 'ERROR';

/** Test name to status; the last word wins, as in the official parsers. Remembers which failures were later called passes. */
export class StatusMap extends Map<string, string> {
  readonly overruled = new Set<string>();
  override set(name: string, status: string): this {
    const before = this.get(name);
    if (before !== undefined && fails(before) && passes(status)) this.overruled.add(name);
    return super.set(name, status);
  }
}

export type LogParser = (log: string, context: ParserContext) => ReadonlyMap<string, string>;

/** The parser gave up on a log. The official harness loses the instance to an exception in the same places. */
export class ParserError extends Error {
  override readonly name = 'ParserError';
}

/**
 * Guards parsers that put the names of enclosing suites before each test: a log with one endless suite name and many tests would make
 * names of quadratic size. The allowance grows with the log, so every real one fits many times over (observed: tests/grading/parserCost.test.ts).
 */
export function nameBudget(log: string): (name: string) => string {
  let left = Math.max(64 * 1024 * 1024, log.length * 16);
  return (name) => {
    left -= name.length;
    if (left < 0)
      throw new ParserError('the names of nested suites in this log add up to far more than the log itself');
    return name;
  };
}

interface LineResult {
  readonly name: string;
  readonly status: Status;
}

/** An expression in which <SPACE> is one character that Python takes for white space, and <TEXT> one that it does not. */
export const pythonRegex = (form: string, flags: string): RegExp =>
  new RegExp(form.replaceAll('<SPACE>', `[${SPACE}]`).replaceAll('<TEXT>', `[^${SPACE}]`), flags);

/** A parser that reads each line by itself. */
export const byLine =
  (read: (line: string, found: StatusMap, harness: HarnessVersion) => void): LogParser =>
  (log, { harness }) => {
    const found = new StatusMap();
    eachLine(log, (line) => void read(line, found, harness));
    return found;
  };

/** A parser that finds at most one test in each stripped line. */
export const stripped = (
  rule: (line: string, harness: HarnessVersion) => LineResult | null | undefined,
): LogParser =>
  byLine((line, found, harness) => {
    if (line === '') return;
    const result = rule(strip(line), harness);
    if (result) found.set(result.name, result.status);
  });

export const skipSpaces = (text: string, at: number): number => {
  let next = at;
  while (isSpaceAt(text, next)) next++;
  return next;
};

/** `(.*)` up to the last thing that `mark` finds, from `from` on; undefined when it finds none. `mark` must be global. */
export function lastMatch(text: string, mark: RegExp, from = 0): number | undefined {
  let last: number | undefined;
  mark.lastIndex = from;
  for (let match = mark.exec(text); match !== null; match = mark.exec(text)) last = match.index;
  return last;
}

/** Colour codes lose their `[31m` first and every control character after that, the tab included. */
export const withoutColour = (line: string) => line.replace(/\[\p{Nd}+m/gu, '').replace(/[\x01-\x1f]/g, '');

/** pytest as forks of the harness read it, whose older versions print the status last. A line with a status and no name loses the whole instance. */
export const statusAtEitherEnd = (
  words: readonly string[],
  prepare: (line: string) => string = (line) => line,
): LogParser =>
  byLine((raw, found) => {
    const line = prepare(withoutColour(raw));
    const first = words.some((word) => line.startsWith(word));
    if (!first && !words.some((word) => line.endsWith(word))) return;
    const [one, two] = tokens(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);
    if (one === undefined || two === undefined)
      throw new ParserError(`the line "${line.slice(0, 200)}" names no test`);
    found.set(first ? two : one, first ? one : two);
  });
