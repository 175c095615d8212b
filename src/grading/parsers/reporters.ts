/**
 * Parsers of SWE-bench Multimodal whose logs list passes and failures: Jest suites by file, reporters that nest suites by indentation,
 * Mocha's JSON, Deno's tests in quarto.
 */

import { z } from 'zod';
import { eachLine } from '../../base/python/lines.ts';
import { digitsEnd, indentOf, isSpaceAt, strip, stripEnd, withoutAnsi } from '../../base/python/text.ts';
import {
  byLine,
  type LogParser,
  lastMatch,
  nameBudget,
  ParserError,
  pythonRegex,
  type Status,
  StatusMap,
} from './logParser.ts';

const FILE_DURATIONS = ['ms', '<SPACE>s', 's'].map((unit) =>
  pythonRegex(`<SPACE>\\([\\p{Nd}.]+${unit}\\)`, 'gu'),
);

/** `PASS path (5.2 s)`: react-pdf, carbon and older lighthouse name files, not tests. */
export const parseCarbon = byLine((line, found) => {
  const status = line.startsWith('PASS') ? 'PASSED' : line.startsWith('FAIL') ? 'FAILED' : undefined;
  if (status === undefined || !isSpaceAt(line, 4)) return;
  const end = FILE_DURATIONS.map((duration) => lastMatch(line, duration, 5)).find((at) => at !== undefined);
  found.set(line.slice(5, end), status);
});

const LAST_DURATION = pythonRegex('<SPACE>\\([\\p{Nd}.]+<SPACE>?m?s\\)$', 'u');

/** `FAIL x` and then `PASS x` over the whole log; a bare `FAIL` takes the next line as its name. */
export const parseGrommet: LogParser = (log) => {
  const found = new StatusMap();
  for (const [mark, status] of [
    ['FAIL', 'FAILED'],
    ['PASS', 'PASSED'],
  ] as const) {
    let bare = false;
    eachLine(log, (line) => {
      const named = bare ? line : line.startsWith(mark) && isSpaceAt(line, 4) ? line.slice(5) : undefined;
      if (named !== undefined) found.set(strip(named).replace(LAST_DURATION, ''), status);
      bare = !bare && line === mark;
    });
  }
  return found;
};

/** The suites that enclose a test, by indentation. Each entry holds its name joined with those around it. */
function suiteStack() {
  const open: { readonly path: string; readonly indent: number }[] = [];
  const inside = (name: string) => (open.length > 0 ? `${open.at(-1)!.path} - ${name}` : name);
  return {
    inside,
    depth: () => open.length,
    enter(line: string): void {
      const indent = indentOf(line);
      if (indent === 0) return;
      while (open.length > 0 && open.at(-1)!.indent >= indent) open.pop();
      open.push({ path: inside(strip(line)), indent });
    },
  };
}

const CALYPSO_MARKS: Readonly<Record<string, Status>> = { '✓': 'PASSED', '✕': 'FAILED' };
const MILLISECONDS = /\(\p{Nd}+ms\)/u;
const LAST_MILLISECONDS = /\(\p{Nd}+ms\)$/u;

function calypsoName(line: string): string {
  const at = indentOf(line);
  if (at === 0 || !isSpaceAt(line, at + 1))
    throw new ParserError(`the line "${line.slice(0, 200)}" has no form that the calypso parser knows`);
  const rest = line.slice(at + 2);
  if (!MILLISECONDS.test(line)) return rest;
  const open = rest.lastIndexOf('(');
  if (open < 0 || !LAST_MILLISECONDS.test(rest.slice(open)))
    throw new ParserError(`the line "${line.slice(0, 200)}" has a duration that is not at its end`);
  return rest.slice(0, open);
}

export const parseCalypso: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  const suites = suiteStack();
  for (const part of log.split(' ./node_modules/.bin/jest ').slice(1))
    eachLine(part, (line) => {
      if (line.startsWith('Test Suites') || line.startsWith('  ● ')) return false;
      const status = CALYPSO_MARKS[line.charAt(indentOf(line))];
      if (status === undefined) suites.enter(line);
      else {
        const name = calypsoName(line);
        // Outside every suite the official name starts with the separator.
        found.set(strip(named(suites.depth() > 0 ? suites.inside(name) : ` - ${name}`)), status);
      }
      return;
    });
  return found;
};

const PASSING = pythonRegex('\\p{Nd}<SPACE>passing', 'u');
/** A log up to the first `12 passing`. */
function beforePassing(log: string): string {
  const mark = PASSING.exec(log);
  return mark === null ? log : log.slice(0, mark.index).replace(/(?<!\p{Nd})\p{Nd}+$/u, '');
}

const MOCHA_RUN = pythonRegex('running<SPACE>\\p{Nd}+<SPACE>test<SPACE>files', 'u');
const MOCHA_DURATION = pythonRegex('<SPACE>\\(\\p{Nd}+m+s\\)', 'gu');

function mochaResult(line: string): { rest: string; status: Status } | undefined {
  if (line.startsWith('✔') && isSpaceAt(line, 1)) return { rest: line.slice(2), status: 'PASSED' };
  const digits = digitsEnd(line, 0);
  if (digits > 0 && line[digits] === ')' && isSpaceAt(line, digits + 1))
    return { rest: line.slice(digits + 2), status: 'FAILED' };
  return undefined;
}

const parseLighthouseMocha: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  for (const run of log.split(MOCHA_RUN).slice(1)) {
    const suites = suiteStack();
    eachLine(strip(beforePassing(run)), (line) => {
      const result = mochaResult(strip(line));
      if (result === undefined) suites.enter(line);
      else {
        const end = lastMatch(result.rest, MOCHA_DURATION);
        found.set(named(suites.inside(result.rest.slice(0, end))), result.status);
      }
    });
  }
  return found;
};

const FULL_TITLE = pythonRegex('"fullTitle":<SPACE>"', 'g');
/** `"fullTitle": "…",` where that ends the line. */
function fullTitles(text: string): string[] {
  const titles: string[] = [];
  let done = 0;
  for (const match of text.matchAll(FULL_TITLE)) {
    if (match.index < done) continue;
    const from = match.index + match[0].length;
    const end = text.indexOf('\n', from);
    if (end < 0) break;
    if (end - 2 >= from && text.endsWith('",', end)) titles.push(text.slice(from, end - 2));
    done = end + 1;
  }
  return titles;
}
const after = (text: string, mark: string) =>
  text.slice(text.lastIndexOf(mark) + (text.includes(mark) ? mark.length : 1));
const upToLast = (text: string, mark: string) =>
  text.includes(mark) ? text.slice(0, text.lastIndexOf(mark)) : text;

const parseLighthouseJson: LogParser = (log) => {
  const found = new StatusMap();
  for (const part of log.split('./node_modules/.bin/mocha --reporter json').slice(1)) {
    for (const title of fullTitles(upToLast(after(part, '"passes": ['), ']'))) found.set(title, 'PASSED');
    for (const title of fullTitles(upToLast(after(part, '"failures": ['), '],'))) found.set(title, 'FAILED');
  }
  return found;
};

export const parseLighthouse: LogParser = (log, context) => {
  if (['9.5', '10.0', '10.2'].includes(context.version)) return parseLighthouseMocha(log, context);
  const version = strip(context.version) === '' ? Number.NaN : Number(context.version);
  if (Number.isNaN(version))
    throw new ParserError(`the lighthouse parser needs the version of ${context.instanceId}`);
  return version >= 3 ? parseCarbon(log, context) : parseLighthouseJson(log, context);
};

const TIMING = /\(\p{Nd}+ms\)/gu;
/** Mocha's spec reporter; only the innermost suite counts. */
export const parseHighlightjs: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  const summary = /\n[ \t]*\p{Nd}+ passing/u.exec(log);
  let suite = '';
  eachLine(summary === null ? log : log.slice(0, summary.index), (line) => {
    const text = strip(line);
    const failed = digitsEnd(text, 0);
    const at = /^[✓✔]/.test(text)
      ? line.indexOf(text[0]!) + 1
      : failed > 0 && text[failed] === ')'
        ? line.indexOf(')') + 1
        : -1;
    if (at >= 0) {
      const name = strip(line.slice(at).replace(TIMING, ''));
      found.set(named(suite + name), /^[✓✔]/.test(text) ? 'PASSED' : 'FAILED');
    } else if (line.startsWith('  ')) suite = `${text}.`;
  });
  return found;
};

const PRISM_COMMAND = './node_modules/.bin/mocha tests/run.js --reporter json';
const prismTests = z.array(z.looseObject({ fullTitle: z.string() }));
/** Mocha's JSON reporter; what stands around the outermost braces is dropped. */
export const parsePrismjs: LogParser = (log) => {
  const found = new StatusMap();
  for (const part of log.split(PRISM_COMMAND).slice(1)) {
    const inner = upToLast(part.slice(part.indexOf('{') + 1), '}');
    let report: Record<string, unknown>;
    try {
      report = JSON.parse(`{${inner}}`) as Record<string, unknown>;
    } catch (error) {
      throw new ParserError(`the JSON report cannot be read: ${(error as Error).message}`);
    }
    for (const [part, status] of [
      ['failures', 'FAILED'],
      ['passes', 'PASSED'],
    ] as const) {
      const tests = prismTests.safeParse(report[part]);
      if (!tests.success) throw new ParserError(`the JSON report has no usable "${part}"`);
      for (const { fullTitle } of tests.data) found.set(fullTitle, status);
    }
  }
  return found;
};

const TMP_FILES = [/\/tmp\/[\p{L}\p{N}_]+\.qmd/gu, /\/tmp\/[\p{L}\p{N}_]+\//gu];
/** Deno's tests: names of temporary files become numbers in the order they appear. */
export const parseQuartoCli: LogParser = (log) => {
  const found = new StatusMap();
  const numbers = new Map<string, number>();
  eachLine(log, (raw) => {
    if (raw.includes('ERRORS') || raw.includes('failures:')) return false;
    if (!raw.includes('[smoke]') && !raw.includes('[unit]')) return;
    let line = raw;
    for (const pattern of TMP_FILES) {
      pattern.lastIndex = 0;
      const first = pattern.exec(line)?.[0];
      if (first === undefined) continue;
      if (!numbers.has(first)) numbers.set(first, numbers.size);
      line = line.replace(pattern, `/tmp/${numbers.get(first)}`);
    }
    const summary = line.includes('passed') && line.includes('failed') && line.includes('steps');
    if (line.startsWith('test result:') || summary || line.includes('34mINFO')) return;
    const name = stripEnd(strip(line.split('...', 1)[0]!));
    if (line.includes('32mok')) found.set(name, 'PASSED');
    else if (line.includes('31mFAILED') || !found.has(name)) found.set(name, 'FAILED');
    return;
  });
  return found;
};

// Next's two runners in SWE-bench Multimodal: Karma, and Cypress from version 1.27 of the specification.

const NEXT_NOISE = ['ERROR', 'LOG', 'WARN', 'Check', 'in'];
const ASSERTION = pythonRegex('AssertionError:<SPACE>+#', 'g');

/** Cuts each `AssertionError: #…` up to the next empty line. */
function withoutAssertions(log: string): string {
  const kept: string[] = [];
  let from = 0;
  for (const match of log.matchAll(ASSERTION)) {
    if (match.index < from) continue;
    const end = log.indexOf('\n\n', match.index + match[0].length);
    if (end < 0) break;
    kept.push(log.slice(from, match.index));
    from = end + 2;
  }
  return kept.join('') + log.slice(from);
}

const parseNextKarma: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  const suites = suiteStack();
  for (const part of withoutAssertions(withoutAnsi(log)).split(' xvfb-run ').slice(1)) {
    const start = part.lastIndexOf('Starting browser Chrome');
    eachLine(start < 0 ? part : part.slice(start + 'Starting browser Chrome'.length), (line) => {
      if (line.startsWith('TOTAL')) return false;
      const text = strip(line);
      if (NEXT_NOISE.some((word) => text.startsWith(word))) return;
      for (const [mark, status] of [
        ['✗', 'FAILED'],
        ['✓', 'PASSED'],
      ] as const) {
        const at = line.indexOf(mark);
        if (at < 0) continue;
        const rest = line.slice(at + 1);
        found.set(named(suites.inside(rest.slice(indentOf(rest)))), status);
        return;
      }
      suites.enter(line);
      return;
    });
  }
  return found;
};

const CYPRESS_SUITE = pythonRegex('\\)\\n\\n\\n<SPACE>{2}([^\\n]*)\\n', 'g');
const CYPRESS_FAIL = pythonRegex('(?<![^\\n])<SPACE>{4}\\p{Nd}+\\)<SPACE>([^\\n]*)', 'gu');
const CYPRESS_PASS = pythonRegex('(?<![^\\n])<SPACE>{4}✓<SPACE>([^\\n]*)', 'g');

/** `Running: spec (1 of 3)`, three line ends, the suite's name; then its tests. */
const parseNextCypress: LogParser = (log) => {
  const found = new StatusMap();
  const named = nameBudget(log);
  const suites: { readonly name: string; readonly start: number; readonly end: number }[] = [];
  let done = 0;
  let line = 0;
  CYPRESS_SUITE.lastIndex = 0;
  for (let match = CYPRESS_SUITE.exec(log); match !== null; match = CYPRESS_SUITE.exec(log)) {
    for (let next = line; next > -1 && next <= match.index; next = log.indexOf('\n', line) + 1 || -1)
      line = next;
    const from = Math.max(line, done);
    const head = log.slice(from, match.index).indexOf('Running:');
    if (head < 0) {
      CYPRESS_SUITE.lastIndex = match.index + 1;
      continue;
    }
    done = CYPRESS_SUITE.lastIndex;
    suites.push({ name: match[1]!, start: from + head, end: done });
  }
  for (const [at, suite] of suites.entries()) {
    const part = log.slice(suite.end, suites[at + 1]?.start);
    for (const match of part.matchAll(CYPRESS_FAIL))
      found.set(named(`${suite.name}: ${strip(match[1]!)}`), 'FAILED');
    for (const match of part.matchAll(CYPRESS_PASS)) {
      const end = match[1]!.lastIndexOf('(');
      if (end >= 0) found.set(named(`${suite.name}: ${strip(match[1]!.slice(0, end))}`), 'PASSED');
    }
  }
  return found;
};

export const parseNext: LogParser = (log, context) =>
  context.version === '1.27' ? parseNextCypress(log, context) : parseNextKarma(log, context);
