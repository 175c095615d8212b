/**
 * Python's `'%d' % n`, `'{:>8.2f}'.format(x)` and `round`, to the digit: a tie goes to the even digit of the number's exact binary value, where
 * JavaScript's `toFixed` takes the larger one. Source: "printf-style String Formatting" and "Format Specification Mini-Language" of Python's library.
 */
import { codePoints, sliceText } from './text.ts';
import { isDict, isFloat, isNumber, PyTuple, PythonError, repr, text, typeName } from './values.ts';

/** `n` as a fraction of whole numbers; exact. `n` is finite. */
function fraction(n: number): readonly [bigint, bigint] {
  let [whole, power] = [Math.abs(n), 0];
  while (!Number.isInteger(whole)) {
    whole *= 2;
    power += 1;
  }
  return [BigInt(whole), 1n << BigInt(power)];
}

function halfEven(dividend: bigint, divisor: bigint): bigint {
  const [quotient, rest] = [dividend / divisor, (dividend % divisor) * 2n];
  return rest > divisor || (rest === divisor && quotient % 2n === 1n) ? quotient + 1n : quotient;
}

const sign = (n: number): string => (n < 0 || Object.is(n, -0) ? '-' : '');

/** `'%.*f'`: a finite number with `digits` digits behind the point; fewer than none round before the point. */
export function fixed(n: number, digits: number): string {
  const [dividend, divisor] = fraction(n);
  if (digits < 0) {
    const unit = 10n ** BigInt(-digits);
    return sign(n) + String(halfEven(dividend, divisor * unit) * unit);
  }
  const all = String(halfEven(dividend * 10n ** BigInt(digits), divisor)).padStart(digits + 1, '0');
  return sign(n) + (digits === 0 ? all : `${all.slice(0, -digits)}.${all.slice(-digits)}`);
}

/** Digits and exponent of `'%.*e'`. */
function exponential(n: number, digits: number): { mantissa: string; exponent: number } {
  if (n === 0) return { mantissa: fixed(n, digits), exponent: 0 };
  const [dividend, divisor] = fraction(n);
  let exponent = Number(n.toExponential().split('e')[1]);
  const scaled = (): bigint => {
    const shift = digits - exponent;
    return shift >= 0
      ? halfEven(dividend * 10n ** BigInt(shift), divisor)
      : halfEven(dividend, divisor * 10n ** BigInt(-shift));
  };
  let all = String(scaled());
  if (all.length > digits + 1) {
    exponent += 1;
    all = String(scaled());
  }
  return { mantissa: sign(n) + (digits === 0 ? all : `${all[0]}.${all.slice(1)}`), exponent };
}

const exponentText = (exponent: number): string =>
  `e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;

/** `1.50` as `1.5`, `2.0` as `2`. */
function withoutZeros(value: string): string {
  let end = value.length;
  while (value[end - 1] === '0') end -= 1;
  return value.slice(0, value[end - 1] === '.' ? end - 1 : end);
}

function general(n: number, wanted: number, alternate: boolean): string {
  const digits = Math.max(1, wanted);
  const { mantissa, exponent } = exponential(n, digits - 1);
  const short = (value: string): string => (alternate || !value.includes('.') ? value : withoutZeros(value));
  return exponent < -4 || exponent >= digits
    ? short(mantissa) + exponentText(exponent)
    : short(fixed(n, digits - 1 - exponent));
}

/** A float by one of the letters e, f, g and %. */
function floatBy(letter: string, n: number, precision: number | undefined, alternate: boolean): string {
  const lower = letter.toLowerCase();
  const digits = precision ?? 6;
  let shown: string;
  if (Number.isNaN(n)) shown = 'nan';
  else if (!Number.isFinite(n)) shown = n < 0 ? '-inf' : 'inf';
  else if (lower === '%') return `${fixed(n * 100, digits)}%`;
  else if (lower === 'f') shown = fixed(n, digits) + (alternate && digits === 0 ? '.' : '');
  else if (lower === 'e') {
    const { mantissa, exponent } = exponential(n, digits);
    shown = mantissa + exponentText(exponent);
  } else shown = general(n, digits, alternate);
  return letter === lower ? shown : shown.toUpperCase();
}

const BASES: Readonly<Record<string, readonly [number, string]>> = {
  d: [10, ''],
  x: [16, '0x'],
  o: [8, '0o'],
  b: [2, '0b'],
};

function wholeBy(letter: string, n: number, alternate: boolean): string {
  const [base, prefix] = BASES[letter.toLowerCase()] as readonly [number, string];
  const shown = (alternate ? prefix : '') + Math.abs(n).toString(base);
  return (n < 0 ? '-' : '') + (letter === 'X' ? shown.toUpperCase() : shown);
}

function withSign(shown: string, flag: string): string {
  return flag && !shown.startsWith('-') ? flag + shown : shown;
}

/** Between the sign and the digits. */
function zeroFilled(shown: string, width: number): string {
  const head = /^[-+ ]?(?:0[xob])?/i.exec(shown)?.[0] ?? '';
  return head + shown.slice(head.length).padStart(width - head.length, '0');
}

const TOO_WIDE = 10_000;
function widthOf(given: unknown): number {
  const width = Number(given ?? 0);
  if (width > TOO_WIDE) throw new PythonError(`a width of ${width} is too large for templates here`);
  return width;
}

const PERCENT = /%(?:\(([^()]*)\))?([-#0 +]*)(\*|\d+)?(?:\.(\*|\d*))?[hlL]?([\s\S]?)/g;

/** `format % given` */
export function percentFormat(format: string, given: unknown): string {
  const parts = given instanceof PyTuple ? given : [given];
  let used = 0;
  const next = (): unknown => {
    if (used >= parts.length) throw new PythonError('not enough arguments for format string');
    used += 1;
    return parts[used - 1];
  };
  const whole = (at: string | undefined): number | undefined =>
    at === undefined ? undefined : at === '*' ? Number(next()) : Number(at);
  let byName = false;
  const shown = format.replace(PERCENT, (_, name, flags: string, wide, exact, letter: string) => {
    if (letter === '%') return '%';
    if (letter === '') throw new PythonError('incomplete format');
    const given_ = (): unknown => {
      if (name === undefined) return next();
      byName = true;
      if (!isDict(given)) throw new PythonError('format requires a mapping');
      if (!Object.hasOwn(given, name)) throw new PythonError(repr(name));
      return given[name];
    };
    const [width, precision] = [widthOf(whole(wide)), whole(exact)];
    const value = given_();
    const body = percentBody(letter, value, flags, precision === undefined ? undefined : widthOf(precision));
    const [left, zero] = [flags.includes('-') || width < 0, flags.includes('0')];
    const room = Math.abs(width);
    if (left) return padded(body, room, '<', ' ');
    const numeric = !/[srac]/.test(letter);
    return zero && numeric && /\d/.test(body) ? zeroFilled(body, room) : padded(body, room, '>', ' ');
  });
  const spare = given instanceof PyTuple || !(isDict(given) || Array.isArray(given));
  if (spare && !byName && used < parts.length)
    throw new PythonError('not all arguments converted during string formatting');
  return shown;
}

function percentBody(letter: string, value: unknown, flags: string, precision: number | undefined): string {
  const plus = flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '';
  const alternate = flags.includes('#');
  if (/[sra]/.test(letter)) {
    const shown = letter === 's' ? text(value) : repr(value);
    if (letter === 'a' && /[^\0-\x7f]/.test(shown)) throw new PythonError("templates here have no '%a'");
    return precision === undefined ? shown : sliceText(shown, 0, precision);
  }
  if (letter === 'c') {
    if (typeof value === 'string' && codePoints(value) === 1) return value;
    if (typeof value === 'number') return String.fromCodePoint(value);
    throw new PythonError('%c requires int or char');
  }
  const numeric = isNumber(value) || typeof value === 'boolean';
  if (/[diuxXo]/.test(letter)) {
    if (!numeric || (/[xXo]/.test(letter) && isFloat(value)))
      throw new PythonError(`%${letter} format: a number is required, not ${typeName(value)}`);
    const digits = wholeBy(/[iu]/.test(letter) ? 'd' : letter, Math.trunc(Number(value)), alternate);
    const negative = digits.startsWith('-') ? '-' : '';
    return withSign(negative + digits.slice(negative.length).padStart(precision ?? 0, '0'), plus);
  }
  if (/[eEfFgG]/.test(letter)) {
    if (!numeric) throw new PythonError(`must be real number, not ${typeName(value)}`);
    return withSign(floatBy(letter, Number(value), precision, alternate), plus);
  }
  throw new PythonError(`unsupported format character '${letter}'`);
}

function padded(shown: string, width: number, align: string, fill: string): string {
  const missing = width - codePoints(shown);
  if (missing <= 0) return shown;
  const left = align === '<' ? 0 : align === '^' ? Math.floor(missing / 2) : missing;
  return fill.repeat(left) + shown + fill.repeat(missing - left);
}

const FIELD = /\{\{|\}\}|\{([^{}!:]*)(?:!([rsa]))?(?::([^{}]*))?\}|[{}]/g;

/** `format.format(*args, **named)`; without fields of fields (`{0.x}`, `{:{width}}`), which are refused. */
export function braceFormat(
  format: string,
  args: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
): string {
  let counted = 0;
  return format.replace(FIELD, (all, field: string | undefined, conversion, spec: string | undefined) => {
    if (all === '{{' || all === '}}') return all[0] as string;
    if (field === undefined) throw new PythonError(`templates here cannot format '${all}'`);
    if (/[.[]/.test(field)) throw new PythonError(`templates here cannot format '{${field}}'`);
    const value = fieldValue(field === '' ? String(counted++) : field, args, named);
    return bySpec(
      conversion === undefined ? value : conversion === 's' ? text(value) : repr(value),
      spec ?? '',
    );
  });
}

function fieldValue(
  field: string,
  args: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
): unknown {
  if (/^\d+$/.test(field)) {
    if (Number(field) < args.length) return args[Number(field)];
    throw new PythonError(`Replacement index ${field} out of range for positional args tuple`);
  }
  if (Object.hasOwn(named, field)) return named[field];
  throw new PythonError(repr(field));
}

const SPEC = /^(?:(.)?([<>=^]))?([-+ ]?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?([a-zA-Z%]?)$/su;

function bySpec(value: unknown, spec: string): string {
  if (spec === '') return text(value);
  const found = SPEC.exec(spec);
  if (!found) throw new PythonError(`Invalid format specifier '${spec}'`);
  const [, given = '', align = '', plus = '', alternate, zero, wide, comma = '', exact, letter = ''] = found;
  const [width, fill] = [widthOf(wide), given || (zero && !align ? '0' : ' ')];
  const precision = exact === undefined ? undefined : widthOf(exact);
  if (typeof value === 'string') {
    if ((letter && letter !== 's') || plus || comma || align === '=')
      throw new PythonError(`Invalid format specifier '${spec}' for text`);
    return padded(
      precision === undefined ? value : sliceText(value, 0, precision),
      width,
      align || '<',
      fill,
    );
  }
  if (!isNumber(value) && typeof value !== 'boolean')
    throw new PythonError(`unsupported format string passed to ${typeName(value)}.__format__`);
  const shown = withSign(
    grouped(numberBody(value, letter, precision, alternate === '#'), comma),
    plus === '-' ? '' : plus,
  );
  if (align === '=' || (zero && !align)) {
    const head = /^[-+ ]?/.exec(shown)?.[0] ?? '';
    if (comma && fill === '0' && width > shown.length)
      throw new PythonError('templates here cannot fill groups of digits with zeros');
    return head + padded(shown.slice(head.length), width - head.length, '>', fill);
  }
  return padded(shown, width, align || '>', fill);
}

function numberBody(
  value: unknown,
  letter: string,
  precision: number | undefined,
  alternate: boolean,
): string {
  if (/[dxXob]/.test(letter) || (letter === '' && !isFloat(value) && precision === undefined)) {
    if (isFloat(value)) throw new PythonError(`Unknown format code '${letter}' for object of type 'float'`);
    if (letter === '' && typeof value === 'boolean') return text(value);
    return wholeBy(letter || 'd', Number(value), alternate);
  }
  if (/[eEfFgG%]/.test(letter)) return floatBy(letter, Number(value), precision, alternate);
  if (letter === '' && precision === undefined) return text(value);
  throw new PythonError(`templates here cannot format a number by '${letter}' like this`);
}

const grouped = (shown: string, comma: string): string =>
  comma ? shown.replace(/^(-?)(\d+)/, (_, minus, digits) => minus + groupedDigits(digits, comma)) : shown;
const groupedDigits = (digits: string, comma: string): string => {
  const first = digits.length % 3 || 3;
  return [digits.slice(0, first), ...(digits.slice(first).match(/\d{3}/g) ?? [])].join(comma);
};
