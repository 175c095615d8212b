/** Template text to our own tree. What nunjucks parses and Jinja2 does not know is refused here. */
import type { Args, BinaryOperator, Comparison, Expr, Statement } from './ast.ts';
import { type Node, parseGrammar } from './grammar.ts';
import { TemplateError } from './templateError.ts';

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

function comparison(op: Node, whole: Node): { operator: Comparison; value: Expr } {
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

function callArgs(children: readonly Node[]): Args {
  const positional: Expr[] = [];
  const named: (readonly [string, Expr])[] = [];
  for (const child of children) {
    if (child.typename === 'KeywordArgs')
      for (const pair of child.children) named.push([pair.key.value, expression(pair.value)]);
    else positional.push(expression(child));
  }
  return { positional, named };
}
