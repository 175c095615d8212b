/**
 * One run as a single HTML file for a mail: the page, its style and its documents inside. A summary is readable without
 * scripts; trajectories are added, those that failed first, until the file has its size.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { html } from '../base/text/inert.ts';
import { formatCost } from '../money.ts';
import { attemptPaths, withDocuments } from './bundle.ts';
import type { RunDocument, TrialPage } from './documents/documents.ts';
import { readPage, withMode } from './pageFiles.ts';

export interface ExportOptions {
  /** Largest size of the documents as they travel; default 8 MB, which most mail servers let through. */
  readonly maxBytes?: number;
  readonly pageDir?: string;
  readonly now?: () => Date;
}

export function exportHtml(results: string, run: string, options: ExportOptions = {}): string {
  const page = readPage(options.pageDir);
  const maxBytes = options.maxBytes ?? 8_000_000;
  return withDocuments(results, { runs: [run], now: options.now }, (documents, queries) => {
    const id = queries.runNamed(run)!.id;
    const packed = new Map<string, string>();
    let size = 0;
    const pack = (path: string): { path: string; body: string } => ({
      path,
      body: gzipSync(JSON.stringify(documents.read(path) ?? null), { level: 9 }).toString('base64'),
    });
    const keep = (parts: readonly { path: string; body: string }[]) => {
      for (const { path, body } of parts) {
        packed.set(path, body);
        size += body.length;
      }
    };
    const head = documents.read(`runs/${id}`) as RunDocument;
    keep(['runs', `runs/${id}`, `runs/${id}/map/0`].map(pack));
    const rows: TrialPage['rows'] = [];
    for (let n = 0; n < head.trialPages; n += 1) {
      keep([pack(`runs/${id}/trials/${n}`)]);
      rows.push(...(documents.read(`runs/${id}/trials/${n}`) as TrialPage).rows);
    }
    const interesting = [...rows].sort((a, b) => (a.resolved ?? 2) - (b.resolved ?? 2));
    let left = 0;
    for (const row of interesting) {
      if (row.attempt === null) continue;
      if (size >= maxBytes) {
        left += 1;
        continue;
      }
      // Raw messages repeat what the trajectory shows; they stay in the database.
      const parts = [...attemptPaths(documents, row.attempt)]
        .filter((path) => !path.includes('/raw/'))
        .map(pack);
      const weight = parts.reduce((sum, part) => sum + part.body.length, 0);
      if (size + weight > maxBytes) left += 1;
      else keep(parts);
    }
    return assemble(page, packed, summaryOf(head, rows, left));
  });
}

/** Shown by mail programs, which run no scripts. */
function summaryOf(run: RunDocument, rows: TrialPage['rows'], left: number): string {
  const { summary } = run;
  const { tally, money } = summary;
  const cell = (text: string) => `<td>${html(text)}</td>`;
  const body = rows
    .map(
      (row) =>
        `<tr>${[row.instance_id, row.arm, row.exit_reason ?? row.not_run_reason ?? row.state, row.outcome ?? '', `${row.steps ?? ''}`, formatCost(row.money.costNano)].map(cell).join('')}</tr>`,
    )
    .join('\n');
  const note =
    left > 0
      ? `<p>${left} trajectories are left out to keep this file small; swebatch view has them all.</p>`
      : '';
  return `<h1>${html(summary.name)}</h1>
<p>${html(summary.status)}: ${tally.resolved} of ${tally.graded} graded resolved, ${tally.valid} of ${tally.planned} valid, ${formatCost(money.costNano)}${money.unknownCalls > 0 ? ' or more' : ''}.</p>
${note}<table><thead><tr><th>instance</th><th>arm</th><th>ended</th><th>outcome</th><th>steps</th><th>cost</th></tr></thead><tbody>
${body}
</tbody></table>`;
}

function assemble(
  page: ReturnType<typeof readPage>,
  packed: ReadonlyMap<string, string>,
  summary: string,
): string {
  const script = text(page, 'assets/viewer.js').replaceAll('</script', '<\\/script');
  const style = text(page, 'assets/viewer.css').replaceAll('</style', '<\\/style');
  const hash = (body: string) => `'sha256-${createHash('sha256').update(body).digest('base64')}'`;
  const csp = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'">`;
  const index = withMode(text(page, 'index.html'), 'single', csp);
  // Base64 has no "<", so a document can end no element.
  const data = [...packed]
    .map(
      ([path, body]) => `<script type="application/octet-stream" data-path="${html(path)}">${body}</script>`,
    )
    .join('\n');
  return index
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace(/<script type="module"[^>]*><\/script>/, '')
    .replace(
      '<div id="app"></div>',
      () => `<div id="app">${summary}</div>\n${data}\n<script type="module">${script}</script>`,
    );
}

function text(page: ReturnType<typeof readPage>, name: string): string {
  const file = page.get(name);
  if (!file) throw new Error(`the built page lacks ${name}; run "npm run build:viewer" again`);
  return file.body.toString('utf8');
}
