/** Template text to our own tree. What nunjucks parses and Jinja2 does not know is refused here. */
import nunjucks from 'nunjucks';
import { float } from '../base/python/values.ts';
import {
  type BinaryOperator,
  type CallArgs,
  type ComparisonOperator,
  type Expr,
  type Statement,
  TemplateError,
} from './ast.ts';

/** Throws TemplateError with its place for what cannot be parsed or is not Jinja2. */
export const parseTemplate = (source: string): Statement[] => statements(parseGrammar(source));

const where = (node: Node): string => ` (line ${node.lineno + 1})`;
const refuse = (node: Node, what: string): never => {
  throw new TemplateError(`${what}${where(node)}`);
};

function statements(node: Node | null | undefined): Statement[] {
  if (!node) return [];
  switch (node.typename) {
    case 'Root':
    case 'NodeList':
      return node.children.flatMap(statements);
    case 'Output':
      return node.children.map(output);
    case 'If':
      return [
        { kind: 'if', test: expression(node.cond), yes: statements(node.body), no: statements(node.else_) },
      ];
    case 'For':
      return [loop(node)];
    case 'Set':
      return [
        {
          kind: 'set',
          targets: node.targets.flatMap(names),
          value: node.value ? expression(node.value) : { kind: 'capture', body: statements(node.body.body) },
        },
      ];
    default:
      return refuse(node, `templates here have no {% ${node.typename.toLowerCase()} %}`);
  }
}

const output = (node: Node): Statement =>
  node.typename === 'TemplateData'
    ? { kind: 'text', text: node.value }
    : { kind: 'output', value: expression(node) };

function loop(node: Node): Statement {
  // In Jinja2 an `if` after the iterable always filters.
  const filtered = node.arr.typename === 'InlineIf';
  if (filtered && node.arr.else_) refuse(node, 'a loop filter has no else');
  return {
    kind: 'for',
    targets: names(node.name),
    over: expression(filtered ? node.arr.body : node.arr),
    only: filtered ? expression(node.arr.cond) : null,
    body: statements(node.body),
    otherwise: statements(node.else_),
  };
}

function names(node: Node): string[] {
  if (node.typename === 'Symbol') return [node.value];
  if (node.typename === 'Array' || node.typename === 'Group') return node.children.flatMap(names);
  return refuse(node, 'expected a name to assign to');
}

function expression(node: Node): Expr {
  const read = EXPRESSIONS[node.typename];
  return read ? read(node) : refuse(node, `cannot use ${node.typename} in an expression`);
}

const list = (node: Node): Expr => ({ kind: 'list', items: node.children.map(expression) });
const unary =
  (kind: 'not' | 'negative' | 'positive') =>
  (node: Node): Expr => ({ kind, target: expression(node.target) });
const logical =
  (kind: 'and' | 'or') =>
  (node: Node): Expr => ({ kind, left: expression(node.left), right: expression(node.right) });
const binary =
  (operator: BinaryOperator) =>
  (node: Node): Expr => ({
    kind: 'binary',
    operator,
    left: expression(node.left),
    right: expression(node.right),
  });

const EXPRESSIONS: Readonly<Record<string, (node: Node) => Expr>> = {
  Literal: (node) =>
    node.value instanceof RegExp
      ? refuse(node, 'Jinja2 has no regular expression literals')
      : { kind: 'literal', value: node.value },
  Symbol: (node) => symbol(node.value),
  Group: (node) => (node.children.length === 1 ? expression(node.children[0]) : list(node)),
  Array: list,
  Dict: (node) => ({
    kind: 'dict',
    pairs: node.children.map((p: Node) => [expression(p.key), expression(p.value)] as const),
  }),
  LookupVal: lookup,
  FunCall: (node) => ({
    kind: 'call',
    callee: expression(node.name),
    args: callArgs(node.args.children),
  }),
  Filter: (node) => {
    const [target, ...rest] = node.args.children;
    return { kind: 'filter', name: node.name.value, target: expression(target), args: callArgs(rest) };
  },
  Is: (node) => ({
    kind: 'test',
    name: node.testName,
    target: expression(node.left),
    args: callArgs(node.testArgs?.children ?? []),
  }),
  Not: unary('not'),
  Neg: unary('negative'),
  Pos: unary('positive'),
  And: logical('and'),
  Or: logical('or'),
  In: (node) => ({
    kind: 'compare',
    first: expression(node.left),
    rest: [{ operator: 'in', value: expression(node.right) }],
  }),
  Compare: (node) => ({
    kind: 'compare',
    first: expression(node.expr),
    rest: node.ops.map((op: Node) => comparison(op, node)),
  }),
  InlineIf: (node) => ({
    kind: 'choice',
    test: expression(node.cond),
    yes: expression(node.body),
    no: node.else_ ? expression(node.else_) : null,
  }),
  Capture: (node) => ({ kind: 'capture', body: statements(node.body) }),
  Add: binary('+'),
  Sub: binary('-'),
  Mul: binary('*'),
  Div: binary('/'),
  FloorDiv: binary('//'),
  Mod: binary('%'),
  Pow: binary('**'),
  Concat: binary('~'),
};

function comparison(op: Node, whole: Node): { operator: ComparisonOperator; value: Expr } {
  if (op.type.length > 2) refuse(whole, `Jinja2 has no operator ${op.type}`);
  return { operator: op.type, value: expression(op.expr) };
}

const CONSTANTS: Readonly<Record<string, unknown>> = { True: true, False: false, None: null };
const symbol = (name: string): Expr =>
  Object.hasOwn(CONSTANTS, name) ? { kind: 'literal', value: CONSTANTS[name] } : { kind: 'name', name };

function lookup(node: Node): Expr {
  const target = expression(node.target);
  if (!node.slice) return { kind: 'member', target, key: expression(node.val) };
  const [start, stop, step] = (node.slice as (Node | null)[]).map((part) => (part ? expression(part) : null));
  return { kind: 'slice', target, start: start ?? null, stop: stop ?? null, step: step ?? null };
}

function callArgs(children: readonly Node[]): CallArgs {
  const positional: Expr[] = [];
  const named: (readonly [string, Expr])[] = [];
  for (const child of children) {
    if (child.typename === 'KeywordArgs')
      for (const pair of child.children) named.push([pair.key.value, expression(pair.value)]);
    else positional.push(expression(child));
  }
  return { positional, named };
}

interface Token {
  type: string;
  value: string;
  lineno: number;
  colno: number;
}
interface Node {
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
function parseGrammar(source: string): Node {
  try {
    return new JinjaParser(lexer.lex(normalise(source), {})).parseAsRoot();
  } catch (error) {
    const { message, lineno, colno } = error as Error & { lineno?: number; colno?: number };
    throw new TemplateError(message + (lineno ? ` (line ${lineno}, column ${colno})` : ''));
  }
}
