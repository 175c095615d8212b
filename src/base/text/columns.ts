/** How many columns of a terminal a text takes, counted by what is drawn: an ideograph and an emoji of several code points take two. */
import { createRequire } from 'node:module';
import type stringWidth from 'string-width';

// Nearly all text is this, our own signs among it, and tables measure every cell.
const PLAIN = /^[\x20-\x7e≥…·]*$/;

/** Loaded for the first text that is not plain: it takes half as long as all of `swebatch ls`. */
let widthOf: typeof stringWidth | undefined;
function drawnWidth(text: string): number {
  widthOf ??= (createRequire(import.meta.url)('string-width') as { default: typeof stringWidth }).default;
  return widthOf(text);
}

const drawn = (text: string): string[] =>
  Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);

export const columns = (text: string): number => (PLAIN.test(text) ? text.length : drawnWidth(text));

/** How many of the parts fit into `width` columns. */
function fitting(parts: readonly string[], width: number): number {
  let used = 0;
  const end = parts.findIndex((part) => {
    used += columns(part);
    return used > width;
  });
  return end < 0 ? parts.length : end;
}

/** The longest beginning that fits into `width` columns. */
export function head(text: string, width: number): string {
  if (PLAIN.test(text)) return text.slice(0, width);
  const parts = drawn(text);
  return parts.slice(0, fitting(parts, width)).join('');
}

/** Cut from the left, where ids differ least, or from the right. */
export function shorten(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  if (columns(text) <= width) return text;
  if (width <= 1) return '…'.slice(0, width);
  if (side === 'right') return `${head(text, width - 1)}…`;
  const parts = drawn(text).reverse();
  return `…${parts
    .slice(0, fitting(parts, width - 1))
    .reverse()
    .join('')}`;
}

export const pad = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - columns(text)));
export const padLeft = (text: string, width: number): string =>
  ' '.repeat(Math.max(0, width - columns(text))) + text;
