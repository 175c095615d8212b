/**
 * Reads a Python literal (strings, numbers, None/True/False, lists, tuples, sets, dicts) as `ast.literal_eval` would. SWE-bench Pro stores
 * its test lists this way and its harness evaluates them; text from a dataset is never evaluated here.
 */

export class PythonLiteralError extends Error {
  override readonly name = 'PythonLiteralError';
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\n': '',
};
const HEX_LENGTH: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const CLOSING: Readonly<Record<string, string>> = { '[': ']', '(': ')', '{': '}' };
const MAX_DEPTH = 100;

interface Reader {
  readonly text: string;
  at: number;
}

export function parsePythonLiteral(text: string): unknown {
  const reader = { text, at: 0 };
  const result = value(reader, 0);
  skipSpace(reader);
  if (reader.at < text.length) fail(reader, 'unexpected text');
  return result;
}

function fail({ at }: Reader, what: string): never {
  throw new PythonLiteralError(`${what} at character ${at + 1}`);
}

function skipSpace(reader: Reader): void {
  while (reader.at < reader.text.length && ' \t\r\n\f'.includes(reader.text[reader.at]!)) reader.at++;
}

/** True, and past it, when this comes next. */
function took(reader: Reader, token: string): boolean {
  skipSpace(reader);
  if (!reader.text.startsWith(token, reader.at)) return false;
  reader.at += token.length;
  return true;
}

const next = (reader: Reader, whenNone: string): string => {
  const char = reader.text[reader.at++];
  return char ?? fail(reader, whenNone);
};

const OCTAL = /[0-7]{1,3}/y;
const HEX = /[0-9a-fA-F]{0,8}/y;
const QUOTED = /[rRuU]?['"]/y;
const WORD = /(?:None|True|False)\b/y;
/** Characters that neither end nor change a string, by its quote: a search for both quotes would stop at every one of the other kind. */
const ORDINARY: Readonly<Record<string, RegExp>> = { "'": /[^'\\\n]+/y, '"': /[^"\\\n]+/y };
const NUMBER = /[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;

/** The match of a pattern at a place, or undefined. */
function found(pattern: RegExp, { text, at }: Reader): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** After a backslash. */
function escaped(reader: Reader): string {
  const octal = found(OCTAL, reader);
  if (octal) {
    reader.at += octal.length;
    return String.fromCharCode(Number.parseInt(octal, 8));
  }
  const char = next(reader, 'unfinished escape');
  const simple = SIMPLE_ESCAPES[char];
  if (simple !== undefined) return simple;
  const width = HEX_LENGTH[char];
  if (width === undefined) return `\\${char}`; // Python keeps an unknown escape as it stands
  const digits = found(HEX, reader)!.slice(0, width);
  const code = Number.parseInt(digits, 16);
  if (digits.length < width || code > 0x10ffff) return fail(reader, `bad \\${char} escape`);
  reader.at += width;
  return String.fromCodePoint(code);
}

function string(reader: Reader): string {
  const { text } = reader;
  const opening = found(QUOTED, reader)!;
  const raw = opening.length > 1 && opening[0]!.toLowerCase() === 'r';
  reader.at += opening.length - 1;
  const mark = text[reader.at]!;
  const three = mark === '"' ? '"""' : "'''";
  const quote = text.startsWith(three, reader.at) ? three : mark;
  reader.at += quote.length;
  let out = '';
  while (!text.startsWith(quote, reader.at)) {
    const ordinary = found(ORDINARY[mark]!, reader) ?? '';
    out += ordinary;
    reader.at += ordinary.length;
    if (ordinary !== '') continue;
    const char = next(reader, 'unfinished string');
    if (char === '\n' && quote.length === 1) fail(reader, 'line break in a string');
    if (char !== '\\') out += char;
    else out += raw ? `\\${next(reader, 'unfinished string')}` : escaped(reader);
  }
  reader.at += quote.length;
  return out;
}

/** Strings beside each other are one. */
function strings(reader: Reader): string {
  let joined = '';
  do {
    joined += string(reader);
    skipSpace(reader);
  } while (found(QUOTED, reader) !== undefined);
  return joined;
}

/** Up to the closing bracket; a comma may come last. Returns whether there was any comma. */
function items(reader: Reader, close: string, read: () => void): boolean {
  let commas = false;
  while (!took(reader, close)) {
    read();
    if (took(reader, ',')) commas = true;
    else if (took(reader, close)) return commas;
    else fail(reader, `expected , or ${close}`);
  }
  return commas;
}

/** A list, tuple, set or dict, or a value in parentheses. */
function container(reader: Reader, open: string, depth: number): unknown {
  const list: unknown[] = [];
  const pairs: [string, unknown][] = [];
  const commas = items(reader, CLOSING[open]!, () => {
    const key = value(reader, depth + 1);
    if (open === '{' && took(reader, ':')) pairs.push([String(key), value(reader, depth + 1)]);
    else list.push(key);
  });
  if (open === '{' && list.length === 0) return Object.fromEntries(pairs);
  if (pairs.length > 0) fail(reader, 'a dict and a set mixed');
  return open === '(' && list.length === 1 && !commas ? list[0] : list; // ("a") is a string, ("a",) a tuple
}

function value(reader: Reader, depth: number): unknown {
  if (depth > MAX_DEPTH) fail(reader, 'nested too deeply');
  skipSpace(reader);
  const open = reader.text[reader.at] ?? fail(reader, 'unexpected end');
  if (CLOSING[open]) {
    reader.at++;
    return container(reader, open, depth);
  }
  if (found(QUOTED, reader) !== undefined) return strings(reader);
  const word = found(WORD, reader);
  const number = word ?? found(NUMBER, reader) ?? fail(reader, 'not a Python literal');
  reader.at += number.length;
  if (word) return word === 'None' ? null : word === 'True';
  return Number(number.replaceAll('_', ''));
}
