/**
 * Template text to tokens, by the rules of Jinja2's lexer (`jinja2/lexer.py` 3.1). The lexer of nunjucks knows other escapes, numbers, names and
 * forms of `raw`. The tokens have the types that the parser of nunjucks asks for. White space that a `-` takes is gone from them.
 */
import { parsePythonLiteral } from '../base/python/literal.ts';
import { isSpaceAt, SPACE, stripEnd } from '../base/python/text.ts';

export interface Token {
  readonly type: string;
  readonly value: string;
  /** Zero-based, as nunjucks counts. */
  readonly lineno: number;
  readonly colno: number;
}

class LexerError extends Error {
  readonly lineno: number;
  readonly colno: number;
  constructor(message: string, at: { lineno: number; colno: number }) {
    super(message);
    this.lineno = at.lineno + 1;
    this.colno = at.colno + 1;
  }
}

const OPENING = /\{[{%#]/g;
const RAW = new RegExp(`\\{%[-+]?[${SPACE}]*raw[${SPACE}]*(-?)%\\}`, 'y');
const ENDRAW = new RegExp(`\\{%([-+]?)[${SPACE}]*endraw[${SPACE}]*([-+]?)%\\}`, 'g');
const COMMENT_END = /([-+]?)#\}/g;

const NAME = /[\p{XID_Start}_][\p{XID_Continue}]*/uy;
/** A number after a point is an index (`x.0.1`), so it has no fraction. */
const FLOAT = /\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:e[+-]?\d+(?:_\d+)*)?|e[+-]?\d+(?:_\d+)*)/iy;
const INTEGER = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const STRING = /'((?:[^'\\]|\\[\s\S])*)'|"((?:[^"\\]|\\[\s\S])*)"/y;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;

const OPERATOR_TYPES: Readonly<Record<string, string>> = {
  '(': 'left-paren',
  ')': 'right-paren',
  '[': 'left-bracket',
  ']': 'right-bracket',
  '{': 'left-curly',
  '}': 'right-curly',
  ',': 'comma',
  ':': 'colon',
  '~': 'tilde',
  '|': 'pipe',
};
const CLOSES: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** Jinja2 reads any line end as \n and drops exactly one at the end of the source. */
const normalised = (source: string): string => source.replace(/\r\n?/g, '\n').replace(/\n$/, '');

/** All tokens of a template. Throws LexerError. */
export function lex(source: string): Token[] {
  return new Lexer(normalised(source)).tokens();
}

class Lexer {
  private readonly found: Token[] = [];
  private readonly source: string;
  private at = 0;
  /** The last line that was asked for: its number, where it begins, and where it ends. */
  private line = { number: 0, start: 0, end: -1 };

  constructor(source: string) {
    this.source = source;
  }

  tokens(): Token[] {
    let from = 0;
    while (this.at < this.source.length) {
      OPENING.lastIndex = this.at;
      const opening = OPENING.exec(this.source);
      if (!opening) break;
      this.data(from, opening.index, this.source[opening.index + 2] === '-');
      this.at = opening.index;
      if (opening[0] === '{#') this.comment();
      else if (!this.raw()) this.code(opening[0] === '{{' ? 'variable' : 'block');
      from = this.at;
    }
    this.data(from, this.source.length, false);
    return this.found;
  }

  private place(index: number): { lineno: number; colno: number } {
    if (index < this.line.start || this.line.end === -1) this.line = this.lineFrom(0, 0);
    while (this.line.end < index) this.line = this.lineFrom(this.line.number + 1, this.line.end + 1);
    return { lineno: this.line.number, colno: index - this.line.start };
  }

  private lineFrom(number: number, start: number): { number: number; start: number; end: number } {
    const end = this.source.indexOf('\n', start);
    return { number, start, end: end === -1 ? this.source.length : end };
  }

  private push(type: string, value: string, index: number): void {
    this.found.push({ type, value, ...this.place(index) });
  }

  private fail(message: string, index: number): never {
    throw new LexerError(message, this.place(index));
  }

  private data(from: number, to: number, stripped: boolean): void {
    const value = this.source.slice(from, to);
    const kept = stripped ? stripEnd(value) : value;
    if (kept) this.push('data', kept, from);
  }

  /** Moves behind white space where a `-` took it. */
  private dropSpace(sign: string | undefined): void {
    if (sign === '-') this.space();
  }

  private space(): boolean {
    const from = this.at;
    while (isSpaceAt(this.source, this.at)) this.at += 1;
    return this.at > from;
  }

  private comment(): void {
    COMMENT_END.lastIndex = this.at + 2;
    const end = COMMENT_END.exec(this.source);
    if (!end && this.at + 2 === this.source.length) {
      // Jinja2 misses no end where nothing follows.
      this.at += 2;
      return;
    }
    if (!end) this.fail('a comment has no end', this.at);
    this.at = COMMENT_END.lastIndex;
    this.dropSpace(end[1]);
  }

  private raw(): boolean {
    RAW.lastIndex = this.at;
    const begin = RAW.exec(this.source);
    if (!begin) return false;
    const opened = this.at;
    this.at = RAW.lastIndex;
    this.dropSpace(begin[1]);
    ENDRAW.lastIndex = this.at;
    const end = ENDRAW.exec(this.source);
    if (!end) this.fail('{% raw %} has no {% endraw %}', opened);
    this.data(this.at, end.index, end[1] === '-');
    this.at = ENDRAW.lastIndex;
    this.dropSpace(end[2]);
    return true;
  }

  private code(kind: 'block' | 'variable'): void {
    const begun = this.at;
    this.push(`${kind}-start`, this.source.slice(begun, begun + 2), begun);
    this.at += /[-+]/.test(this.source[begun + 2] ?? '') ? 3 : 2;
    const end = kind === 'block' ? /([-+]?)%\}/y : /(-?)\}\}/y;
    const open: string[] = [];
    for (;;) {
      if (this.at >= this.source.length) this.fail(`this ${kind} has no end`, begun);
      end.lastIndex = this.at;
      const closed = open.length === 0 ? end.exec(this.source) : null;
      if (closed) {
        this.push(`${kind}-end`, kind === 'block' ? '%}' : '}}', this.at);
        this.at = end.lastIndex;
        this.dropSpace(closed[1]);
        return;
      }
      this.token(open);
    }
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  private token(open: string[]): void {
    const index = this.at;
    if (this.space()) return;
    // A number behind a point is an index.
    const number = this.source[index - 1] === '.' ? undefined : this.take(FLOAT);
    const integer = number === undefined ? this.take(INTEGER) : undefined;
    const name = (number ?? integer) === undefined ? this.take(NAME) : undefined;
    const quoted = (number ?? integer ?? name) === undefined ? this.take(STRING) : undefined;
    if (number !== undefined) this.push('float', number.replaceAll('_', ''), index);
    else if (integer !== undefined) this.push('int', this.whole(integer, index), index);
    else if (name !== undefined) this.push('symbol', name, index);
    else if (quoted !== undefined) this.push('string', this.unescaped(quoted, index), index);
    else this.operator(open);
  }

  private whole(integer: string, index: number): string {
    const value = Number(integer.replaceAll('_', ''));
    if (!Number.isSafeInteger(value))
      this.fail(`the number ${integer} is too large for templates here`, index);
    return String(value);
  }

  private operator(open: string[]): void {
    const index = this.at;
    const operator = this.take(OPERATOR);
    if (operator === undefined)
      this.fail(`unexpected character ${JSON.stringify(this.source[index])}`, index);
    const closing = CLOSES[operator];
    if (closing) open.push(closing);
    else if (/[)\]}]/.test(operator) && open.pop() !== operator) this.fail(`unexpected '${operator}'`, index);
    this.push(OPERATOR_TYPES[operator] ?? 'operator', operator, index);
  }

  /** A text as Python reads it; unlike there it may go on in the next line. */
  private unescaped(quoted: string, index: number): string {
    const oneLine = quoted.replace(/\\[\s\S]|\n/g, (found) => {
      if (found === '\\N') this.fail("templates here have no '\\N{...}'; write '\\u....' instead", index);
      return found === '\n' ? '\\n' : found;
    });
    try {
      return parsePythonLiteral(oneLine) as string;
    } catch (error) {
      return this.fail((error as Error).message, index);
    }
  }
}
