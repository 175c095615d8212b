/** Parsers of SWE-bench Multilingual: C, Go, Rust, Java, PHP, JavaScript and Ruby. */
import { ownEntry } from '../../base/isRecord.ts';
import { eachLine } from '../../base/python/lines.ts';
import { isSpaceAt, isWordAt, strip } from '../../base/python/text.ts';
import {
  type HarnessVersion,
  type LogParser,
  nameBudget,
  ParserError,
  pythonRegex,
  type Status,
  StatusMap,
  skipSpaces,
  stripped,
} from './logParser.ts';

/** A stripped line by one expression with the groups `name` and `mark`, and the status that each mark stands for. */
const rule = (
  form: string,
  statuses: Readonly<Record<string, Status>>,
  named: (name: string, mark: string, harness: HarnessVersion) => string = (name) => name,
): LogParser => {
  const pattern = pythonRegex(form, 'su');
  return stripped((line, harness) => {
    const { name, mark } = pattern.exec(line)?.groups ?? {};
    return name === undefined ? null : { name: named(name, mark!, harness), status: statuses[mark!]! };
  });
};
const DURATION = '(?:<SPACE>\\(\\p{Nd}+<SPACE>*m?s\\))?';
const PASS_FAIL = { PASS: 'PASSED', FAIL: 'FAILED' } as const;

/** Redis names the file of a failed test behind it. */
const PLACE = pythonRegex('^(.*<TEXT>|)<SPACE>+in<SPACE>+<TEXT>+$', 's');
export const parseRedis = rule(
  `^\\[(?<mark>ok|err|skip|ignore)\\]:<SPACE>(?<name>.+?)${DURATION}$`,
  { ok: 'PASSED', err: 'FAILED', skip: 'SKIPPED', ignore: 'SKIPPED' },
  (name, mark) => (mark === 'err' ? name.replace(PLACE, '$1') : name),
);

export const parseJq = rule('^(?<mark>PASS|FAIL):<SPACE>(?<name>.+)$', PASS_FAIL);
export const parseMicropythonTest = rule('^(?<mark>pass|FAIL|skip)<SPACE>+(?<name>.*)$', {
  pass: 'PASSED',
  FAIL: 'FAILED',
  skip: 'SKIPPED',
});
// `(?=.*\)$)` comes first so that a line without a bracket at its end costs one look, and not one at each bracket in it.
export const parseGotest = rule('^(?=.*\\)$)--- (?<mark>PASS|FAIL|SKIP): (?<name>.+) \\(..', {
  ...PASS_FAIL,
  SKIP: 'SKIPPED',
});
export const parseCargo = rule('^test<SPACE>+(?<name><TEXT>+)<SPACE>+\\.\\.\\.<SPACE>+(?<mark>ok|FAILED)$', {
  ok: 'PASSED',
  FAILED: 'FAILED',
});
export const parseAnt = rule('^\\[junit\\]<SPACE>+\\[(?<mark>PASS|FAIL|ERR)\\]<SPACE>+(?<name>.*)$', {
  ...PASS_FAIL,
  ERR: 'FAILED',
});
export const parseJest = rule(
  `^(?<mark>[✓✕○])<SPACE>(?<name>.+?)${DURATION}$`,
  { '✓': 'PASSED', '✕': 'FAILED', '○': 'SKIPPED' },
  (name, _, harness) => (harness === 'v5' ? strip(name) : name),
);
export const parseJestJson = rule('^\\[(?<mark>PASSED|FAILED)\\]<SPACE>(?<name>.+)$', {
  PASSED: 'PASSED',
  FAILED: 'FAILED',
});
export const parseVitest = rule(
  '^(?<mark>[✓×↓])<SPACE>(?<name>.+?)(?:<SPACE>(?:\\p{Nd}+<SPACE>*m?s?|\\[skipped\\]))?$',
  { '✓': 'PASSED', '×': 'FAILED', '↓': 'SKIPPED' },
);
export const parseTap = rule('^(?<mark>ok|not ok) \\p{Nd}+ (?<name>.+)$', {
  ok: 'PASSED',
  'not ok': 'FAILED',
});
/** Lines that `jq` made of RSpec's JSON. */
export const parseRspecTransformedJson = rule('^(?<name>.+) - (?<mark>passed|failed)', {
  passed: 'PASSED',
  failed: 'FAILED',
});

const GTEST_MARK = pythonRegex('\\[<SPACE>*(OK|FAILED)<SPACE>*\\]<SPACE>', 'y');
/** `[  OK  ] Suite.Test (3 ms)`, the last such mark on the line. */
export const parseGoogletest = stripped((line) => {
  if (!line.endsWith(')')) return undefined;
  let end = line.lastIndexOf('(', line.length - 2);
  while (end > 0 && !isSpaceAt(line, end - 1)) end = line.lastIndexOf('(', end - 1);
  if (end <= 0) return undefined;
  for (let at = line.lastIndexOf('[', end); at >= 0; at = at === 0 ? -1 : line.lastIndexOf('[', at - 1)) {
    GTEST_MARK.lastIndex = at;
    const match = GTEST_MARK.exec(line);
    if (match === null || GTEST_MARK.lastIndex > end - 1) continue;
    return {
      name: line.slice(GTEST_MARK.lastIndex, end - 1),
      status: match[1] === 'OK' ? 'PASSED' : 'FAILED',
    };
  }
  return undefined;
});

/** The value behind the last `-Dtest=` that has one. */
const MAVEN_TEST = pythonRegex('^.*-Dtest=(<TEXT>+)', 's');
const mavenBuild = (line: string): Status | undefined =>
  line.endsWith('BUILD SUCCESS') ? 'PASSED' : line.endsWith('BUILD FAILURE') ? 'FAILED' : undefined;

/** Maven says only how a build ended: commands and endings are paired in order, since their output interleaves. */
export const parseMaven: LogParser = (log, { harness }) => {
  const found = new StatusMap();
  const tests: string[] = [];
  const loose: Status[] = [];
  let paired = 0;
  let current = '---NO TEST NAME FOUND YET---';
  eachLine(log, (raw) => {
    const line = strip(raw);
    const test = line.includes('-Dtest=') ? MAVEN_TEST.exec(line)?.[1] : undefined;
    if (test !== undefined) {
      tests.push(test);
      current = test;
    }
    const status = mavenBuild(line);
    if (status === undefined) return;
    if (harness === 'v4.1') found.set(current, status);
    else if (paired < tests.length) found.set(tests[paired++]!, status);
    else loose.push(status);
  });
  if (harness === 'v5')
    for (const status of loose) if (paired < tests.length) found.set(tests[paired++]!, status);
  return found;
};

const GRADLE_NAME = pythonRegex('^[^>]<TEXT>*<SPACE>+><SPACE>+<TEXT>+$', '');
const gradleStatus = (line: string): Status | undefined =>
  line.endsWith('PASSED') ? 'PASSED' : line.endsWith('FAILED') ? 'FAILED' : undefined;

/** `Suite > test PASSED`; other processes' output can push the status to a line of its own. */
export const parseGradleCustom: LogParser = (log, { harness }) => {
  const found = new StatusMap();
  let waiting: string | undefined;
  eachLine(log, (raw) => {
    const line = strip(raw);
    const status = gradleStatus(line);
    // A name has two characters at least; the first may be a pair of UTF-16 units.
    const least = line.codePointAt(0)! > 0xffff ? 10 : 9;
    if (status !== undefined && line.length >= least && line[0] !== '>' && isSpaceAt(line, line.length - 7)) {
      found.set(line.slice(0, -7), status);
      waiting = undefined;
    } else if (harness === 'v4.1') return;
    else if (GRADLE_NAME.test(line)) waiting = line;
    else if (waiting !== undefined && status !== undefined && line.length === 6) {
      found.set(waiting, status);
      waiting = undefined;
    }
  });
  return found;
};

const TESTDOX: Readonly<Record<string, Status>> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };
const TESTDOX_SUITE = /^(?=.*\)$)([\p{L}\p{N}_].+) \(../su;
/** PHPUnit's testdox: a suite's heading, then its tests. */
export const parsePhpunit: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  let suite = 'None';
  eachLine(log, (line) => {
    const heading = TESTDOX_SUITE.exec(line)?.[1];
    if (heading !== undefined) {
      suite = heading;
      return;
    }
    const at = skipSpaces(line, 0);
    const status = TESTDOX[line.charAt(at)];
    if (status !== undefined) found.set(named(`${suite} > ${line.slice(skipSpaces(line, at + 1))}`), status);
  });
  return found;
};

/** Two rows of one repository, two runners. */
export const parseImmutableJs: LogParser = (log, context) => {
  const number = context.instanceId.split('-').at(-1);
  if (number === '2006') return parseJest(log, context);
  if (number === '2005') return parseJestJson(log, context);
  throw new ParserError(`no immutable.js log form is known for ${context.instanceId}`);
};

const KARMA: Readonly<Record<string, Status>> = { '✔': 'PASSED', '✖': 'FAILED' };
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
    if (!started) return;
    const inside = (name: string) => (suites.length > 0 ? `${suites.at(-1)} > ${name}` : name);
    const at = skipSpaces(line, 0);
    const status = KARMA[line.charAt(at)];
    if (status !== undefined && isSpaceAt(line, at + 1)) {
      found.set(named(inside(line.slice(at + 2))), status);
      return;
    }
    // Of a suite the last white space belongs to the separator, and one that does not stand in is none.
    const depth = at - 1;
    if (depth < 1 || depth === indent) return;
    if (depth > indent) suites.push(inside(line.slice(at)));
    else if (suites.pop() === undefined)
      throw new ParserError('the indentation of the karma report goes below its start');
    indent = depth;
    return;
  });
  return found;
};

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
const COLON = pythonRegex(':<SPACE>+', 'g');
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

/** Jekyll's rows use two runners; the pull request's number tells which. */
export const parseJekyll: LogParser = (log, context) => {
  const number = context.instanceId.split('-')[1] ?? '';
  if (['9141', '8047', '8167'].includes(number)) return parseMinitest(log, context);
  if (['8761', '8771'].includes(number)) return parseCucumber(log, context);
  throw new ParserError(`no Jekyll log form is known for ${context.instanceId}`);
};

// The XML report of doctest (nlohmann/json). A small reader for the elements it uses; a report that is not well formed is an error.

const TAG =
  /<(?:!--[\s\S]*?-->|!\[CDATA\[[\s\S]*?\]\]>|\?[\s\S]*?\?>|(\/?)([A-Za-z_:][\w:.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>)/y;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(\w+));|&/g, (whole, hex, decimal, name) => {
    const code =
      hex !== undefined ? Number.parseInt(hex, 16) : decimal !== undefined ? Number(decimal) : undefined;
    if (code !== undefined && code > 0 && code <= 0x10ffff) return String.fromCodePoint(code);
    const known = name === undefined ? undefined : ownEntry(ENTITIES, name);
    if (known === undefined)
      throw new ParserError(`the doctest report has an entity that XML does not know: ${whole}`);
    return known;
  });
}

function attributes(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of text.matchAll(ATTRIBUTE))
    found.set(match[1]!, decodeEntities((match[2] ?? match[3] ?? '').replace(/[\t\n\r]/g, ' ')));
  return found;
}

interface Open {
  readonly tag: string;
  readonly testCase: string | undefined;
  /** Index into the results, for a SubCase. */
  readonly result: number | undefined;
  failed: boolean;
}

export const parseDoctest: LogParser = (log) => {
  const found = new StatusMap();
  const start = log.indexOf('<doctest');
  if (start < 0) return found;
  const end = log.indexOf('</doctest>', start);
  if (end < 0) throw new ParserError('the doctest report is cut off: it has no </doctest>');
  const xml = log.slice(start, end + '</doctest>'.length);

  const illegal = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.exec(xml);
  if (illegal) throw new ParserError('the doctest report holds a character that XML forbids');
  const results: { name: string; failed: boolean }[] = [];
  const open: Open[] = [];
  for (let at = xml.indexOf('<'); at >= 0; at = xml.indexOf('<', TAG.lastIndex)) {
    TAG.lastIndex = at;
    const match = TAG.exec(xml);
    if (match === null)
      throw new ParserError(`the doctest report is not well formed at "${xml.slice(at, at + 40)}"`);
    const [whole, closing, tag, text, empty] = match;
    if (/^<\?xml[\s?]/i.test(whole))
      throw new ParserError('the doctest report holds an XML declaration that is not at its start');
    if (tag === undefined) continue;
    if (closing === '/') {
      const closed = open.pop();
      if (closed?.tag !== tag)
        throw new ParserError(`the doctest report closes <${tag}> where <${closed?.tag}> is open`);
      const around = open.at(-1);
      if (closed.failed && closed.result !== undefined) results[closed.result]!.failed = true;
      if (closed.failed && around) around.failed = true;
      continue;
    }
    const given = attributes(text ?? '');
    const around = open.at(-1);
    const name = given.get('name') ?? 'None';
    const testCase = tag === 'TestCase' ? name : around?.testCase;
    const isResult = tag === 'SubCase' && testCase !== undefined;
    if (isResult) results.push({ name: `${testCase} > ${name}`, failed: false });
    const failed = tag === 'Expression' && given.get('success') !== 'true';
    if (empty !== '/')
      open.push({ tag, testCase, result: isResult ? results.length - 1 : undefined, failed });
    else if (failed && around) around.failed = true;
  }
  if (open.length > 0) throw new ParserError(`the doctest report leaves <${open.at(-1)!.tag}> open`);
  for (const { name, failed } of results) found.set(name, failed ? 'FAILED' : 'PASSED');
  return found;
};
