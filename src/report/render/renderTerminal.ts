/** Blocks as text of at most `width` columns; nothing from data can move the cursor or change direction. */
import { stripChars } from '../../base/python/text.ts';
import { broken, pad, padLeft, shorten, columns as size } from '../../base/text/columns.ts';
import { plain, line as wholeLine } from '../../base/text/inert.ts';
import type { Block, Document } from './document.ts';

const TERMINAL_WIDTH = 80;

/** More of one text, and more lines, nobody reads on a terminal; the other renderers and JSON have all of it. */
const LONGEST_TEXT = 20_000;
const MOST_LINES = 20_000;

const cut = (text: string): string =>
  text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}… (${text.length - LONGEST_TEXT} more)` : text;
const line = (text: string): string => wholeLine(cut(text));

export function renderTerminal(document: Document, width = TERMINAL_WIDTH): string {
  const parts = document.map((block) => renderBlock(block, width)).filter((text) => text !== '');
  return `${stripChars(parts.join('\n').replace(/\n{3,}/g, '\n\n'), '\n')}\n`;
}

function renderBlock(block: Block, width: number): string {
  switch (block.kind) {
    case 'heading':
      return heading(line(block.text), block.level, width);
    case 'facts':
      return facts(block.rows, width);
    case 'table':
      return `${table(block, width)}\n`;
    case 'text':
      return wrap(line(block.text), width, '  ').join('\n');
    case 'warning':
      return wrap(`! ${line(block.text)}`, width, '  ').join('\n');
    case 'ids':
      return ids(block.label, block.ids, width, block.onTerminal);
    case 'lines':
      return lines(block.lines, width);
    case 'bars':
      return '';
  }
}

function lines(all: readonly string[], width: number): string {
  const shown = all
    .slice(0, MOST_LINES)
    .map((l) => shorten(`    ${plain(cut(l)).replace(/\n/g, ' ')}`, width));
  const left = all.length - shown.length;
  return [...shown, ...(left > 0 ? [`    … ${left} lines more`] : [])].join('\n');
}

function heading(text: string, level: number, width: number): string {
  const short = wrap(text, width, '').join('\n');
  if (level === 1) return `\n${short}\n${'='.repeat(Math.min(width, longest(short)))}`;
  return level === 2 ? `\n${short}\n${'-'.repeat(Math.min(width, longest(short)))}` : `\n${short}`;
}

const longest = (text: string): number =>
  text.split('\n').reduce((most, each) => Math.max(most, size(each)), 0);

const LABEL = 24;

function facts(rows: readonly (readonly [string, string])[], width: number): string {
  const label = (text: string) => shorten(line(text), LABEL);
  const labels = rows.reduce((most, [text]) => Math.max(most, size(label(text))), 0) + 4;
  return rows
    .flatMap(([text, value]) => {
      const [first = '', ...more] = wrap(line(value), width - labels, '');
      return [`${pad(`  ${label(text)}`, labels)}${first}`, ...more.map((m) => `${' '.repeat(labels)}${m}`)];
    })
    .map((l) => l.trimEnd())
    .join('\n');
}

function table(block: Extract<Block, { kind: 'table' }>, width: number): string {
  const rows = [block.head, ...block.rows].map((row) => row.map(line));
  const widths = block.head.map((_, j) => rows.reduce((most, row) => Math.max(most, size(row[j] ?? '')), 0));
  // What is too wide is taken from the widest text column first; numbers are never cut, they are short.
  const budget = width - 2 - 2 * (widths.length - 1);
  const narrow = (may: (j: number) => boolean, least: number) => {
    for (let over = sum(widths) - budget; over > 0; over = sum(widths) - budget) {
      const open = widths.map((w, j) => (may(j) ? w : 0));
      const j = open.indexOf(Math.max(...open));
      const cut = Math.min(over, widths[j]! - least);
      if (cut <= 0) return;
      widths[j] = widths[j]! - cut;
    }
  };
  narrow((j) => block.align[j] === 'left', 8);
  narrow(() => true, 12);
  narrow(() => true, 1);
  const cell = (text: string, j: number) =>
    (block.align[j] === 'right' ? padLeft : pad)(
      // Ids differ at their ends.
      shorten(text, widths[j]!, block.head[j] === 'instance' ? 'left' : 'right'),
      widths[j]!,
    );
  return rows.map((row) => `  ${row.map(cell).join('  ')}`.trimEnd()).join('\n');
}

const sum = (xs: readonly number[]): number => xs.reduce((s, x) => s + x, 0);

function ids(label: string, list: readonly string[], width: number, most = list.length): string {
  if (most === 0) return '';
  const shown = list.slice(0, most).map(line).join(', ');
  const more = list.length > most ? ` and ${list.length - most} more (--json)` : '';
  const text = `${line(label)} (${list.length})${list.length ? ':' : ''} ${shown}${more}`;
  return wrap(`  ${text}`.trimEnd(), width, '    ').join('\n');
}

/** Breaks at spaces, not between a number and its unit nor in an interval; a word longer than a line is broken anywhere. */
function wrap(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let current = /^ */.exec(text)![0];
  let empty = true;
  for (let word of text.split(/ (?!(?:%|pp)(?![^\s,;.:]))(?![^[\]]{1,12}\])/).filter(Boolean)) {
    if (!empty && size(current) + 1 + size(word) > width) {
      lines.push(current);
      current = indent;
      empty = true;
    }
    const pieces = broken(word, width - size(current), width - size(indent));
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
