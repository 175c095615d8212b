/**
 * JSON as Python's json.dumps writes it, so that files of ours and of Python's tools compare byte by byte; and json.loads with CPython's error
 * messages, which mini-swe-agent 2 shows to the model.
 */

import { asciiOnly, replaceUnits, unitTable, wellFormed } from '../replaceUnits.ts';
import { byCodePoint, codePoints } from './text.ts';
import { PyFloat, PyObject, PythonError, PyView, typeName } from './values.ts';

interface Style {
  /** null: everything on one line, with a space after each comma. */
  readonly indent: number | null;
  readonly sortKeys: boolean;
  /** Other characters stay as they are. */
  readonly unicode?: boolean;
}

/** Characters that JSON and `asciiOnly` escape. */
const ESCAPED = unitTable([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x7f, 0xffff],
]);
const escaped = (code: number): string => asciiOnly(JSON.stringify(String.fromCodePoint(code))).slice(1, -1);

function quoted(text: string, { unicode }: Style): string {
  if (unicode === true) return JSON.stringify(text);
  // V8 writes halves of characters one by one, which takes twice as long as all of this.
  return text.isWellFormed() ? asciiOnly(JSON.stringify(text)) : `"${replaceUnits(text, ESCAPED, escaped)}"`;
}

function entriesOf(value: object, { sortKeys }: Style): [string, unknown][] {
  const entries =
    value instanceof Map
      ? [...(value as Map<string, unknown>)]
      : Object.entries(value).filter(([, item]) => item !== undefined);
  return sortKeys ? entries.sort(([a], [b]) => byCodePoint(a, b)) : entries;
}

function write(value: unknown, style: Style, depth: number): string {
  if (typeof value === 'string') return quoted(value, style);
  if (value instanceof PyFloat) return value.toString();
  if (value instanceof PyObject || value instanceof PyView)
    throw new PythonError(`Object of type ${typeName(value)} is not JSON serializable`);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const list = Array.isArray(value);
  const parts = list
    ? value.map((item) => write(item, style, depth + 1))
    : entriesOf(value, style).map(([key, item]) => `${quoted(key, style)}: ${write(item, style, depth + 1)}`);
  const [open, close] = list ? '[]' : '{}';
  const { indent } = style;
  if (indent === null || parts.length === 0) return `${open}${parts.join(', ')}${close}`;
  const lineAt = (level: number): string => `\n${' '.repeat(indent * level)}`;
  return `${open}${lineAt(depth + 1)}${parts.join(`,${lineAt(depth + 1)}`)}${lineAt(depth)}${close}`;
}

/** `json.dumps(value, indent=N)`. A Map keeps the order of keys that look like numbers, which an object would not. */
export const pythonJson = (value: unknown, indent = 4): string =>
  write(value, { indent, sortKeys: false }, 0);

/** `json.dumps(value, sort_keys=True, indent=indent)` */
export const sortedPythonJson = (value: unknown, indent: number | null = null): string =>
  write(value, { indent, sortKeys: true }, 0);

/** ASCII as Python writes it, without lone surrogates, and with JavaScript's own spaces: indent 0 is one line without any. */
export const asciiJson = (value: unknown, indent = 2): string =>
  asciiOnly(JSON.stringify(wellFormed(value), null, indent));

/** `json.dumps(value)`: on one line, as litellm writes the arguments of a call. */
export const pythonLine = (value: unknown): string => write(value, { indent: null, sortKeys: false }, 0);

/** `json.dumps(value, ensure_ascii=False)` */
export const unicodeLine = (value: unknown): string =>
  write(value, { indent: null, sortKeys: false, unicode: true }, 0);

type Parsed =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

class Fault extends Error {}

interface Reader {
  readonly text: string;
  at: number;
  depth: number;
}

/** Python gives up at its recursion limit, near this depth, with these words. */
const DEEPEST = 990;
const TOO_DEEP = 'maximum recursion depth exceeded while decoding a JSON document';

export function parseJsonAsPython(text: string): Parsed {
  const reader = { text, at: 0, depth: 0 };
  try {
    skipBlank(reader);
    const result = value(reader);
    skipBlank(reader);
    if (reader.at < text.length) fail(reader, 'Extra data', reader.at);
    return { ok: true, value: result };
  } catch (error) {
    if (error instanceof Fault) return { ok: false, message: error.message };
    throw error;
  }
}

function fail({ text }: Reader, message: string, pos: number): never {
  const before = text.slice(0, pos);
  const line = before.split('\n').length;
  const column = codePoints(before.slice(before.lastIndexOf('\n') + 1)) + 1;
  throw new Fault(`${message}: line ${line} column ${column} (char ${codePoints(before)})`);
}

function skipBlank(reader: Reader): void {
  while (reader.at < reader.text.length && ' \t\n\r'.includes(reader.text[reader.at]!)) reader.at += 1;
}

/** True, and past it, when the next character is this one. */
function took(reader: Reader, char: string): boolean {
  if (reader.text[reader.at] !== char) return false;
  reader.at += 1;
  return true;
}

function value(reader: Reader): unknown {
  const { text, at } = reader;
  if (took(reader, '"')) return string(reader, at);
  if (took(reader, '{')) return object(reader);
  if (took(reader, '[')) return array(reader);
  for (const [word, meaning] of WORDS)
    if (text.startsWith(word, at)) {
      reader.at += word.length;
      return meaning;
    }
  NUMBER.lastIndex = at;
  const number = NUMBER.exec(text) ?? fail(reader, 'Expecting value', at);
  reader.at += number[0].length;
  return Number(number[0]);
}

/** After the opening quote, which stood at `begin`. */
function string(reader: Reader, begin: number): string {
  let out = '';
  for (;;) {
    UNESCAPED.lastIndex = reader.at;
    const plain = UNESCAPED.exec(reader.text)?.[0] ?? '';
    out += plain;
    reader.at += plain.length;
    const char = reader.text[reader.at] ?? fail(reader, 'Unterminated string starting at', begin);
    reader.at += 1;
    if (char === '"') return out;
    if (char === '\\') out += unescaped(reader, begin);
    else return fail(reader, 'Invalid control character at', reader.at - 1);
  }
}

function unescaped(reader: Reader, begin: number): string {
  const char = reader.text[reader.at] ?? fail(reader, 'Unterminated string starting at', begin);
  reader.at += 1;
  const simple = ESCAPES[char];
  if (simple !== undefined) return simple;
  if (char !== 'u') return fail(reader, 'Invalid \\escape', reader.at - 2);
  const hex = reader.text.slice(reader.at, reader.at + 4);
  if (!/^[0-9a-fA-F]{4}$/.test(hex)) return fail(reader, 'Invalid \\uXXXX escape', reader.at - 1);
  reader.at += 4;
  return String.fromCharCode(Number.parseInt(hex, 16));
}

/** After the opening bracket: what `item` reads, between commas, up to the closing one. */
function items(reader: Reader, close: string, item: () => void): void {
  reader.depth += 1;
  if (reader.depth > DEEPEST) throw new Fault(TOO_DEEP);
  commaSeparated(reader, close, item);
  reader.depth -= 1;
}

function commaSeparated(reader: Reader, close: string, item: () => void): void {
  skipBlank(reader);
  if (took(reader, close)) return;
  for (;;) {
    item();
    skipBlank(reader);
    if (took(reader, close)) return;
    if (!took(reader, ',')) fail(reader, "Expecting ',' delimiter", reader.at);
    skipBlank(reader);
  }
}

function object(reader: Reader): unknown {
  const out: Record<string, unknown> = {};
  items(reader, '}', () => {
    const begin = reader.at;
    if (!took(reader, '"')) fail(reader, 'Expecting property name enclosed in double quotes', begin);
    const key = string(reader, begin);
    skipBlank(reader);
    if (!took(reader, ':')) fail(reader, "Expecting ':' delimiter", reader.at);
    skipBlank(reader);
    // Not an assignment: `__proto__` is a key like any other.
    Object.defineProperty(out, key, {
      value: value(reader),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  });
  return out;
}

function array(reader: Reader): unknown {
  const out: unknown[] = [];
  items(reader, ']', () => out.push(value(reader)));
  return out;
}

/** Characters that stand in a string as they are. */
const UNESCAPED = /[^"\\\x00-\x1f]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};
const WORDS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
];
