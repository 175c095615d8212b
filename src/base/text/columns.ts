/** The columns of a terminal that a text takes, counted by what is drawn: an ideograph and an emoji of several code points take two. */
import { createRequire } from 'node:module';
import type stringWidth from 'string-width';

// Nearly all text is this, our own signs among it, and tables measure every cell.
const PLAIN = /^[\x20-\x7e≥…·]*$/;

/** Loaded for the first text that is not plain: it takes half as long as all of `swebatch ls`. */
let widthOf: typeof stringWidth | undefined;
/** The widths of single characters, which texts repeat. */
const widths = new Map<string, number>();
function drawnWidth(text: string): number {
  widthOf ??= (createRequire(import.meta.url)('string-width') as { default: typeof stringWidth }).default;
  if (text.length > UNITS_A_COLUMN) return widthOf(text);
  const known = widths.get(text) ?? widthOf(text);
  if (widths.size < MOST_WIDTHS) widths.set(text, known);
  return known;
}
const MOST_WIDTHS = 20_000;

/** Wider than any place that a text is drawn in. Beyond it nobody needs to know how wide a text is. */
const WIDEST = 10_000;

/** An ideograph is one unit long, an emoji or a letter with its marks a few. */
const UNITS_A_COLUMN = 16;

/** The text's characters as they are drawn. The beginning of a long text is enough for a place of `width` columns. */
function* drawn(text: string, width: number): Generator<string> {
  const enough = text.slice(0, Math.max(1, width) * UNITS_A_COLUMN);
  yield* segments(enough);
}

/** A text's columns; its length where it is longer than any line. */
export const columns = (text: string): number =>
  text.length > WIDEST || PLAIN.test(text) ? text.length : drawnWidth(text);

/** The longest beginning that fits into `width` columns. */
export function head(text: string, width: number): string {
  if (PLAIN.test(text.slice(0, Math.max(0, width) + 1))) return text.slice(0, width);
  let used = 0;
  let kept = '';
  for (const part of drawn(text, width)) {
    used += columns(part);
    if (used > width) break;
    kept += part;
  }
  return kept;
}

export function shorten(text: string, width: number): string {
  if (columns(text) <= width) return text;
  return width <= 1 ? '…'.slice(0, width) : `${head(text, width - 1)}…`;
}

export const pad = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - columns(text)));
export const padLeft = (text: string, width: number): string =>
  ' '.repeat(Math.max(0, width - columns(text))) + text;

/** Parts that fit, the first into `first` columns and the others into `rest`; each has at least one character. One pass over the text. */
export function broken(text: string, first: number, rest: number): string[] {
  const parts: string[] = [];
  let part = '';
  let used = 0;
  let room = first;
  // A text that is plain has one character a column, and a segmenter is slow.
  const characters = PLAIN.test(text) ? text : segments(text);
  for (const character of characters) {
    const wide = columns(character);
    if (part !== '' && used + wide > room) {
      parts.push(part);
      part = '';
      used = 0;
      room = rest;
    }
    part += character;
    used += wide;
  }
  return [...parts, part];
}

/** Parts between spaces; a number stays with its unit, and an interval whole. */
const words = (text: string): string[] => text.split(/ (?!(?:%|pp)(?![^\s,;.:]))(?![^[\]]{1,12}\])/);

/** The columns of the longest word. */
export const longestWord = (text: string): number =>
  words(text).reduce((most, word) => Math.max(most, columns(word)), 0);

/**
 * Lines of whole words, the first as far in as the text begins and the others behind `indent`. Blanks between words stay, unless the line ends
 * there. A word that is wider than a line goes on in the next one.
 */
export function wrapped(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  let isBegun = false;
  let last = 0;
  for (const [at, word] of words(text).entries()) {
    if (word === '') continue;
    // Every blank is between two parts, of which those between blanks are empty.
    const blanks = at - last;
    last = at;
    if (isBegun && used + blanks + columns(word) > width) {
      lines.push(line);
      line = indent;
      used = indent.length;
    } else {
      line += ' '.repeat(isBegun ? blanks : Math.min(blanks, Math.max(0, width - 2)));
      used = isBegun ? used + blanks : line.length;
    }
    const pieces = broken(word, width - used, width - indent.length);
    for (const piece of pieces.slice(0, -1)) {
      lines.push(line + piece);
      line = indent;
      used = indent.length;
    }
    line += pieces.at(-1)!;
    used += columns(pieces.at(-1)!);
    isBegun = true;
  }
  return [...lines, line];
}

/** Lines that are wider go on in the next one, further in than they began. A coloured line has its layout already. */
export const fitted = (text: string, width: number): string =>
  text
    .split('\n')
    .flatMap((line) => {
      if (columns(line) <= width || line.includes('\u001b')) return [line];
      const begins = /^ */.exec(line)![0].length;
      return wrapped(line, width, ' '.repeat(Math.min(begins + 2, width >> 1)));
    })
    .join('\n');

/** Made once: to make one takes longer than to read a line. */
let segmenter: Intl.Segmenter | undefined;
function* segments(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter();
  for (const { segment } of segmenter.segment(text)) yield segment;
}
