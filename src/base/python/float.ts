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
export function floatText(n: number): string {
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
