/** Parsers of the Ruby repositories of SWE-bench Multilingual. */
import { isWordAt, SPACE } from '../../base/python/text.ts';
import { lastMatch, stripped } from './lineRules.ts';
import { type LogParser, ParserError, type Status } from './logParser.ts';

/** `Suite#test. 0.01 s = .`: the last of `.`, `F` and `E` on the line counts, if an `=` and a full stop stand before it. */
export const parseMinitest = stripped((line) => {
  const mark = Math.max(line.lastIndexOf('.'), line.lastIndexOf('F'), line.lastIndexOf('E'));
  const equals = mark > 0 ? line.lastIndexOf('=', mark - 1) : -1;
  const stop = equals >= 2 ? line.lastIndexOf('. ', equals - 2) : -1;
  if (stop < 1) return undefined;
  return { name: line.slice(0, stop), status: line[mark] === '.' ? 'PASSED' : 'FAILED' };
});

const DOTS = / (\.+)(F?)/g;
/** `Scenario name ....F`: a space, dots, and what comes last. */
export const parseCucumber = stripped((line) => {
  if (!line.includes(' .')) return undefined;
  let found: { name: string; status: Status } | undefined;
  for (const match of line.matchAll(DOTS)) {
    const failed = match[2] === 'F';
    if (!failed && match[1]!.length < 2) continue;
    found = { name: line.slice(0, match.index), status: failed ? 'FAILED' : 'PASSED' };
  }
  return found;
});

const UNIT: Readonly<Record<string, Status>> = { '.': 'PASSED', E: 'FAILED', F: 'FAILED', O: 'SKIPPED' };
const COLON = new RegExp(`:[${SPACE}]+`, 'g');
/** `test: name:   .` or `name: E`, the last such colon. */
export const parseRubyUnit = stripped((line) => {
  if (!line.includes(':')) return undefined;
  let colon = -1;
  let status: Status | undefined;
  for (const match of line.matchAll(COLON)) {
    const at = match.index + match[0].length;
    const outcome = UNIT[line.charAt(at)];
    if (outcome === undefined || (line[at] !== '.' && isWordAt(line, at + 1)) || match.index < 1) continue;
    colon = match.index;
    status = outcome;
  }
  if (status === undefined) return undefined;
  return { name: line.slice(line.startsWith('test: ') && colon > 6 ? 6 : 0, colon), status };
});

const RSPEC = / - (?:passed|failed)/g;
/** Lines that `jq` made of RSpec's JSON. */
export const parseRspec = stripped((line) => {
  const at = lastMatch(line, RSPEC, 1);
  if (at === undefined) return undefined;
  return { name: line.slice(0, at), status: line.startsWith(' - passed', at) ? 'PASSED' : 'FAILED' };
});

/** Jekyll's rows use two runners; the pull request's number tells which. */
export const parseJekyll: LogParser = (log, context) => {
  const number = context.instanceId.split('-')[1] ?? '';
  if (['9141', '8047', '8167'].includes(number)) return parseMinitest(log, context);
  if (['8761', '8771'].includes(number)) return parseCucumber(log, context);
  throw new ParserError(`no Jekyll log form is known for ${context.instanceId}`);
};
