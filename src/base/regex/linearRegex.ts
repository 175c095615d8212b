/**
 * Regular expressions that come as data (a configuration, a flag) meet text that nobody bounds. V8 goes back and forth in such a text and
 * can take minutes; RE2 reads it once. A pattern is written for JavaScript and means here what it means there.
 */
import { RE2JS } from 're2js';
import { errorText } from '../text/errorText.ts';
import { translateToRe2, UnsupportedPattern } from './re2Syntax.ts';

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

/** Why `source` cannot be used, or null. */
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
