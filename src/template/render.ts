/**
 * Renders a template as Jinja2 with StrictUndefined would: any use of a value that is not there raises. The tree of nunjucks becomes functions,
 * once for each template; what is wrong with its names, filters and methods is noted on the way, so that a typo stops a run before anything
 * is started or paid.
 */
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
import { closest } from '../base/text/closest.ts';
import { applyFilter, applyTest, FILTERS, METHOD_NAMES, methodOf, TESTS } from './filters.ts';
import { type Node, parseTemplate, TemplateError, UndefinedError } from './parse.ts';

export type Vars = Readonly<Record<string, unknown>>;
type Template = (vars: Vars) => string;

const compiled = new Map<string, Template>();
/** A run has a handful of templates; a program that makes them up should not grow without end. */
const CACHE_LIMIT = 500;

/** Throws TemplateError when the text is not a template. */
export function compileTemplate(source: string): Template {
  const known = compiled.get(source);
  if (known) return known;
  const { template } = compile(source);
  if (compiled.size >= CACHE_LIMIT) compiled.clear();
  compiled.set(source, template);
  return template;
}

/** Throws UndefinedError where the template uses what `vars` does not have. `vars` are values only, never template text. */
export function render(source: string, vars: Vars): string {
  return compileTemplate(source)(vars);
}

/** Every request of an agent begins with one; longer than this is a mistake. */
const LONGEST = 1_000_000;

/** One sentence for each problem; empty when the template can be rendered with these names. */
export function checkTemplate(source: string, availableNames: Iterable<string>): string[] {
  if (source.length > LONGEST) return [`it has more than ${LONGEST} characters`];
  let found: Found;
  try {
    ({ found } = compile(source));
  } catch (error) {
    return [(error as Error).message];
  }
  const available = new Set(availableNames);
  const unknown = [...found.free].filter((name) => !available.has(name) && !found.asked.has(name));
  return [
    ...new Set(found.problems),
    ...unknown.map((name) => {
      const close = closest(name, available);
      return `'${name}' is not a name this template can use${close ? `; did you mean '${close}'?` : ''}`;
    }),
  ];
}

interface Found {
  /** Names used before anything in the template set them. */
  readonly free: Set<string>;
  /** Names that the template asks about with `is defined` or `default`: they may be missing. */
  readonly asked: Set<string>;
  readonly problems: string[];
}

function compile(source: string): { template: Template; found: Found } {
  const found: Found = { free: new Set(), asked: new Set(), problems: [] };
  const write = statements(parseTemplate(source), { bound: new Set(), found });
  return {
    found,
    template(vars) {
      try {
        return write(new Scope(vars));
      } catch (error) {
        throw error instanceof PythonError ? new TemplateError(error.message, { cause: error }) : error;
      }
    },
  };
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

/** What is known while a template is compiled. */
interface Place {
  /** Names that the template itself has set by here. */
  readonly bound: Set<string>;
  readonly found: Found;
}

const refuse = (node: Node, what: string): never => {
  throw new TemplateError(`${what} (line ${node.lineno + 1})`);
};

type Write = (scope: Scope) => string;

function statements(node: Node | null | undefined, place: Place): Write {
  const parts = all(node, place);
  return (scope) => {
    let out = '';
    for (const part of parts) out += part(scope);
    return out;
  };
}

function all(node: Node | null | undefined, place: Place): Write[] {
  if (!node) return [];
  switch (node.typename) {
    case 'Root':
    case 'NodeList':
      return node.children.flatMap((child: Node) => all(child, place));
    case 'Output':
      return node.children.map((child: Node): Write => {
        if (child.typename === 'TemplateData') return () => child.value;
        const shown = value(child, place);
        return (scope) => text(shown(scope));
      });
    case 'If': {
      const [test, yes] = [value(node.cond, place), statements(node.body, place)];
      const no = statements(node.else_, place);
      return [(scope) => (truth(test(scope)) ? yes : no)(scope)];
    }
    case 'For':
      return [loop(node, place)];
    case 'Set': {
      const targets: string[] = node.targets.flatMap(names);
      const given = node.value ? value(node.value, place) : statements(node.body.body, place);
      for (const name of targets) place.bound.add(name);
      return [
        (scope) => {
          assign(targets, given(scope), scope);
          return '';
        },
      ];
    }
    default:
      return refuse(node, `templates here have no {% ${node.typename.toLowerCase()} %}`);
  }
}

function names(node: Node): string[] {
  if (node.typename === 'Symbol') return [node.value];
  if (node.typename === 'Array' || node.typename === 'Group') return node.children.flatMap(names);
  return refuse(node, 'expected a name to assign to');
}

function assign(targets: readonly string[], given: unknown, scope: Scope): void {
  const parts = targets.length === 1 ? [given] : iterate(given);
  if (parts.length !== targets.length)
    throw new TemplateError(`expected ${targets.length} values to unpack, got ${parts.length}`);
  targets.forEach((name, i) => {
    scope.set(name, parts[i]);
  });
}

function loop(node: Node, place: Place): Write {
  // In Jinja2 an `if` after the iterable always filters.
  const filtered = node.arr.typename === 'InlineIf';
  if (filtered && node.arr.else_) refuse(node, 'a loop filter has no else');
  const targets = names(node.name);
  const over = value(filtered ? node.arr.body : node.arr, place);
  const inside: Place = { ...place, bound: new Set([...place.bound, ...targets, 'loop']) };
  const only = filtered ? value(node.arr.cond, inside) : null;
  const body = statements(node.body, inside);
  const otherwise = statements(node.else_, { ...place, bound: new Set(place.bound) });
  const innerOf = (item: unknown, scope: Scope): Scope => {
    const inner = new Scope(scope);
    assign(targets, item, inner);
    return inner;
  };
  return (scope) => {
    const items = iterate(over(scope)).filter((item) => !only || truth(only(innerOf(item, scope))));
    if (items.length === 0) return otherwise(scope);
    return items
      .map((item, i) => {
        const inner = innerOf(item, scope);
        inner.set('loop', {
          index: i + 1,
          index0: i,
          revindex: items.length - i,
          revindex0: items.length - i - 1,
          first: i === 0,
          last: i === items.length - 1,
          length: items.length,
        });
        return body(inner);
      })
      .join('');
  };
}

/** What an expression comes to; undefined where Jinja2 has an Undefined object, which only `is defined` and `default` accept. */
interface Expression {
  (scope: Scope): unknown;
  /** What is not there, for people. */
  missing?(scope: Scope): string;
}

/** The value of an expression, which must be there. */
function value(node: Node, place: Place): Expression {
  const maybe = expression(node, place);
  return (scope) => {
    const found = maybe(scope);
    if (found === undefined)
      throw new UndefinedError(maybe.missing?.(scope) ?? 'a value in the template is undefined');
    return found;
  };
}

function expression(node: Node, place: Place): Expression {
  const read = EXPRESSIONS[node.typename];
  return read ? read(node, place) : refuse(node, `cannot use ${node.typename} in an expression`);
}

type Read = (node: Node, place: Place) => Expression;

const list: Read = (node, place) => {
  const items: Expression[] = node.children.map((child: Node) => value(child, place));
  return (scope) => items.map((item) => item(scope));
};
const unary =
  (of: (target: unknown) => unknown): Read =>
  (node, place) => {
    const target = value(node.target, place);
    return (scope) => of(target(scope));
  };
const logical =
  (goesOn: boolean): Read =>
  (node, place) => {
    const [left, right] = [value(node.left, place), value(node.right, place)];
    return (scope) => {
      const first = left(scope);
      return truth(first) === goesOn ? right(scope) : first;
    };
  };
const binary =
  (of: (left: unknown, right: unknown) => unknown): Read =>
  (node, place) => {
    const [left, right] = [value(node.left, place), value(node.right, place)];
    return (scope) => of(left(scope), right(scope));
  };
const arithmetic = (operator: string): Read => binary((left, right) => computed(operator, left, right));

const CONSTANTS: Readonly<Record<string, unknown>> = { True: true, False: false, None: null };

const EXPRESSIONS: Readonly<Record<string, Read>> = {
  Literal: (node) =>
    node.value instanceof RegExp
      ? refuse(node, 'Jinja2 has no regular expression literals')
      : () => node.value,
  Symbol({ value: name }, { bound, found }) {
    if (Object.hasOwn(CONSTANTS, name)) return () => CONSTANTS[name];
    if (!bound.has(name)) found.free.add(name);
    return Object.assign((scope: Scope) => scope.get(name), { missing: () => `'${name}' is undefined` });
  },
  Group: (node, place) =>
    node.children.length === 1 ? expression(node.children[0], place) : list(node, place),
  Array: list,
  Dict(node, place) {
    const pairs: (readonly [Expression, Expression])[] = node.children.map((pair: Node) => [
      value(pair.key, place),
      value(pair.value, place),
    ]);
    return (scope) => Object.fromEntries(pairs.map(([key, one]) => [text(key(scope)), one(scope)]));
  },
  LookupVal(node, place) {
    const target = value(node.target, place);
    if (node.slice) {
      const bounds = (node.slice as (Node | null)[]).map((part) => part && value(part, place));
      return (scope) => {
        const from = target(scope);
        const [start = null, stop = null, step = null] = bounds.map((part) => part && whole(part(scope)));
        return slice(from, start, stop, step);
      };
    }
    const key = value(node.val, place);
    return Object.assign((scope: Scope) => member(target(scope), key(scope)), {
      missing(scope: Scope) {
        const [from, name] = [target(scope), text(key(scope))];
        return Array.isArray(from)
          ? `list object has no element ${name}`
          : `'${typeName(from)} object' has no attribute '${name}'`;
      },
    });
  },
  FunCall: call,
  Filter(node, place) {
    const { value: name } = node.name;
    const [target, ...rest] = node.args.children;
    if (!Object.hasOwn(FILTERS, name)) place.found.problems.push(`there is no filter '${name}'`);
    const of = asked(target, name === 'default' || name === 'd', place);
    const args = given(rest, place);
    return (scope) => {
      const { positional, named } = args(scope);
      return applyFilter(name, of(scope), positional, named);
    };
  },
  Is({ testName: name, left, testArgs }, place) {
    if (!Object.hasOwn(TESTS, name)) place.found.problems.push(`there is no test '${name}'`);
    const target = asked(left, name === 'defined' || name === 'undefined', place);
    const args = given(testArgs?.children ?? [], place);
    return (scope) => applyTest(name, target(scope), args(scope).positional);
  },
  Not: unary((target) => !truth(target)),
  Neg: unary((target) => signed('-', target)),
  Pos: unary((target) => signed('+', target)),
  And: logical(true),
  Or: logical(false),
  In: binary((item, container) => contains(container, item)),
  Compare(node, place) {
    const first = value(node.expr, place);
    const rest: (readonly [Holds, Expression])[] = node.ops.map(({ type, expr }: Node) => [
      HOLDS[type] ?? refuse(node, `Jinja2 has no operator ${type}`),
      value(expr, place),
    ]);
    return (scope) => {
      let left = first(scope);
      for (const [holds, next] of rest) {
        const right = next(scope);
        if (!holds(left, right)) return false;
        left = right;
      }
      return true;
    };
  },
  InlineIf(node, place) {
    const [test, yes] = [value(node.cond, place), value(node.body, place)];
    const no = node.else_ ? value(node.else_, place) : () => undefined;
    return (scope) => (truth(test(scope)) ? yes : no)(scope);
  },
  Capture: (node, place) => statements(node.body, place),
  Add: arithmetic('+'),
  Sub: arithmetic('-'),
  Mul: arithmetic('*'),
  Div: arithmetic('/'),
  FloorDiv: arithmetic('//'),
  Mod: arithmetic('%'),
  Pow: arithmetic('**'),
  Concat: binary((left, right) => text(left) + text(right)),
};

type Holds = (left: unknown, right: unknown) => boolean;
const HOLDS: Readonly<Record<string, Holds>> = {
  '==': equal,
  '!=': (left, right) => !equal(left, right),
  '<': (left, right) => order(left, right) < 0,
  '>': (left, right) => order(left, right) > 0,
  '<=': (left, right) => order(left, right) <= 0,
  '>=': (left, right) => order(left, right) >= 0,
};

/** The target of a filter or test. Those that are `lenient`, and no others, may be asked about a value that is not there. */
function asked(node: Node, lenient: boolean, place: Place): Expression {
  const name = named(bare(node));
  if (lenient && name !== undefined) place.found.asked.add(name);
  return lenient ? expression(node, place) : value(node, place);
}

/** Without the parentheses around it, and a constant as the literal that it is. */
function bare(node: Node): Node {
  if (node.typename === 'Group' && node.children.length === 1) return bare(node.children[0]);
  const constant = node.typename === 'Symbol' && Object.hasOwn(CONSTANTS, node.value);
  return constant ? { ...node, typename: 'Literal', value: CONSTANTS[node.value] } : node;
}

const named = (node: Node): string | undefined => (node.typename === 'Symbol' ? node.value : undefined);

function given(children: readonly Node[], place: Place) {
  const positional: Expression[] = [];
  const byName: (readonly [string, Expression])[] = [];
  for (const child of children) {
    if (child.typename === 'KeywordArgs')
      for (const pair of child.children) byName.push([pair.key.value, value(pair.value, place)]);
    else positional.push(value(child, place));
  }
  return (scope: Scope) => ({
    positional: positional.map((one) => one(scope)),
    named: Object.fromEntries(byName.map(([name, one]) => [name, one(scope)])),
  });
}

function call(node: Node, place: Place): Expression {
  const callee = bare(node.name);
  const { problems } = place.found;
  const name = named(callee);
  const method = callee.typename === 'LookupVal' && !callee.slice ? bare(callee.val) : null;
  if (name !== undefined && name !== 'range') problems.push(`'${name}' cannot be called`);
  else if (name === undefined && method?.typename !== 'Literal') problems.push('only methods can be called');
  else if (method && !METHOD_NAMES.has(String(method.value)))
    problems.push(`there is no method '${method.value}' to call`);
  const [target, key] = method ? [value(callee.target, place), value(method, place)] : [];
  if (!method && name !== 'range') expression(callee, place);
  const args = given(node.args.children, place);
  return (scope) => {
    const { positional, named: byName } = args(scope);
    if (Object.keys(byName).length > 0) throw new TemplateError('calls here take no named arguments');
    if (name === 'range' && scope.get('range') === undefined) return range(positional.map(Number));
    if (!target || !key)
      throw new TemplateError(
        name !== undefined ? `'${name}' cannot be called` : 'this value cannot be called',
      );
    const [self, called] = [target(scope), text(key(scope))];
    const bound = methodOf(self, called);
    if (!bound) throw new UndefinedError(`'${typeName(self)} object' has no attribute '${called}'`);
    return bound(positional);
  };
}

function whole(at: unknown): number | null {
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

const numeric = (n: unknown, operator: string): unknown => {
  if (isNumber(n) || typeof n === 'boolean') return n;
  throw new TemplateError(`unsupported operand type for ${operator}: '${typeName(n)}'`);
};
const keepFloat = (result: number, ...from: readonly unknown[]): unknown =>
  from.some(isFloat) ? float(result) : result;

function computed(operator: string, left: unknown, right: unknown): unknown {
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
