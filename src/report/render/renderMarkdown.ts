/** Blocks as GitHub-flavoured Markdown: for summary.md, step summaries and pull requests. */

import { markdown, plain } from '../../base/text/inert.ts';
import type { Block, Document } from './document.ts';

export const renderMarkdown = (document: Document): string =>
  `${document
    .map(renderBlock)
    .filter((text) => text !== '')
    .join('\n\n')}\n`;

function renderBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `${'#'.repeat(block.level)} ${markdown(block.text)}`;
    case 'facts':
      return table(['', ''], ['left', 'left'], block.rows);
    case 'table':
      return table(block.head, block.align, block.rows);
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

function table(
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
