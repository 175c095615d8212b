/** Parsers of the JavaScript repositories of SWE-bench Multilingual: jest, vitest, karma, TAP. */
import { eachLine } from '../../base/python/lines.ts';
import { digitsEnd, isSpaceAt, strip } from '../../base/python/text.ts';
import { durationStart, looseDurationStart, opening, skipSpaces, stripped, ticked } from './lineRules.ts';
import { type LogParser, nameBudget, ParserError, type Status, StatusMap } from './logParser.ts';

const JEST = ticked({ '✓': 'PASSED', '✕': 'FAILED', '○': 'SKIPPED' }, durationStart);
export const parseJest = stripped((line, dialect) => {
  const result = JEST(line);
  return result && dialect === 'v5' ? { ...result, name: strip(result.name) } : result;
});

export const parseJestJson = stripped((line) => {
  const mark = opening(line, ['[PASSED]', '[FAILED]']);
  if (mark === undefined || !isSpaceAt(line, 8) || line.length < 10) return undefined;
  return { name: line.slice(9), status: mark === '[PASSED]' ? 'PASSED' : 'FAILED' };
});

/** Two rows of one repository, two runners. */
export const parseImmutableJs: LogParser = (log, context) => {
  const number = context.instanceId.split('-').at(-1);
  if (number === '2006') return parseJest(log, context);
  if (number === '2005') return parseJestJson(log, context);
  throw new ParserError(`no immutable.js log form is known for ${context.instanceId}`);
};

export const parseVitest = stripped(
  ticked({ '✓': 'PASSED', '×': 'FAILED', '↓': 'SKIPPED' }, looseDurationStart),
);

export const parseTap = stripped((line) => {
  const mark = opening(line, ['ok ', 'not ok ']);
  if (mark === undefined) return undefined;
  const digits = digitsEnd(line, mark.length);
  if (digits === mark.length || line[digits] !== ' ' || digits + 1 >= line.length) return undefined;
  return { name: line.slice(digits + 1), status: mark === 'ok ' ? 'PASSED' : 'FAILED' };
});

interface KarmaLine {
  readonly indent: number;
  readonly status: Status | undefined;
  readonly name: string;
}

const KARMA: Readonly<Record<string, Status>> = { '✔': 'PASSED', '✖': 'FAILED' };
function karmaLine(line: string): KarmaLine | undefined {
  const at = skipSpaces(line, 0);
  const status = KARMA[line.charAt(at)];
  if (status !== undefined && isSpaceAt(line, at + 1))
    return { indent: at, status, name: line.slice(at + 2) };
  // Without a mark the last white space belongs to the separator.
  return at === 0 ? undefined : { indent: at - 1, status: undefined, name: line.slice(at) };
}

/** Karma's spec reporter: suites by indentation. The suite's stack loses one level at a time, as in the official parser. */
export const parseKarma: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  /** Names of the enclosing suites, each already joined with those around it. */
  const suites: string[] = [];
  let indent = -1;
  let started = false;
  eachLine(log, (line) => {
    if (line.startsWith('SUMMARY:')) return false;
    if (line.includes('Starting browser')) {
      started = true;
      return;
    }
    const read = started ? karmaLine(line) : undefined;
    if (read === undefined) return;
    const inside = (name: string) => (suites.length > 0 ? `${suites.at(-1)} > ${name}` : name);
    if (read.status !== undefined) found.set(named(inside(read.name)), read.status);
    else if (read.indent > indent && read.indent > 0) {
      indent = read.indent;
      suites.push(inside(read.name));
    } else if (read.indent < indent && read.indent > 0) {
      indent = read.indent;
      if (suites.pop() === undefined)
        throw new ParserError('the indentation of the karma report goes below its start');
    }
    return;
  });
  return found;
};
