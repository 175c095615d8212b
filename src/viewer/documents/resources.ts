/** Names every document by a path, so that a live server, a static bundle and a single page answer the same questions. */
import type { ViewerQueries } from '../../store/records/viewerQueries.ts';
import { attemptDocument, evaluationDocument, messageChunk, rawChunk } from './attemptDocuments.ts';
import { createLedger, type Ledger } from './attemptMoney.ts';
import type { RunList, RunSummary } from './documents.ts';
import { runDocument, runSummary } from './runDocuments.ts';
import { runMap } from './runMap.ts';
import { history, trialPage } from './trialDocuments.ts';

export interface Documents {
  /** The document of a path such as `runs/3` or `attempts/12/messages/0`; undefined where there is none. */
  read(path: string): unknown;
}

export interface DocumentOptions {
  readonly title: string;
  /** Set for files: only these runs are shown. */
  readonly onlyRuns?: ReadonlySet<number>;
  readonly madeAt?: string;
}

export function createDocuments(queries: ViewerQueries, options: DocumentOptions): Documents {
  const ledger = createLedger(queries);
  const summaries = new Map<number, { key: string; summary: RunSummary }>();
  const runs = (): RunList => ({
    title: options.title,
    madeAt: options.madeAt ?? null,
    runs: queries
      .runs()
      .filter((run) => options.onlyRuns?.has(run.id) ?? true)
      .map((run) => {
        const key = `${run.status} ${run.finished_at} ${JSON.stringify(queries.runSignature(run.id))}`;
        const known = summaries.get(run.id);
        if (known?.key === key && run.status !== 'running') return known.summary;
        const summary = runSummary(queries, ledger, run, queries.trials(run.id, -1, 0));
        summaries.set(run.id, { key, summary });
        return summary;
      }),
  });
  return { read: (path) => (path === 'runs' ? runs() : readOne(queries, ledger, path, options.onlyRuns)) };
}

function readOne(
  queries: ViewerQueries,
  ledger: Ledger,
  path: string,
  onlyRuns: ReadonlySet<number> | undefined,
): unknown {
  const [kind, name = '', part, chunk, ...rest] = path.split('/');
  if (rest.length > 0) return undefined;
  if (kind === 'history' && part === undefined) {
    const rows = history(queries, ledger, name).filter((row) => onlyRuns?.has(row.runId) ?? true);
    return rows.length > 0 ? rows : undefined;
  }
  const id = numberOf(name);
  if (id === undefined || id === 0) return undefined;
  const n = chunk === undefined ? undefined : numberOf(chunk);
  if (part !== undefined && n === undefined) return undefined;
  switch (part === undefined ? kind : `${kind}/${part}`) {
    case 'runs':
      return runDocument(queries, ledger, id);
    case 'runs/trials':
      return queries.run(id) && trialPage(queries, ledger, id, n!);
    case 'runs/map':
      return n === 0 && queries.run(id) ? runMap(queries, ledger, id) : undefined;
    case 'attempts':
      return attemptDocument(queries, ledger, id);
    case 'attempts/messages':
      return queries.attempt(id) && messageChunk(queries, id, n!);
    case 'attempts/raw':
      return queries.attempt(id) && rawChunk(queries, id, n!);
    case 'evaluations':
      return evaluationDocument(queries, id);
    default:
      return undefined;
  }
}

const numberOf = (text: string): number | undefined => (/^\d{1,12}$/.test(text) ? Number(text) : undefined);
