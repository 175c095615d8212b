/** Parsers of SWE-bench Multimodal that record failures and nothing else; grading treats a test that is absent as passed (`fail_only`). */

import { eachLine } from '../../base/python/lines.ts';
import {
  digitsEnd,
  indentOf,
  isSpace,
  isSpaceAt,
  squeeze,
  strip,
  stripEnd,
  withoutAnsi,
} from '../../base/python/text.ts';
import { byLine, type LogParser, lastMatch, pythonRegex, StatusMap } from './logParser.ts';

interface FailedLines {
  readonly head: RegExp;
  /** Makes the name of what stands between head and FAILED; undefined when it is not a test after all. */
  readonly name: (between: string) => string | undefined;
  /** FAILED may also stand at the very end of the log, not only before a line end. */
  readonly lastLine?: boolean;
  /** FAILED may stand alone on the next line. */
  readonly nextLine?: boolean;
}

/** `<head><name>FAILED` at the end of a line. One try a line is enough: where the first head of a line fails, so do the others. */
function failedLines(log: string, form: FailedLines, take: (name: string) => void): void {
  let consumed = 0;
  let tried = -1;
  for (const match of log.matchAll(form.head)) {
    const from = match.index + match[0].length;
    if (match.index < consumed || from <= tried) continue;
    const next = log.indexOf('\n', from);
    if (next < 0 && !form.lastLine) return;
    const end = next < 0 ? log.length : next;
    tried = end;
    if (form.nextLine && log.startsWith('FAILED\n', end + 1)) {
      take(log.slice(from, end));
      consumed = end + 'FAILED\n'.length;
      continue;
    }
    if (end - 6 < from || !log.endsWith('FAILED', end)) continue;
    const found = form.name(log.slice(from, end - 6));
    if (found === undefined) continue;
    take(found);
    consumed = end;
  }
}

const CHART_HEAD = pythonRegex('Chrome<SPACE>[\\p{Nd}.]+(?!\\n)<SPACE>\\(', 'gu');
const PAREN_SPACE = pythonRegex('\\)(?!\\n)<SPACE>', '');
export const parseChartJs: LogParser = (raw) => {
  const found = new StatusMap();
  const between = (text: string) => {
    const inside = text.slice(1);
    const end = PAREN_SPACE.exec(inside);
    return end === null ? undefined : inside.slice(end.index + 2);
  };
  failedLines(withoutAnsi(raw), { head: CHART_HEAD, name: between, lastLine: true }, (name) =>
    found.set(name, 'FAILED'),
  );
  return found;
};

export const parseMarked = byLine((line, found) => {
  const digits = digitsEnd(line, 0);
  if (digits > 0 && line[digits] === ')' && isSpaceAt(line, digits + 1))
    found.set(strip(line.slice(digits + 2)), 'FAILED');
});

const LINUX = '\\(Linux<SPACE>[\\p{Nd}.]+\\)<SPACE>';
const BPMN_HEADS = [
  pythonRegex(`2KPhantomJS<SPACE>[\\p{Nd}.]+<SPACE>${LINUX}`, 'gu'),
  pythonRegex('2KPhantomJS<SPACE>[\\p{Nd}.]+<SPACE>\\(Linux<SPACE>x86_64\\)<SPACE>', 'gu'),
  pythonRegex('Chrome<SPACE>Headless<SPACE>', 'gu'),
  pythonRegex(`HeadlessChrome<SPACE>[\\p{Nd}.]+<SPACE>${LINUX}`, 'gu'),
] as const;
const CHROME_PLATFORM = pythonRegex('<SPACE>\\(Linux<SPACE>x86_64\\)<SPACE>', 'gu');

export const parseBpmnJs: LogParser = (log) => {
  const found = new StatusMap();
  const afterPlatform = (text: string) => {
    const at = lastMatch(text, CHROME_PLATFORM);
    return at === undefined ? undefined : text.slice(at + ' (Linux x86_64) '.length);
  };
  for (const head of BPMN_HEADS)
    failedLines(log, { head, name: head === BPMN_HEADS[2] ? afterPlatform : (text) => text }, (name) =>
      found.set(name, 'FAILED'),
    );
  return found;
};

const OPENLAYERS_BROWSER = '<SPACE>[\\p{Nd}.]+<SPACE>\\(Linux<SPACE><TEXT>+\\)<SPACE>';
const OPENLAYERS_HEADLESS = pythonRegex(`Chrome<SPACE>Headless${OPENLAYERS_BROWSER}`, 'gu');
const OPENLAYERS_CHROME = pythonRegex(`Chrome${OPENLAYERS_BROWSER}`, 'gu');
const OPENLAYERS_NUMBERED = pythonRegex('(?<![^\\n])<SPACE>{2}\\p{Nd}+\\)', 'gu');
const MISMATCH = pythonRegex(':<SPACE>mismatch', 'g');

export const parseOpenlayers: LogParser = (log) => {
  const found = new StatusMap();
  const take = (name: string) => found.set(squeeze(name), 'FAILED');
  const beforeSpace = (text: string) => (isSpaceAt(text, text.length - 1) ? text.slice(0, -1) : undefined);
  failedLines(log, { head: OPENLAYERS_HEADLESS, name: beforeSpace, nextLine: true }, take);
  failedLines(log, { head: OPENLAYERS_CHROME, name: (text) => text }, take);
  let done = 0;
  for (const match of log.matchAll(OPENLAYERS_NUMBERED)) {
    if (match.index < done) continue;
    const from = match.index + match[0].length;
    const end = log.indexOf('Error:', from);
    if (end < 0) break;
    take(log.slice(from, end));
    done = end + 'Error:'.length;
  }
  eachLine(log, (line) => {
    if (!line.startsWith('case') || !isSpaceAt(line, 4)) return;
    const end = lastMatch(line, MISMATCH, 5);
    if (end !== undefined) take(line.slice(5, end));
  });
  return found;
};

const ESLINT_HEAD = pythonRegex('<SPACE>{2}\\p{Nd}+\\)', 'gu');

const GAP = pythonRegex('<SPACE>', '');

/** Where the title after `from` ends and where its `…Error` ends: the first run of white space with "Error" behind it on its line. */
function eslintTitle(log: string, from: number): { title: number; end: number } | undefined {
  const newline = log.indexOf('\n', from);
  const own = log.slice(from, newline < 0 ? log.length : newline);
  const gap = own.search(GAP);
  const last = own.lastIndexOf('Error');
  if (gap >= 0 && last >= gap + indentOf(own.slice(gap))) return { title: from + gap, end: from + last + 5 };
  const error = newline < 0 ? -1 : log.indexOf('Error', newline);
  if (error < 0) return undefined;
  let title = log.lastIndexOf('\n', error);
  while (title > from && isSpace(log.charCodeAt(title - 1))) title--;
  const lineEnd = log.indexOf('\n', error);
  return { title, end: log.lastIndexOf('Error', lineEnd < 0 ? log.length : lineEnd) + 5 };
}
export const parseEslint: LogParser = (log) => {
  const found = new StatusMap();
  let done = 0;
  for (const match of log.matchAll(ESLINT_HEAD)) {
    if (match.index < done) continue;
    const from = match.index + match[0].length;
    const read = eslintTitle(log, from);
    if (read === undefined) break;
    found.set(squeeze(log.slice(from, read.title)), 'FAILED');
    done = read.end;
  }
  return found;
};

/** Drops blocks that open with `{` or `[` at the end of a line, and lines that are one object or list. */
function withoutJsonBlocks(log: string): string {
  if (!log.includes('{') && !log.includes('[')) return log;
  const kept: string[] = [];
  let inObject = false;
  let inList = false;
  /** The beginning of the lines that are kept together. */
  let from = -1;
  let at = 0;
  const keeps = (text: string): boolean => {
    if (text.endsWith('{')) inObject = true;
    else if (text.endsWith('[')) inList = true;
    else if (text === '}' && inObject) inObject = false;
    else if (text === ']' && inList) inList = false;
    else if (!inObject && !inList)
      return !((text.startsWith('{') && text.endsWith('}')) || (text.startsWith('[') && text.endsWith(']')));
    return false;
  };
  eachLine(log, (line) => {
    const keep = keeps(stripEnd(line));
    if (keep && from < 0) from = at;
    else if (!keep && from >= 0) {
      kept.push(log.slice(from, at - 1));
      from = -1;
    }
    at += line.length + 1;
    return undefined;
  });
  if (from >= 0) kept.push(log.slice(from));
  return kept.join('\n');
}

const OPEN_TAG = /<([\p{L}\p{N}_]+)>/gu;
const CLOSE_TAG = /<\/([\p{L}\p{N}_]+)>/gu;
interface Places {
  readonly at: number[];
  next: number;
}
function placesOf(log: string, pattern: RegExp): Map<string, Places> {
  const places = new Map<string, Places>();
  for (const match of log.matchAll(pattern)) {
    const known = places.get(match[1]!);
    if (known) known.at.push(match.index);
    else places.set(match[1]!, { at: [match.index], next: 0 });
  }
  return places;
}
/** First place at or after `from`; each list is only ever walked forward. */
function placeFrom(places: Places | undefined, from: number): number | undefined {
  if (places === undefined) return undefined;
  while (places.next < places.at.length && places.at[places.next]! < from) places.next++;
  return places.at[places.next];
}

/**
 * Removes `<tag>…</tag>`, nested ones too. The official loop searches again from the start after each cut; here the text is read once:
 * each closing tag ends one opening tag of its name, and what is open at the end stays as that many opening tags.
 */
function withoutXmlBlocks(log: string): string {
  const closers = placesOf(log, CLOSE_TAG);
  const openers = placesOf(log, OPEN_TAG);
  const kept: string[] = [];
  let from = 0;
  for (const match of log.matchAll(OPEN_TAG)) {
    if (match.index < from) continue;
    const tag = match[1]!;
    const same = openers.get(tag);
    if (placeFrom(closers.get(tag), match.index) === undefined) continue;
    kept.push(log.slice(from, match.index));
    let pending = 1;
    let at = match.index + match[0].length;
    while (pending > 0) {
      const close = placeFrom(closers.get(tag), at);
      if (close === undefined) break;
      for (
        let next = placeFrom(same, at);
        next !== undefined && next < close;
        next = placeFrom(same, next + 1)
      )
        pending++;
      pending--;
      at = close + tag.length + 3;
    }
    if (pending > 0) kept.push(`<${tag}>`.repeat(pending));
    from = at;
  }
  return kept.join('') + log.slice(from);
}

/** Each line of a title stands deeper than the one before. */
function deepens(title: string): boolean {
  let last = 0;
  for (const line of title.split('\n')) {
    const indent = indentOf(line);
    if (indent <= last) return false;
    last = indent;
  }
  return true;
}

const P5_TITLE = 1000;
const LF = 0x0a;
export const parseP5js: LogParser = (raw) => {
  const found = new StatusMap();
  const log = withoutXmlBlocks(withoutJsonBlocks(withoutAnsi(raw)));
  let done = 0;
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = log.charCodeAt(start) === LF ? start : log.indexOf('\n', start);
    if (end === start || start < done) continue;
    let at = start;
    while (at < log.length && isSpace(log.charCodeAt(at)) && log[at] !== '\n') at++;
    const digits = digitsEnd(log, at);
    if (digits === at || log[digits] !== ')') continue;
    const window = log.slice(digits + 1, digits + 2 + P5_TITLE);
    const length = window.indexOf(':');
    if (length < 0) continue;
    const title = window.slice(0, length);
    if (deepens(title)) found.set(title.split('\n').map(strip).join(':'), 'FAILED');
    done = digits + 2 + length;
  }
  return found;
};
