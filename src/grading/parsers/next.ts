/** Next's two runners in SWE-bench Multimodal: Karma, and Cypress from version 1.27 of the specification. */
import { eachLine } from '../../base/python/lines.ts';
import { indentOf, SPACE, strip, withoutAnsi } from '../../base/python/text.ts';
import { type LogParser, nameBudget, StatusMap } from './logParser.ts';
import { suiteStack } from './reporters.ts';

const NEXT_NOISE = ['ERROR', 'LOG', 'WARN', 'Check', 'in'];
const ASSERTION = new RegExp(`AssertionError:[${SPACE}]+#`, 'g');

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

const CYPRESS_SUITE = new RegExp(`\\)\\n\\n\\n[${SPACE}]{2}([^\\n]*)\\n`, 'g');
const CYPRESS_FAIL = new RegExp(`(?<![^\\n])[${SPACE}]{4}\\p{Nd}+\\)[${SPACE}]([^\\n]*)`, 'gu');
const CYPRESS_PASS = new RegExp(`(?<![^\\n])[${SPACE}]{4}✓[${SPACE}]([^\\n]*)`, 'g');

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
