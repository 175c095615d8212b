/**
 * Tokens of a template to the syntax tree of nunjucks, by the grammar of Jinja2's parser (`jinja2/parser.py` 3.1). Parts of Jinja2
 * that templates here do not have are refused by name, here or where the tree is compiled (render.ts).
 */
import nunjucks from 'nunjucks';
import { float } from '../base/python/values.ts';
import { lex, type Token } from './lexer.ts';

/** A fault of a template: at load (syntax, unknown names and filters) or while rendering (undefined values). */
export class TemplateError extends Error {
  override readonly name: string = 'TemplateError';
}

/** Jinja2's StrictUndefined: raised on any use of a value that is not there. */
export class UndefinedError extends TemplateError {
  override readonly name: string = 'UndefinedError';
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
  nextToken(): Token | null;
  peekToken(): Token | null;
  pushToken(token: Token | null): void;
  skip(type: string): boolean;
  skipValue(type: string, value: string): boolean;
  skipSymbol(value: string): boolean;
  advanceAfterBlockEnd(name?: string): Token;
  fail(message: string, lineno?: number, colno?: number): never;
  parseOr(): Node;
  parseUntilBlocks(...names: string[]): Node;
  parseNodes(): Node[];
  parseAsRoot(): Node;
  breakOnBlocks: readonly string[] | null;
}

const { parser, nodes } = nunjucks as unknown as {
  parser: { Parser: new (tokens: { nextToken(): Token | null }) => NunjucksParser };
  nodes: Record<string, NodeClass>;
};
const make = (name: string, at: { lineno: number; colno: number }, ...fields: unknown[]): Node =>
  new (nodes[name] as NodeClass)(at.lineno, at.colno, ...fields);

/** Left-associative levels of Jinja2's grammar, loosest first: + -, then ~, then * / // %. */
const LEVELS: readonly Readonly<Record<string, string>>[] = [
  { '+': 'Add', '-': 'Sub' },
  { '~': 'Concat' },
  { '*': 'Mul', '/': 'Div', '//': 'FloorDiv', '%': 'Mod' },
];
const COMPARES = ['==', '!=', '<', '>', '<=', '>='];
const CONSTANTS: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
};

class JinjaParser extends parser.Parser {
  /** Tokens behind the current one. */
  private readonly ahead: () => Token | undefined;

  constructor(tokens: readonly Token[]) {
    let next = 0;
    super({ nextToken: () => tokens[next++] ?? null });
    this.ahead = () => tokens[next];
  }

  override parseNodes(): Node[] {
    const found: Node[] = [];
    for (let token = this.nextToken(); token; token = this.nextToken()) {
      if (token.type === 'data')
        found.push(make('Output', token, [make('TemplateData', token, token.value)]));
      else if (token.type === 'variable-start') {
        found.push(make('Output', token, [this.parseTuple()]));
        this.expect('variable-end', "'}}'");
      } else {
        const statement = this.parseStatement();
        if (!statement) break;
        found.push(statement);
      }
    }
    return found;
  }

  expect(type: string, wanted: string): Token {
    const token = this.nextToken();
    if (token?.type === type) return token;
    return this.unexpected(token, wanted);
  }

  unexpected(token: Token | null, wanted: string): never {
    if (!token) return this.fail(`expected ${wanted}, got the end of the template`);
    return this.fail(`expected ${wanted}, got '${token.value}'`, token.lineno, token.colno);
  }

  /** The statement that begins here; null where one of the tags begins that end the block around it. */
  parseStatement(): Node | null {
    const tag = this.peekToken();
    if (tag?.type !== 'symbol') return this.unexpected(tag, 'the name of a statement');
    if (this.breakOnBlocks?.includes(tag.value)) {
      if (tag.value === 'elseif') this.fail("Jinja2 writes 'elif', not 'elseif'", tag.lineno, tag.colno);
      return null;
    }
    switch (tag.value) {
      case 'if':
        return this.parseIf();
      case 'for':
        return this.parseFor();
      case 'set':
        return this.parseSet();
      case 'with':
        return this.parseWith();
      case 'filter':
        return this.parseFilterBlock();
      default:
        if (REFUSED.has(tag.value))
          throw new TemplateError(`templates here have no {% ${tag.value} %} (line ${tag.lineno + 1})`);
        return this.fail(`unknown block tag: ${tag.value}`, tag.lineno, tag.colno);
    }
  }

  /** The branches behind `if` and `elif`, up to `endif`. */
  parseIf(): Node {
    const at = this.nextToken() as Token;
    const node = make('If', at);
    node.cond = this.parseTuple(false);
    this.expect('block-end', "'%}'");
    node.body = this.parseUntilBlocks('elif', 'elseif', 'else', 'endif');
    node.else_ = null;
    if (this.peekToken()?.value === 'elif') {
      node.else_ = this.parseIf();
      return node;
    }
    if (this.skipSymbol('else')) {
      this.expect('block-end', "'%}'");
      node.else_ = this.parseUntilBlocks('endif');
    }
    this.advanceAfterBlockEnd();
    return node;
  }

  parseFor(): Node {
    const at = this.nextToken() as Token;
    const node = make('For', at);
    node.name = this.parseTarget();
    if (!this.skipSymbol('in')) this.unexpected(this.nextToken(), "'in'");
    node.arr = this.parseTuple(false);
    node.test = this.skipSymbol('if') ? this.parseExpression() : null;
    if (this.skipSymbol('recursive')) this.fail('loops here cannot be recursive', at.lineno, at.colno);
    this.expect('block-end', "'%}'");
    node.body = this.parseUntilBlocks('endfor', 'else');
    node.else_ = null;
    if (this.skipSymbol('else')) {
      this.expect('block-end', "'%}'");
      node.else_ = this.parseUntilBlocks('endfor');
    }
    this.advanceAfterBlockEnd();
    return node;
  }

  /** The target of a loop or `set`: a name, or names that share values out, which may be in parentheses. */
  parseTarget(): Node {
    const at = this.peekToken();
    const parts: Node[] = [];
    let tuple = false;
    for (;;) {
      const token = this.nextToken();
      if (token?.type === 'left-paren') {
        parts.push(this.parseTarget());
        this.expect('right-paren', "')'");
      } else if (token?.type === 'symbol' && !Object.hasOwn(CONSTANTS, token.value))
        parts.push(make('Symbol', token, token.value));
      else return this.unexpected(token, 'a name to assign to');
      if (!this.skip('comma')) break;
      tuple = true;
      const next = this.peekToken();
      if (next?.value === 'in' || next?.value === '=' || next?.type === 'right-paren') break;
    }
    return tuple ? make('Array', at as Token, parts) : (parts[0] as Node);
  }

  parseSet(): Node {
    const at = this.nextToken() as Token;
    const target = this.parseTarget();
    const field =
      target.typename === 'Symbol' && this.skipValue('operator', '.')
        ? this.expect('symbol', 'a name after "."').value
        : null;
    const node = Object.assign(make('Set', at, [target]), { field });
    if (this.skipValue('operator', '=')) {
      node.value = this.parseTuple();
      this.expect('block-end', "'%}'");
      return node;
    }
    const captured = make('Capture', at, null);
    node.value = this.parseFilters(captured);
    this.expect('block-end', "'=' or '%}'");
    captured.body = this.parseUntilBlocks('endset');
    this.advanceAfterBlockEnd();
    return node;
  }

  parseWith(): Node {
    const at = this.nextToken() as Token;
    const given: [Node, Node][] = [];
    while (this.peekToken()?.type !== 'block-end') {
      if (given.length > 0) this.expect('comma', "','");
      const target = this.parseTarget();
      if (!this.skipValue('operator', '=')) this.unexpected(this.nextToken(), "'='");
      given.push([target, this.parseExpression()]);
    }
    this.expect('block-end', "'%}'");
    const body = this.parseUntilBlocks('endwith');
    this.advanceAfterBlockEnd();
    return { ...make('NodeList', at, []), typename: 'With', given, body };
  }

  parseFilterBlock(): Node {
    const at = this.nextToken() as Token;
    const captured = make('Capture', at, null);
    const node = this.parseFilters(this.parseFilterCall(captured));
    this.expect('block-end', "'%}'");
    captured.body = this.parseUntilBlocks('endfilter');
    this.advanceAfterBlockEnd();
    return make('Output', at, [node]);
  }

  /** `a, b` is a tuple wherever Jinja2 takes one. */
  parseTuple(conditional = true, parenthesised = false): Node {
    const at = this.peekToken() as Token;
    const parts: Node[] = [];
    let tuple = false;
    for (;;) {
      const end = this.peekToken()?.type;
      if (end === 'variable-end' || end === 'block-end' || end === 'right-paren') break;
      parts.push(conditional ? this.parseExpression() : this.parseOr());
      if (!this.skip('comma')) break;
      tuple = true;
    }
    if (!tuple && parts[0]) return parts[0];
    if (!parenthesised && parts.length === 0) this.unexpected(this.peekToken(), 'an expression');
    return Object.assign(make('Array', at, parts), { tuple: true });
  }

  parseExpression(): Node {
    let node = this.parseOr();
    while (this.skipSymbol('if')) {
      const cond = this.parseOr();
      const otherwise = this.skipSymbol('else') ? this.parseExpression() : null;
      node = Object.assign(make('InlineIf', node), { body: node, cond, else_: otherwise });
    }
    return node;
  }

  /** Called by nunjucks below `and`. */
  parseNot(): Node {
    const token = this.peekToken();
    return this.skipSymbol('not') ? make('Not', token as Token, this.parseNot()) : this.parseCompare();
  }

  parseCompare(): Node {
    const first = this.parseLevel(0);
    const ops: Node[] = [];
    for (let operator = this.compareOperator(); operator; operator = this.compareOperator())
      ops.push(make('CompareOperand', first, this.parseLevel(0), operator));
    return ops.length > 0 ? make('Compare', first, first, ops) : first;
  }

  private compareOperator(): string | null {
    if (this.skipSymbol('in')) return 'in';
    const token = this.peekToken();
    if (token?.type === 'symbol' && token.value === 'not' && this.ahead()?.value === 'in') {
      this.nextToken();
      this.nextToken();
      return 'not in';
    }
    if (token?.type !== 'operator' || !COMPARES.includes(token.value)) return null;
    this.nextToken();
    // `===` of nunjucks.
    return this.skipValue('operator', '=') ? `${token.value}=` : token.value;
  }

  parseLevel(level: number): Node {
    const operators = LEVELS[level];
    if (!operators) return this.parsePow();
    let left = this.parseLevel(level + 1);
    for (;;) {
      const token = this.peekToken();
      const name = token?.type === 'operator' || token?.type === 'tilde' ? operators[token.value] : undefined;
      if (!name) return left;
      this.nextToken();
      left = make(name, left, left, this.parseLevel(level + 1));
    }
  }

  /** Binds tighter than a sign on its left (`-2 ** 2` is parsed by Jinja2 as `(-2) ** 2` too), and is left-associative there. */
  parsePow(): Node {
    let left = this.parseUnary();
    while (this.skipValue('operator', '**')) left = make('Pow', left, left, this.parseUnary());
    return left;
  }

  parseUnary(filtered = true): Node {
    const token = this.peekToken() as Token;
    let node: Node;
    if (this.skipValue('operator', '-')) node = make('Neg', token, this.parseUnary(false));
    else if (this.skipValue('operator', '+')) node = make('Pos', token, this.parseUnary(false));
    else node = this.parsePrimary();
    node = this.parsePostfix(node);
    return filtered ? this.parseFilters(node) : node;
  }

  parsePrimary(): Node {
    const token = this.nextToken();
    switch (token?.type) {
      case 'symbol':
        return Object.hasOwn(CONSTANTS, token.value)
          ? make('Literal', token, CONSTANTS[token.value])
          : make('Symbol', token, token.value);
      case 'string': {
        let { value } = token;
        for (let next = this.peekToken(); next?.type === 'string'; next = this.peekToken()) {
          value += next.value;
          this.nextToken();
        }
        return make('Literal', token, value);
      }
      case 'int':
        return make('Literal', token, Number(token.value));
      case 'float':
        return make('Literal', token, float(Number(token.value)));
      case 'left-paren': {
        const inside = this.parseTuple(true, true);
        this.expect('right-paren', "')'");
        return inside;
      }
      case 'left-bracket':
        return make(
          'Array',
          token,
          this.parseItems('right-bracket', () => this.parseExpression()),
        );
      case 'left-curly':
        return make(
          'Dict',
          token,
          this.parseItems('right-curly', () => this.parsePair()),
        );
      default:
        return this.unexpected(token, 'an expression');
    }
  }

  private parseItems(end: string, parseOne: () => Node): Node[] {
    const items: Node[] = [];
    while (!this.skip(end)) {
      if (items.length > 0) this.expect('comma', "','");
      if (this.skip(end)) break;
      items.push(parseOne());
    }
    return items;
  }

  private parsePair(): Node {
    const key = this.parseExpression();
    this.expect('colon', "':'");
    return make('Pair', key, key, this.parseExpression());
  }

  parsePostfix(node: Node): Node {
    let value = node;
    for (;;) {
      const token = this.peekToken();
      if (token?.type === 'left-paren') value = make('FunCall', token, value, this.parseArguments());
      else if (token?.type === 'left-bracket') {
        this.nextToken();
        value = this.parseSubscript(value, token);
      } else if (token?.type === 'operator' && token.value === '.') {
        this.nextToken();
        const key = this.nextToken();
        if (key?.type !== 'symbol' && key?.type !== 'int') return this.unexpected(key, 'a name after "."');
        const name = key.type === 'int' ? Number(key.value) : key.value;
        const lookup = make('LookupVal', token, value, make('Literal', key, name));
        value = Object.assign(lookup, { attribute: true });
      } else return value;
    }
  }

  /** An index, or the one to three parts of a slice, after `[`. */
  parseSubscript(target: Node, at: Token): Node {
    const parts: (Node | null)[] = [null, null, null];
    let part = 0;
    while (!this.skip('right-bracket')) {
      if (this.skip('colon')) part += 1;
      else if (parts[part] === null) parts[part] = this.parseExpression();
      else this.unexpected(this.peekToken(), '":" or "]" in a subscript');
      if (part > 2) this.fail('a slice has at most three parts', at.lineno, at.colno);
    }
    if (part > 0) return Object.assign(make('LookupVal', at, target, null), { slice: parts });
    if (!parts[0]) this.fail('expected an index', at.lineno, at.colno);
    return make('LookupVal', at, target, parts[0]);
  }

  /** `(1, b=2)`: positional ones first. */
  parseArguments(): Node {
    const at = this.nextToken() as Token;
    const named = make('KeywordArgs', at, []);
    const positional = this.parseItems('right-paren', () => {
      const star = this.peekToken();
      if (star?.type === 'operator' && star.value.startsWith('*'))
        this.fail(`calls here take no '${star.value}'`, star.lineno, star.colno);
      const value = this.parseExpression();
      if (value.typename === 'Symbol' && this.skipValue('operator', '=')) {
        named.addChild(make('Pair', value, value, this.parseExpression()));
        return named;
      }
      if (named.children.length > 0)
        this.fail('an argument without a name stands behind one with a name', value.lineno, value.colno);
      return value;
    });
    return make('NodeList', at, [...new Set(positional)]);
  }

  /** `x | filter`, `x is test`, `x is not test`, `x is test arg`, and a call of what they give. */
  parseFilters(node: Node): Node {
    let value = node;
    for (;;) {
      const token = this.peekToken();
      if (this.skip('pipe')) value = this.parseFilterCall(value);
      else if (this.skipSymbol('is')) {
        const negated = this.skipSymbol('not');
        value = this.parseTest(value);
        if (negated) value = make('Not', value, value);
      } else if (token?.type === 'left-paren' && value.typename !== 'Capture')
        value = make('FunCall', token, value, this.parseArguments());
      else return value;
    }
  }

  parseFilterCall(target: Node): Node {
    const token = this.expect('symbol', 'the name of a filter');
    const name = make('Symbol', token, this.dotted(token));
    const args = this.peekToken()?.type === 'left-paren' ? this.parseArguments().children : [];
    return make('Filter', token, name, make('NodeList', token, [target, ...args]));
  }

  private dotted(first: Token): string {
    let name = first.value;
    while (this.skipValue('operator', '.')) name += `.${this.expect('symbol', 'a name after "."').value}`;
    return name;
  }

  parseTest(target: Node): Node {
    const token = this.expect('symbol', 'the name of a test');
    const test = make('Is', token, target, null);
    test.testName = this.dotted(token);
    const next = this.peekToken();
    if (next?.type === 'left-paren') test.testArgs = this.parseArguments();
    else if (next && startsArgument(next)) {
      if (next.value === 'is' && next.type === 'symbol')
        this.fail("tests cannot be chained with 'is'", next.lineno, next.colno);
      test.testArgs = make('NodeList', next, [this.parsePostfix(this.parsePrimary())]);
    }
    return test;
  }
}

/** Statements of Jinja2 that templates here do not have. */
const REFUSED: ReadonlySet<string> = new Set([
  'autoescape',
  'block',
  'call',
  'extends',
  'from',
  'import',
  'include',
  'macro',
  'print',
]);

const startsArgument = ({ type, value }: Token): boolean =>
  type === 'symbol'
    ? !['else', 'or', 'and'].includes(value)
    : ['string', 'int', 'float', 'left-bracket', 'left-curly'].includes(type);

/** Throws TemplateError with line and column for what cannot be parsed. */
export function parseTemplate(source: string): Node {
  try {
    return new JinjaParser(lex(source)).parseAsRoot();
  } catch (error) {
    if (error instanceof RangeError) throw error;
    const { message, lineno, colno } = error as Error & { lineno?: number; colno?: number };
    throw new TemplateError(message + (lineno ? ` (line ${lineno}, column ${colno})` : ''));
  }
}
