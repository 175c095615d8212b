/**
 * The Python methods of str, dict and list that a template may call. A template can reach nothing else on a value: no prototypes,
 * constructors or functions of the host language.
 */

import { splitLines } from '../base/python/lines.ts';
import { stripChars, stripStart, tokens } from '../base/python/text.ts';
import { contains, type Dict, equal, isDict, repr, text, truth } from '../base/python/values.ts';
import { replaceText } from './filters.ts';
import { TemplateError } from './templateError.ts';

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
