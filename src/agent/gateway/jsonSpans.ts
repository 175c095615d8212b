/**
 * Where the values of a JSON object stand among its bytes, so that one of them can be replaced and every other byte stays. A key that
 * stands twice in an object is refused: one reader takes the first, another the last, and what was looked at is not what is sent.
 */

export interface Span {
  readonly start: number;
  readonly end: number;
}

export class AmbiguousJson extends Error {
  override readonly name = 'AmbiguousJson';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MAX_DEPTH = 200;

/** A conversation of a thousand turns has twenty thousand. Reading millions would hold everybody else up. */
const MOST_VALUES = 300_000;

/** Counts what begins a value, outside of strings; the bytes may be anything. */
export function holdsTooMuch(bytes: Buffer): boolean {
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = closingQuote(bytes, at + 1);
      if (at < 0) return false;
    } else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      values += 1;
      if (values > MOST_VALUES) return true;
    }
  }
  return false;
}

/** The next quote that no backslash takes away; -1 where there is none. */
function closingQuote(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(QUOTE, from); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let back = at - 1;
    while (back >= from && bytes[back] === BACKSLASH) back -= 1;
    if ((at - 1 - back) % 2 === 0) return at;
  }
  return -1;
}

/** What ends a number or a word. */
const ends = (byte: number): boolean =>
  byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET;

/** The bytes are known to be JSON: JSON.parse has read them. */
export function spansOf(bytes: Buffer): ReadonlyMap<string, Span> {
  let at = 0;
  const top = new Map<string, Span>();

  const space = (): void => {
    while (bytes[at]! <= 0x20) at += 1;
  };
  const endOfString = (): void => {
    at = closingQuote(bytes, at + 1);
    if (at < 0) throw new AmbiguousJson('a string does not end');
    at += 1;
  };
  const key = (): string => {
    const start = at;
    endOfString();
    const text = bytes.toString('utf8', start + 1, at - 1);
    return text.includes('\\') ? String(JSON.parse(bytes.toString('utf8', start, at))) : text;
  };
  const object = (depth: number): void => {
    const keys = new Set<string>();
    at += 1;
    for (;;) {
      space();
      if (bytes[at] === CLOSE_BRACE) break;
      if (bytes[at] === COMMA) {
        at += 1;
        space();
      }
      const name = key();
      if (keys.has(name))
        throw new AmbiguousJson(`the key "${name.slice(0, 60)}" stands twice in one object`);
      keys.add(name);
      space();
      at += 1;
      space();
      const start = at;
      value(depth + 1);
      if (depth === 0) top.set(name, { start, end: at });
    }
    at += 1;
  };
  const array = (depth: number): void => {
    at += 1;
    for (;;) {
      space();
      if (bytes[at] === CLOSE_BRACKET) break;
      if (bytes[at] === COMMA) {
        at += 1;
        space();
      }
      value(depth + 1);
    }
    at += 1;
  };
  const value = (depth: number): void => {
    if (depth > MAX_DEPTH) throw new AmbiguousJson('it is nested too deeply');
    const first = bytes[at];
    if (first === QUOTE) endOfString();
    else if (first === OPEN_BRACE) object(depth);
    else if (first === OPEN_BRACKET) array(depth);
    else while (at < bytes.length && !ends(bytes[at]!)) at += 1;
  };
  space();
  value(0);
  return top;
}

/** The bytes with some values replaced; everything else is as it was. */
export function spliced(bytes: Buffer, changes: readonly { span: Span; text: string }[]): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (const { span, text } of changes.toSorted((a, b) => a.span.start - b.span.start)) {
    parts.push(bytes.subarray(from, span.start), Buffer.from(text));
    from = span.end;
  }
  return Buffer.concat([...parts, bytes.subarray(from)]);
}
