/**
 * Jinja2's filters and tests that a prompt can use, with the names of their arguments. Others are refused when the configuration loads.
 * Source: `jinja2/filters.py` and `tests.py` 3.1.
 */

import { fixed, percentFormat } from '../base/python/format.ts';
import { sortedPythonJson } from '../base/python/json.ts';
import { splitLines } from '../base/python/lines.ts';
import { codePoints, sliceText, strip, stripChars } from '../base/python/text.ts';
import {
  contains,
  equal,
  float,
  isDict,
  isFloat,
  isNumber,
  iterate,
  length,
  NOTHING,
  order,
  PyFloat,
  PyTuple,
  slice,
  text,
  truth,
  typeName,
} from '../base/python/values.ts';
import { replaceUnits, unitsOf } from '../base/replaceUnits.ts';
import { Callable } from './globals.ts';
import { capitalized, centered, replaced } from './methods.ts';
import { TemplateError, UndefinedError } from './parse.ts';
import { bind, misfit, type Named, own, type Signature } from './signature.ts';

interface Filter extends Signature {
  /** An argument that was not given is undefined. */
  readonly apply: (value: unknown, args: readonly unknown[], named: Named) => unknown;
}

const filter = (params: string, apply: (value: unknown, ...args: unknown[]) => unknown): Filter => ({
  params: params.split(' ').filter(Boolean),
  apply: (value, args) => apply(value, ...args),
});

const asList = (value: unknown): unknown[] => [...iterate(value)];

type Getter = (item: unknown) => unknown;

/** `attribute="a.b.0"`: undefined where the last part is missing; any use of what is missing on the way raises. */
function byAttribute(attribute: unknown, fallback?: unknown): Getter {
  if (attribute === undefined || attribute === null) return (item) => item;
  const parts = String(attribute).split('.');
  return (item) =>
    parts.reduce<unknown>((value, key) => {
      const found = part(present(value, key), key);
      return found === undefined && fallback !== undefined && fallback !== null ? fallback : found;
    }, item);
}

function part(value: unknown, key: string): unknown {
  if (value instanceof Group && (key === 'grouper' || key === 'list')) return value.field(key);
  if (isDict(value)) return Object.hasOwn(value, key) ? value[key] : undefined;
  if (!/^\d+$/.test(key)) return undefined;
  return Array.isArray(value) || typeof value === 'string' ? iterate(value)[Number(key)] : undefined;
}

function present(value: unknown, attribute: unknown): unknown {
  if (value === undefined) throw new UndefinedError(`a value has no attribute '${attribute}'`);
  return value;
}

/** The attribute of each, which must be there. */
function attributeOf(attribute: unknown, fallback?: unknown): Getter {
  const get = byAttribute(attribute, fallback);
  return (item) => {
    const found = get(item);
    if (found === undefined)
      throw new UndefinedError(`'${typeName(item)} object' has no attribute '${attribute}'`);
    return found;
  };
}

const folded = (value: unknown, caseSensitive: unknown): unknown =>
  typeof value === 'string' && !truth(caseSensitive ?? false) ? value.toLowerCase() : value;

function sorted(items: readonly unknown[], key: Getter, reverse: unknown): unknown[] {
  const keyed = items.map((item) => [key(item), item] as const);
  const sign = truth(reverse ?? false) ? -1 : 1;
  return keyed.sort(([a], [b]) => sign * order(a, b)).map(([, item]) => item);
}

/** `attribute="a,b"` sorts by several. */
function sortKey(attribute: unknown, caseSensitive: unknown): Getter {
  const getters = typeof attribute === 'string' ? attribute.split(',').map((one) => attributeOf(one)) : [];
  if (getters.length === 0) getters.push(attributeOf(attribute));
  return (item) => getters.map((get) => folded(get(item), caseSensitive));
}

function extreme(value: unknown, caseSensitive: unknown, attribute: unknown, sign: 1 | -1): unknown {
  const get = attributeOf(attribute);
  const items = asList(value).map((item) => [folded(get(item), caseSensitive), item] as const);
  const [first, ...rest] = items;
  return rest.reduce((best, item) => (order(item[0], best?.[0]) * sign < 0 ? item : best), first)?.[1];
}

function unique(value: unknown, caseSensitive: unknown, attribute: unknown): unknown[] {
  const get = attributeOf(attribute);
  const keyed = asList(value).map((item) => [folded(get(item), caseSensitive), item] as const);
  // Texts are equal to themselves alone; a list of other values is as short as its author made it.
  if (keyed.every(([key]) => typeof key === 'string')) {
    const seen = new Set();
    return keyed.filter(([key]) => !seen.has(key) && seen.add(key)).map(([, item]) => item);
  }
  return keyed
    .filter(([key], i) => keyed.findIndex(([other]) => equal(other, key)) === i)
    .map(([, item]) => item);
}

/** A group of `groupby`: `{{ g.grouper }}`, `{{ g.list }}`, or unpacked as a pair. */
export class Group extends PyTuple {
  static ofItems(key: unknown, items: unknown): Group {
    const group = new Group();
    group.push(key, items);
    return group;
  }
  field(name: 'grouper' | 'list'): unknown {
    return this[name === 'grouper' ? 0 : 1];
  }
}

function groupBy(value: unknown, attribute: unknown, fallback: unknown, caseSensitive: unknown): unknown[] {
  const get = attributeOf(attribute, fallback);
  const key: Getter = (item) => folded(get(item), caseSensitive);
  const groups: { key: unknown; items: unknown[] }[] = [];
  for (const item of sorted(asList(value), key, false)) {
    const last = groups.at(-1);
    if (last && equal(last.key, key(item))) last.items.push(item);
    else groups.push({ key: key(item), items: [item] });
  }
  return groups.map(({ items }) => Group.ofItems(get(items[0]), items));
}

const FLOAT_TEXT = /^[-+]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[-+]?\d+(?:_\d+)*)?$/i;
const SPECIAL_FLOAT = /^([-+]?)(?:(inf|infinity)|nan)$/i;

function floatOf(value: unknown): number | undefined {
  if (typeof value === 'boolean' || isNumber(value)) return Number(value);
  if (value === NOTHING) throw new UndefinedError('a value in the template is undefined');
  if (typeof value !== 'string') return undefined;
  const t = strip(value);
  const special = SPECIAL_FLOAT.exec(t);
  if (special) return special[2] ? (special[1] === '-' ? -Infinity : Infinity) : Number.NaN;
  return FLOAT_TEXT.test(t) ? Number(t.replaceAll('_', '')) : undefined;
}

const DIGITS_OF_BASE: Readonly<Record<number, RegExp>> = {
  2: /^([-+]?)(?:0b_?)?([01]+(?:_[01]+)*)$/i,
  8: /^([-+]?)(?:0o_?)?([0-7]+(?:_[0-7]+)*)$/i,
  10: /^([-+]?)(\d+(?:_\d+)*)$/,
  16: /^([-+]?)(?:0x_?)?([\da-f]+(?:_[\da-f]+)*)$/i,
};

function toInt(value: unknown, fallback: unknown, base: unknown): unknown {
  const radix = Number(base ?? 10);
  const digits = DIGITS_OF_BASE[radix];
  if (!digits) throw new TemplateError(`int takes the bases 2, 8, 10 and 16 here, not ${text(base)}`);
  const found = typeof value === 'string' ? digits.exec(strip(value)) : null;
  const n = found
    ? Number.parseInt(found[2]!.replaceAll('_', ''), radix) * (found[1] === '-' ? -1 : 1)
    : Math.trunc(floatOf(value) ?? Number.NaN);
  if (!Number.isFinite(n)) return fallback ?? 0;
  if (!Number.isSafeInteger(n)) throw new TemplateError('a number is too large for templates here');
  return n === 0 ? 0 : n;
}

function round(value: unknown, precision: unknown, method: unknown): unknown {
  if (!isNumber(value) && typeof value !== 'boolean')
    throw new TemplateError(`type ${typeName(value)} doesn't define __round__ method`);
  const [n, digits, how] = [Number(value), Number(precision ?? 0), String(method ?? 'common')];
  if (how === 'ceil' || how === 'floor') {
    const scale = 10 ** digits;
    const near = (how === 'ceil' ? Math.ceil : Math.floor)(n * scale);
    return float((near === 0 ? 0 : near) / scale);
  }
  if (how !== 'common') throw new TemplateError('method must be common, ceil or floor');
  const near = Number.isFinite(n) ? Number(fixed(n, digits)) : n;
  return isFloat(value) ? float(near) : near;
}

function truncate(value: string, size: number, killWords: boolean, end: string, leeway: number): string {
  if (size < codePoints(end)) throw new TemplateError(`expected length >= ${codePoints(end)}, got ${size}`);
  if (codePoints(value) <= size + leeway) return value;
  const head = sliceText(value, 0, size - codePoints(end));
  return killWords ? head + end : (head.includes(' ') ? head.slice(0, head.lastIndexOf(' ')) : head) + end;
}

function indent(value: unknown, width: unknown, first: boolean, blank: boolean): string {
  if (typeof value !== 'string') throw new TemplateError(`indent takes a text, not ${typeName(value)}`);
  const pad = typeof width === 'string' ? width : ' '.repeat(Math.max(0, Number(width)));
  const [head, ...rest] = splitLines(`${value}\n`);
  const lines = rest.map((line) => (line === '' && !blank ? line : pad + line));
  return [(first ? pad : '') + (head ?? ''), ...lines].join('\n');
}

function slices(value: unknown, count: unknown, fill: unknown): unknown[] {
  const items = asList(value);
  const number = Number(count);
  if (!Number.isInteger(number) || number < 1)
    throw new TemplateError('slice takes a number of slices from 1');
  const [size, longer] = [Math.floor(items.length / number), items.length % number];
  return Array.from({ length: number }, (_, i) => {
    const from = i * size + Math.min(i, longer);
    const part = items.slice(from, from + size + (i < longer ? 1 : 0));
    return fill !== undefined && fill !== null && i >= longer ? [...part, fill] : part;
  });
}

function batches(value: unknown, count: unknown, fill: unknown): unknown[] {
  const items = asList(value);
  const number = Number(count);
  if (!Number.isInteger(number) || number < 1)
    throw new TemplateError('batch takes a number of items from 1');
  const out: unknown[][] = [];
  for (let at = 0; at < items.length; at += number) out.push(items.slice(at, at + number));
  const last = out.at(-1);
  if (last && fill !== undefined && fill !== null) while (last.length < number) last.push(fill);
  return out;
}

function sum(value: unknown, attribute: unknown, start: unknown): unknown {
  const items = asList(value).map(attributeOf(attribute));
  return items.reduce<unknown>((total, item) => {
    if (!(isNumber(item) || typeof item === 'boolean') || !(isNumber(total) || typeof total === 'boolean'))
      throw new TemplateError(
        `unsupported operand type(s) for +: '${typeName(total)}' and '${typeName(item)}'`,
      );
    const result = Number(total) + Number(item);
    return isFloat(total) || isFloat(item) ? float(result) : result;
  }, start ?? 0);
}

function fileSize(value: unknown, binary: unknown): string {
  const bytes = floatOf(value);
  if (bytes === undefined) throw new TemplateError(`filesizeformat takes a number, not ${typeName(value)}`);
  const [base, unit] = truth(binary ?? false) ? [1024, 'iB'] : [1000, 'B'];
  if (bytes === 1) return '1 Byte';
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const prefixes = base === 1024 ? 'KMGTPEZY' : 'kMGTPEZY';
  let power = 0;
  while (power < prefixes.length - 1 && bytes >= base ** (power + 2)) power += 1;
  return `${fixed((base * bytes) / base ** (power + 2), 1)} ${prefixes[power]}${unit}`;
}

const OF_MARKUP = unitsOf("<>&'");
const unescapedInUrl = (value: unknown): string =>
  encodeURIComponent(text(value).toWellFormed()).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );

function urlEncode(value: unknown): string {
  if (typeof value === 'string' || !(isDict(value) || Array.isArray(value)))
    return unescapedInUrl(value).replaceAll('%2F', '/');
  const pairs = isDict(value) ? Object.entries(value) : value.map((pair) => iterate(pair));
  const shown = (one: unknown): string => unescapedInUrl(one).replaceAll('%20', '+');
  return pairs.map(([key, one]) => `${shown(key)}=${shown(one)}`).join('&');
}

const escapeHtml = (value: string): string =>
  value
    .replaceAll('&', '&amp;')
    .replaceAll('>', '&gt;')
    .replaceAll('<', '&lt;')
    .replaceAll("'", '&#39;')
    .replaceAll('"', '&#34;');
const escaping = filter('', (v) => escapeHtml(text(v)));

const fallbackFor = filter('default_value boolean', (v, fallback = '', boolean = false) =>
  v === undefined || v === NOTHING || (truth(boolean) && !truth(v)) ? fallback : v,
);

/** Keeps the items whose value, or attribute, a test holds for. */
const chosen = (wanted: boolean, ofAttribute: boolean): Filter => ({
  params: null,
  apply(value, args) {
    const get: Getter = ofAttribute ? byAttribute(args[0]) : (item) => item;
    const [name, ...rest] = ofAttribute ? args.slice(1) : args;
    const holds = (item: unknown): boolean => {
      const found = get(item);
      if (name === undefined) return truth(present(found, args[0]));
      return applyTest(String(name), found, rest);
    };
    return asList(value).filter((item) => holds(item) === wanted);
  },
});

const map: Filter = {
  params: null,
  apply(value, args, named) {
    if (args.length === 0 && Object.hasOwn(named, 'attribute'))
      return asList(value).map(attributeOf(named.attribute, own(named, 'default')));
    const [name, ...rest] = args;
    if (name === undefined) throw new TemplateError('map requires a filter argument');
    return asList(value).map((item) => applyFilter(String(name), item, rest, named));
  },
};

export const FILTERS: Readonly<Record<string, Filter>> = {
  abs: filter('', (v) => {
    if (!isNumber(v) && typeof v !== 'boolean')
      throw new TemplateError(`bad operand type for abs(): '${typeName(v)}'`);
    return v instanceof PyFloat ? float(Math.abs(v.value)) : Math.abs(Number(v));
  }),
  batch: filter('linecount fill_with', batches),
  capitalize: filter('', (v) => capitalized(text(v))),
  center: filter('width', (v, width = 80) => centered(text(v), width, ' ')),
  count: filter('', length),
  d: fallbackFor,
  default: fallbackFor,
  dictsort: filter('case_sensitive by reverse', (v, caseSensitive, by = 'key', reverse = false) => {
    if (!isDict(v)) throw new TemplateError(`dictsort takes a mapping, not ${typeName(v)}`);
    if (by !== 'key' && by !== 'value')
      throw new TemplateError('You can only sort by either "key" or "value"');
    const at = by === 'key' ? 0 : 1;
    const pairs = Object.entries(v).map((pair) => PyTuple.holding(pair));
    return sorted(pairs, (pair) => folded((pair as unknown[])[at], caseSensitive), reverse);
  }),
  e: escaping,
  escape: escaping,
  filesizeformat: filter('binary', fileSize),
  first: filter('', (v) => iterate(v)[0]),
  float: filter('default', (v, fallback = float(0)) => {
    const n = floatOf(v);
    return n === undefined ? fallback : float(n);
  }),
  forceescape: escaping,
  format: {
    params: null,
    apply(value, args, named) {
      const names = Object.keys(named).length > 0;
      if (args.length > 0 && names)
        throw new TemplateError("can't handle positional and keyword arguments at the same time");
      return percentFormat(text(value), names ? named : PyTuple.holding(args));
    },
  },
  groupby: filter('attribute default case_sensitive', groupBy),
  indent: filter('width first blank', (v, width = 4, first = false, blank = false) =>
    indent(v, width, truth(first), truth(blank)),
  ),
  int: filter('default base', toInt),
  items: filter('', (v) => {
    if (v === undefined || v === NOTHING) return [];
    if (!isDict(v)) throw new TemplateError('Can only get item pairs from a mapping.');
    return Object.entries(v).map((pair) => PyTuple.holding(pair));
  }),
  join: filter('d attribute', (v, d = '', attribute) =>
    asList(v).map(attributeOf(attribute)).map(text).join(text(d)),
  ),
  last: filter('', (v) => iterate(v).at(-1)),
  length: filter('', length),
  list: filter('', asList),
  lower: filter('', (v) => text(v).toLowerCase()),
  map,
  max: filter('case_sensitive attribute', (v, caseSensitive, attribute) =>
    extreme(v, caseSensitive, attribute, -1),
  ),
  min: filter('case_sensitive attribute', (v, caseSensitive, attribute) =>
    extreme(v, caseSensitive, attribute, 1),
  ),
  reject: chosen(false, false),
  rejectattr: chosen(false, true),
  replace: filter('old new count', (v, old, fresh, count) =>
    replaced(text(v), text(old), text(fresh), count),
  ),
  reverse: filter('', (v) => (typeof v === 'string' ? slice(v, null, null, -1) : asList(v).reverse())),
  round: filter('precision method', round),
  safe: filter('', (v) => v),
  select: chosen(true, false),
  selectattr: chosen(true, true),
  slice: filter('slices fill_with', slices),
  sort: filter('reverse case_sensitive attribute', (v, reverse, caseSensitive, attribute) =>
    sorted(asList(v), sortKey(attribute, caseSensitive), reverse),
  ),
  string: filter('', text),
  sum: filter('attribute start', sum),
  title: filter('', (v) =>
    text(v)
      .split(/([-\s({[<]+)/)
      .map((word) => capitalized(word, true))
      .join(''),
  ),
  tojson: filter('indent', (v, width = null) => {
    if (width !== null && (typeof width !== 'number' || width < 0))
      throw new TemplateError('tojson takes a whole number from 0 as indent here');
    return replaceUnits(sortedPythonJson(v, width), OF_MARKUP, (code) => `\\u00${code.toString(16)}`);
  }),
  trim: filter('chars', (v, chars) =>
    stripChars(text(v), chars === undefined || chars === null ? undefined : text(chars)),
  ),
  truncate: filter(
    'length killwords end leeway',
    (v, size = 255, killWords = false, end = '...', leeway = 5) =>
      truncate(text(v), Number(size), truth(killWords), text(end), Number(leeway ?? 5)),
  ),
  unique: filter('case_sensitive attribute', unique),
  upper: filter('', (v) => text(v).toUpperCase()),
  urlencode: filter('', urlEncode),
  wordcount: filter('', (v) => text(v).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
};

export function applyFilter(name: string, value: unknown, args: readonly unknown[], named: Named): unknown {
  const found = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (!found) throw new TemplateError(`No filter named '${name}'.`);
  const wrong = misfit(`filter '${name}'`, found, args.length, Object.keys(named));
  if (wrong) throw new TemplateError(wrong);
  return found.apply(value, bind(found, args, named), named);
}

const number = (value: unknown): number => {
  if (isNumber(value) || typeof value === 'boolean') return Number(value);
  throw new TemplateError(`a number is required, not ${typeName(value)}`);
};

type Test = (value: unknown, args: readonly unknown[]) => boolean;
const less: Test = (v, [other]) => order(v, other) < 0;
const lessOrEqual: Test = (v, [other]) => order(v, other) <= 0;
const more: Test = (v, [other]) => order(v, other) > 0;
const moreOrEqual: Test = (v, [other]) => order(v, other) >= 0;
const same: Test = (v, [other]) => equal(v, other);
const other: Test = (v, [that]) => !equal(v, that);

export const TESTS: Readonly<Record<string, Test>> = {
  defined: (v) => v !== undefined && v !== NOTHING,
  undefined: (v) => v === undefined || v === NOTHING,
  none: (v) => v === null,
  boolean: (v) => typeof v === 'boolean',
  true: (v) => v === true,
  false: (v) => v === false,
  callable: (v) => v instanceof Callable,
  string: (v) => typeof v === 'string',
  number: (v) => isNumber(v) || typeof v === 'boolean',
  integer: (v) => isNumber(v) && !isFloat(v),
  float: (v) => isNumber(v) && isFloat(v),
  mapping: (v) => v !== undefined && isDict(v),
  sequence: (v) => v !== undefined && (typeof v === 'string' || Array.isArray(v) || isDict(v)),
  iterable: (v) => typeof v === 'string' || Array.isArray(v) || isDict(v) || v === NOTHING,
  odd: (v) => Math.abs(number(v) % 2) === 1,
  even: (v) => number(v) % 2 === 0,
  divisibleby: (v, [n]) => {
    if (number(n) === 0) throw new TemplateError('integer modulo by zero');
    return number(v) % number(n) === 0;
  },
  upper: (v) => text(v) === text(v).toUpperCase() && text(v) !== text(v).toLowerCase(),
  lower: (v) => text(v) === text(v).toLowerCase() && text(v) !== text(v).toUpperCase(),
  in: (v, [container]) => contains(container, v),
  filter: (v) => Object.hasOwn(FILTERS, text(v)),
  test: (v) => Object.hasOwn(TESTS, text(v)),
  eq: same,
  equalto: same,
  '==': same,
  ne: other,
  '!=': other,
  lt: less,
  lessthan: less,
  '<': less,
  le: lessOrEqual,
  '<=': lessOrEqual,
  gt: more,
  greaterthan: more,
  '>': more,
  ge: moreOrEqual,
  '>=': moreOrEqual,
  sameas: (v, [that]) => v === that,
};

/** Tests that touch nothing of the value, so that it may be missing. */
export const LENIENT_TESTS: ReadonlySet<string> = new Set([
  ...['defined', 'undefined', 'none', 'boolean', 'true', 'false', 'sameas', 'callable'],
  ...['string', 'number', 'integer', 'float', 'mapping', 'sequence'],
]);

export function applyTest(name: string, value: unknown, args: readonly unknown[]): boolean {
  const test = Object.hasOwn(TESTS, name) ? TESTS[name] : undefined;
  if (!test) throw new TemplateError(`No test named '${name}'.`);
  if (value === undefined && !LENIENT_TESTS.has(name))
    throw new UndefinedError(`test '${name}' was asked about a value that is not there`);
  return test(value, args);
}
