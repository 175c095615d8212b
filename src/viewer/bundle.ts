/** The viewer as static files: the same page and the same documents, opened from any web server, with no program behind it. */
import { writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { makeFolder } from '../base/files/makeFolder.ts';
import { pathInside } from '../base/files/pathInside.ts';
import { html } from '../base/text/inert.ts';
import { formatCost } from '../money.ts';
import { scoreText } from '../report/measure/score.ts';
import { openStore, type Store } from '../store/open.ts';
import { instanceIdsOf, runByName, shownRuns } from '../store/records/runs.ts';
import { attemptEnds } from '../store/records/trialPages.ts';
import type { AttemptDocument, MessageChunk, PackedChunk, RawChunk } from './documents/attemptDocuments.ts';
import { lenientJson } from './documents/lenient.ts';
import type { RunDocument, RunList } from './documents/resources.ts';
import { createDocuments, type Documents } from './documents/resources.ts';
import type { TrialPage } from './documents/trialDocuments.ts';
import { databaseOf } from './laterRecord.ts';
import { hashOf, readPage, withMode } from './pageFiles.ts';

const STATIC_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'";

interface BundleOptions {
  /** Names of the runs to write; default all. */
  readonly runs?: readonly string[];
  readonly pageDir?: string;
  readonly now?: () => Date;
}

/** Every path a page can ask for, in the order in which it would. */
function* pathsOf(store: Store, documents: Documents): Generator<string> {
  yield 'runs';
  const instances = new Set<string>();
  const { runs } = documents.read('runs') as RunList;
  for (const { id } of runs) {
    yield `runs/${id}`;
    yield `runs/${id}/map/0`;
    const { trialPages } = documents.read(`runs/${id}`) as RunDocument;
    for (let page = 0; page < trialPages; page += 1) yield `runs/${id}/trials/${page}`;
    for (const name of instanceIdsOf(store, id)) instances.add(name);
    for (const attempt of attemptEnds(store, id)) yield* attemptPaths(documents, attempt.id);
  }
  for (const id of instances) yield `history/${id}`;
  const sides = runs.flatMap(({ id, arms }) => arms.map((_arm, i) => `${id}.${i}`));
  // A page may ask for any pair in either order; of many sides that would be most of a bundle.
  if (sides.length > 1 && sides.length <= COMPARED)
    for (const a of sides) for (const b of sides) if (a !== b) yield `compare/${a}/${b}`;
}

const COMPARED = 8;

/** Without raw messages: a bundle has them beside the others, a single file leaves them to the database. */
function* attemptPaths(documents: Documents, id: number): Generator<string> {
  yield `attempts/${id}`;
  const { chunks, evaluations } = documents.read(`attempts/${id}`) as AttemptDocument;
  for (const evaluation of evaluations)
    if (evaluation.attempt === null || evaluation.attempt === id) yield `evaluations/${evaluation.id}`;
  for (let chunk = 0; chunk < chunks; chunk += 1) yield `attempts/${id}/messages/${chunk}`;
}

/** Opens a results root for reading and hands over the documents of some of its runs. */
function withDocuments<T>(
  results: string,
  options: { runs?: readonly string[] | undefined; now?: (() => Date) | undefined },
  work: (documents: Documents, store: Store) => T,
): T {
  using store = openStore(databaseOf(results), { readonly: true });
  const ids = options.runs?.map((name) => {
    const run = runByName(store, name);
    if (run) return run.id;
    const names = shownRuns(store).map((one) => one.name);
    throw new Error(`there is no run "${name}" in ${results}; it holds ${names.join(', ') || 'none'}`);
  });
  // One snapshot: a run that writes meanwhile must not make the files disagree with each other.
  store.exec('BEGIN');
  const documents = createDocuments(store, {
    title: basename(resolve(results)),
    madeAt: (options.now?.() ?? new Date()).toISOString(),
    ...(ids ? { onlyRuns: new Set(ids) } : {}),
  });
  return work(documents, store);
}

export function writeBundle(
  results: string,
  dir: string,
  options: BundleOptions = {},
): { files: number; bytes: number } {
  const page = readPage(options.pageDir);
  return withDocuments(results, options, (documents, store) => {
    let [files, bytes] = [0, 0];
    const write = (name: string, body: string | Buffer) => {
      const path = pathInside(dir, name);
      makeFolder(dirname(path));
      writeFileSync(path, body);
      files += 1;
      bytes += body.length;
    };
    for (const file of page.values()) {
      const csp = `<meta http-equiv="Content-Security-Policy" content="${STATIC_CSP}">`;
      const isIndex = file.name === 'index.html';
      write(file.name, isIndex ? withMode(file.body.toString('utf8'), 'static', csp) : file.body);
    }
    const { runs } = documents.read('runs') as RunList;
    const attempts = runs.reduce((sum, run) => sum + attemptEnds(store, run.id).length, 0);
    const keepsRaw = attempts <= RAW_UP_TO;
    for (const path of pathsOf(store, documents)) {
      // Ids come from datasets and imports: only plain ones become file names. Raw messages lie beside the others.
      if (!SAFE_PATH.test(path)) continue;
      const document = path.includes('/messages/')
        ? withRaw(documents, path, keepsRaw)
        : documents.read(path);
      if (document === undefined) continue;
      const text = JSON.stringify(document);
      if (isPacked(path)) write(`data/${path}.json.gz`, gzipSync(text, { level: 9 }));
      else write(`data/${path}.json`, text);
    }
    return { files, bytes };
  });
}

/** Extras of providers, such as signatures of thoughts, do not get smaller: a bundle of more attempts leaves it out. */
const RAW_UP_TO = 200;

/** Trajectories are most of a bundle; browsers unpack them by themselves. */
const isPacked = (path: string): boolean => path.startsWith('attempts/') || path.startsWith('evaluations/');

/** Each message beside its raw form: their common text is then packed once. */
function withRaw(documents: Documents, path: string, keepsRaw: boolean): PackedChunk | undefined {
  const chunk = documents.read(path) as MessageChunk | undefined;
  if (!chunk) return undefined;
  const raw = keepsRaw ? (documents.read(path.replace('/messages/', '/raw/')) as RawChunk) : undefined;
  const pairs = chunk.messages.map((message, i) => {
    const stored = raw?.messages[i];
    if (!stored) return { message };
    const { data, ...rest } = stored;
    const value = lenientJson(data);
    return { message, raw: value === undefined ? { ...rest, data } : { ...rest, value } };
  });
  return { attempt: chunk.attempt, from: chunk.from, pairs };
}

const SAFE_PATH = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9_.\-/]+$/;

interface ExportOptions {
  /** Largest size of the documents as they travel; with page and table the file then has 2 MB, which every mail server lets through. */
  readonly maxBytes?: number;
  readonly pageDir?: string;
  readonly now?: () => Date;
}

export function exportHtml(results: string, run: string, options: ExportOptions = {}): string {
  const page = readPage(options.pageDir);
  const maxBytes = options.maxBytes ?? 1_200_000;
  return withDocuments(results, { runs: [run], now: options.now }, (documents, store) => {
    const id = runByName(store, run)!.id;
    const packed = new Map<string, string>();
    const pack = (path: string): [path: string, body: string] => [
      path,
      gzipSync(JSON.stringify(documents.read(path) ?? null), { level: 9 }).toString('base64'),
    ];
    const weightOf = (parts: readonly [string, string][]) =>
      parts.reduce((sum, [, body]) => sum + body.length, 0);
    let size = 0;
    const keep = (parts: readonly [string, string][]) => {
      for (const [path, body] of parts) packed.set(path, body);
      size += weightOf(parts);
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
      const parts = [...attemptPaths(documents, row.attempt)].map(pack);
      if (size + weightOf(parts) > maxBytes) left += 1;
      else keep(parts);
    }
    return assemble(page, packed, summaryOf(head, rows, left));
  });
}

/** Shown by mail programs, which run no scripts. */
function summaryOf(run: RunDocument, rows: TrialPage['rows'], left: number): string {
  const { summary } = run;
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
<p>${html(summary.status)}, ${formatCost(summary.money.costNano)}${summary.money.unknownCalls > 0 ? ' or more' : ''}</p>
<ul>${run.report.arms.map((arm) => `<li>${html(arm.arm)}: ${arm.graded ? html(scoreText({ resolved: arm.resolved, overInstances: arm.estimate })) : 'not graded'}; ${arm.valid} of ${arm.planned} trials with a result</li>`).join('')}</ul>
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
  const later = text(page, 'assets/later.js').replaceAll('</script', '<\\/script');
  const style = text(page, 'assets/viewer.css').replaceAll('</style', '<\\/style');
  const csp = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${hashOf(script)} ${hashOf(later)}; style-src ${hashOf(style)}; img-src data:; base-uri 'none'; form-action 'none'">`;
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
      () =>
        `<div id="app">${summary}</div>\n${data}\n<script>${later}</script>\n<script type="module">${script}</script>`,
    );
}

function text(page: ReturnType<typeof readPage>, name: string): string {
  const file = page.get(name);
  if (!file) throw new Error(`the built page lacks ${name}; run "npm run build:viewer" again`);
  return file.body.toString('utf8');
}
