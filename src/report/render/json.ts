/** Reports as JSON: snake_case keys, as in every file of this field; dollars beside nano-dollars; text that no UTF-8 reader takes is replaced. */
import { wellFormed } from '../../base/replaceUnits.ts';
import { withDollars } from '../../money.ts';

/** A name of ours is shorter by far; what is longer is somebody's data. */
const LONGEST_KEY = 200;

const snake = (key: string): string =>
  key.length > LONGEST_KEY ? key : key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** Keys are ours (never data such as instance ids), so renaming them cannot merge two. */
export function toJson(value: unknown): unknown {
  // JSON has no infinity; an unbounded end of an interval is null.
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return wellFormed(value);
  return Object.fromEntries(Object.entries(value).flatMap(([k, v]) => withDollars(snake(k), toJson(v))));
}

export const jsonText = (value: unknown): string => `${JSON.stringify(toJson(value), null, 2)}\n`;
