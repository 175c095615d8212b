/** Names every document by a path, so that a live server, a static bundle and a single page answer the same questions. */
import type { ShownEvent, ShownRun, ShownTrial, ViewerQueries } from '../../store/records/viewerQueries.ts';
import { attemptDocument, evaluationDocument, messageChunk, rawChunk } from './attemptDocuments.ts';
import { endingOf, TRIALS_PER_PAGE, type TrialDocument } from './documents.ts';
import { lenientJson } from './lenient.ts';
import type { RunMap } from './mapGroups.ts';
import {
  addMoney,
  history,
  tally,
  trialPage,
  trialsWithMoney,
  type ViewedRecord,
  viewedRecord,
} from './trialDocuments.ts';

export interface Documents {
  /** The document of a path such as `runs/3` or `attempts/12/messages/0`; undefined where there is none. */
  read(path: string): unknown;
}

export interface RunList {
  title: string;
  /** When the documents were made, for files; null on a live server. */
  madeAt: string | null;
  runs: RunSummary[];
}

/** `onlyRuns` is set for files: only these runs are shown. */
export function createDocuments(
  queries: ViewerQueries,
  options: { title: string; onlyRuns?: ReadonlySet<number>; madeAt?: string },
): Documents {
  const record = viewedRecord(queries);
  const summaries = new Map<number, { key: string; summary: RunSummary }>();
  const runs = (): RunList => ({
    title: options.title,
    madeAt: options.madeAt ?? null,
    runs: record
      .runs()
      .filter((run) => options.onlyRuns?.has(run.id) ?? true)
      .map((run) => {
        const key = `${run.status} ${run.finished_at} ${JSON.stringify(record.runSignature(run.id))}`;
        const known = summaries.get(run.id);
        if (known?.key === key && run.status !== 'running') return known.summary;
        const summary = runSummary(record, run, record.trials(run.id, -1, 0));
        summaries.set(run.id, { key, summary });
        return summary;
      }),
  });
  return { read: (path) => (path === 'runs' ? runs() : readOne(record, path, options.onlyRuns)) };
}

function readOne(record: ViewedRecord, path: string, onlyRuns: ReadonlySet<number> | undefined): unknown {
  const [kind, name = '', part, chunk, ...rest] = path.split('/');
  if (rest.length > 0) return undefined;
  if (kind === 'history' && part === undefined) {
    const rows = history(record, name).filter((row) => onlyRuns?.has(row.runId) ?? true);
    return rows.length > 0 ? rows : undefined;
  }
  const id = numberOf(name);
  if (id === undefined || id === 0) return undefined;
  const n = chunk === undefined ? undefined : numberOf(chunk);
  if (part !== undefined && n === undefined) return undefined;
  switch (part === undefined ? kind : `${kind}/${part}`) {
    case 'runs':
      return runDocument(record, id);
    case 'runs/trials':
      return record.run(id) && trialPage(record, id, n!);
    case 'runs/map':
      return n === 0 && record.run(id) ? runMap(record, id) : undefined;
    case 'attempts':
      return attemptDocument(record, id);
    case 'attempts/messages':
      return record.attempt(id) && messageChunk(record, id, n!);
    case 'attempts/raw':
      return record.attempt(id) && rawChunk(record, id, n!);
    case 'evaluations':
      return evaluationDocument(record, id);
    default:
      return undefined;
  }
}

const numberOf = (text: string): number | undefined => (/^\d{1,12}$/.test(text) ? Number(text) : undefined);

/** Words that repeat are written once; a cell names them by their place. */
function wordList(): { words: string[]; place: (word: string) => number } {
  const words: string[] = [];
  const places = new Map<string, number>();
  const place = (word: string): number => {
    const known = places.get(word);
    if (known !== undefined) return known;
    places.set(word, words.length);
    return words.push(word) - 1;
  };
  return { words, place };
}

function runMap(record: ViewedRecord, runId: number): RunMap {
  const { words, place } = wordList();
  const rows = trialsWithMoney(record, runId, record.trials(runId, -1, 0));
  const cells = rows.map((row): RunMap['cells'][number] => [
    row.instance_id,
    place(row.repo),
    place(row.difficulty ?? ''),
    place(row.arm),
    row.epoch,
    place(row.verdict),
    place(row.exit_class ?? 'not_run'),
    place(endingOf(row)),
    row.money.costNano,
    row.steps,
    row.attempt,
  ]);
  return { run: runId, words, cells };
}

export type RunSummary = ReturnType<typeof runSummary>;

function runSummary(record: ViewedRecord, run: ShownRun, rows: readonly ShownTrial[]) {
  return {
    id: run.id,
    name: run.name,
    status: run.status,
    createdAt: run.created_at,
    finishedAt: run.finished_at,
    imported: run.imported === 1,
    dataset: run.dataset_source,
    datasetRevision: run.dataset_revision,
    datasetHash: run.dataset_hash,
    configHash: run.config_hash,
    arms: record.arms(run.id).map(({ name, model }) => ({ name, model })),
    tally: tally(rows),
    money: addMoney(record.attemptIds(run.id).map((attempt) => record.money(attempt))),
    budgetNano: run.budget_nano,
  };
}

const SERIES_POINTS = 600;

/** Where attempts ended: sums of spend, ended, sealed, resolved. None of an import, which knows no times. */
function seriesOf(record: ViewedRecord, runId: number, rows: readonly ShownTrial[]) {
  const trials = new Map(rows.map((row) => [row.trial, row]));
  const ended = record
    .attemptIds(runId)
    .filter((attempt) => attempt.ended_at !== null)
    .sort((a, b) => a.ended_at!.localeCompare(b.ended_at!));
  let [costNano, sealed, resolved] = [0, 0, 0];
  const points = ended.map((attempt, i) => {
    const trial = trials.get(attempt.trial_id);
    costNano += record.money(attempt).costNano ?? 0;
    if (trial?.state === 'sealed' && trial.attempt === attempt.id) {
      sealed += 1;
      resolved += trial.resolved ?? 0;
    }
    return { at: attempt.ended_at!, costNano, ended: i + 1, sealed, resolved };
  });
  // A line on a screen has no room for more.
  const every = Math.ceil(points.length / SERIES_POINTS);
  return points.filter((_point, i) => i % every === 0 || i === points.length - 1);
}

function armsOf(trials: readonly ShownTrial[], documents: readonly TrialDocument[]) {
  const names = [...new Set(trials.map((row) => row.arm))];
  return names.map((arm) => ({
    arm,
    model: trials.find((row) => row.arm === arm)!.model,
    tally: tally(trials.filter((row) => row.arm === arm)),
    money: addMoney(documents.filter((row) => row.arm === arm).map((row) => row.money)),
  }));
}

const HELD = new Set(['breaker', 'paused']);
const FREE = new Set(['resumed', 'run_started', 'run_ended']);

/** The newest of these events says whether the run is held. */
function breakerOf(events: readonly ShownEvent[]) {
  const last = events
    .filter((event) => HELD.has(event.type) || FREE.has(event.type))
    .sort((a, b) => b.seq - a.seq)[0];
  if (!last) return null;
  return { open: HELD.has(last.type), reason: pauseReason(last.data), at: last.at };
}

/** An event that cannot be read is shown as it is: the viewer must open whatever the database holds. */
function pauseReason(data: string): string {
  const event = lenientJson(data);
  return typeof event === 'object' && event !== null && 'reason' in event ? String(event.reason) : data;
}

export type RunDocument = NonNullable<ReturnType<typeof runDocument>>;

function runDocument(record: ViewedRecord, runId: number) {
  const run = record.run(runId);
  if (!run) return undefined;
  const rows = record.trials(runId, -1, 0);
  const documents = trialsWithMoney(record, runId, rows);
  const totals = new Map<string, { n: number; ms: number }>();
  for (const attempt of record.attemptIds(runId))
    for (const { name, n, ms } of record.phasesOf(attempt)) {
      const known = totals.get(name) ?? { n: 0, ms: 0 };
      totals.set(name, { n: known.n + n, ms: known.ms + ms });
    }
  const slots = record.slots(runId).map((row) => ({
    slot: row.slot,
    trial: row.trial,
    attempt: row.attempt,
    instanceId: row.instance_id,
    arm: row.arm,
    epoch: row.epoch,
    steps: row.steps,
    phase: row.phase,
    phaseSince:
      row.phase_offset_ms === null
        ? null
        : new Date(Date.parse(row.started_at) + row.phase_offset_ms).toISOString(),
    startedAt: row.started_at,
    costNano: record.money({ id: row.attempt, state: 'running' }).costNano,
  }));
  return {
    summary: runSummary(record, run, rows),
    arms: armsOf(rows, documents),
    config: run.config,
    manifest: run.manifest,
    trialPages: Math.max(1, Math.ceil(rows.length / TRIALS_PER_PAGE)),
    slots,
    series: run.imported === 1 ? [] : seriesOf(record, runId, rows),
    phases: [...totals].map(([name, total]) => ({ name, ...total })).sort((a, b) => b.ms - a.ms),
    breaker: breakerOf(record.lastEventsByType(runId)),
    pulls: {
      now: slots.filter((slot) => slot.phase === 'pull').length,
      done: totals.get('pull')?.n ?? 0,
      ms: totals.get('pull')?.ms ?? 0,
    },
    events: record.events(runId, 50),
  };
}
