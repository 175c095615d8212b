/** Blocks as text of at most `width` columns; nothing from data can move the cursor or change direction. */

import { stripChars } from '../../base/python/text.ts';
import {
  head as beginning,
  longestWord,
  pad,
  padLeft,
  columns as size,
  wrapped,
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
      return wrapped(line(block.text), width, '  ').join('\n');
    case 'warning':
      return wrapped(`! ${line(block.text)}`, width, '  ').join('\n');
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
    .flatMap((l) => wrapped(`    ${plain(cut(l)).replace(/\n/g, ' ')}`, width, '      '));
  const left = all.length - shown.length;
  return [...shown, ...(left > 0 ? [`    … ${left} lines more`] : [])].join('\n');
}

function heading(text: string, level: number, width: number): string {
  const short = wrapped(text, width).join('\n');
  if (level === 1) return `\n${short}\n${'='.repeat(Math.min(width, longest(short)))}`;
  return level === 2 ? `\n${short}\n${'-'.repeat(Math.min(width, longest(short)))}` : `\n${short}`;
}

const longest = (text: string): number =>
  text.split('\n').reduce((most, each) => Math.max(most, size(each)), 0);

const LABEL = 24;

function facts(rows: readonly (readonly [string, string])[], width: number): string {
  const labels = rows.reduce((most, [text]) => Math.max(most, Math.min(LABEL, size(line(text)))), 0) + 4;
  return rows
    .flatMap(([text, value]) => {
      const label = line(text);
      const values = wrapped(line(value), width - labels).map((part) => `${' '.repeat(labels)}${part}`);
      if (size(label) > labels - 4) return [...wrapped(`  ${label}`, width, '    '), ...values];
      return [`${pad(`  ${label}`, labels)}${values[0]!.slice(labels)}`, ...values.slice(1)];
    })
    .map((l) => l.trimEnd())
    .join('\n');
}

/** A cell goes on in the next line, by whole words; where the longest words do not fit beside each other, each cell has a line of its own. */
function table(block: Extract<Block, { kind: 'table' }>, width: number): string {
  const rows = [block.head, ...block.rows].map((row) => row.map(line));
  const most = (of: (text: string) => number) =>
    block.head.map((_, j) => rows.reduce((most, row) => Math.max(most, of(row[j] ?? '')), 0));
  const widths = most(size);
  const least = most(longestWord);
  const budget = width - 2 - 2 * (widths.length - 1);
  if (sum(least) > budget) return cellByCell(rows, width);
  // The widest text column gives way first; numbers are short.
  const narrow = (may: (j: number) => boolean) => {
    for (let over = sum(widths) - budget; over > 0; over = sum(widths) - budget) {
      const open = widths.map((w, j) => (may(j) && w > least[j]! ? w : 0));
      const j = open.indexOf(Math.max(...open));
      if (open[j] === 0) return;
      widths[j] = widths[j]! - Math.min(over, widths[j]! - least[j]!);
    }
  };
  narrow((j) => block.align[j] === 'left');
  narrow(() => true);
  const oneLine = (cells: readonly string[]) => {
    const padded = cells.map((text, j) => (block.align[j] === 'right' ? padLeft : pad)(text, widths[j]!));
    return `  ${padded.join('  ')}`.trimEnd();
  };
  return rows
    .flatMap((row) => {
      const parts = row.map((text, j) => wrapped(text, widths[j]!));
      const height = Math.max(...parts.map((part) => part.length));
      return Array.from({ length: height }, (_, k) => oneLine(parts.map((part) => part[k] ?? '')));
    })
    .join('\n');
}

/** A row is its first cell, and below it a line for each of the others with the name of its column. */
function cellByCell([head = [], ...rows]: readonly (readonly string[])[], width: number): string {
  const names = Math.max(0, ...head.slice(1).map(size));
  const room = Math.max(1, width - names - 6);
  return rows
    .flatMap(([name = '', ...cells]) => [
      ...wrapped(`  ${name}`, width, '    '),
      ...cells.flatMap((cell, j) =>
        wrapped(cell, room).map((part, k) =>
          `    ${pad(k === 0 ? head[j + 1]! : '', names)}  ${part}`.trimEnd(),
        ),
      ),
    ])
    .join('\n');
}

const sum = (xs: readonly number[]): number => xs.reduce((s, x) => s + x, 0);

function ids(label: string, list: readonly string[], width: number, most = list.length): string {
  if (most === 0) return '';
  const shown = list.slice(0, most).map(line).join(', ');
  const more = list.length > most ? ` and ${list.length - most} more (--json)` : '';
  const text = `${line(label)} (${list.length})${list.length ? ':' : ''} ${shown}${more}`;
  return wrapped(`  ${text}`.trimEnd(), width, '    ').join('\n');
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

/** Dots with whiskers, which the bars cannot show. */
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
