/** Text as Python's json.dumps writes it, so that files of ours and of Python's tools compare byte by byte. */
import { asciiOnly, replaceUnits, unitTable, wellFormed } from '../replaceUnits.ts';
import { byCodePoint } from './text.ts';
import { PyFloat } from './values.ts';

interface Style {
  /** null: everything on one line, with a space after each comma. */
  readonly indent: number | null;
  readonly sortKeys: boolean;
  /** Other characters stay as they are. */
  readonly unicode?: boolean;
}

/** What JSON and `asciiOnly` escape. */
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

/** `json.dumps(value, sort_keys=True)` */
export const sortedPythonJson = (value: unknown): string => write(value, { indent: null, sortKeys: true }, 0);

/** ASCII as Python writes it, without lone surrogates, and with JavaScript's own spaces: indent 0 is one line without any. */
export const asciiJson = (value: unknown, indent = 2): string =>
  asciiOnly(JSON.stringify(wellFormed(value), null, indent));

/** `json.dumps(value)`: on one line, as litellm writes the arguments of a call. */
export const pythonLine = (value: unknown): string => write(value, { indent: null, sortKeys: false }, 0);

/** `json.dumps(value, ensure_ascii=False)` */
export const unicodeLine = (value: unknown): string =>
  write(value, { indent: null, sortKeys: false, unicode: true }, 0);
