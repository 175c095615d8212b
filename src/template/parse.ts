/**
 * Template text to the syntax tree of nunjucks, read by Jinja2's grammar where the two differ. What nunjucks knows and Jinja2 does not is
 * refused where the tree is compiled (render.ts).
 */
import nunjucks from 'nunjucks';
import { float } from '../base/python/values.ts';

/** What is wrong with a template: at load (syntax, unknown names and filters) or while rendering (undefined values). */
export class TemplateError extends Error {
  override readonly name: string = 'TemplateError';
}

/** Jinja2's StrictUndefined: raised on any use of a value that is not there. */
export class UndefinedError extends TemplateError {
  override readonly name: string = 'UndefinedError';
}

interface Token {
  type: string;
  value: string;
  lineno: number;
  colno: number;
}
export interface Node {
  typename: string;
  lineno: number;
  colno: number;
  // biome-ignore lint/suspicious/noExplicitAny: nunjucks ships no types for its syntax tree
  [field: string]: any;
}
type NodeClass = new (lineno?: number, colno?: number, ...fields: unknown[]) => Node;

interface NunjucksParser {
  tokens: unknown;
  nextToken(): Token | null;
  peekToken(): Token | null;
  pushToken(token: Token | null): void;
  skip(type: string): boolean;
  skipValue(type: string, value: string): boolean;
  skipSymbol(value: string): boolean;
  expect(type: string): Token;
  fail(message: string, lineno?: number, colno?: number): never;
  parseExpression(): Node;
  parsePrimary(noPostfix?: boolean): Node;
  parsePostfix(node: Node): Node;
  parseUnary(noFilters?: boolean): Node;
  parseSignature(): Node;
  parseFilterName(): Node;
  parseFilterArgs(node: Node): Node[];
  parseAsRoot(): Node;
}

const { parser, lexer, nodes } = nunjucks as unknown as {
  parser: { Parser: new (tokens: unknown) => NunjucksParser };
  lexer: { lex(source: string, options?: object): unknown } & Record<string, string>;
  nodes: Record<string, NodeClass>;
};
const L = lexer;
const make = (name: string, at: { lineno: number; colno: number }, ...fields: unknown[]): Node =>
  new (nodes[name] as NodeClass)(at.lineno, at.colno, ...fields);

/** Left-associative levels of Jinja2's grammar, loosest first: + -, then ~, then * / // %. */
const LEVELS: readonly Readonly<Record<string, string>>[] = [
  { '+': 'Add', '-': 'Sub' },
  { '~': 'Concat' },
  { '*': 'Mul', '/': 'Div', '//': 'FloorDiv', '%': 'Mod' },
];

class JinjaParser extends parser.Parser {
  parseConcat(): Node {
    return this.parseLevel(0);
  }

  parseLevel(level: number): Node {
    const operators = LEVELS[level];
    if (!operators) return this.parsePow();
    let left = this.parseLevel(level + 1);
    for (;;) {
      const token = this.nextToken();
      const name = token && token.type !== L.TOKEN_STRING ? operators[token.value] : undefined;
      if (!token || !name) {
        this.pushToken(token);
        return left;
      }
      left = make(name, token, left, this.parseLevel(level + 1));
    }
  }

  /** Binds tighter than a sign on its left (`-2 ** 2` is parsed by Jinja2 as `(-2) ** 2` too), and is left-associative there. */
  parsePow(): Node {
    let left = this.parseUnary();
    while (this.skipValue(L.TOKEN_OPERATOR as string, '**'))
      left = make('Pow', left, left, this.parseUnary());
    return left;
  }

  /** `x is test`, `x is not test`, `x is test arg` bind as tightly as a filter. */
  parseFilter(node: Node): Node {
    let value = node;
    for (;;) {
      if (this.skip(L.TOKEN_PIPE as string)) {
        const name = this.parseFilterName();
        const args = this.parseFilterArgs(value);
        value = make('Filter', name, name, make('NodeList', name, [value, ...args]));
      } else if (this.skipSymbol('is')) {
        const negated = this.skipSymbol('not');
        value = this.parseTest(value);
        if (negated) value = make('Not', value, value);
      } else return value;
    }
  }

  parseTest(target: Node): Node {
    const token = this.nextToken();
    if (!token) return this.fail('expected the name of a test');
    const test = make('Is', token, target, null);
    test.testName = token.value;
    const next = this.peekToken();
    if (next?.type === L.TOKEN_LEFT_PAREN) test.testArgs = this.parseSignature();
    else if (next && startsArgument(next)) test.testArgs = make('NodeList', next, [this.parsePrimary()]);
    return test;
  }

  /** Corrects two literals: `2.0` is a float, and `null` is a name in Jinja2. */
  override parsePrimary(noPostfix?: boolean): Node {
    const token = this.peekToken();
    if (!token || !(token.type === L.TOKEN_FLOAT || (token.type === L.TOKEN_NONE && token.value === 'null')))
      return super.parsePrimary(noPostfix);
    this.nextToken();
    const node =
      token.type === L.TOKEN_FLOAT
        ? make('Literal', token, float(Number(token.value)))
        : make('Symbol', token, 'null');
    return noPostfix ? node : this.parsePostfix(node);
  }

  parseIs(): Node {
    return (this as unknown as { parseCompare(): Node }).parseCompare();
  }

  override parsePostfix(node: Node): Node {
    let value = node;
    for (;;) {
      const token = this.peekToken();
      if (!token) return value;
      if (token.type === L.TOKEN_LEFT_PAREN) value = make('FunCall', token, value, this.parseSignature());
      else if (token.type === L.TOKEN_LEFT_BRACKET) {
        this.nextToken();
        value = this.parseSubscript(value, token);
      } else if (token.type === L.TOKEN_OPERATOR && token.value === '.') {
        this.nextToken();
        const key = this.nextToken();
        if (!key || (key.type !== L.TOKEN_SYMBOL && key.type !== L.TOKEN_INT))
          return this.fail('expected a name after "."', token.lineno, token.colno);
        value = make(
          'LookupVal',
          token,
          value,
          make('Literal', key, key.type === L.TOKEN_INT ? Number(key.value) : key.value),
        );
      } else return value;
    }
  }

  /** After `[`: an index, or the one to three parts of a slice. */
  parseSubscript(target: Node, at: Token): Node {
    const parts: (Node | null)[] = [null, null, null];
    let part = 0;
    while (!this.skip(L.TOKEN_RIGHT_BRACKET as string)) {
      if (this.skip(L.TOKEN_COLON as string)) part += 1;
      else if (parts[part] === null) parts[part] = this.parseExpression();
      else this.fail('expected ":" or "]" in a subscript', at.lineno, at.colno);
      if (part > 2) this.fail('a slice has at most three parts', at.lineno, at.colno);
    }
    if (part > 0) return Object.assign(make('LookupVal', at, target, null), { slice: parts });
    if (!parts[0]) this.fail('expected an index', at.lineno, at.colno);
    return make('LookupVal', at, target, parts[0]);
  }
}

function startsArgument(token: Token): boolean {
  if (token.type === L.TOKEN_SYMBOL)
    return !['else', 'or', 'and', 'is', 'if', 'in', 'not'].includes(token.value);
  return [
    L.TOKEN_STRING,
    L.TOKEN_INT,
    L.TOKEN_FLOAT,
    L.TOKEN_BOOLEAN,
    L.TOKEN_NONE,
    L.TOKEN_LEFT_BRACKET,
  ].includes(token.type);
}

/** Jinja2 reads any line end as \n and drops exactly one at the end of the source. */
function normalise(source: string): string {
  const text = source.replace(/\r\n?/g, '\n').replace(/\n$/, '');
  // `{%+` and `+%}` switch off trim_blocks, which is off here anyway; nunjucks does not know them. Raw blocks stay as they are.
  return text
    .split(/(\{%[-+]?\s*raw\s*[-+]?%\}[\s\S]*?\{%[-+]?\s*endraw\s*[-+]?%\})/)
    .map((part, i) => (i % 2 ? part : part.replaceAll('{%+', '{%').replaceAll('+%}', '%}')))
    .join('');
}

/** Throws TemplateError with line and column for what cannot be parsed. */
export function parseTemplate(source: string): Node {
  try {
    return new JinjaParser(lexer.lex(normalise(source), {})).parseAsRoot();
  } catch (error) {
    const { message, lineno, colno } = error as Error & { lineno?: number; colno?: number };
    throw new TemplateError(message + (lineno ? ` (line ${lineno}, column ${colno})` : ''));
  }
}
