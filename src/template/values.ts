/**
 * Python's idea of values, as far as templates can see it: truth, text, equality, order, length and slices.
 * Lengths and slices count code points, not UTF-16 units.
 */
import { TemplateError } from './error.ts';

/** A number that Python would hold as a float, so that 2.0 prints as `2.0`. A plain JavaScript 2 prints as `2`. */
export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
  valueOf(): number {
    return this.value;
  }
  toJSON(): number {
    return this.value;
  }
  toString(): string {
    return floatText(this.value);
  }
}
export const float = (value: number): PyFloat => new PyFloat(value);

export type Dict = Readonly<Record<string, unknown>>;
export const isDict = (value: unknown): value is Dict =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof PyFloat);
export const isNumber = (value: unknown): value is number | PyFloat =>
  typeof value === 'number' || value instanceof PyFloat;
export const isFloat = (value: unknown): boolean =>
  value instanceof PyFloat || (typeof value === 'number' && !Number.isInteger(value));

export function typeName(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'boolean') return 'bool';
  if (isNumber(value)) return isFloat(value) ? 'float' : 'int';
  return Array.isArray(value) ? 'list' : 'dict';
}

export function truth(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  if (isNumber(value)) return Number(value) !== 0;
  if (isDict(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** repr of a float: shortest digits, always with a point or an exponent, which starts at 1e16 and below 1e-4. */
function floatText(n: number): string {
  if (Number.isNaN(n)) return 'nan';
  if (!Number.isFinite(n)) return n > 0 ? 'inf' : '-inf';
  const size = Math.abs(n);
  if (n !== 0 && (size >= 1e16 || size < 1e-4)) {
    const [digits, exponent] = n.toExponential().split('e') as [string, string];
    const sign = exponent.startsWith('-') ? '-' : '+';
    return `${digits}e${sign}${exponent.slice(1).padStart(2, '0')}`;
  }
  const text = Object.is(n, -0) ? '-0' : String(n);
  return text.includes('.') ? text : `${text}.0`;
}

/** str(value) */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : repr(value);
}

export function repr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'string') return stringRepr(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof PyFloat) return value.toString();
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : floatText(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (isDict(value))
    return `{${Object.entries(value)
      .map(([k, v]) => `${stringRepr(k)}: ${repr(v)}`)
      .join(', ')}}`;
  throw new TemplateError(`a template cannot print a ${typeof value}`);
}

function stringRepr(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  let out = '';
  for (const char of value) {
    const code = char.codePointAt(0) as number;
    if (char === '\\' || char === quote) out += `\\${char}`;
    else if (char === '\n') out += '\\n';
    else if (char === '\r') out += '\\r';
    else if (char === '\t') out += '\\t';
    else if (code < 0x20 || (code >= 0x7f && code < 0xa1) || code === 0xad)
      out += `\\x${code.toString(16).padStart(2, '0')}`;
    else if (/\p{C}|\p{Zl}|\p{Zp}|\p{Zs}/u.test(char) && char !== ' ')
      out +=
        code > 0xffff
          ? `\\U${code.toString(16).padStart(8, '0')}`
          : `\\u${code.toString(16).padStart(4, '0')}`;
    else out += char;
  }
  return quote + out + quote;
}

export function equal(a: unknown, b: unknown): boolean {
  const [x, y] = [plain(a), plain(b)];
  if (typeof x === 'number' && typeof y === 'number') return x === y;
  if (Array.isArray(x) && Array.isArray(y)) return x.length === y.length && x.every((v, i) => equal(v, y[i]));
  if (isDict(x) && isDict(y)) {
    const keys = Object.keys(x);
    return (
      keys.length === Object.keys(y).length && keys.every((k) => Object.hasOwn(y, k) && equal(x[k], y[k]))
    );
  }
  return x === y;
}
/** bool is an int in Python. */
function plain(value: unknown): unknown {
  if (value instanceof PyFloat) return value.value;
  return typeof value === 'boolean' ? Number(value) : value;
}

/** Negative, zero or positive; refuses to order what Python refuses to order. */
export function order(a: unknown, b: unknown): number {
  const [x, y] = [plain(a), plain(b)];
  if (typeof x === 'number' && typeof y === 'number') return x - y;
  if (typeof x === 'string' && typeof y === 'string') return compareText(x, y);
  if (Array.isArray(x) && Array.isArray(y)) {
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (!equal(x[i], y[i])) return order(x[i], y[i]);
    return x.length - y.length;
  }
  throw new TemplateError(`'<' not supported between '${typeName(a)}' and '${typeName(b)}'`);
}
/** By code point; UTF-16 order differs above U+FFFF. */
function compareText(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const difference = (x[i]?.codePointAt(0) ?? 0) - (y[i]?.codePointAt(0) ?? 0);
    if (difference) return difference;
  }
  return x.length - y.length;
}

export function contains(container: unknown, item: unknown): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string')
      throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return container.includes(item);
  }
  if (Array.isArray(container)) return container.some((value) => equal(value, item));
  if (isDict(container)) return typeof item === 'string' && Object.hasOwn(container, item);
  throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`);
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** len(text) without making an array of it: outputs reach megabytes. */
export function codePoints(value: string): number {
  let count = value.length;
  for (let i = 1; i < value.length; i++)
    if (isLow(value.charCodeAt(i)) && isHigh(value.charCodeAt(i - 1))) {
      count -= 1;
      i += 1;
    }
  return count;
}

export function length(value: unknown): number {
  if (typeof value === 'string') return codePoints(value);
  if (Array.isArray(value)) return value.length;
  if (isDict(value)) return Object.keys(value).length;
  throw new TemplateError(`object of type '${typeName(value)}' has no len()`);
}

/** Elements of whatever Python can loop over. */
export function iterate(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return Array.from(value);
  if (Array.isArray(value)) return value;
  if (isDict(value)) return Object.keys(value);
  throw new TemplateError(`'${typeName(value)}' object is not iterable`);
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

export function slice(
  value: unknown,
  start: number | null,
  stop: number | null,
  step: number | null,
): unknown {
  if (typeof value === 'string' && (step === null || step === 1)) return sliceText(value, start, stop);
  if (typeof value !== 'string' && !Array.isArray(value))
    throw new TemplateError(`'${typeName(value)}' object cannot be sliced`);
  const all: readonly unknown[] = typeof value === 'string' ? Array.from(value) : value;
  const picked = sliceArray(all, start, stop, step ?? 1);
  return typeof value === 'string' ? picked.join('') : picked;
}

/** The common case works from the two ends, so that a head or tail of a large text costs only what it shows. */
function sliceText(value: string, start: number | null, stop: number | null): string {
  const from =
    start === null || start >= 0 ? offsetFromStart(value, start ?? 0) : offsetFromEnd(value, -start);
  const to =
    stop === null ? value.length : stop >= 0 ? offsetFromStart(value, stop) : offsetFromEnd(value, -stop);
  return from < to ? value.slice(from, to) : '';
}

function sliceArray(
  all: readonly unknown[],
  start: number | null,
  stop: number | null,
  step: number,
): unknown[] {
  if (step === 0) throw new TemplateError('slice step cannot be zero');
  const n = all.length;
  const [low, high] = step > 0 ? [0, n] : [-1, n - 1];
  const clamp = (index: number): number => Math.min(Math.max(index < 0 ? index + n : index, low), high);
  const from = start === null ? (step > 0 ? low : high) : clamp(start);
  const to = stop === null ? (step > 0 ? high : low) : clamp(stop);
  const out: unknown[] = [];
  for (let i = from; step > 0 ? i < to : i > to; i += step) out.push(all[i]);
  return out;
}

/** json.dumps with sorted keys as Jinja2's tojson filter calls it, then its HTML-safe escapes. */
export function toJson(value: unknown): string {
  return jsonText(value).replace(
    /[<>&']|[^\0-~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
function jsonText(value: unknown): string {
  if (value instanceof PyFloat) return value.toString();
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`;
  if (isDict(value))
    return `{${Object.keys(value)
      .sort(compareText)
      .map((key) => `${JSON.stringify(key)}: ${jsonText(value[key])}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

/** Python's line breaks for str.splitlines. */
export const LINE_BREAK = /\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]/;
/** Python's str.isspace characters: JavaScript's trim also strips U+FEFF and misses \x1c-\x1f and \x85. */
export const SPACE =
  '\\t\\n\\v\\f\\r\\x1c-\\x1f \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

export function splitLines(value: string, keepEnds = false): string[] {
  const lines: string[] = [];
  const breaks = new RegExp(LINE_BREAK, 'g');
  let at = 0;
  for (const found of value.matchAll(breaks)) {
    const end = found.index + found[0].length;
    lines.push(value.slice(at, keepEnds ? end : found.index));
    at = end;
  }
  if (at < value.length) lines.push(value.slice(at));
  return lines;
}

/** str.strip: not JavaScript's trim, which also takes a BOM and leaves \x1c-\x1f and \x85. */
export function strip(value: string, chars?: string, side: 'both' | 'left' | 'right' = 'both'): string {
  const set = chars === undefined ? SPACE : chars.replace(/[\\\]^-]/g, '\\$&');
  if (set === '') return value;
  let [start, end] = [0, value.length];
  const member = new RegExp(`[${set}]`, 'u');
  const units = Array.from(value);
  if (side !== 'right')
    while (units[0] !== undefined && member.test(units[0])) start += units.shift()?.length ?? 0;
  if (side !== 'left')
    while (units.length && member.test(units[units.length - 1] as string)) end -= units.pop()?.length ?? 0;
  return value.slice(start, end);
}
