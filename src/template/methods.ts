/** Methods of Python's texts, lists and mappings that change nothing. Others are refused when the configuration loads. */

import { braceFormat } from '../base/python/format.ts';
import { splitLines } from '../base/python/lines.ts';
import {
  codePoints,
  isSpace,
  sliceText,
  stripChars,
  stripEnd,
  stripStart,
  tokens,
} from '../base/python/text.ts';
import {
  contains,
  type Dict,
  equal,
  isDict,
  PyTuple,
  PyView,
  repr,
  text,
  truth,
  typeName,
} from '../base/python/values.ts';
import { TemplateError } from './parse.ts';
import { bind, misfit, type Named, type Signature } from './signature.ts';

/** The first character as a title has it, then small letters. `upper` takes capitals where a title has its own form. */
export function capitalized(value: string, upper = false): string {
  const [first = ''] = value;
  const big = first.toUpperCase();
  const head =
    upper || codePoints(big) === 1 ? big : sliceText(big, 0, 1) + sliceText(big, 1, null).toLowerCase();
  return head + value.slice(first.length).toLowerCase();
}

/** Python puts the odd blank on the left where text and width are both even or both odd. */
export function centered(value: string, width: unknown, fill: unknown): string {
  const [size, room] = [codePoints(value), wide(width)];
  const missing = Math.max(0, room - size);
  const left = (missing >> 1) + (missing & room & 1);
  return filler(fill).repeat(left) + value + filler(fill).repeat(missing - left);
}

const WIDEST = 10_000;
function wide(given: unknown): number {
  const width = Number(given);
  if (!Number.isInteger(width) || width > WIDEST)
    throw new TemplateError(`a width of ${text(given)} is not possible in templates here`);
  return Math.max(0, width);
}
function filler(given: unknown): string {
  const fill = given === undefined ? ' ' : text(given);
  if (codePoints(fill) !== 1)
    throw new TemplateError('the fill character must be exactly one character long');
  return fill;
}

/** `text.replace(old, fresh, count)` */
export function replaced(value: string, old: string, fresh: string, count: unknown): string {
  const limit = count === undefined || count === null ? -1 : Number(count);
  if (limit === 0) return value;
  if (old === '') {
    const parts = [...value];
    const cuts = limit < 0 ? parts.length + 1 : Math.min(limit, parts.length + 1);
    return (
      parts.map((char, i) => (i < cuts ? fresh + char : char)).join('') + (cuts > parts.length ? fresh : '')
    );
  }
  if (limit < 0) return value.replaceAll(old, () => fresh);
  const parts = value.split(old);
  return parts.length <= limit + 1
    ? parts.join(fresh)
    : [...parts.slice(0, limit), parts.slice(limit).join(old)].join(fresh);
}

interface Method<T> extends Signature {
  readonly apply: (self: T, args: readonly unknown[], named: Named) => unknown;
}
const method = <T>(params: string, apply: (self: T, ...args: unknown[]) => unknown): Method<T> => ({
  params: params.split(' ').filter(Boolean),
  apply: (self, args) => apply(self, ...args),
});
const ofText = (params: string, apply: (self: string, ...args: unknown[]) => unknown): Method<string> =>
  method(params, apply);

const optionalText = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : asText(value);
function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new TemplateError(`a text is needed, not ${typeName(value)}`);
}

function split(self: string, separator: string | undefined, limit: number): string[] {
  if (separator === '') throw new TemplateError('empty separator');
  const parts = separator === undefined ? tokens(self) : self.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  if (separator !== undefined) return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
  let rest = stripStart(self);
  const head = parts.slice(0, limit);
  for (const word of head) rest = stripStart(rest.slice(word.length));
  return [...head, rest];
}

function splitRight(self: string, separator: string | undefined, limit: number): string[] {
  if (separator === '') throw new TemplateError('empty separator');
  const parts = separator === undefined ? tokens(self) : self.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  const cut = parts.length - limit;
  if (separator !== undefined) return [parts.slice(0, cut).join(separator), ...parts.slice(cut)];
  let rest = stripEnd(self);
  const tail = parts.slice(cut);
  for (const word of tail.toReversed()) rest = stripEnd(rest.slice(0, rest.length - word.length));
  return [rest, ...tail];
}

/** Place of a part within `self[start:end]`, in characters; -1 where it is not. */
function find(self: string, part: unknown, start: unknown, end: unknown, fromRight: boolean): number {
  const bound = (given: unknown): number | null =>
    given === undefined || given === null ? null : Number(given);
  const [from, to] = [bound(start), bound(end)];
  const size = codePoints(self);
  const offset = from === null ? 0 : from < 0 ? Math.max(0, size + from) : from;
  if (offset > size) return -1;
  const within = sliceText(self, from, to);
  const at = fromRight ? within.lastIndexOf(asText(part)) : within.indexOf(asText(part));
  return at === -1 ? -1 : offset + codePoints(within.slice(0, at));
}
function index(self: string, part: unknown, start: unknown, end: unknown, fromRight: boolean): number {
  const at = find(self, part, start, end, fromRight);
  if (at === -1) throw new TemplateError('substring not found');
  return at;
}

function partition(self: string, separator: string, fromRight: boolean): PyTuple {
  if (separator === '') throw new TemplateError('empty separator');
  const at = fromRight ? self.lastIndexOf(separator) : self.indexOf(separator);
  if (at === -1) return PyTuple.holding(fromRight ? ['', '', self] : [self, '', '']);
  return PyTuple.holding([self.slice(0, at), separator, self.slice(at + separator.length)]);
}

function countOf(self: string, part: string, start: unknown, end: unknown): number {
  const bound = (given: unknown): number | null =>
    given === undefined || given === null ? null : Number(given);
  const within = sliceText(self, bound(start), bound(end));
  return part === '' ? codePoints(within) + 1 : within.split(part).length - 1;
}

function expandTabs(self: string, size: number): string {
  let column = 0;
  let out = '';
  for (const char of self) {
    const shown = char === '\t' ? ' '.repeat(size > 0 ? size - (column % size) : 0) : char;
    out += shown;
    column = char === '\n' || char === '\r' ? 0 : column + (char === '\t' ? shown.length : 1);
  }
  return out;
}

function affixes(value: unknown): string[] {
  if (value instanceof PyTuple) return Array.from(value, asText);
  return [asText(value)];
}

function zeroFill(self: string, width: unknown): string {
  const sign = /^[-+]/.exec(self)?.[0] ?? '';
  const missing = Math.max(0, wide(width) - codePoints(self));
  return sign + '0'.repeat(missing) + self.slice(sign.length);
}

const only = (pattern: RegExp): Method<string> => ofText('', (s) => pattern.test(s));

const STRING_METHODS: Readonly<Record<string, Method<string>>> = {
  capitalize: ofText('', (s) => capitalized(s)),
  casefold: ofText('', (s) => s.toLowerCase().replaceAll('ß', 'ss')),
  center: ofText('width fillchar', (s, width, fill) => centered(s, width, fill)),
  count: ofText('sub start end', (s, part, start, end) => countOf(s, asText(part), start, end)),
  endswith: ofText('suffix', (s, suffix) => affixes(suffix).some((one) => s.endsWith(one))),
  expandtabs: ofText('tabsize', (s, size = 8) => expandTabs(s, wide(size))),
  find: ofText('sub start end', (s, part, start, end) => find(s, part, start, end, false)),
  format: { params: null, apply: (s, args, named) => braceFormat(s, args, named) },
  index: ofText('sub start end', (s, part, start, end) => index(s, part, start, end, false)),
  isalnum: only(/^[\p{L}\p{N}]+$/u),
  isalpha: only(/^\p{L}+$/u),
  isdecimal: only(/^\p{Nd}+$/u),
  isdigit: only(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+$/u),
  islower: ofText('', (s) => s === s.toLowerCase() && s !== s.toUpperCase()),
  isnumeric: only(/^\p{N}+$/u),
  isspace: ofText('', (s) => s !== '' && Array.from(s).every((char) => isSpace(char.codePointAt(0)!))),
  isupper: ofText('', (s) => s === s.toUpperCase() && s !== s.toLowerCase()),
  join: ofText('iterable', (s, items) =>
    Array.from(items as readonly unknown[], (item) => asText(item)).join(s),
  ),
  ljust: ofText(
    'width fillchar',
    (s, width, fill) => s + filler(fill).repeat(Math.max(0, wide(width) - codePoints(s))),
  ),
  lower: ofText('', (s) => s.toLowerCase()),
  lstrip: ofText('chars', (s, chars) => stripChars(s, optionalText(chars), 'left')),
  partition: ofText('sep', (s, separator) => partition(s, asText(separator), false)),
  removeprefix: ofText('prefix', (s, p) => (s.startsWith(asText(p)) ? s.slice(asText(p).length) : s)),
  removesuffix: ofText('suffix', (s, p) =>
    asText(p) && s.endsWith(asText(p)) ? s.slice(0, -asText(p).length) : s,
  ),
  replace: ofText('old new count', (s, old, fresh, count) => replaced(s, asText(old), asText(fresh), count)),
  rfind: ofText('sub start end', (s, part, start, end) => find(s, part, start, end, true)),
  rindex: ofText('sub start end', (s, part, start, end) => index(s, part, start, end, true)),
  rjust: ofText(
    'width fillchar',
    (s, width, fill) => filler(fill).repeat(Math.max(0, wide(width) - codePoints(s))) + s,
  ),
  rpartition: ofText('sep', (s, separator) => partition(s, asText(separator), true)),
  rsplit: ofText('sep maxsplit', (s, separator, limit = -1) =>
    splitRight(s, optionalText(separator), Number(limit)),
  ),
  rstrip: ofText('chars', (s, chars) => stripChars(s, optionalText(chars), 'right')),
  split: ofText('sep maxsplit', (s, separator, limit = -1) =>
    split(s, optionalText(separator), Number(limit)),
  ),
  splitlines: ofText('keepends', (s, keep = false) => splitLines(s, truth(keep))),
  startswith: ofText('prefix', (s, prefix) => affixes(prefix).some((one) => s.startsWith(one))),
  strip: ofText('chars', (s, chars) => stripChars(s, optionalText(chars))),
  swapcase: ofText('', (s) =>
    Array.from(s, (char) => (char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase())).join(''),
  ),
  title: ofText('', (s) => s.replace(/\p{L}+/gu, (word) => capitalized(word))),
  upper: ofText('', (s) => s.toUpperCase()),
  zfill: ofText('width', zeroFill),
};

const DICT_METHODS: Readonly<Record<string, Method<Dict>>> = {
  get: method('key default', (d, key, fallback = null) =>
    typeof key === 'string' && Object.hasOwn(d, key) ? d[key] : fallback,
  ),
  items: method('', (d) =>
    PyView.over(
      Object.entries(d).map((pair) => PyTuple.holding(pair)),
      'dict_items',
    ),
  ),
  keys: method('', (d) => PyView.over(Object.keys(d), 'dict_keys')),
  values: method('', (d) => PyView.over(Object.values(d), 'dict_values')),
};

/** All methods of Python's mappings. */
export const OF_MAPPINGS: ReadonlySet<string> = new Set([
  ...Object.keys(DICT_METHODS),
  ...['clear', 'copy', 'fromkeys', 'pop', 'popitem', 'setdefault', 'update'],
]);

const LIST_METHODS: Readonly<Record<string, Method<readonly unknown[]>>> = {
  count: method('value', (l, item) => l.filter((other) => equal(other, item)).length),
  index: method('value', (l, item) => {
    if (!contains(l, item)) throw new TemplateError(`${repr(item)} is not in list`);
    return l.findIndex((other) => equal(other, item));
  }),
};

/** Methods of the objects that Jinja2 itself makes: loops and `cycler`. */
const OF_OBJECTS = ['changed', 'cycle', 'next', 'reset'];

const ALL = [STRING_METHODS, DICT_METHODS, LIST_METHODS] as readonly Readonly<Record<string, Signature>>[];

export const METHOD_NAMES: ReadonlySet<string> = new Set(ALL.flatMap((methods) => Object.keys(methods)));

/** One sentence where no value has a method of this name that takes these arguments, or null. */
export function wrongCall(name: string, given: number, named: readonly string[]): string | null {
  if (OF_OBJECTS.includes(name)) return null;
  const found = ALL.flatMap((methods) => (Object.hasOwn(methods, name) ? [methods[name] as Signature] : []));
  if (found.length === 0) return `there is no method '${name}' to call`;
  const wrong = found.map((signature) => misfit(`method '${name}'`, signature, given, named));
  return wrong.includes(null) ? null : (wrong[0] ?? null);
}

/** The method bound to its value, or undefined. */
export function methodOf(
  value: unknown,
  name: string,
): ((args: readonly unknown[], named: Named) => unknown) | undefined {
  if (typeof value === 'string') return bound(STRING_METHODS, value, name);
  if (Array.isArray(value)) return bound(LIST_METHODS, value, name);
  return isDict(value) ? bound(DICT_METHODS, value, name) : undefined;
}

function bound<T>(methods: Readonly<Record<string, Method<T>>>, self: T, name: string) {
  const found = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (!found) return undefined;
  return (args: readonly unknown[], named: Named): unknown => {
    const wrong = misfit(`method '${name}'`, found, args.length, Object.keys(named));
    if (wrong) throw new TemplateError(wrong);
    return found.apply(self, bind(found, args, named), named);
  };
}
