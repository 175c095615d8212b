/** Python's idea of values: truth, text, equality, order, length, loops and slices. Throws PythonError where Python raises. */
import { replaceUnits, type UnitTable } from '../replaceUnits.ts';
import { byCodePoint, codePoints, sliceText } from './text.ts';

export type Dict = Readonly<Record<string, unknown>>;
export const isDict = (value: unknown): value is Dict =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof PyFloat || value instanceof PyObject);

export function typeName(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'boolean') return 'bool';
  if (isNumber(value)) return isFloat(value) ? 'float' : 'int';
  if (value instanceof PyObject) return value.type;
  if (value instanceof PyTuple) return 'tuple';
  if (value instanceof PyView) return value.kind;
  return Array.isArray(value) ? 'list' : 'dict';
}

export function truth(value: unknown): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  if (isNumber(value)) return Number(value) !== 0;
  if (isDict(value)) return Object.keys(value).length > 0;
  return Boolean(value) && value !== NOTHING;
}

/** str(value) */
export function text(value: unknown): string {
  if (value === NOTHING) return '';
  return typeof value === 'string' ? value : repr(value);
}

export function repr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'string') return stringRepr(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof PyFloat) return value.toString();
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : floatText(value);
  if (value instanceof PyView) return value.shown;
  if (value instanceof PyTuple)
    return `(${Array.from(value, repr).join(', ')}${value.length === 1 ? ',' : ''})`;
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (value === NOTHING) return 'Undefined';
  if (isDict(value))
    return `{${Object.entries(value)
      .map(([k, v]) => `${stringRepr(k)}: ${repr(v)}`)
      .join(', ')}}`;
  throw new PythonError(`a ${value instanceof PyObject ? value.type : typeof value} has no text in Python`);
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};
const UNPRINTABLE = /\p{C}|\p{Zl}|\p{Zp}|(?! )\p{Zs}/u;

let unprintableUnits: UnitTable | undefined;
const needsEscape = (char: string): number => (/['"\\]/.test(char) || UNPRINTABLE.test(char) ? 1 : 0);

function stringRepr(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  unprintableUnits ??= Uint8Array.from({ length: 0x1_0000 }, (_, unit) =>
    needsEscape(String.fromCharCode(unit)),
  );
  const inner = replaceUnits(value, unprintableUnits, (code) => {
    const char = String.fromCodePoint(code);
    if (char === quote) return `\\${char}`;
    return SHORT_ESCAPES[char] ?? (UNPRINTABLE.test(char) ? escaped(code) : char);
  });
  return quote + inner + quote;
}

function escaped(code: number): string {
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

export function equal(a: unknown, b: unknown): boolean {
  const [x, y] = [plain(a), plain(b)];
  if (typeof x === 'number' && typeof y === 'number') return x === y;
  if (Array.isArray(x) && Array.isArray(y))
    return typeName(x) === typeName(y) && x.length === y.length && x.every((v, i) => equal(v, y[i]));
  if (isDict(x) && isDict(y)) {
    const keys = Object.keys(x);
    return (
      keys.length === Object.keys(y).length && keys.every((k) => Object.hasOwn(y, k) && equal(x[k], y[k]))
    );
  }
  return x === y;
}
/** bool is an int in Python. */
function plain(value: unknown): unknown {
  if (value instanceof PyFloat) return value.value;
  return typeof value === 'boolean' ? Number(value) : value;
}

/** Negative, zero or positive; refuses to order what Python refuses to order. */
export function order(a: unknown, b: unknown): number {
  const [x, y] = [plain(a), plain(b)];
  if (typeof x === 'number' && typeof y === 'number') return x - y;
  if (typeof x === 'string' && typeof y === 'string') return byCodePoint(x, y);
  if (Array.isArray(x) && Array.isArray(y)) {
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (!equal(x[i], y[i])) return order(x[i], y[i]);
    return x.length - y.length;
  }
  throw new PythonError(`'<' not supported between '${typeName(a)}' and '${typeName(b)}'`);
}

export function contains(container: unknown, item: unknown): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string')
      throw new PythonError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return container.includes(item);
  }
  if (Array.isArray(container)) return container.some((value) => equal(value, item));
  if (isDict(container)) return typeof item === 'string' && Object.hasOwn(container, item);
  if (container === NOTHING) return false;
  throw new PythonError(`argument of type '${typeName(container)}' is not iterable`);
}

/** len(value) */
export function length(value: unknown): number {
  if (typeof value === 'string') return codePoints(value);
  if (Array.isArray(value)) return value.length;
  if (isDict(value)) return Object.keys(value).length;
  if (value === NOTHING) return 0;
  throw new PythonError(`object of type '${typeName(value)}' has no len()`);
}

/** Elements of whatever Python can loop over. */
export function iterate(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return Array.from(value);
  if (Array.isArray(value)) return value;
  if (isDict(value)) return Object.keys(value);
  if (value === NOTHING) return [];
  throw new PythonError(`'${typeName(value)}' object is not iterable`);
}

/** value[start:stop:step] */
export function slice(
  value: unknown,
  start: number | null,
  stop: number | null,
  step: number | null,
): unknown {
  if (typeof value === 'string' && (step === null || step === 1)) return sliceText(value, start, stop);
  if (typeof value !== 'string' && !Array.isArray(value))
    throw new PythonError(`'${typeName(value)}' object cannot be sliced`);
  if (step === 0) throw new PythonError('slice step cannot be zero');
  const spec = { start, stop, step: step ?? 1 };
  if (typeof value === 'string') return applySlice([...value], spec).join('');
  return value instanceof PyTuple ? PyTuple.holding(applySlice(value, spec)) : applySlice(value, spec);
}

/** An error that Python itself would raise: a wrong type, a step of zero. The caller turns it into an error of its own. */
export class PythonError extends Error {
  override readonly name = 'PythonError';
}

/**
 * Python's slice of a list, written as text: what `--slice` means in mini-swe-agent. The text is split at ":", an empty part is None, and
 * the parts go to `slice(...)`; so a lone number is the stop (`5` = the first five).
 */

type SliceSpec = {
  readonly start: number | null;
  readonly stop: number | null;
  readonly step: number;
};

/** An integer as `int()` reads it: surrounding space, a sign, single underscores between digits. */
const PYTHON_INT = /^\s*[+-]?\d+(?:_\d+)*\s*$/;

type ParsedSlice = { ok: true; slice: SliceSpec } | { ok: false; message: string };

export function parseSlice(text: string): ParsedSlice {
  const parts = text.split(':');
  const wrong = (why: string): ParsedSlice => ({
    ok: false,
    message: `--slice "${text}" ${why}; write start:stop or start:stop:step, for example 0:5, :10, -5: or ::2`,
  });
  if (parts.length > 3) return wrong('has more than three parts');
  const numbers: (number | null)[] = [];
  for (const part of parts) {
    if (part !== '' && !PYTHON_INT.test(part)) return wrong(`has "${part}" where a whole number belongs`);
    numbers.push(part === '' ? null : Number(part.replaceAll('_', '')));
  }
  const [first = null, second = null, step = null] = numbers;
  if (step === 0) return wrong('has step 0');
  const [start, stop] = numbers.length === 1 ? [null, first] : [first, second];
  return { ok: true, slice: { start, stop, step: step ?? 1 } };
}

/** `items[start:stop:step]`, by the rules of CPython's `slice.indices`. */
export function applySlice<T>(items: readonly T[], { start, stop, step }: SliceSpec): T[] {
  const length = items.length;
  const lowest = step < 0 ? -1 : 0;
  const highest = step < 0 ? length - 1 : length;
  const bound = (value: number | null, whenAbsent: number): number => {
    if (value === null) return whenAbsent;
    const counted = value < 0 ? value + length : value;
    return Math.min(Math.max(counted, lowest), highest);
  };
  const from = bound(start, step < 0 ? highest : lowest);
  const to = bound(stop, step < 0 ? lowest : highest);
  const picked: T[] = [];
  for (let i = from; step < 0 ? i > to : i < to; i += step) picked.push(items[i]!);
  return picked;
}

/** A list that Python would hold as a tuple, so that it prints as `(1, 2)` and equals no list. */
export class PyTuple extends Array<unknown> {
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }
  static holding(items: Iterable<unknown>): PyTuple {
    const tuple = new PyTuple();
    for (const item of items) tuple.push(item);
    return tuple;
  }
}

/** A list that Python would show in another way: `range(0, 2)`, `dict_keys(['a'])`. Such a value equals no list. */
export class PyView extends Array<unknown> {
  kind = '';
  shown = '';
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }
  static over(items: readonly unknown[], kind: string, shown = `${kind}(${repr(items)})`): PyView {
    const view = new PyView();
    for (const item of items) view.push(item);
    return Object.assign(view, { kind, shown });
  }
}

/** A value that is no text, number, list or mapping; `type` is its name in Python. */
export class PyObject {
  readonly type: string;
  constructor(type: string) {
    this.type = type;
  }
}
/** The value of `'x' if false` in Jinja2, without an else: empty, false, and not defined. */
export const NOTHING = new PyObject('Undefined');

/** A number that Python would hold as a float, so that 2.0 prints as `2.0`. A plain JavaScript 2 prints as `2`. */
export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
  valueOf(): number {
    return this.value;
  }
  toJSON(): number {
    return this.value;
  }
  toString(): string {
    return floatText(this.value);
  }
}
export const float = (value: number): PyFloat => new PyFloat(value);

export const isNumber = (value: unknown): value is number | PyFloat =>
  typeof value === 'number' || value instanceof PyFloat;
export const isFloat = (value: unknown): boolean =>
  value instanceof PyFloat || (typeof value === 'number' && !Number.isInteger(value));

/** repr of a float: shortest digits, always with a point or an exponent, which starts at 1e16 and below 1e-4. */
function floatText(n: number): string {
  if (Number.isNaN(n)) return 'nan';
  if (!Number.isFinite(n)) return n > 0 ? 'inf' : '-inf';
  const size = Math.abs(n);
  if (n !== 0 && (size >= 1e16 || size < 1e-4)) {
    const [digits, exponent] = n.toExponential().split('e') as [string, string];
    const sign = exponent.startsWith('-') ? '-' : '+';
    return `${digits}e${sign}${exponent.slice(1).padStart(2, '0')}`;
  }
  const text = Object.is(n, -0) ? '-0' : String(n);
  return text.includes('.') ? text : `${text}.0`;
}
