/** Blocks as text of at most `width` columns; nothing from data can move the cursor or change direction. */

import { stripChars } from '../../base/python/text.ts';
import {
  head as beginning,
  broken,
  pad,
  padLeft,
  shorten,
  columns as size,
} from '../../base/text/columns.ts';
import { html, markdown, plain, line as wholeLine } from '../../base/text/inert.ts';
import type { Bar, Block, Document } from './document.ts';

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

export const renderMarkdown = (document: Document): string =>
  `${document
    .map(markdownBlock)
    .filter((text) => text !== '')
    .join('\n\n')}\n`;

function markdownBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `${'#'.repeat(block.level)} ${markdown(block.text)}`;
    case 'facts':
      return markdownTable(['', ''], ['left', 'left'], block.rows);
    case 'table':
      return markdownTable(block.head, block.align, block.rows);
    case 'text':
      return markdown(block.text);
    case 'warning':
      return `> **Warning:** ${markdown(block.text)}`;
    case 'ids':
      return `**${markdown(block.label)}** (${block.ids.length})${
        block.ids.length ? `: ${block.ids.map(markdown).join(', ')}` : ''
      }`;
    case 'lines':
      return fenced(block.lines);
    case 'bars':
      return '';
  }
}

function markdownTable(
  head: readonly string[],
  align: readonly ('left' | 'right')[],
  rows: readonly (readonly string[])[],
): string {
  const row = (cells: readonly string[]) => `| ${cells.map((c) => markdown(c) || ' ').join(' | ')} |`;
  const rule = `| ${align.map((a) => (a === 'right' ? '---:' : '---')).join(' | ')} |`;
  return [row(head), rule, ...rows.map(row)].join('\n');
}

/** The fence is longer than any run of backticks inside. */
function fenced(lines: readonly string[]): string {
  // No escape sequence goes beyond its line, and millions of short lines are slow one by one.
  const text = plain(lines.join('\n'));
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}diff\n${text}\n${fence}`;
}

const STYLE = `body{font:14px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;color:#1b1f24;background:#fff;margin:24px auto;max-width:900px;padding:0 16px}
h1{font-size:22px;margin:0 0 12px}h2{font-size:18px;margin:28px 0 8px;border-bottom:1px solid #d0d7de;padding-bottom:4px}h3{font-size:15px;margin:20px 0 6px}
table{border-collapse:collapse;margin:6px 0 12px}th,td{padding:3px 10px 3px 0;text-align:left;vertical-align:top}thead th{border-bottom:1px solid #d0d7de;font-weight:600}
td{overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px}
.r{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.f th{font-weight:400;color:#57606a}.w{background:#fff8c5;border-left:4px solid #d4a72c;padding:6px 10px;margin:6px 0}
.i{color:#57606a;word-break:break-word}svg{display:block;max-width:100%;height:auto}
@media(max-width:480px){body{font-size:12px;margin:12px auto;padding:0 10px}th,td{padding-right:6px}}`;

export function renderHtml(document: Document, title: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${html(title)}</title><style>${STYLE}</style></head><body>
${document.map(htmlBlock).join('\n')}
</body></html>
`;
}

function htmlBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `<h${block.level}>${html(block.text)}</h${block.level}>`;
    case 'facts':
      return `<table class="f"><tbody>${block.rows
        .map(([label, value]) => `<tr><th scope="row">${html(label)}</th><td>${html(value)}</td></tr>`)
        .join('')}</tbody></table>`;
    case 'table':
      return htmlTable(block);
    case 'text':
      return `<p>${html(block.text)}</p>`;
    case 'warning':
      return `<div class="w" role="note">${html(block.text)}</div>`;
    case 'ids':
      return `<p class="i"><b>${html(block.label)}</b> (${block.ids.length}) ${html(block.ids.join(', '))}</p>`;
    case 'lines':
      // No escape sequence goes beyond its line, and millions of short lines are slow one by one.
      return `<pre>${html(block.lines.join('\n'))}</pre>`;
    case 'bars':
      return block.bars.length ? chart(block.title, block.max, block.bars) : '';
  }
}

function htmlTable(block: Extract<Block, { kind: 'table' }>): string {
  const cell = (tag: 'th' | 'td', text: string, j: number) =>
    `<${tag}${tag === 'th' ? ' scope="col"' : ''}${block.align[j] === 'right' ? ' class="r"' : ''}>${html(text)}</${tag}>`;
  const head = block.head.map((text, j) => cell('th', text, j)).join('');
  const rows = block.rows.map((row) => `<tr>${row.map((text, j) => cell('td', text, j)).join('')}</tr>`);
  return `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`;
}

const BAR = 220;

function chart(title: string, max: number, bars: readonly Bar[]): string {
  const rows = bars.map((bar) => {
    const filled = Math.round(BAR * share(bar.value, max));
    // Width as attribute and as style: Outlook reads the one, the others the other.
    const part = (width: number, colour: string) =>
      width > 0
        ? `<td width="${width}" height="12" bgcolor="${colour}" style="width:${width}px;height:12px;padding:0;background:${colour};font-size:1px">&nbsp;</td>`
        : '';
    return `<tr><td>${html(bar.label)}</td><td style="padding:5px 10px 3px 0"><table cellpadding="0" cellspacing="0" style="margin:0"><tr>${part(filled, '#2f6feb')}${part(BAR - filled, '#e6e9ef')}</tr></table></td><td>${html(bar.text)}</td></tr>`;
  });
  return `<table role="img" aria-label="${html(title)}"><tbody>${rows.join('')}</tbody></table>\n${intervals(title, max, bars)}`;
}

/** Dots with whiskers: what the bars cannot show. */
function intervals(title: string, max: number, bars: readonly Bar[]): string {
  const shown = bars.filter((b) => b.low !== undefined && b.high !== undefined);
  if (shown.length === 0) return '';
  const [left, width, step] = [200, 420, 20];
  const x = (v: number) => (left + width * share(v, max)).toFixed(1);
  const marks = shown.map((bar, i) => {
    const y = 12 + i * step;
    return `<text x="${left - 8}" y="${y + 4}" text-anchor="end">${html(beginning(bar.label, 30))}</text><line x1="${x(bar.low!)}" x2="${x(bar.high!)}" y1="${y}" y2="${y}" stroke="#57606a" stroke-width="2"/><circle cx="${x(bar.value)}" cy="${y}" r="4" fill="#2f6feb"><title>${html(bar.text)}</title></circle>`;
  });
  const bottom = 12 + shown.length * step;
  const axis = [0, 0.25, 0.5, 0.75, 1].map(
    (v) =>
      `<line x1="${x(v * max)}" x2="${x(v * max)}" y1="4" y2="${bottom}" stroke="#e6e9ef"/><text x="${x(v * max)}" y="${bottom + 14}" text-anchor="middle" fill="#57606a">${Math.round(v * max * 100)} %</text>`,
  );
  return `<svg role="img" aria-label="${html(title)}" width="660" height="${bottom + 20}" viewBox="0 0 660 ${bottom + 20}" font-size="12" font-family="sans-serif">${axis.join('')}${marks.join('')}</svg>`;
}

const share = (value: number, max: number): number => Math.min(1, Math.max(0, max === 0 ? 0 : value / max));
