/** json.loads with CPython's error messages: mini-swe-agent 2 shows them to the model, so a replay needs them to the letter. */

export type Parsed =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

class Fault extends Error {}

export function parseJsonAsPython(text: string): Parsed {
  let at = 0;
  const fail = (message: string, pos: number): never => {
    const before = text.slice(0, pos);
    const line = before.split('\n').length;
    const column = chars(before.slice(before.lastIndexOf('\n') + 1)) + 1;
    throw new Fault(`${message}: line ${line} column ${column} (char ${chars(before)})`);
  };
  const blank = (): void => {
    while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1;
  };

  function string(begin: number): string {
    let out = '';
    for (;;) {
      const char = text[at];
      if (char === undefined) return fail('Unterminated string starting at', begin);
      at += 1;
      if (char === '"') return out;
      if (char === '\\') out += escaped(begin);
      else if (char < ' ') return fail('Invalid control character at', at - 1);
      else out += char;
    }
  }
  function escaped(begin: number): string {
    const char = text[at];
    if (char === undefined) return fail('Unterminated string starting at', begin);
    at += 1;
    const simple = ESCAPES[char];
    if (simple !== undefined) return simple;
    if (char !== 'u') return fail('Invalid \\escape', at - 2);
    const hex = text.slice(at, at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) return fail('Invalid \\uXXXX escape', at - 1);
    at += 4;
    return String.fromCharCode(Number.parseInt(hex, 16));
  }
  function value(): unknown {
    const begin = at;
    const char = text[at];
    if (char === '"') {
      at += 1;
      return string(begin);
    }
    if (char === '{') return object();
    if (char === '[') return array();
    for (const [word, meaning] of WORDS)
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/.exec(text.slice(at, at + 400));
    if (!number) return fail('Expecting value', begin);
    at += number[0].length;
    return Number(number[0]);
  }
  function object(): unknown {
    const out: Record<string, unknown> = {};
    at += 1;
    blank();
    if (text[at] === '}') {
      at += 1;
      return out;
    }
    for (;;) {
      if (text[at] !== '"') fail('Expecting property name enclosed in double quotes', at);
      at += 1;
      const key = string(at - 1);
      blank();
      if (text[at] !== ':') fail("Expecting ':' delimiter", at);
      at += 1;
      blank();
      Object.defineProperty(out, key, {
        value: value(),
        enumerable: true,
        configurable: true,
        writable: true,
      });
      blank();
      const char = text[at];
      if (char === '}') break;
      if (char !== ',') fail("Expecting ',' delimiter", at);
      at += 1;
      blank();
    }
    at += 1;
    return out;
  }
  function array(): unknown {
    const out: unknown[] = [];
    at += 1;
    blank();
    if (text[at] === ']') {
      at += 1;
      return out;
    }
    for (;;) {
      out.push(value());
      blank();
      const char = text[at];
      if (char === ']') break;
      if (char !== ',') fail("Expecting ',' delimiter", at);
      at += 1;
      blank();
    }
    at += 1;
    return out;
  }

  try {
    blank();
    const result = value();
    blank();
    if (at < text.length) fail('Extra data', at);
    return { ok: true, value: result };
  } catch (error) {
    if (error instanceof Fault) return { ok: false, message: error.message };
    throw error;
  }
}

/** Positions count code points in Python. */
const chars = (text: string): number => Array.from(text).length;
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
