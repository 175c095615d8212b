/** Parsers of the Python repositories: pytest in four variants, Django's runner, SymPy's runner. Quirks are the official ones. */

import { eachLine, eachLineWith } from '../../base/python/lines.ts';
import { strip, tokens } from '../../base/python/text.ts';
import {
  byLine,
  type LogParser,
  ParserError,
  pythonRegex,
  STATUS_WORDS,
  StatusMap,
  skipSpaces,
  statusAtEitherEnd,
  withoutColour,
} from './logParser.ts';

const startsWithStatus = (line: string) => STATUS_WORDS.some((word) => line.startsWith(word));
const endsWithStatus = (line: string) => STATUS_WORDS.some((word) => line.endsWith(word));

const SKIP_COUNT = /^\[\p{Nd}+\]$/u;
/** `SKIPPED [3] path:line: reason` names no test. `PASSED [100%]` does not either, but two rows expect it by that name. */
const isSkipSummary = (status: string, name: string) => status === 'SKIPPED' && SKIP_COUNT.test(name);

/** The common form: a status word at the start of the line, the name up to the next space. */
const pytestLike = (prepare: (line: string) => string, rename: (name: string) => string): LogParser =>
  byLine((raw, found, harness) => {
    const line = prepare(raw);
    if (!startsWithStatus(line)) return;
    const [status, name] = tokens(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);
    if (status === undefined || name === undefined) return;
    if (harness === 'v5' && isSkipSummary(status, name)) return;
    found.set(rename(name), status);
  });

const same = (text: string) => text;

/** A parameter that is a path keeps its last part only, so that names do not depend on where the repository lies. */
function shortenPathOption(name: string): string {
  const open = name.indexOf('[');
  const close = name.lastIndexOf(']');
  if (open < 0 || close < open) return name;
  const option = name.slice(open + 1, close);
  const isPath = option.startsWith('/') && !option.startsWith('//') && !option.includes('*');
  const shown = isPath ? `/${option.slice(option.lastIndexOf('/') + 1)}` : option;
  return `${name.slice(0, open)}[${shown}]`;
}

export const parsePytest = pytestLike(same, same);
export const parsePytestOptions = pytestLike(same, shortenPathOption);
export const parseMatplotlib = pytestLike(
  (line) =>
    line.includes('MouseButton.')
      ? line.replaceAll('MouseButton.LEFT', '1').replaceAll('MouseButton.RIGHT', '3')
      : line,
  same,
);

export const parsePytestV2 = byLine((raw, found, harness) => {
  if (raw === '') return;
  const line = withoutColour(raw);
  if (startsWithStatus(line)) {
    let text = line;
    if (line.startsWith('FAILED'))
      text = harness === 'v5' ? line.split(' - ', 1)[0]! : line.replaceAll(' - ', ' ');
    const parts = tokens(text);
    if (parts.length < 2) return;
    if (harness === 'v4.1') found.set(parts[1]!, parts[0]!);
    else if (!isSkipSummary(parts[0]!, parts[1]!)) found.set(parts.slice(1).join(' '), parts[0]!);
    return;
  }
  // Older pytest prints the status last.
  if (!endsWithStatus(line)) return;
  const parts = tokens(line);
  if (parts.length < 2) return;
  if (harness === 'v4.1') found.set(parts[0]!, parts[1]!);
  else found.set(parts.slice(0, -1).join(' '), parts.at(-1)!);
});

const FAILED = 'FAILED';

/** Every `FAILED [ 50%]`, with or without spaces between, becomes `FAILED`. */
function withoutProgress(line: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = line.indexOf(FAILED); at >= 0; at = line.indexOf(FAILED, at)) {
    at += FAILED.length;
    const open = skipSpaces(line, at);
    if (line[open] !== '[') continue;
    const close = line.indexOf(']', open);
    if (close < 0) break;
    parts.push(line.slice(from, at));
    from = close + 1;
    at = from;
  }
  return from === 0 ? line : parts.join('') + line.slice(from);
}

/** SWE-Gym's parser for pydantic. */
export const gymPydantic = statusAtEitherEnd(STATUS_WORDS, withoutProgress);

export const parseSeaborn = byLine((line, found, harness) => {
  const [first, second] = tokens(line);
  if (first === undefined || second === undefined) {
    // 4.x loses the whole instance to such a line.
    if (
      harness === 'v4.1' &&
      (line.startsWith('FAILED') || line.startsWith('PASSED') || line.includes(' PASSED '))
    )
      throw new ParserError(`the line "${line}" names no test`);
    return;
  }
  if (line.startsWith('FAILED')) found.set(second, 'FAILED');
  else if (line.includes(' PASSED ')) {
    if (second === 'PASSED') found.set(first, 'PASSED');
  } else if (line.startsWith('PASSED')) found.set(second, 'PASSED');
});

const PASS_SUFFIXES = [' ... ok', ' ... OK', ' ...  OK'];
const before = (text: string, mark: string) => text.slice(0, text.indexOf(mark));

function secondToken(line: string): string {
  const name = tokens(line)[1];
  if (name === undefined) throw new ParserError(`the line "${line}" names no test`);
  return name;
}

function djangoLines(log: string, found: StatusMap): void {
  let last: string | undefined;
  eachLine(log, (raw) => {
    let line = strip(raw);
    if (line === '') return;
    if (line.includes('--version is equivalent to version'))
      found.set('--version is equivalent to version', 'PASSED');
    // Most lines of a long log have no dots: nothing more is looked for in them.
    const dots = line.includes(' ... ');
    if (dots) last = before(line, ' ... ');
    const suffix = dots ? PASS_SUFFIXES.find((ending) => line.endsWith(ending)) : undefined;
    if (suffix !== undefined) {
      // A migration's output runs into this test's line.
      if (line.startsWith('Applying sites.0002_alter_domain_unique...test_no_migrations'))
        line = strip(line.slice(line.indexOf('...') + 3));
      found.set(line.endsWith(suffix) ? line.slice(0, -suffix.length) : line, 'PASSED');
    }
    if (dots && line.includes(' ... skipped')) found.set(before(line, ' ... skipped'), 'SKIPPED');
    if (dots && line.endsWith(' ... FAIL')) found.set(before(line, ' ... FAIL'), 'FAILED');
    if (line.startsWith('FAIL:')) found.set(secondToken(line), 'FAILED');
    if (dots && line.endsWith(' ... ERROR')) found.set(before(line, ' ... ERROR'), 'ERROR');
    if (line.startsWith('ERROR:')) found.set(secondToken(line), 'ERROR');
    // Output between "..." and "ok": the last name seen gets the credit, and keeps it.
    if (line.startsWith('ok') && last !== undefined) found.set(last, 'PASSED');
  });
}

/** The end of a message printed in the middle of a result; undefined when it does not end in `ok` as expected. */
type Tail = (log: string, from: number) => number | undefined;

const endsLine = (log: string, at: number) => at === log.length || log[at] === '\n';

/** `((?s:.*?)) silenced).\nok$`: the first one that ends its line, however far away. */
function silencedTail(): Tail {
  let known = -1;
  return (log, from) => {
    const mark = ' silenced).\nok';
    let at = known >= from ? known : log.indexOf(mark, from);
    while (at >= 0 && !endsLine(log, at + mark.length)) at = log.indexOf(mark, at + 1);
    known = at < 0 ? Number.POSITIVE_INFINITY : at;
    return Number.isFinite(known) ? known + mark.length : undefined;
  };
}
const okFollows: Tail = (log, from) =>
  log.startsWith('\nok', from) && endsLine(log, from + 3) ? from + 3 : undefined;
/** `(.*)/\nok$`: the line itself must end in a slash. */
function slashTail(): Tail {
  let end = -1;
  return (log, from) => {
    if (end < from) end = log.indexOf('\n', from);
    if (end < 0) end = log.length;
    return end > from && log[end - 1] === '/' ? okFollows(log, end) : undefined;
  };
}

const message = (text: string) => pythonRegex(`<SPACE>\\.\\.\\.<SPACE>${text}`, 'g');
const INTERRUPTIONS: readonly [text: RegExp, tail: () => Tail][] = [
  [message('Testing against Django installed in '), silencedTail],
  [message('Internal Server Error: /'), slashTail],
  [message('System check identified no issues \\(0 silenced\\)'), () => okFollows],
];

/** A test's line that a long message interrupted: `name ... <message>\nok`. Matches do not overlap, as with `re.finditer`. */
function djangoInterrupted(log: string, found: StatusMap): void {
  for (const [text, tailOf] of INTERRUPTIONS) {
    const tail = tailOf();
    let done = 0;
    let start = 0;
    let next = 0;
    for (const match of log.matchAll(text)) {
      for (; next <= match.index; next = log.indexOf('\n', start) + 1 || Number.POSITIVE_INFINITY)
        start = next;
      if (start < done) continue;
      const end = tail(log, match.index + match[0].length);
      if (end === undefined) continue;
      found.set(log.slice(start, match.index), 'PASSED');
      done = end;
    }
  }
}

export const parseDjango: LogParser = (log) => {
  const found = new StatusMap();
  djangoLines(log, found);
  djangoInterrupted(log, found);
  return found;
};

/** `____ path/test_x.py:test_name ____`: one heading a line, cut at its first and last space. */
function sympyHeading(line: string): string | undefined {
  const first = line.indexOf(' ');
  const last = line.lastIndexOf(' ');
  if (first < 0 || last < first + 5) return undefined;
  const mark = line.lastIndexOf('.py:', last - 4);
  if (mark <= first) return undefined;
  return line.slice(first + 1, last);
}

export const parseSympy: LogParser = (log) => {
  const found = new StatusMap();
  eachLineWith(log, '.py:', (line) => {
    const heading = sympyHeading(line);
    if (heading !== undefined) found.set(heading, 'FAILED');
  });
  eachLineWith(log, 'test_', (raw) => {
    const line = strip(raw);
    if (!line.startsWith('test_')) return;
    const name = tokens(line)[0]!;
    if (line.endsWith(' E')) found.set(name, 'ERROR');
    if (line.endsWith(' F')) found.set(name, 'FAILED');
    if (line.endsWith(' ok')) found.set(name, 'PASSED');
  });
  return found;
};
