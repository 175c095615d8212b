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
