/** The id that a misspelt one means: `cronwhel-25` is `acme__cronwheel-25`, for people leave out what stands before `__`. */
import { closest } from '../base/text/closest.ts';

const digitsOf = (text: string): string => [...text.replace(/\D/g, '')].sort().join('');

/** "; did you mean ID?", or ''. Another number is another instance, and no slip. */
export function nearestId(word: string, ids: Iterable<string>): string {
  const whole = word.includes('__');
  const written = (id: string): string => (whole ? id : (id.split('__').at(-1) ?? id)).toLowerCase();
  const known = new Map([...ids].map((id) => [written(id), id]));
  const lower = word.toLowerCase();
  const close = closest(
    lower,
    [...known.keys()].filter((name) => digitsOf(name) === digitsOf(lower)),
  );
  return close === null ? '' : `; did you mean ${known.get(close)}?`;
}
