/** Renders a template as Jinja2 with StrictUndefined would: any use of a value that is not there raises. Templates are compiled once. */
import {
  contains,
  equal,
  float,
  isDict,
  isFloat,
  isNumber,
  iterate,
  order,
  PythonError,
  slice,
  text,
  truth,
  typeName,
} from '../base/python/values.ts';
import {
  type BinaryOperator,
  type CallArgs,
  type ComparisonOperator,
  type Expr,
  type Statement,
  TemplateError,
  UndefinedError,
} from './ast.ts';
import { applyFilter, applyTest, methodOf } from './filters.ts';
import { parseTemplate } from './parse.ts';

export type Vars = Readonly<Record<string, unknown>>;
export type Template = (vars: Vars) => string;

const compiled = new Map<string, Template>();
/** A run has a handful of templates; a program that makes them up should not grow without end. */
const CACHE_LIMIT = 500;

/** Throws TemplateError when the text is not a template. */
export function compileTemplate(source: string): Template {
  const known = compiled.get(source);
  if (known) return known;
  const body: readonly Statement[] = parseTemplate(source);
  const template: Template = (vars) => runTemplate(body, vars);
  if (compiled.size >= CACHE_LIMIT) compiled.clear();
  compiled.set(source, template);
  return template;
}

/** Throws UndefinedError where the template uses what `vars` does not have. `vars` are values only, never template text. */
export function render(source: string, vars: Vars): string {
  return compileTemplate(source)(vars);
}

/** Variables by name; a loop opens an inner scope, `if` does not. */
class Scope {
  private readonly own = new Map<string, unknown>();
  private readonly outer: Scope | Vars;
  constructor(outer: Scope | Vars) {
    this.outer = outer;
  }
  get(name: string): unknown {
    if (this.own.has(name)) return this.own.get(name);
    if (this.outer instanceof Scope) return this.outer.get(name);
    return Object.hasOwn(this.outer, name) ? this.outer[name] : undefined;
  }
  set(name: string, value: unknown): void {
    this.own.set(name, value);
  }
}

function runTemplate(body: readonly Statement[], vars: Vars): string {
  try {
    return statements(body, new Scope(vars));
  } catch (error) {
    throw error instanceof PythonError ? new TemplateError(error.message, { cause: error }) : error;
  }
}

function statements(body: readonly Statement[], scope: Scope): string {
  let out = '';
  for (const node of body) out += statement(node, scope);
  return out;
}

function statement(node: Statement, scope: Scope): string {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'output':
      return text(value(node.value, scope));
    case 'if':
      return statements(truth(value(node.test, scope)) ? node.yes : node.no, scope);
    case 'set':
      assign(node.targets, value(node.value, scope), scope);
      return '';
    case 'for':
      return loop(node, scope);
  }
}

function assign(targets: readonly string[], given: unknown, scope: Scope): void {
  const parts = targets.length === 1 ? [given] : iterate(given);
  if (parts.length !== targets.length)
    throw new TemplateError(`expected ${targets.length} values to unpack, got ${parts.length}`);
  targets.forEach((name, i) => {
    scope.set(name, parts[i]);
  });
}

function loop(node: Extract<Statement, { kind: 'for' }>, scope: Scope): string {
  let items = iterate(value(node.over, scope));
  if (node.only) {
    const { only } = node;
    items = items.filter((item) => {
      const inner = new Scope(scope);
      assign(node.targets, item, inner);
      return truth(value(only, inner));
    });
  }
  if (items.length === 0) return statements(node.otherwise, scope);
  return items
    .map((item, i) => {
      const inner = new Scope(scope);
      assign(node.targets, item, inner);
      inner.set('loop', {
        index: i + 1,
        index0: i,
        revindex: items.length - i,
        revindex0: items.length - i - 1,
        first: i === 0,
        last: i === items.length - 1,
        length: items.length,
      });
      return statements(node.body, inner);
    })
    .join('');
}

/** The value of an expression, which must be there. */
function value(node: Expr, scope: Scope): unknown {
  const found = maybe(node, scope);
  if (found === undefined) throw new UndefinedError(undefinedText(node, scope));
  return found;
}

function undefinedText(node: Expr, scope: Scope): string {
  if (node.kind === 'name') return `'${node.name}' is undefined`;
  if (node.kind === 'member') {
    const target = value(node.target, scope);
    const key = value(node.key, scope);
    return Array.isArray(target)
      ? `list object has no element ${text(key)}`
      : `'${typeName(target)} object' has no attribute '${text(key)}'`;
  }
  return 'a value in the template is undefined';
}

/** The value, or undefined where Jinja2 has an Undefined object; only `is defined` and `default` accept that. */
function maybe(node: Expr, scope: Scope): unknown {
  switch (node.kind) {
    case 'literal':
      return node.value;
    case 'name':
      return scope.get(node.name);
    case 'list':
      return node.items.map((item) => value(item, scope));
    case 'dict':
      return Object.fromEntries(node.pairs.map(([k, v]) => [text(value(k, scope)), value(v, scope)]));
    case 'member':
      return member(value(node.target, scope), value(node.key, scope));
    case 'slice':
      return slice(
        value(node.target, scope),
        bound(node.start, scope),
        bound(node.stop, scope),
        bound(node.step, scope),
      );
    case 'call':
      return call(node.callee, node.args, scope);
    case 'filter': {
      const { positional, named } = given(node.args, scope);
      return applyFilter(node.name, targetOf(node, scope), positional, named);
    }
    case 'test':
      return applyTest(node.name, targetOf(node, scope), given(node.args, scope).positional);
    case 'not':
      return !truth(value(node.target, scope));
    case 'negative':
      return signed('-', value(node.target, scope));
    case 'positive':
      return signed('+', value(node.target, scope));
    case 'and':
    case 'or': {
      const left = value(node.left, scope);
      return truth(left) === (node.kind === 'and') ? value(node.right, scope) : left;
    }
    case 'binary':
      return binary(node.operator, value(node.left, scope), value(node.right, scope));
    case 'compare':
      return compare(node, scope);
    case 'choice':
      if (truth(value(node.test, scope))) return value(node.yes, scope);
      return node.no ? value(node.no, scope) : undefined;
    case 'capture':
      return statements(node.body, scope);
  }
}

/** These alone may be asked about a value that is not there. */
const LENIENT: ReadonlySet<string> = new Set([
  'filter default',
  'filter d',
  'test defined',
  'test undefined',
]);
const targetOf = (node: Extract<Expr, { kind: 'filter' | 'test' }>, scope: Scope): unknown =>
  LENIENT.has(`${node.kind} ${node.name}`) ? maybe(node.target, scope) : value(node.target, scope);

function bound(node: Expr | null, scope: Scope): number | null {
  if (!node) return null;
  const at = value(node, scope);
  if (at === null) return null;
  if (!isNumber(at) || isFloat(at)) throw new TemplateError('slice indices must be integers or None');
  return Number(at);
}

/** Own fields of dicts, elements of lists, characters of text; nothing of the host language. */
function member(target: unknown, key: unknown): unknown {
  if (isDict(target)) return Object.hasOwn(target, text(key)) ? target[text(key)] : undefined;
  if (typeof key === 'number' && Number.isInteger(key)) {
    if (Array.isArray(target)) return target.at(key);
    if (typeof target === 'string') return slice(target, key, key === -1 ? null : key + 1, null) || undefined;
  }
  return undefined;
}

function call(callee: Expr, args: CallArgs, scope: Scope): unknown {
  const { positional, named } = given(args, scope);
  if (Object.keys(named).length > 0) throw new TemplateError('calls here take no named arguments');
  if (callee.kind === 'name' && callee.name === 'range' && scope.get('range') === undefined)
    return range(positional.map(Number));
  if (callee.kind === 'member') {
    const target = value(callee.target, scope);
    const key = text(value(callee.key, scope));
    const method = methodOf(target, key);
    if (method) return method(positional);
    throw new UndefinedError(`'${typeName(target)} object' has no attribute '${key}'`);
  }
  throw new TemplateError(
    callee.kind === 'name' ? `'${callee.name}' cannot be called` : 'this value cannot be called',
  );
}

function given(args: CallArgs, scope: Scope): { positional: unknown[]; named: Record<string, unknown> } {
  return {
    positional: args.positional.map((node) => value(node, scope)),
    named: Object.fromEntries(args.named.map(([name, node]) => [name, value(node, scope)])),
  };
}

function compare(node: Extract<Expr, { kind: 'compare' }>, scope: Scope): boolean {
  let left = value(node.first, scope);
  for (const { operator, value: next } of node.rest) {
    const right = value(next, scope);
    if (!holds(operator, left, right)) return false;
    left = right;
  }
  return true;
}

/** A template is a prompt: more than this many turns is a mistake. */
const RANGE_LIMIT = 100_000;
function range(args: readonly number[]): number[] {
  const [start, stop, step] =
    args.length === 1 ? [0, args[0] ?? 0, 1] : [args[0] ?? 0, args[1] ?? 0, args[2] ?? 1];
  if (step === 0 || Math.abs((stop - start) / step) > RANGE_LIMIT)
    throw new TemplateError('range is too large');
  const out: number[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) out.push(i);
  return out;
}

function holds(operator: ComparisonOperator, left: unknown, right: unknown): boolean {
  switch (operator) {
    case '==':
      return equal(left, right);
    case '!=':
      return !equal(left, right);
    case 'in':
      return contains(right, left);
    case '<':
      return order(left, right) < 0;
    case '>':
      return order(left, right) > 0;
    case '<=':
      return order(left, right) <= 0;
    default:
      return order(left, right) >= 0;
  }
}

const numeric = (n: unknown, operator: string): unknown => {
  if (isNumber(n) || typeof n === 'boolean') return n;
  throw new TemplateError(`unsupported operand type for ${operator}: '${typeName(n)}'`);
};
const keepFloat = (result: number, ...from: readonly unknown[]): unknown =>
  from.some(isFloat) ? float(result) : result;

function binary(operator: BinaryOperator, left: unknown, right: unknown): unknown {
  if (operator === '~') return text(left) + text(right);
  if (operator === '+' && typeof left === 'string' && typeof right === 'string') return left + right;
  if (operator === '+' && Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
  if (operator === '*' && typeof left === 'string' && isNumber(right))
    return left.repeat(Math.max(0, Number(right)));
  const [a, b] = [Number(numeric(left, operator)), Number(numeric(right, operator))];
  switch (operator) {
    case '+':
      return keepFloat(a + b, left, right);
    case '-':
      return keepFloat(a - b, left, right);
    case '*':
      return keepFloat(a * b, left, right);
    case '**':
      return keepFloat(a ** b, left, right, ...(b < 0 ? [0.5] : []));
    default:
      if (b === 0) throw new TemplateError('division by zero');
      if (operator === '/') return float(a / b);
      if (operator === '//') return keepFloat(Math.floor(a / b), left, right);
      // Python's remainder has the sign of the divisor.
      return keepFloat(a - b * Math.floor(a / b), left, right);
  }
}

function signed(sign: '-' | '+', value: unknown): unknown {
  const n = numeric(value, sign);
  return keepFloat(sign === '-' ? -Number(n) : Number(n), n);
}
