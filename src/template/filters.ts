/** Jinja2's filters and tests that a prompt can use. Names not listed here are refused when the config loads. */

import { sortedPythonJson } from '../base/python/json.ts';
import { splitLines } from '../base/python/lines.ts';
import { codePoints, sliceText, strip, stripChars, stripStart, tokens } from '../base/python/text.ts';
import {
  contains,
  type Dict,
  equal,
  float,
  isDict,
  isFloat,
  isNumber,
  iterate,
  length,
  order,
  PyFloat,
  repr,
  text,
  truth,
  typeName,
} from '../base/python/values.ts';
import { replaceUnits, unitsOf } from '../base/replaceUnits.ts';
import { TemplateError } from './parse.ts';

type Named = Readonly<Record<string, unknown>>;
type Filter = (value: unknown, args: readonly unknown[], named: Named) => unknown;

/** Positional or by name, as Python binds it. */
const arg = (
  args: readonly unknown[],
  named: Named,
  index: number,
  name: string,
  fallback: unknown,
): unknown => (index < args.length ? args[index] : Object.hasOwn(named, name) ? named[name] : fallback);

const asList = (value: unknown): unknown[] => [...iterate(value)];

function byAttribute(attribute: unknown): (item: unknown) => unknown {
  if (attribute === undefined || attribute === null) return (item) => item;
  return (item) =>
    String(attribute)
      .split('.')
      .reduce<unknown>((value, key) => {
        if (isDict(value) && Object.hasOwn(value, key)) return value[key];
        if (Array.isArray(value) && /^\d+$/.test(key)) return value[Number(key)];
        throw new TemplateError(`'${typeName(value)} object' has no attribute '${key}'`);
      }, item);
}

function sorted(
  value: unknown,
  key: (item: unknown) => unknown,
  caseSensitive: boolean,
  reverse: boolean,
): unknown[] {
  const fold = (v: unknown): unknown => (!caseSensitive && typeof v === 'string' ? v.toLowerCase() : v);
  const out = asList(value).sort((a, b) => order(fold(key(a)), fold(key(b))));
  return reverse ? out.reverse() : out;
}

function toInt(value: unknown, fallback: unknown): unknown {
  if (typeof value === 'boolean') return Number(value);
  if (isNumber(value)) return Math.trunc(Number(value));
  if (typeof value === 'string') {
    const t = strip(value);
    if (/^[-+]?\d+$/.test(t)) return Number(t);
    if (/^[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(t)) return Math.trunc(Number(t));
  }
  return fallback;
}
function toFloat(value: unknown, fallback: unknown): unknown {
  if (typeof value === 'boolean' || isNumber(value)) return float(Number(value));
  if (typeof value === 'string' && /^[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(strip(value)))
    return float(Number(strip(value)));
  return fallback;
}

/** Banker's rounding on the decimal digits, as Python's round. */
function round(value: unknown, digits: number, method: string): unknown {
  const n = Number(value);
  const scale = 10 ** digits;
  if (method === 'ceil') return float(Math.ceil(n * scale) / scale);
  if (method === 'floor') return float(Math.floor(n * scale) / scale);
  if (digits === 0) {
    const floor = Math.floor(n);
    const rest = n - floor;
    return float(rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1);
  }
  return float(digits > 0 ? Number(n.toFixed(digits)) : Math.round(n * scale) / scale);
}

function truncate(value: string, size: number, killWords: boolean, end: string, leeway: number): string {
  if (codePoints(value) <= size + leeway) return value;
  const head = sliceText(value, 0, size - codePoints(end));
  return killWords ? head + end : (head.includes(' ') ? head.slice(0, head.lastIndexOf(' ')) : head) + end;
}

function indent(value: string, width: unknown, first: boolean, blank: boolean): string {
  const pad = typeof width === 'string' ? width : ' '.repeat(Number(width));
  const [head, ...rest] = value.split('\n');
  const lines = rest.map((line) => (line === '' && !blank ? line : pad + line));
  return [(first ? pad : '') + (head ?? ''), ...lines].join('\n');
}

const numberOf = (value: unknown): unknown =>
  isFloat(value) ? float(Number(value)) : typeof value === 'boolean' ? Number(value) : value;

const OF_MARKUP = unitsOf("<>&'");

export const FILTERS: Readonly<Record<string, Filter>> = {
  length: (v) => length(v),
  count: (v) => length(v),
  tojson: (v, a, n) => {
    const width = arg(a, n, 0, 'indent', null);
    if (width !== null) throw new TemplateError('tojson(indent=...) is not supported');
    return replaceUnits(sortedPythonJson(v), OF_MARKUP, (code) => `\\u00${code.toString(16)}`);
  },
  default: (v, a, n) => {
    const fallback = arg(a, n, 0, 'default_value', '');
    return v === undefined || (truth(arg(a, n, 1, 'boolean', false)) && !truth(v)) ? fallback : v;
  },
  d: (v, a, n) => FILTERS.default?.(v, a, n),
  int: (v, a, n) => toInt(v, arg(a, n, 0, 'default', 0)),
  float: (v, a, n) => toFloat(v, arg(a, n, 0, 'default', float(0))),
  string: (v) => text(v),
  list: (v) => asList(v),
  upper: (v) => text(v).toUpperCase(),
  lower: (v) => text(v).toLowerCase(),
  capitalize: (v) => text(v).charAt(0).toUpperCase() + text(v).slice(1).toLowerCase(),
  title: (v) =>
    text(v)
      .split(/([-\s({[<]+)/)
      .map((w) => w.charAt(0).toUpperCase() + w.slice(1).toLowerCase())
      .join(''),
  trim: (v, a, n) => stripChars(text(v), arg(a, n, 0, 'chars', undefined) as string | undefined),
  replace: (v, a, n) => {
    const limit = arg(a, n, 2, 'count', null);
    return replaceText(text(v), text(arg(a, n, 0, 'old', '')), text(arg(a, n, 1, 'new', '')), limit);
  },
  join: (v, a, n) =>
    asList(v)
      .map(byAttribute(arg(a, n, 1, 'attribute', undefined)))
      .map(text)
      .join(text(arg(a, n, 0, 'd', ''))),
  first: (v) => iterate(v)[0],
  last: (v) => iterate(v).at(-1),
  reverse: (v) => (typeof v === 'string' ? Array.from(v).reverse().join('') : asList(v).reverse()),
  sort: (v, a, n) =>
    sorted(
      v,
      byAttribute(arg(a, n, 2, 'attribute', undefined)),
      truth(arg(a, n, 1, 'case_sensitive', false)),
      truth(arg(a, n, 0, 'reverse', false)),
    ),
  unique: (v) => {
    const all = asList(v);
    // Texts are equal to themselves alone; a list of other values is as short as its author made it.
    if (all.every((item) => typeof item === 'string')) return [...new Set(all)];
    return all.filter((item, i) => all.findIndex((other) => equal(other, item)) === i);
  },
  dictsort: (v) =>
    isDict(v) ? sorted(Object.entries(v), (e) => (e as unknown[])[0], false, false) : asList(v),
  items(v) {
    if (v === undefined) return [];
    if (!isDict(v)) throw new TemplateError('Can only get item pairs from a mapping.');
    return Object.entries(v);
  },
  map: (v, a, n) => {
    if (Object.hasOwn(n, 'attribute')) return asList(v).map(byAttribute(n.attribute));
    const [name, ...rest] = a;
    return asList(v).map((item) => applyFilter(String(name), item, rest, {}));
  },
  select: (v, a) => asList(v).filter((item) => byTest(a, item)),
  reject: (v, a) => asList(v).filter((item) => !byTest(a, item)),
  selectattr: (v, a) => asList(v).filter((item) => byTest(a.slice(1), byAttribute(a[0])(item))),
  rejectattr: (v, a) => asList(v).filter((item) => !byTest(a.slice(1), byAttribute(a[0])(item))),
  sum: (v, a, n) =>
    asList(v)
      .map(byAttribute(arg(a, n, 0, 'attribute', undefined)))
      .reduce<unknown>(
        (total, item) => {
          const result = Number(total) + Number(item);
          return isFloat(total) || isFloat(item) ? float(result) : result;
        },
        arg(a, n, 1, 'start', 0),
      ),
  min: (v) => sorted(v, (i) => i, false, false)[0],
  max: (v) => sorted(v, (i) => i, false, false).at(-1),
  abs: (v) => (v instanceof PyFloat ? float(Math.abs(v.value)) : Math.abs(Number(numberOf(v)))),
  round: (v, a, n) =>
    round(v, Number(arg(a, n, 0, 'precision', 0)), String(arg(a, n, 1, 'method', 'common'))),
  truncate: (v, a, n) =>
    truncate(
      text(v),
      Number(arg(a, n, 0, 'length', 255)),
      truth(arg(a, n, 1, 'killwords', false)),
      text(arg(a, n, 2, 'end', '...')),
      Number(arg(a, n, 3, 'leeway', 5)),
    ),
  indent: (v, a, n) =>
    indent(
      text(v),
      arg(a, n, 0, 'width', 4),
      truth(arg(a, n, 1, 'first', false)),
      truth(arg(a, n, 2, 'blank', false)),
    ),
  wordcount: (v) => text(v).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  escape: (v) => escapeHtml(text(v)),
  e: (v) => escapeHtml(text(v)),
  safe: (v) => v,
  urlencode: (v) =>
    encodeURIComponent(text(v).toWellFormed())
      .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%2F', '/'),
};

const escapeHtml = (value: string): string =>
  value
    .replaceAll('&', '&amp;')
    .replaceAll('>', '&gt;')
    .replaceAll('<', '&lt;')
    .replaceAll("'", '&#39;')
    .replaceAll('"', '&#34;');

function replaceText(value: string, old: string, fresh: string, limit: unknown): string {
  if (limit === null || limit === undefined || Number(limit) < 0) return value.replaceAll(old, () => fresh);
  let left = Number(limit);
  return value.replace(new RegExp(old.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'g'), (m) =>
    left-- > 0 ? fresh : m,
  );
}

const byTest = (args: readonly unknown[], item: unknown): boolean => {
  const [name, ...rest] = args;
  return name === undefined ? truth(item) : applyTest(String(name), item, rest);
};

export function applyFilter(name: string, value: unknown, args: readonly unknown[], named: Named): unknown {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (!filter) throw new TemplateError(`No filter named '${name}'.`);
  return filter(value, args, named);
}

type Test = (value: unknown, args: readonly unknown[]) => boolean;
export const TESTS: Readonly<Record<string, Test>> = {
  defined: (v) => v !== undefined,
  undefined: (v) => v === undefined,
  none: (v) => v === null,
  boolean: (v) => typeof v === 'boolean',
  true: (v) => v === true,
  false: (v) => v === false,
  string: (v) => typeof v === 'string',
  number: (v) => isNumber(v) || typeof v === 'boolean',
  integer: (v) => isNumber(v) && !isFloat(v),
  float: (v) => isNumber(v) && isFloat(v),
  mapping: (v) => isDict(v),
  sequence: (v) => typeof v === 'string' || Array.isArray(v) || isDict(v),
  iterable: (v) => typeof v === 'string' || Array.isArray(v) || isDict(v),
  odd: (v) => Math.abs(Number(v) % 2) === 1,
  even: (v) => Number(v) % 2 === 0,
  divisibleby: (v, [n]) => Number(v) % Number(n) === 0,
  upper: (v) => text(v) === text(v).toUpperCase() && text(v) !== text(v).toLowerCase(),
  lower: (v) => text(v) === text(v).toLowerCase() && text(v) !== text(v).toUpperCase(),
  in: (v, [container]) => contains(container, v),
  eq: (v, [other]) => equal(v, other),
  equalto: (v, [other]) => equal(v, other),
  ne: (v, [other]) => !equal(v, other),
  lt: (v, [other]) => order(v, other) < 0,
  le: (v, [other]) => order(v, other) <= 0,
  gt: (v, [other]) => order(v, other) > 0,
  ge: (v, [other]) => order(v, other) >= 0,
  sameas: (v, [other]) => v === other,
};
export function applyTest(name: string, value: unknown, args: readonly unknown[]): boolean {
  const test = Object.hasOwn(TESTS, name) ? TESTS[name] : undefined;
  if (!test) throw new TemplateError(`No test named '${name}'.`);
  return test(value, args);
}

type Method<T> = (self: T, args: readonly unknown[]) => unknown;
const optionalText = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : text(value);

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

const affix = (value: unknown): string[] => (Array.isArray(value) ? value.map(text) : [text(value)]);

const STRING_METHODS: Readonly<Record<string, Method<string>>> = {
  strip: (s, [chars]) => stripChars(s, optionalText(chars)),
  lstrip: (s, [chars]) => stripChars(s, optionalText(chars), 'left'),
  rstrip: (s, [chars]) => stripChars(s, optionalText(chars), 'right'),
  split: (s, [separator, limit]) => split(s, optionalText(separator), Number(limit ?? -1)),
  splitlines: (s, [keep]) => splitLines(s, truth(keep ?? false)),
  replace: (s, [old, fresh, count]) => replaceText(s, text(old), text(fresh), count),
  upper: (s) => s.toUpperCase(),
  lower: (s) => s.toLowerCase(),
  capitalize: (s) => s.charAt(0).toUpperCase() + s.slice(1).toLowerCase(),
  startswith: (s, [prefix]) => affix(prefix).some((p) => s.startsWith(p)),
  endswith: (s, [suffix]) => affix(suffix).some((p) => s.endsWith(p)),
  removeprefix: (s, [p]) => (s.startsWith(text(p)) ? s.slice(text(p).length) : s),
  removesuffix: (s, [p]) => (text(p) && s.endsWith(text(p)) ? s.slice(0, -text(p).length) : s),
  join: (s, [items]) => (items as readonly unknown[]).map(text).join(s),
  count: (s, [part]) => s.split(text(part)).length - 1,
  isdigit: (s) => /^\d+$/.test(s),
};

const DICT_METHODS: Readonly<Record<string, Method<Dict>>> = {
  items: (d) => Object.entries(d),
  keys: (d) => Object.keys(d),
  values: (d) => Object.values(d),
  get: (d, [key, fallback]) =>
    typeof key === 'string' && Object.hasOwn(d, key) ? d[key] : (fallback ?? null),
};

const LIST_METHODS: Readonly<Record<string, Method<readonly unknown[]>>> = {
  count: (l, [item]) => l.filter((other) => equal(other, item)).length,
  index: (l, [item]) => {
    if (!contains(l, item)) throw new TemplateError(`${repr(item)} is not in list`);
    return l.findIndex((other) => equal(other, item));
  },
};

export const METHOD_NAMES: ReadonlySet<string> = new Set(
  [STRING_METHODS, DICT_METHODS, LIST_METHODS].flatMap((methods) => Object.keys(methods)),
);

/** The method bound to its value, or undefined. */
export function methodOf(value: unknown, name: string): ((args: readonly unknown[]) => unknown) | undefined {
  if (typeof value === 'string' && Object.hasOwn(STRING_METHODS, name))
    return (args) => STRING_METHODS[name]?.(value, args);
  if (Array.isArray(value) && Object.hasOwn(LIST_METHODS, name))
    return (args) => LIST_METHODS[name]?.(value, args);
  if (isDict(value) && Object.hasOwn(DICT_METHODS, name)) return (args) => DICT_METHODS[name]?.(value, args);
  return undefined;
}
