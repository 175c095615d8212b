/**
 * Blocks as one HTML file without a script, a link or a request. Bars are table cells with a background, because mail programs
 * remove SVG; where SVG is shown, it adds the intervals.
 */
import { head as beginning } from '../../base/text/columns.ts';
import { html } from '../../base/text/inert.ts';
import type { Bar, Block, Document } from './document.ts';

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
${document.map(renderBlock).join('\n')}
</body></html>
`;
}

function renderBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `<h${block.level}>${html(block.text)}</h${block.level}>`;
    case 'facts':
      return `<table class="f"><tbody>${block.rows
        .map(([label, value]) => `<tr><th scope="row">${html(label)}</th><td>${html(value)}</td></tr>`)
        .join('')}</tbody></table>`;
    case 'table':
      return table(block);
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

function table(block: Extract<Block, { kind: 'table' }>): string {
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
