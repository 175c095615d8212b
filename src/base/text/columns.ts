/** How many columns of a terminal a text takes, counted by what is drawn: an ideograph and an emoji of several code points take two. */
import { createRequire } from 'node:module';
import type stringWidth from 'string-width';

// Nearly all text is this, our own signs among it, and tables measure every cell.
const PLAIN = /^[\x20-\x7e≥…·]*$/;

/** Loaded for the first text that is not plain: it takes half as long as all of `swebatch ls`. */
let widthOf: typeof stringWidth | undefined;
/** Of single characters, which texts repeat. */
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

/** Its characters as they are drawn. The beginning of a long text is enough for a place of `width` columns. */
function* drawn(text: string, width: number): Generator<string> {
  const enough = text.slice(0, Math.max(1, width) * UNITS_A_COLUMN);
  yield* segments(enough);
}

/** Of a text longer than any line its length. */
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

/** The longest end that fits. */
function tail(text: string, width: number): string {
  if (PLAIN.test(text)) return width > 0 ? text.slice(-width) : '';
  const enough = text.slice(-Math.max(1, width) * UNITS_A_COLUMN).replace(/^[\udc00-\udfff]/, '');
  const parts = [...drawn(enough, width)];
  let used = 0;
  let at = parts.length;
  while (at > 0) {
    used += columns(parts[at - 1]!);
    if (used > width) break;
    at--;
  }
  return parts.slice(at).join('');
}

/** Cut from the left, where ids differ least, or from the right. */
export function shorten(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  if (columns(text) <= width) return text;
  if (width <= 1) return '…'.slice(0, width);
  return side === 'right' ? `${head(text, width - 1)}…` : `…${tail(text, width - 1)}`;
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

/** As many columns as its longest word takes. */
export const longestWord = (text: string): number =>
  words(text).reduce((most, word) => Math.max(most, columns(word)), 0);

/** Lines of whole words, each as long as there is room; a word that is wider than all of it goes on in the next line. */
export function byWords(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of words(text)) {
    const begun = lines.at(-1);
    if (begun !== undefined && columns(begun) + 1 + columns(word) <= width)
      lines[lines.length - 1] = `${begun} ${word}`;
    else lines.push(...broken(word, width, width));
  }
  return lines;
}

/** Breaks between words; a word longer than a line is broken anywhere. */
export function wrapped(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let current = /^ */.exec(text)![0];
  let empty = true;
  for (let word of words(text).filter(Boolean)) {
    if (!empty && columns(current) + 1 + columns(word) > width) {
      lines.push(current);
      current = indent;
      empty = true;
    }
    const pieces = broken(word, width - columns(current), width - columns(indent));
    for (const piece of pieces.slice(0, -1)) {
      lines.push(current + piece);
      current = indent;
    }
    word = pieces.at(-1)!;
    current += empty ? word : ` ${word}`;
    empty = false;
  }
  return [...lines, current];
}

/** Lines that are wider go on in the next one, between words, further in than they began. What is coloured was laid out by whoever coloured it. */
export const fitted = (text: string, width: number): string =>
  text
    .split('\n')
    .flatMap((line) => (line.length <= width || line.includes('\u001b') ? [line] : fittedLine(line, width)))
    .join('\n');

function fittedLine(line: string, width: number): string[] {
  const begins = /^ */.exec(line)![0].length;
  const further = ' '.repeat(Math.min(begins + 2, width >> 1));
  const lines: string[] = [];
  let at = 0;
  let before = '';
  for (;;) {
    const room = width - before.length;
    // A character takes at most two columns, and one that combines takes none.
    const next = line.slice(at, at + 8 * width);
    // One that is wider than all the room stands there all the same.
    const shown = head(next, room) || (segments(next).next().value ?? '');
    const end = at + shown.length;
    if (end >= line.length) return [...lines, before + shown];
    // Not further back: a line of megabytes without a space would be read again for each of its parts.
    const space = line[end] === ' ' ? end : at + line.slice(at, end).lastIndexOf(' ');
    const stop = space > at + (at === 0 ? begins : 0) ? space : end;
    lines.push(before + line.slice(at, stop).trimEnd());
    at = stop;
    while (line[at] === ' ') at += 1;
    before = further;
    if (at >= line.length) return lines;
  }
}

/** Made once: to make one takes longer than to read a line. */
let segmenter: Intl.Segmenter | undefined;
function* segments(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter();
  for (const { segment } of segmenter.segment(text)) yield segment;
}
