/**
 * Python's idea of white space, digits and word characters. The official parsers are Python, and expected test names were made by
 * them; JavaScript's `\s`, `trim`, `.` and `$` differ in a few characters that do occur in logs.
 */

/** Body of a character class: what `str.split()`, `str.strip()` and `\s` take in Python (adds 1C-1F and 85 to JavaScript's, lacks FEFF). */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const TOKEN = new RegExp(`[^${SPACE}]+`, 'g');
const SPACE_RUN = new RegExp(`[${SPACE}]+`, 'g');

export function isSpace(code: number): boolean {
  if (code <= 0x20) return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20);
  if (code < 0x1680) return code === 0x85 || code === 0xa0;
  return (
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}
export const isSpaceAt = (text: string, at: number): boolean =>
  at < text.length && isSpace(text.charCodeAt(at));

/** `text.split()`: the tokens between white space. */
export const tokens = (text: string): string[] => text.match(TOKEN) ?? [];

type IsOne = (code: number) => boolean;

function withoutStart(text: string, goes: IsOne): string {
  let from = 0;
  while (from < text.length && goes(text.codePointAt(from)!))
    from += text.codePointAt(from)! > 0xffff ? 2 : 1;
  return from === 0 ? text : text.slice(from);
}
function withoutEnd(text: string, goes: IsOne): string {
  let to = text.length;
  while (to > 0) {
    const start = to > 1 && text.codePointAt(to - 2)! > 0xffff ? to - 2 : to - 1;
    if (!goes(text.codePointAt(start)!)) break;
    to = start;
  }
  return to === text.length ? text : text.slice(0, to);
}

export const stripStart = (text: string): string => withoutStart(text, isSpace);
export const stripEnd = (text: string): string => withoutEnd(text, isSpace);
/** `text.strip()` */
export const strip = (text: string): string => stripStart(stripEnd(text));

/** `text.strip(chars)`, `lstrip` or `rstrip`; without `chars` white space goes. */
export function stripChars(
  text: string,
  chars: string | undefined,
  side: 'both' | 'left' | 'right' = 'both',
): string {
  const codes = new Set(Array.from(chars ?? '', (char) => char.codePointAt(0)!));
  const goes: IsOne = chars === undefined ? isSpace : (code) => codes.has(code);
  const left = side === 'left' ? text : withoutEnd(text, goes);
  return side === 'right' ? left : withoutStart(left, goes);
}

export const indentOf = (line: string): number => line.length - stripStart(line).length;

/** `re.sub(r"\s+", " ", text).strip()` */
export const squeeze = (text: string): string => strip(text.replace(SPACE_RUN, ' '));

const WORD = /[\p{L}\p{N}_]/u;
/** `\w`, looking at one UTF-16 unit. */
export const isWordAt = (text: string, at: number): boolean =>
  at >= 0 && at < text.length && WORD.test(text[at]!);

const DIGIT = /\p{Nd}/u;
const isDigitAt = (text: string, at: number): boolean => {
  if (at < 0 || at >= text.length) return false;
  const code = text.charCodeAt(at);
  return code < 0x80 ? code >= 0x30 && code <= 0x39 : DIGIT.test(text[at]!);
};
/** End of the run of digits that starts at `at`. */
export function digitsEnd(text: string, at: number): number {
  let end = at;
  while (isDigitAt(text, end)) end++;
  return end;
}

const ANSI = /\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g;
/** The official `ansi_escape`. */
export const withoutAnsi = (text: string): string => (text.includes('\x1b') ? text.replace(ANSI, '') : text);

/** Python counts and orders text by code points, JavaScript by UTF-16 units. Nothing here makes an array of a text: outputs reach megabytes. */

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** len(text) */
export function codePoints(value: string): number {
  let count = value.length;
  for (let i = 1; i < value.length; i++)
    if (isLow(value.charCodeAt(i)) && isHigh(value.charCodeAt(i - 1))) {
      count -= 1;
      i += 1;
    }
  return count;
}

/** Order of Python's `sorted` on strings. */
export function byCodePoint(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  if (at === shorter) return a.length - b.length;
  return pointAround(a, at) - pointAround(b, at);
}
/** The code point that the unit at `at` belongs to, be it the first or the second half. */
function pointAround(value: string, at: number): number {
  const second = at > 0 && isLow(value.charCodeAt(at)) && isHigh(value.charCodeAt(at - 1));
  return value.codePointAt(second ? at - 1 : at)!;
}

/** UTF-16 index of the nth code point from the front. */
function offsetFromStart(value: string, count: number): number {
  let at = 0;
  for (let n = 0; n < count && at < value.length; n++)
    at += isHigh(value.charCodeAt(at)) && isLow(value.charCodeAt(at + 1)) ? 2 : 1;
  return at;
}
/** UTF-16 index of the nth code point from the end. */
function offsetFromEnd(value: string, count: number): number {
  let at = value.length;
  for (let n = 0; n < count && at > 0; n++)
    at -= at > 1 && isLow(value.charCodeAt(at - 1)) && isHigh(value.charCodeAt(at - 2)) ? 2 : 1;
  return at;
}

/** text[start:stop], worked out from the two ends: a head or tail of a large text costs only what it shows. */
export function sliceText(value: string, start: number | null, stop: number | null): string {
  const from =
    start === null || start >= 0 ? offsetFromStart(value, start ?? 0) : offsetFromEnd(value, -start);
  const to =
    stop === null ? value.length : stop >= 0 ? offsetFromStart(value, stop) : offsetFromEnd(value, -stop);
  return from < to ? value.slice(from, to) : '';
}
