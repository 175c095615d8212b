/**
 * Renders a template as Jinja2 with StrictUndefined would: any use of a value that is not there raises. The tree of nunjucks becomes functions,
 * once for each template; what is wrong with its names, filters and methods is noted on the way, so that a typo stops a run before anything
 * is started or paid.
 */

import { percentFormat } from '../base/python/format.ts';
import {
  contains,
  equal,
  float,
  isDict,
  isFloat,
  isNumber,
  iterate,
  NOTHING,
  order,
  PyTuple,
  PythonError,
  slice,
  text,
  truth,
  typeName,
} from '../base/python/values.ts';
import { closest } from '../base/text/closest.ts';
import { applyFilter, applyTest, FILTERS, Group, LENIENT_TESTS, TESTS } from './filters.ts';
import { Callable, changes, cycle, GLOBALS, Namespace, WithFields } from './globals.ts';
import { methodOf, OF_MAPPINGS, wrongCall } from './methods.ts';
import { type Node, parseTemplate, TemplateError, UndefinedError } from './parse.ts';
import { misfit } from './signature.ts';

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
  const write = asTemplateErrors(() => statements(parseTemplate(source), { bound: new Set(), found }));
  return { found, template: (vars) => asTemplateErrors(() => write(new Scope(vars))) };
}

function asTemplateErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PythonError) throw new TemplateError(error.message, { cause: error });
    if (error instanceof RangeError)
      throw new TemplateError('it is nested too deeply, or makes a text that is too long');
    throw error;
  }
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

/** The state of a compilation. */
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
      const [target] = node.targets;
      const given = expression(node.value, place);
      if (node.field !== null) return [setField(target, node.field, given, place)];
      for (const name of names(target)) place.bound.add(name);
      return [
        (scope) => {
          assign(target, given(scope), scope);
          return '';
        },
      ];
    }
    case 'With': {
      const given = node.given.map(([target, of]: [Node, Node]) => [target, expression(of, place)]);
      const inside: Place = { ...place, bound: new Set(place.bound) };
      for (const [target] of given) for (const name of names(target)) inside.bound.add(name);
      const body = statements(node.body, inside);
      return [
        (scope) => {
          const inner = new Scope(scope);
          for (const [target, of] of given) assign(target, of(scope), inner);
          return body(inner);
        },
      ];
    }
    default:
      return refuse(node, `cannot use ${node.typename} as a statement`);
  }
}

/** The names of a target of an assignment: a name, or an array of targets. */
const names = (target: Node): string[] =>
  target.typename === 'Symbol' ? [target.value] : target.children.flatMap(names);

function assign(target: Node, given: unknown, scope: Scope): void {
  if (target.typename === 'Symbol') {
    scope.set(target.value, given);
    return;
  }
  const parts = iterate(given);
  if (parts.length !== target.children.length)
    throw new TemplateError(`expected ${target.children.length} values to unpack, got ${parts.length}`);
  target.children.forEach((child: Node, i: number) => {
    assign(child, parts[i], scope);
  });
}

/** `{% set ns.name = value %}`, of a namespace alone. */
function setField(target: Node, field: string, given: Expression, place: Place): Write {
  const owner = value(target, place);
  return (scope) => {
    const space = owner(scope);
    if (!(space instanceof Namespace))
      throw new TemplateError('cannot assign attribute on non-namespace object');
    space.fields.set(field, given(scope));
    return '';
  };
}

function loop(node: Node, place: Place): Write {
  const target: Node = node.name;
  const over = value(node.arr, place);
  /** A target of this name stands in the way of Jinja2's own. */
  const ownLoop = names(target).includes('loop');
  const inside: Place = { ...place, bound: new Set([...place.bound, ...names(target), 'loop']) };
  const only = node.test ? value(node.test, inside) : null;
  const body = statements(node.body, inside);
  const otherwise = statements(node.else_, { ...place, bound: new Set(place.bound) });
  const innerOf = (item: unknown, scope: Scope): Scope => {
    const inner = new Scope(scope);
    assign(target, item, inner);
    return inner;
  };
  return (scope) => {
    const items = iterate(over(scope)).filter((item) => !only || truth(only(innerOf(item, scope))));
    if (items.length === 0) return otherwise(scope);
    const changed = changes();
    let out = '';
    for (const [i, item] of items.entries()) {
      const inner = innerOf(item, scope);
      if (!ownLoop) inner.set('loop', { ...turn(items, i), changed, cycle: cycle(i) });
      out += body(inner);
    }
    return out;
  };
}

function turn(items: readonly unknown[], i: number): Record<string, unknown> {
  return {
    index: i + 1,
    index0: i,
    revindex: items.length - i,
    revindex0: items.length - i - 1,
    first: i === 0,
    last: i === items.length - 1,
    length: items.length,
    // Other depths than these have loops that are recursive, which templates here do not have.
    depth: 1,
    depth0: 0,
    ...(i > 0 ? { previtem: items[i - 1] } : {}),
    ...(i < items.length - 1 ? { nextitem: items[i + 1] } : {}),
  };
}

/** The value of an expression; undefined where Jinja2 has an Undefined object, which only `is defined` and `default` accept. */
interface Expression {
  (scope: Scope): unknown;
  /** The missing thing, for people. */
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
  if (node.tuple) return (scope) => PyTuple.holding(items.map((item) => item(scope)));
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
    const [left, right] = [value(node.left, place), expression(node.right, place)];
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
const arithmetic =
  (operator: string): Read =>
  (node, place) => {
    noMarkup(node.left, place);
    if (operator === '+') noMarkup(node.right, place);
    return binary((left, right) => computed(operator, left, right))(node, place);
  };

/** Filters whose result Jinja2 marks as safe: text added to it is escaped there, and here would not be. */
const MARKUP: ReadonlySet<string> = new Set(['e', 'escape', 'forceescape', 'safe', 'tojson']);

function noMarkup(node: Node, place: Place): void {
  if (node.typename === 'Filter' && MARKUP.has(node.name.value))
    place.found.problems.push(
      `what the filter '${node.name.value}' gives can only be shown, filtered or joined by ~ in templates here`,
    );
}

const EXPRESSIONS: Readonly<Record<string, Read>> = {
  Literal: (node) => () => node.value,
  Symbol({ value: name }, { bound, found }) {
    if (!bound.has(name)) found.free.add(name);
    return Object.assign((scope: Scope) => scope.get(name), { missing: () => `'${name}' is undefined` });
  },
  Array: list,
  Dict(node, place) {
    const pairs: (readonly [Expression, Expression])[] = node.children.map((pair: Node) => [
      value(pair.key, place),
      value(pair.value, place),
    ]);
    for (const { key } of node.children)
      if (key.typename === 'Literal' && typeof key.value !== 'string')
        place.found.problems.push(noSuchKey(key.value));
    return (scope) => Object.fromEntries(pairs.map(([key, one]) => [keyText(key(scope)), one(scope)]));
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
    const of = node.attribute ? attribute : member;
    return Object.assign((scope: Scope) => of(target(scope), key(scope)), {
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
    const known = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
    const wrong = known
      ? misfit(`filter '${name}'`, known, ...shapeOf(rest))
      : `there is no filter '${name}'`;
    if (wrong) place.found.problems.push(wrong);
    if (name === 'format' || name === 'truncate') noMarkup(target, place);
    const lenient = name === 'default' || name === 'd';
    const of = asked(target, lenient, place);
    const args = given(rest, place, lenient ? expression : value);
    return (scope) => {
      const { positional, named } = args(scope);
      return applyFilter(name, of(scope), positional, named);
    };
  },
  Is({ testName: name, left, testArgs }, place) {
    if (!Object.hasOwn(TESTS, name)) place.found.problems.push(`there is no test '${name}'`);
    const target = asked(left, LENIENT_TESTS.has(name), place);
    const args = given(testArgs?.children ?? [], place);
    return (scope) => applyTest(name, target(scope), args(scope).positional);
  },
  Not: unary((target) => !truth(target)),
  Neg: unary((target) => signed('-', target)),
  Pos: unary((target) => signed('+', target)),
  And: logical(true),
  Or: logical(false),
  Compare(node, place) {
    const first = value(node.expr, place);
    const rest: (readonly [Holds, Expression])[] = node.ops.map(({ type, expr }: Node) => [
      HOLDS[type] ?? refuse(node, `Jinja2 has no operator ${type}`),
      value(expr, place),
    ]);
    return (scope) => {
      // Python asks for a value no sooner than it compares it.
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
    const [test, yes] = [value(node.cond, place), expression(node.body, place)];
    const no = node.else_ ? expression(node.else_, place) : () => NOTHING;
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
  in: (left, right) => contains(right, left),
  'not in': (left, right) => !contains(right, left),
};

/** Keys of a mapping are texts here; Python's 1 and '1' would be one. */
function keyText(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new TemplateError(noSuchKey(key));
}

const noSuchKey = (key: unknown): string =>
  `templates here have no mapping with a key that is a ${typeName(key)}`;

/** The target of a filter or test. Only a `lenient` test may be asked about a value that is not there. */
function asked(node: Node, lenient: boolean, place: Place): Expression {
  const name = named(node);
  if (lenient && name !== undefined) place.found.asked.add(name);
  return lenient ? expression(node, place) : value(node, place);
}

const named = (node: Node): string | undefined => (node.typename === 'Symbol' ? node.value : undefined);

/** How many arguments are given by place, and the names of the others. */
function shapeOf(children: readonly Node[]): [given: number, names: string[]] {
  const named = children.filter((child) => child.typename === 'KeywordArgs');
  return [
    children.length - named.length,
    named.flatMap(({ children: pairs }) => pairs.map(({ key }: Node) => key.value)),
  ];
}

function given(children: readonly Node[], place: Place, read: Read = value) {
  const positional: Expression[] = [];
  const byName: (readonly [string, Expression])[] = [];
  for (const child of children) {
    if (child.typename === 'KeywordArgs')
      for (const pair of child.children) byName.push([pair.key.value, read(pair.value, place)]);
    else positional.push(read(child, place));
  }
  return (scope: Scope) => ({
    positional: positional.map((one) => one(scope)),
    named: Object.fromEntries(byName.map(([name, one]) => [name, one(scope)])),
  });
}

/** A method of a value (`x.split(",")`), a function of Jinja2 (`range(3)`), or what a template has set to one (`joiner()`). */
function call(node: Node, place: Place): Expression {
  const args = given(node.args.children, place);
  const name = named(node.name);
  if (name !== undefined && Object.hasOwn(GLOBALS, name) && !place.bound.has(name))
    return (scope) => {
      const { positional, named: byName } = args(scope);
      const shadowed = scope.get(name);
      return shadowed === undefined
        ? GLOBALS[name]?.(positional, byName)
        : called(shadowed, name, positional, byName);
    };
  if (node.name.typename === 'LookupVal' && !node.name.slice)
    return callMethod(node.name, node.args.children, place);
  if (name === undefined) place.found.problems.push('only methods can be called');
  else if (!place.bound.has(name)) place.found.problems.push(`'${name}' cannot be called`);
  const callee = value(node.name, place);
  return (scope) => {
    const { positional, named: byName } = args(scope);
    return called(callee(scope), name, positional, byName);
  };
}

function called(callee: unknown, name: string | undefined, args: readonly unknown[], byName: Vars): unknown {
  if (callee instanceof Callable) return callee.call(args, byName);
  throw new TemplateError(name !== undefined ? `'${name}' cannot be called` : 'this value cannot be called');
}

/** A field of a field in a text for `format`: `{a[b]}`, `{a.b}`. */
const FIELD = /\{\w{0,100}[.[][^{}]{0,100}\}/;

function callMethod(lookup: Node, children: readonly Node[], place: Place): Expression {
  const { problems } = place.found;
  noMarkup(lookup.target, place);
  const args = given(children, place);
  if (lookup.val.typename !== 'Literal') problems.push('only methods can be called');
  else {
    const wrong = wrongCall(String(lookup.val.value), ...shapeOf(children));
    if (wrong) problems.push(wrong);
    const { target } = lookup;
    const inside = lookup.val.value === 'format' && target.typename === 'Literal' && FIELD.exec(target.value);
    if (inside) problems.push(`templates here cannot format '${inside[0]}'`);
  }
  const [target, key] = [value(lookup.target, place), value(lookup.val, place)];
  return (scope) => {
    const { positional, named: byName } = args(scope);
    const [self, name] = [target(scope), text(key(scope))];
    const bound = methodOf(self, name);
    if (bound) return bound(positional, byName);
    const field = member(self, name);
    if (field === undefined)
      throw new UndefinedError(`'${typeName(self)} object' has no attribute '${name}'`);
    return called(field, name, positional, byName);
  };
}

function whole(at: unknown): number | null {
  if (at === null) return null;
  if (!isNumber(at) || isFloat(at)) throw new TemplateError('slice indices must be integers or None');
  return Number(at);
}

/** Own fields of dicts, elements of lists, characters of text; nothing of the host language. */
function member(target: unknown, key: unknown): unknown {
  if (target instanceof WithFields) return target.field(text(key));
  if (target instanceof Group && (key === 'grouper' || key === 'list')) return target.field(key);
  if (isDict(target)) return Object.hasOwn(target, text(key)) ? target[text(key)] : undefined;
  if (typeof key === 'number' && Number.isInteger(key)) {
    if (Array.isArray(target)) return target.at(key);
    if (typeof target === 'string') return slice(target, key, key === -1 ? null : key + 1, null) || undefined;
  }
  return undefined;
}

/** `x.name`: a method of Python's mappings goes before a key of its name. `schema.items is mapping` is false there, whatever `schema` holds. */
function attribute(target: unknown, name: unknown): unknown {
  const isMethod = isDict(target) && typeof name === 'string' && OF_MAPPINGS.has(name);
  return isMethod ? new Callable('method', methodOf(target, name) ?? noMethod(name)) : member(target, name);
}

const noMethod = (name: string) => (): never => {
  throw new TemplateError(`there is no method '${name}' to call`);
};

const numeric = (n: unknown, operator: string): unknown => {
  if (isNumber(n) || typeof n === 'boolean') return n;
  throw new TemplateError(`unsupported operand type for ${operator}: '${typeName(n)}'`);
};
/** A whole number stays one; Python's have no end, those of JavaScript are inexact from 2^53 on. */
function keepFloat(result: number, ...from: readonly unknown[]): unknown {
  if (from.some(isFloat)) return float(result);
  if (!Number.isSafeInteger(result)) throw new TemplateError('a number is too large for templates here');
  return result === 0 ? 0 : result;
}

function computed(operator: string, left: unknown, right: unknown): unknown {
  if (operator === '+' && typeof left === 'string' && typeof right === 'string') return left + right;
  if (operator === '+' && left instanceof PyTuple && right instanceof PyTuple)
    return PyTuple.holding([...left, ...right]);
  if (operator === '+' && Array.isArray(left) && Array.isArray(right) && typeName(left) === typeName(right))
    return [...left, ...right];
  if (operator === '%' && typeof left === 'string') return percentFormat(left, right);
  if (operator === '*' && isSequence(left)) return repeated(left, right);
  if (operator === '*' && isSequence(right)) return repeated(right, left);
  const [a, b] = [Number(numeric(left, operator)), Number(numeric(right, operator))];
  switch (operator) {
    case '+':
      return keepFloat(a + b, left, right);
    case '-':
      return keepFloat(a - b, left, right);
    case '*':
      return keepFloat(a * b, left, right);
    case '**':
      if (a === 0 && b < 0) throw new TemplateError('zero to a negative power');
      if (a < 0 && !Number.isInteger(b)) throw new TemplateError('templates here have no complex numbers');
      return keepFloat(a ** b, left, right, ...(b < 0 ? [0.5] : []));
    default: {
      if (b === 0) throw new TemplateError('division by zero');
      if (operator === '/') return float(a / b);
      const rest = remainder(a, b, isFloat(left) || isFloat(right));
      if (operator === '%') return keepFloat(rest, left, right);
      const quotient = Math.round((a - rest) / b);
      return keepFloat(quotient === 0 ? Math.sign(a) * Math.sign(b) * 0 : quotient, left, right);
    }
  }
}

/** Python's remainder has the sign of the divisor, a zero of floats too. */
function remainder(a: number, b: number, floats: boolean): number {
  const rest = a % b;
  if (rest === 0) return floats && b < 0 ? -0 : 0;
  return rest < 0 !== b < 0 ? rest + b : rest;
}

/** Long texts are made by mistake, and end the program where they are not bounded. */
const LONGEST_REPEAT = 10_000_000;
const isSequence = (value: unknown): value is string | readonly unknown[] =>
  typeof value === 'string' || Array.isArray(value);

function repeated(value: string | readonly unknown[], times: unknown): unknown {
  const given = typeof times === 'boolean' ? Number(times) : times;
  if (typeof given !== 'number' || !Number.isInteger(given))
    throw new TemplateError(`can't multiply sequence by non-int of type '${typeName(times)}'`);
  const count = Math.max(0, given);
  if (value.length * count > LONGEST_REPEAT) throw new TemplateError('a repeated value is too long');
  if (typeof value === 'string') return value.repeat(count);
  const items = Array.from({ length: count }, () => value).flat(1);
  return value instanceof PyTuple ? PyTuple.holding(items) : items;
}

function signed(sign: '-' | '+', value: unknown): unknown {
  const n = numeric(value, sign);
  return keepFloat(sign === '-' ? -Number(n) || (isFloat(n) ? -Number(n) : 0) : Number(n), n);
}
