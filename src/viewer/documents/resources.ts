/** Names every document by a path, so that a live server, a static bundle and a single page answer the same questions. */
import { armScores, classesOf } from '../../report/measure/score.ts';
import { summarize } from '../../report/measure/summary.ts';
import { summaryDocument } from '../../report/render/summaryDocument.ts';
import { readLiveRun, remainingMs } from '../../run/liveRun.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { countsOf, statusOf } from '../../run/standing.ts';
import type { Store } from '../../store/open.ts';
import { newestEvents, newestOf } from '../../store/records/attemptBodies.ts';
import { runMoney } from '../../store/records/modelCalls.ts';
import { scoreRows } from '../../store/records/runData.ts';
import { armsOf, runById, runTexts, type ShownRun, shownRun, shownRuns } from '../../store/records/runs.ts';
import { attemptEnds, trialsPlanned } from '../../store/records/trialPages.ts';
import { attemptById } from '../../store/records/trials.ts';
import { attemptDocument, evaluationDocument, messageChunk, rawChunk } from './attemptDocuments.ts';
import { comparedDocument, sidesIn } from './compared.ts';
import { endingOf, fewNamed, TRIALS_PER_PAGE } from './documents.ts';
import { lenientJson } from './lenient.ts';
import { missingParts, type RunMap } from './mapGroups.ts';
import { history, trialDocuments, trialPage, type ViewedRecord, viewedRecord } from './trialDocuments.ts';

/** More are not drawn: no eye and no browser has use for them. */
const MOST_CELLS = 6000;

export interface Documents {
  /** The document of a path such as `runs/3` or `attempts/12/messages/0`; undefined where there is none. */
  read(path: string): unknown;
  /** Reads ahead what the list of runs shows, a run at a step. */
  prepareList(): Generator<unknown>;
}

export interface RunList {
  title: string;
  /** When the documents were made, for files; null on a live server. */
  madeAt: string | null;
  runs: RunSummary[];
}

/** `onlyRuns` is set for files: only these runs are shown. */
export function createDocuments(
  db: Store,
  options: { title: string; onlyRuns?: ReadonlySet<number>; madeAt?: string },
): Documents {
  const record = viewedRecord(db);
  const summaryOf = record.kept((id) => runSummary(record, shownRun(db, id)!));
  const runOf = record.kept((id) => runDocument(record, summaryOf(id)));
  function* summaries() {
    for (const { id } of shownRuns(db)) if (options.onlyRuns?.has(id) ?? true) yield summaryOf(id);
  }
  const runs = (): RunList => ({
    title: options.title,
    madeAt: options.madeAt ?? null,
    runs: [...summaries()],
  });
  const readOne = (path: string): unknown => {
    const [kind, name = '', part, chunk, ...rest] = path.split('/');
    if (kind === 'compare') {
      const sides = sidesIn(record, path.split('/').slice(1));
      return sides && comparedDocument(record, sides);
    }
    if (rest.length > 0) return undefined;
    if (kind === 'history' && part === undefined) {
      const rows = history(record, name).filter((row) => options.onlyRuns?.has(row.runId) ?? true);
      return rows.length > 0 ? rows : undefined;
    }
    const id = numberOf(name);
    if (id === undefined || id === 0) return undefined;
    const n = chunk === undefined ? undefined : numberOf(chunk);
    if (part !== undefined && n === undefined) return undefined;
    switch (part === undefined ? kind : `${kind}/${part}`) {
      case 'runs':
        return shownRun(db, id) && runOf(id);
      case 'runs/trials':
        return shownRun(db, id) && trialPage(record, id, n!);
      case 'runs/map':
        return n === 0 && shownRun(db, id) ? runMap(record, id) : undefined;
      case 'attempts':
        return attemptDocument(record, id);
      case 'attempts/messages':
        return attemptById(db, id) && messageChunk(db, id, n!);
      case 'attempts/raw':
        return attemptById(db, id) && rawChunk(db, id, n!);
      case 'evaluations':
        return evaluationDocument(db, id);
      default:
        return undefined;
    }
  };
  return { read: (path) => (path === 'runs' ? runs() : readOne(path)), prepareList: summaries };
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
  const rows = trialDocuments(record, runId, MOST_CELLS);
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
  return { run: runId, total: trialsPlanned(record.db, runId), words, cells };
}

export type RunSummary = ReturnType<typeof runSummary>;

function runSummary(record: ViewedRecord, run: ShownRun) {
  const trials = scoreRows(record.db, run.id);
  const scores = armScores(trials);
  const status = statusOf(record.root, run);
  return {
    id: run.id,
    name: run.name,
    status,
    createdAt: run.created_at,
    finishedAt: run.finished_at,
    imported: run.imported === 1,
    shard: run.shard,
    dataset: run.dataset_source,
    datasetRevision: run.dataset_revision,
    datasetHash: run.dataset_hash,
    configHash: run.config_hash,
    arms: armsOf(record.db, run.id).map(({ name, model }) => ({
      name,
      model,
      score: scores.find(({ arm }) => arm === name) ?? null,
    })),
    planned: scores.reduce((sum, { planned }) => sum + planned, 0),
    sealed: scores.reduce((sum, { sealed }) => sum + sealed, 0),
    flagged: scores.reduce((sum, { flagged }) => sum + flagged, 0),
    /** Trials by the class of their end. */
    classes: { running: 0, not_run: 0, ...countsOf(record.root, run, classesOf(trials)) },
    money: runMoney(record.db, run),
    budgetNano: run.budget_nano,
  };
}

const SERIES_POINTS = 600;

type RunData = NonNullable<ReturnType<ViewedRecord['reportData']>>;

/** Where attempts ended: sums of spend, ended, sealed, resolved. None of an import, which knows no times. */
function seriesOf(record: ViewedRecord, runId: number, data: RunData) {
  const finals = new Map(data.trials.map((trial) => [trial.attemptId, trial]));
  const costs = new Map(data.costs.map(({ attemptId, costNano }) => [attemptId, costNano]));
  const ended = attemptEnds(record.db, runId)
    .flatMap(({ id, at }) => (at === null ? [] : { id, at }))
    .sort((a, b) => (a.at < b.at ? -1 : 1));
  let [costNano, sealed, resolved] = [0, 0, 0];
  const points = ended.map(({ id, at }, i) => {
    const trial = finals.get(id);
    costNano += costs.get(id) ?? 0;
    if (trial?.state === 'sealed') {
      sealed += 1;
      resolved += trial.resolved ? 1 : 0;
    }
    return { at, costNano, ended: i + 1, sealed, resolved };
  });
  // A line on a screen has no room for more.
  const every = Math.ceil(points.length / SERIES_POINTS);
  return points.filter((_point, i) => i % every === 0 || i === points.length - 1);
}

const HELD = ['breaker', 'paused'];
const FREE = ['resumed', 'run_started', 'run_ended'];

/** The newest of these events says whether the run is held. */
function breakerOf(record: ViewedRecord, runId: number) {
  const last = newestOf(record.db, runId, [...HELD, ...FREE]);
  if (!last) return null;
  return { open: HELD.includes(last.type), reason: pauseReason(last.data), at: last.at };
}

/** An event that cannot be read is shown as it is: the viewer must open whatever the database holds. */
function pauseReason(data: string): string {
  const event = lenientJson(data);
  return typeof event === 'object' && event !== null && 'reason' in event ? String(event.reason) : data;
}

export type RunDocument = ReturnType<typeof runDocument>;

function runDocument(record: ViewedRecord, summary: RunSummary) {
  const { id } = summary;
  const data = record.reportData(id)!;
  const report = summarize(data, { pricesOf: pricesOfRun(data) });
  const phases = Map.groupBy(data.phases, ({ name }) => name);
  return {
    summary,
    /** The document of `report --json` with fewer names, and the words of `report`. */
    report: fewNamed(report),
    words: fewNamed(summaryDocument(report, data.verdicts)),
    missing: missingParts(data),
    ...runTexts(record.db, id, LONGEST_MANIFEST),
    trialPages: Math.max(1, Math.ceil(summary.planned / TRIALS_PER_PAGE)),
    now: nowOf(record, summary),
    series: summary.imported ? [] : seriesOf(record, id, data),
    phases: [...phases]
      .map(([name, own]) => ({ name, ms: own.reduce((sum, { totalMs }) => sum + totalMs, 0) }))
      .sort((a, b) => b.ms - a.ms),
    breaker: breakerOf(record, id),
    events: newestEvents(record.db, id, 50),
  };
}

/** Null of a run that does not work. */
function nowOf({ db }: ViewedRecord, { id, status }: RunSummary) {
  if (status !== 'running' && status !== 'paused') return null;
  const live = readLiveRun(db, runById(db, id)!);
  return { slots: live.slots, pace: live.pace, remaining: remainingMs(live, Date.now()) };
}

/** A manifest may name every instance of a large dataset. */
const LONGEST_MANIFEST = 200_000;
