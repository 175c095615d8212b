/** The functions that every template of Jinja2 can call, and the objects that they make. */
import { type Dict, equal, isDict, iterate, PyObject, PyView } from '../base/python/values.ts';
import { TemplateError } from './parse.ts';
import type { Named } from './signature.ts';

/** A value that a template can call. */
export class Callable extends PyObject {
  readonly call: (args: readonly unknown[], named: Named) => unknown;
  constructor(type: string, call: (args: readonly unknown[], named: Named) => unknown) {
    super(type);
    this.call = call;
  }
}

/** A value whose fields a template reads by name. */
export abstract class WithFields extends PyObject {
  /** undefined where no field has this name. */
  abstract field(name: string): unknown;
}

/** `namespace(n=0)`: the one object whose fields `{% set ns.n = 1 %}` changes, in loops too. */
export class Namespace extends WithFields {
  readonly fields: Map<string, unknown>;
  constructor(fields: Map<string, unknown>) {
    super('Namespace');
    this.fields = fields;
  }
  field(name: string): unknown {
    return this.fields.get(name);
  }
}

class Cycler extends WithFields {
  private readonly items: readonly unknown[];
  private at = 0;
  constructor(items: readonly unknown[]) {
    super('Cycler');
    if (items.length === 0) throw new TemplateError('at least one item has to be provided');
    this.items = items;
  }
  field(name: string): unknown {
    if (name === 'current') return this.items[this.at];
    if (name === 'next') return new Callable('method', () => this.next());
    return name === 'reset' ? new Callable('method', () => this.reset()) : undefined;
  }
  private next(): unknown {
    const { at } = this;
    this.at = (at + 1) % this.items.length;
    return this.items[at];
  }
  private reset(): null {
    this.at = 0;
    return null;
  }
}

/** `loop.cycle('a', 'b')` in the turn with this number, from 0. */
export const cycle = (turn: number): Callable =>
  new Callable('method', (args) => {
    if (args.length === 0) throw new TemplateError('no items for cycling given');
    return args[turn % args.length];
  });

/** `loop.changed(x)`: whether it is called with other values than in the turn before. One for each loop. */
export function changes(): Callable {
  let before: readonly unknown[] | undefined;
  return new Callable('method', (args) => {
    const changed = !before || !equal(before, args);
    before = args;
    return changed;
  });
}

function entries(args: readonly unknown[], named: Named): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const given of args) {
    const pairs = isDict(given) ? Object.entries(given as Dict) : iterate(given).map(iterate);
    for (const [name, value, ...more] of pairs) {
      if (typeof name !== 'string' || value === undefined || more.length > 0)
        throw new TemplateError('templates here make mappings of pairs of a text and a value alone');
      found.set(name, value);
    }
  }
  for (const [name, value] of Object.entries(named)) found.set(name, value);
  return found;
}

/** A template is a prompt: more than this many turns is a mistake. */
const RANGE_LIMIT = 100_000;
function range(args: readonly unknown[]): PyView {
  const numbers = args.map((arg) => {
    if (typeof arg === 'boolean') return Number(arg);
    if (typeof arg !== 'number' || !Number.isInteger(arg))
      throw new TemplateError('range takes whole numbers');
    return arg;
  });
  if (numbers.length < 1 || numbers.length > 3) throw new TemplateError('range takes one to three numbers');
  const [start = 0, stop = 0, step = 1] = numbers.length === 1 ? [0, ...numbers] : numbers;
  if (step === 0) throw new TemplateError('range() arg 3 must not be zero');
  if (Math.abs((stop - start) / step) > RANGE_LIMIT) throw new TemplateError('range is too large');
  const out: number[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) out.push(i);
  return PyView.over(out, 'range', `range(${start}, ${stop}${step === 1 ? '' : `, ${step}`})`);
}

function joiner(args: readonly unknown[]): Callable {
  let used = false;
  return new Callable('Joiner', () => {
    const shown = used ? (args[0] ?? ', ') : '';
    used = true;
    return shown;
  });
}

export const GLOBALS: Readonly<Record<string, (args: readonly unknown[], named: Named) => unknown>> = {
  range,
  dict: (args, named) => Object.fromEntries(entries(args, named)),
  namespace: (args, named) => new Namespace(entries(args, named)),
  cycler: (args) => new Cycler(args),
  joiner: (args, named) => joiner(Object.hasOwn(named, 'sep') ? [named.sep] : args),
};
