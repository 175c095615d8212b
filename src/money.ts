/**
 * Money in integer nano-dollars (1e-9 USD), so that sums never drift. `null` is "unknown" and never 0.
 * Number is exact up to 9 million dollars.
 */

export type NanoDollars = number;
export const NANO_PER_DOLLAR = 1_000_000_000;

export const dollarsToNano = (dollars: number): NanoDollars => Math.round(dollars * NANO_PER_DOLLAR);
/** A million dollars for one call or one attempt is a mistake, not a price. */
const MOST_DOLLARS = 1_000_000;
/** A cost that somebody else states or that foreign numbers give; null where it cannot be one. */
export const plausibleNano = (dollars: unknown): NanoDollars | null =>
  typeof dollars === 'number' && dollars >= 0 && dollars <= MOST_DOLLARS ? dollarsToNano(dollars) : null;

/** The same of an amount in nano-dollars. */
export const nanoOrNull = (nano: number): NanoDollars | null =>
  Number.isInteger(nano) && plausibleNano(nanoToDollars(nano)) !== null ? nano : null;

export const nanoToDollars = (nano: NanoDollars): number => nano / NANO_PER_DOLLAR;

/** The name of the same amount in dollars: `cost_nano` is `cost_usd`, `nano` is `usd`; null for what is no money. */
export const dollarKey = (key: string): string | null =>
  key === 'nano' || key.endsWith('_nano') ? `${key.slice(0, -4)}usd` : null;

/** The field and, beside an amount in nano-dollars, the same in dollars. */
export function withDollars(key: string, value: unknown): [string, unknown][] {
  const dollars = dollarKey(key);
  if (dollars === null || (typeof value !== 'number' && value !== null)) return [[key, value]];
  return [
    [key, value],
    [dollars, value === null ? null : nanoToDollars(value)],
  ];
}

/** "$1.23", "$0.0042" for small amounts, "unknown" for null. */
export function formatCost(nano: NanoDollars | null): string {
  if (nano === null) return 'unknown';
  const dollars = nanoToDollars(nano);
  if (dollars === 0) return '$0.00';
  return Math.abs(dollars) < 0.01 ? `$${dollars.toPrecision(2)}` : `$${dollars.toFixed(2)}`;
}
