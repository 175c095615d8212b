/**
 * Regular expressions that come as data (a configuration, a flag) meet text that nobody bounds. V8 goes back and forth in such a text and
 * can take minutes; RE2 reads it once. A pattern is written for JavaScript and means here what it means there.
 */
import { RE2JS } from 're2js';
import { errorText } from '../text/errorText.ts';

export interface LinearMatch {
  readonly index: number;
  readonly text: string;
  /** The first capture group; null where there is none or it took no part. */
  readonly group: string | null;
}
export interface LinearRegex {
  /** The first match at or after `from`. */
  search(text: string, from?: number): LinearMatch | null;
  /** Matches one after the other, at most `limit` of them. */
  all(text: string, limit: number): LinearMatch[];
  /** Python's `re.match`: the match begins at the beginning. */
  matchesAtStart(text: string): boolean;
}

/** A person writes some hundred characters. */
export const LONGEST_PATTERN = 10_000;

function compile(source: string, flags: string): RE2JS {
  if (source.length > LONGEST_PATTERN)
    throw new UnsupportedPattern(`more than ${LONGEST_PATTERN} characters`);
  new RegExp(source, flags);
  const { pattern, lookbehind } = translateToRe2(source, flags);
  try {
    return RE2JS.compile(pattern, lookbehind ? RE2JS.LOOKBEHINDS : 0);
  } catch (error) {
    throw new UnsupportedPattern(errorText(error));
  }
}

/** Throws a SyntaxError for a pattern that JavaScript refuses, and UnsupportedPattern for one that cannot be matched in one pass. */
export function linearRegex(source: string, flags = ''): LinearRegex {
  const regex = compile(source, flags);
  const hasGroup = regex.groupCount() > 0;
  type Matcher = ReturnType<RE2JS['matcher']>;
  const found = (matcher: Matcher): LinearMatch => ({
    index: matcher.start(),
    text: matcher.group() ?? '',
    group: hasGroup ? matcher.group(1) : null,
  });
  return {
    search(text, from = 0) {
      const matcher = regex.matcher(text);
      return matcher.find(from) ? found(matcher) : null;
    },
    all(text, limit) {
      const matcher = regex.matcher(text);
      const matches: LinearMatch[] = [];
      while (matches.length < limit && matcher.find()) matches.push(found(matcher));
      return matches;
    },
    matchesAtStart: (text) => regex.matcher(text).lookingAt(),
  };
}

/** The reason why `source` cannot be used, or null. */
export function linearProblem(source: string, flags = ''): string | null {
  try {
    linearRegex(source, flags);
    return null;
  } catch (error) {
    return error instanceof UnsupportedPattern
      ? `uses ${error.message}, which cannot be matched in linear time`
      : 'is not a regular expression of JavaScript';
  }
}

const compiled = new WeakMap<RegExp, LinearRegex>();
/** The same pattern, read in one pass. Flags g and y mean nothing here. */
export function linearOf(regex: RegExp): LinearRegex {
  const known = compiled.get(regex) ?? linearRegex(regex.source, regex.flags.replaceAll(/[gyd]/g, ''));
  compiled.set(regex, known);
  return known;
}

/** A pattern of JavaScript (without the flags u and v) in RE2's syntax. The two agree on most; what differs is written out. */

/** Features that RE2 lacks, named for people. */
export class UnsupportedPattern extends Error {
  override readonly name = 'UnsupportedPattern';
}

interface Re2Pattern {
  readonly pattern: string;
  readonly lookbehind: boolean;
}

// RE2's own \s is ASCII.
const SPACE =
  '\\t-\\r \\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}';
const NO_SPACE =
  '\\x{0}-\\x{8}\\x{E}-\\x{1F}!-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{FEFE}\\x{FF00}-\\x{10FFFF}';
const CLASSES: Readonly<Record<string, string>> = {
  d: '0-9',
  D: '\\x{0}-/:-\\x{10FFFF}',
  w: '0-9A-Za-z_',
  W: '\\x{0}-/:-@\\[-^`{-\\x{10FFFF}',
  s: SPACE,
  S: NO_SPACE,
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };
const ANY = '(?s:.)';
const NO_LINE_END = '[^\\n\\r\\x{2028}\\x{2029}]';

const point = (code: number): string => `\\x{${code.toString(16).toUpperCase()}}`;
const literal = (char: string): string =>
  /^[A-Za-z0-9_]$/.test(char) ? char : point(char.codePointAt(0) ?? 0);

/** One escape: the character it stands for, or the class. */
type Escape = { readonly length: number } & ({ readonly code: number } | { readonly set: string });

function readEscape(source: string, at: number): Escape {
  const next = source[at + 1] ?? '';
  const set = CLASSES[next];
  if (set !== undefined) return { length: 2, set };
  const control = CONTROLS[next];
  if (control !== undefined) return { length: 2, code: control };
  const hex = /^(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))/.exec(source.slice(at + 1, at + 6));
  if (hex) return { length: hex[0].length + 1, code: Number.parseInt(hex[1] ?? hex[2] ?? '', 16) };
  if (next === 'c' && /[A-Za-z]/.test(source[at + 2] ?? ''))
    return { length: 3, code: source.charCodeAt(at + 2) % 32 };
  if (next === '0' && !/\d/.test(source[at + 2] ?? '')) return { length: 2, code: 0 };
  if (/\d/.test(next)) throw new UnsupportedPattern('a back reference or octal escape');
  if (next === 'k') throw new UnsupportedPattern('a named back reference');
  const code = source.codePointAt(at + 1) ?? 0x5c;
  return { length: code > 0xffff ? 3 : 2, code };
}

/** The class that opens at `at`, and where it ends. */
function readClass(source: string, at: number): { text: string; end: number } {
  const negated = source[at + 1] === '^';
  let i = at + (negated ? 2 : 1);
  let body = '';
  const item = (): Escape => {
    if (source.startsWith('\\b', i)) return { length: 2, code: 8 };
    if (source[i] === '\\') return readEscape(source, i);
    const code = source.codePointAt(i) ?? 0;
    return { length: code > 0xffff ? 2 : 1, code };
  };
  while (source[i] !== ']') {
    const first = item();
    i += first.length;
    if ('set' in first) body += first.set;
    else if (source[i] === '-' && source[i + 1] !== ']') {
      i += 1;
      const last = item();
      i += last.length;
      // A class on the right makes the dash an ordinary character.
      body +=
        'set' in last ? `${point(first.code)}\\-${last.set}` : `${point(first.code)}-${point(last.code)}`;
    } else body += point(first.code);
    if ('set' in first && source[i] === '-' && source[i + 1] !== ']') {
      body += '\\-';
      i += 1;
    }
  }
  const nothing = '[^\\x{0}-\\x{10FFFF}]';
  const text = body === '' ? (negated ? ANY : nothing) : `[${negated ? '^' : ''}${body}]`;
  return { text, end: i + 1 };
}

/** The forms that are written for Python's \Z and \A, which RE2 has. */
const ENDS: readonly (readonly [string, string])[] = [
  ['(?![\\s\\S])', '\\z'],
  ['(?<![\\s\\S])', '\\A'],
];

/** The opening of a group at `at`. */
function readGroup(source: string, at: number): { text: string; length: number; lookbehind?: boolean } {
  for (const [written, meant] of ENDS)
    if (source.startsWith(written, at)) return { text: meant, length: written.length };
  const opening = /^\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/.exec(source.slice(at, at + 200))?.[0] ?? '(';
  if (/^\(\?[=!]/.test(opening)) throw new UnsupportedPattern('a look-ahead');
  if (/^\(\?<[=!]/.test(opening)) return { text: opening, length: opening.length, lookbehind: true };
  if (opening.startsWith('(?<')) return { text: '(', length: opening.length };
  if (opening !== '(?:' && opening !== '(' && opening !== '(?i:' && opening !== '(?-i:')
    throw new UnsupportedPattern('inline flags');
  return { text: opening, length: opening.length };
}

/** `source` must be valid JavaScript. */
function translateToRe2(source: string, flags: string): Re2Pattern {
  if (/[uv]/.test(flags)) throw new UnsupportedPattern('the flag u or v');
  const multiline = flags.includes('m');
  const simple: Readonly<Record<string, string>> = {
    '.': flags.includes('s') ? ANY : NO_LINE_END,
    '^': multiline ? '(?m:^)' : '\\A',
    $: multiline ? '(?m:$)' : '\\z',
    ...Object.fromEntries([...'|)*+?'].map((char) => [char, char])),
  };
  let pattern = flags.includes('i') ? '(?i)' : '';
  let lookbehind = false;
  for (let i = 0; i < source.length; ) {
    const char = String.fromCodePoint(source.codePointAt(i) ?? 0);
    if (char === '\\' && /[bB]/.test(source[i + 1] ?? '')) {
      pattern += source.slice(i, i + 2);
      i += 2;
    } else if (char === '\\') {
      const meant = readEscape(source, i);
      pattern += 'set' in meant ? `[${meant.set}]` : point(meant.code);
      i += meant.length;
    } else if (char === '[') {
      const { text, end } = readClass(source, i);
      pattern += text;
      i = end;
    } else if (char === '(') {
      const group = readGroup(source, i);
      pattern += group.text;
      lookbehind ||= group.lookbehind ?? false;
      i += group.length;
    } else {
      const quantifier = char === '{' ? /^\{\d+(?:,\d*)?\}/.exec(source.slice(i, i + 30))?.[0] : undefined;
      pattern += quantifier ?? simple[char] ?? literal(char);
      i += quantifier?.length ?? char.length;
    }
  }
  return { pattern, lookbehind };
}
