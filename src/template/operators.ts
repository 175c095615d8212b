/** Jinja2's operators and `range` over values. */
import { float, isFloat, isNumber } from '../base/python/float.ts';
import { contains, equal, order, text, typeName } from '../base/python/values.ts';
import type { BinaryOperator, Comparison } from './ast.ts';
import { TemplateError } from './templateError.ts';

/** A template is a prompt: more than this many turns is a mistake. */
const RANGE_LIMIT = 100_000;
export function range(args: readonly number[]): number[] {
  const [start, stop, step] =
    args.length === 1 ? [0, args[0] ?? 0, 1] : [args[0] ?? 0, args[1] ?? 0, args[2] ?? 1];
  if (step === 0 || Math.abs((stop - start) / step) > RANGE_LIMIT)
    throw new TemplateError('range is too large');
  const out: number[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) out.push(i);
  return out;
}

export function holds(operator: Comparison, left: unknown, right: unknown): boolean {
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

export function binary(operator: BinaryOperator, left: unknown, right: unknown): unknown {
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

export function signed(sign: '-' | '+', value: unknown): unknown {
  const n = numeric(value, sign);
  return keepFloat(sign === '-' ? -Number(n) : Number(n), n);
}
