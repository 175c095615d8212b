/**
 * `re.match` of Python for instance ids: anchored at the start only. Python spells a few things differently from JavaScript; the ones a
 * filter may meet are rewritten here, and whatever JavaScript then refuses is reported as a mistake in the pattern.
 */

import { linearRegex, UnsupportedPattern } from '../regex/linearRegex.ts';
import { errorText } from '../text/errorText.ts';

const INLINE_FLAGS: Readonly<Record<string, string>> = { i: 'i', s: 's', m: 'm', a: '', u: '' };

/** The same pattern in JavaScript's syntax. Character classes and escapes are left alone but for Python's `[]...]` and `\A`, `\Z`. */
function translate(pattern: string): string {
  let out = '';
  let inClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i]!;
    const rest = pattern.slice(i);
    if (c === '\\') {
      const next = pattern[i + 1] ?? '';
      out += !inClass && next === 'A' ? '^' : !inClass && next === 'Z' ? '$' : c + next;
      i++;
    } else if (inClass) {
      inClass = c !== ']';
      out += c;
    } else if (c === '[') {
      const opening = /^\[\^?\]?/.exec(rest)![0];
      out += opening.endsWith(']') ? `${opening.slice(0, -1)}\\]` : opening;
      i += opening.length - 1;
      inClass = true;
    } else if (rest.startsWith('(?P<')) {
      out += '(?<';
      i += 3;
    } else if (/^\(\?P=(\w+)\)/.test(rest)) {
      const name = /^\(\?P=(\w+)\)/.exec(rest)![1]!;
      out += `\\k<${name}>`;
      i += name.length + 4;
    } else if (/^\(\?#[^)]*\)/.test(rest)) {
      i += rest.indexOf(')');
    } else if (/^\{,\d+\}/.test(rest)) {
      out += '{0';
    } else {
      out += c;
    }
  }
  return out;
}

/**
 * In one pass where that can be. An id is at most a file name long, and the pattern is of the person who waits: with a look-ahead or a back
 * reference, which only JavaScript's engine knows, that is bound enough.
 */
function matcherOf(source: string, flags: string): (text: string) => boolean {
  try {
    return linearRegex(source, flags).matchesAtStart;
  } catch (error) {
    if (!(error instanceof UnsupportedPattern)) throw error;
    const regex = new RegExp(source, `y${flags}`);
    return (text) => {
      regex.lastIndex = 0; // sticky: the match must begin there, as re.match demands
      return regex.test(text);
    };
  }
}

type ParsedFilter = { ok: true; matches: (text: string) => boolean } | { ok: false; message: string };

const LONGEST_PATTERN = 10_000;

export function parseFilter(pattern: string): ParsedFilter {
  if (pattern.length > LONGEST_PATTERN)
    return { ok: false, message: `--filter has more than ${LONGEST_PATTERN} characters` };
  const global = /^\(\?([a-z]+)\)/.exec(pattern);
  const letters = [...(global?.[1] ?? '')];
  const unknown = letters.find((letter) => !(letter in INLINE_FLAGS));
  if (unknown !== undefined)
    return {
      ok: false,
      message: `--filter "${pattern}" uses the flag (?${unknown}), which is not supported`,
    };
  const flags = new Set(letters.map((letter) => INLINE_FLAGS[letter]!));
  try {
    return {
      ok: true,
      matches: matcherOf(translate(pattern.slice(global?.[0].length ?? 0)), [...flags].join('')),
    };
  } catch (error) {
    const reason = errorText(error);
    return { ok: false, message: `--filter "${pattern}" is not a regular expression: ${reason}` };
  }
}
