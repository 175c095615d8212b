/** Parsers of the C, Go, Rust, Java and PHP repositories of SWE-bench Multilingual. */
import { eachLine } from '../../base/python/lines.ts';
import { isSpaceAt, isWordAt, SPACE, strip } from '../../base/python/text.ts';
import { beforeLastParens, durationStart, opening, skipSpaces, stripped, withoutPlace } from './lineRules.ts';
import { type LogParser, nameBudget, type Status, StatusMap } from './logParser.ts';

const REDIS: Readonly<Record<string, Status>> = {
  '[ok]:': 'PASSED',
  '[err]:': 'FAILED',
  '[skip]:': 'SKIPPED',
  '[ignore]:': 'SKIPPED',
};
export const parseRedis = stripped((line) => {
  const mark = opening(line, Object.keys(REDIS));
  if (mark === undefined || !isSpaceAt(line, mark.length)) return undefined;
  const rest = line.slice(mark.length + 1);
  if (rest === '') return undefined;
  const end = durationStart(rest);
  const name = end > 0 ? rest.slice(0, end) : rest;
  return { name: mark === '[err]:' ? withoutPlace(name) : name, status: REDIS[mark]! };
});

export const parseJq = stripped((line) => {
  const mark = opening(line, ['PASS:', 'FAIL:']);
  if (mark === undefined || !isSpaceAt(line, 5) || line.length < 7) return undefined;
  return { name: line.slice(6), status: mark === 'PASS:' ? 'PASSED' : 'FAILED' };
});

const MICROPYTHON = { pass: 'PASSED', FAIL: 'FAILED', skip: 'SKIPPED' } as const;
export const parseMicropython = stripped((line) => {
  const mark = opening(line, ['pass', 'FAIL', 'skip']);
  if (mark === undefined || !isSpaceAt(line, 4)) return undefined;
  return { name: line.slice(skipSpaces(line, 4)), status: MICROPYTHON[mark] };
});

const GTEST_MARK = new RegExp(`\\[[${SPACE}]*(OK|FAILED)[${SPACE}]*\\][${SPACE}]`, 'y');
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

const GO = { '--- PASS: ': 'PASSED', '--- FAIL: ': 'FAILED', '--- SKIP: ': 'SKIPPED' } as const;
export const parseGotest = stripped((line) => {
  const mark = opening(line, ['--- PASS: ', '--- FAIL: ', '--- SKIP: ']);
  const name = mark && beforeLastParens(line, mark.length);
  return name ? { name, status: GO[mark!] } : undefined;
});

const CARGO = new RegExp(`^test[${SPACE}]+([^${SPACE}]+)[${SPACE}]+\\.\\.\\.[${SPACE}]+(ok|FAILED)$`);
export const parseCargo = stripped((line) => {
  const match = line.startsWith('test') ? CARGO.exec(line) : null;
  return match && { name: match[1]!, status: match[2] === 'ok' ? 'PASSED' : 'FAILED' };
});

/** The value after the last `-Dtest=` that has one. */
function mavenTest(line: string): string | undefined {
  const mark = '-Dtest=';
  for (let at = line.lastIndexOf(mark); at >= 0; at = at === 0 ? -1 : line.lastIndexOf(mark, at - 1)) {
    const from = at + mark.length;
    if (from >= line.length || isSpaceAt(line, from)) continue;
    let to = from;
    while (to < line.length && !isSpaceAt(line, to)) to++;
    return line.slice(from, to);
  }
  return undefined;
}

const mavenBuild = (line: string): Status | undefined =>
  line.endsWith('BUILD SUCCESS') ? 'PASSED' : line.endsWith('BUILD FAILURE') ? 'FAILED' : undefined;

/** Maven says only how a build ended: commands and endings are paired in order, since their output interleaves. */
export const parseMaven: LogParser = (log, { dialect }) => {
  const found = new StatusMap();
  const tests: string[] = [];
  const loose: Status[] = [];
  let paired = 0;
  let current = '---NO TEST NAME FOUND YET---';
  eachLine(log, (raw) => {
    const line = strip(raw);
    const test = mavenTest(line);
    if (test !== undefined) {
      tests.push(test);
      current = test;
    }
    const status = mavenBuild(line);
    if (status === undefined) return;
    if (dialect === 'v4.1') found.set(current, status);
    else if (paired < tests.length) found.set(tests[paired++]!, status);
    else loose.push(status);
  });
  if (dialect === 'v5')
    for (const status of loose) if (paired < tests.length) found.set(tests[paired++]!, status);
  return found;
};

const ANT = new RegExp(`^\\[junit\\][${SPACE}]+\\[(PASS|FAIL|ERR)\\][${SPACE}]+`);
export const parseAnt = stripped((line) => {
  const match = ANT.exec(line);
  return match && { name: line.slice(match[0].length), status: match[1] === 'PASS' ? 'PASSED' : 'FAILED' };
});

const GRADLE_NAME = new RegExp(`^[^>][^${SPACE}]*[${SPACE}]+>[${SPACE}]+[^${SPACE}]+$`);
const gradleStatus = (line: string): Status | undefined =>
  line.endsWith('PASSED') ? 'PASSED' : line.endsWith('FAILED') ? 'FAILED' : undefined;

/** `Suite > test PASSED`; other processes' output can push the status to a line of its own. */
export const parseGradle: LogParser = (log, { dialect }) => {
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
    } else if (dialect === 'v4.1') return;
    else if (GRADLE_NAME.test(line)) waiting = line;
    else if (waiting !== undefined && status !== undefined && line.length === 6) {
      found.set(waiting, status);
      waiting = undefined;
    }
  });
  return found;
};

const TESTDOX: Readonly<Record<string, Status>> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };
/** PHPUnit's testdox: a suite's heading, then its tests. */
export const parsePhpunit: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  let suite = 'None';
  eachLine(log, (line) => {
    const heading = isWordAt(line, 0) ? beforeLastParens(line) : undefined;
    if (heading !== undefined && heading.length > 1) {
      suite = heading;
      return;
    }
    const at = skipSpaces(line, 0);
    const status = TESTDOX[line.charAt(at)];
    if (status !== undefined) found.set(named(`${suite} > ${line.slice(skipSpaces(line, at + 1))}`), status);
  });
  return found;
};
