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

export function parsePythonLiteral(text: string): unknown {
  let at = 0;

  const fail = (what: string): never => {
    throw new PythonLiteralError(`${what} at character ${at + 1}`);
  };
  const skipSpace = () => {
    while (at < text.length && ' \t\r\n\f'.includes(text[at]!)) at++;
  };
  const take = (token: string): boolean => {
    skipSpace();
    if (!text.startsWith(token, at)) return false;
    at += token.length;
    return true;
  };

  function escaped(): string {
    const c = text[at++] ?? fail('unfinished escape');
    const simple = SIMPLE_ESCAPES[c];
    if (simple !== undefined) return simple;
    const octal = /^[0-7]{1,3}/.exec(text.slice(at - 1, at + 2))?.[0];
    if (octal) {
      at += octal.length - 1;
      return String.fromCharCode(Number.parseInt(octal, 8));
    }
    const width = HEX_LENGTH[c];
    if (width === undefined) return `\\${c}`; // Python keeps an unknown escape as it stands
    const digits = text.slice(at, at + width);
    if (digits.length < width || !/^[0-9a-fA-F]+$/.test(digits)) return fail(`bad \\${c} escape`);
    const code = Number.parseInt(digits, 16);
    if (code > 0x10ffff) return fail(`bad \\${c} escape`);
    at += width;
    return String.fromCodePoint(code);
  }

  function string(): string {
    const prefix = /^[rRuU]?(?='|")/.exec(text.slice(at, at + 2))![0];
    at += prefix.length;
    const raw = prefix.toLowerCase() === 'r';
    const quote = text.startsWith(text[at]!.repeat(3), at) ? text[at]!.repeat(3) : text[at]!;
    at += quote.length;
    let value = '';
    while (!text.startsWith(quote, at)) {
      const c = text[at++] ?? fail('unfinished string');
      if (c === '\n' && quote.length === 1) fail('line break in a string');
      if (c !== '\\') value += c;
      else value += raw ? `\\${text[at++] ?? fail('unfinished string')}` : escaped();
    }
    at += quote.length;
    return value;
  }

  function items(close: string, read: () => void): void {
    while (!take(close)) {
      read();
      if (take(',')) continue;
      if (take(close)) return;
      fail(`expected , or ${close}`);
    }
  }

  function container(open: string, depth: number): unknown {
    const close = CLOSING[open]!;
    const list: unknown[] = [];
    const pairs: [string, unknown][] = [];
    let commas = false;
    items(close, () => {
      const key = value(depth + 1);
      if (open === '{' && take(':')) pairs.push([String(key), value(depth + 1)]);
      else list.push(key);
      skipSpace();
      commas ||= text[at] === ',';
    });
    if (open === '{' && list.length === 0) return Object.fromEntries(pairs);
    if (pairs.length > 0) fail('a dict and a set mixed');
    return open === '(' && list.length === 1 && !commas ? list[0] : list; // ("a") is a string, ("a",) a tuple
  }

  function value(depth: number): unknown {
    if (depth > MAX_DEPTH) fail('nested too deeply');
    skipSpace();
    const open = text[at] ?? fail('unexpected end');
    if (CLOSING[open]) {
      at++;
      return container(open, depth);
    }
    const rest = text.slice(at, at + 400);
    if (/^[rRuU]?['"]/.test(rest)) {
      let joined = string();
      for (skipSpace(); /^[rRuU]?['"]/.test(text.slice(at, at + 2)); skipSpace()) joined += string();
      return joined;
    }
    const word = /^(?:None|True|False)\b/.exec(rest)?.[0];
    const number = /^[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/.exec(rest)?.[0];
    at += (word ?? number ?? fail('not a Python literal')).length;
    if (word) return word === 'None' ? null : word === 'True';
    return Number(number!.replaceAll('_', ''));
  }

  const result = value(0);
  skipSpace();
  if (at < text.length) fail('unexpected text');
  return result;
}
