/** `openResults`: reads a results root from a program. */
import { dirname, resolve } from 'node:path';
import { type Summary, summarize } from '../report/measure/summary.ts';
import { pricesOfRun } from '../run/record/tokenPrices.ts';
import { openForReading, requireRun } from '../run/resultsRoot.ts';
import { countsOf, reportData, statusOf } from '../run/standing.ts';
import type { Store } from '../store/open.ts';
import { type EvaluationRow, verdictsOf } from '../store/records/evaluations.ts';
import {
  armsOf,
  listRuns,
  type RunRow,
  type RunStatus,
  spentNano,
  storedManifest,
} from '../store/records/runs.ts';
import { classCounts, type TrialLine, trialLines } from '../store/records/trials.ts';

export interface RecordedRun {
  readonly name: string;
  readonly status: RunStatus;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly dataset: { readonly source: string; readonly revision: string | null };
  readonly arms: readonly { readonly name: string; readonly model: string }[];
  /** Trials by exit class, and those that are not sealed by their state. */
  readonly counts: Readonly<Record<string, number>>;
  readonly costNano: number;
  /** Calls of unknown cost; with any, `costNano` is a lower bound. */
  readonly unknownCostCalls: number;
}

export interface Results {
  /** Oldest first. */
  runs(): readonly RecordedRun[];
  /** A run by name, unique prefix or "last"; so is every `run` below. */
  run(run: string): RecordedRun;
  /** Everything needed to judge and repeat the run, as in run.json. */
  manifest(run: string): Readonly<Record<string, unknown>>;
  /** One row for each instance, arm and epoch, with the attempt and the verdict that count. */
  trials(run: string): readonly TrialLine[];
  /** The verdicts that count. */
  verdicts(run: string): readonly EvaluationRow[];
  /** The numbers of `swebatch report --json`. */
  report(run: string, options?: { readonly seed?: number }): Summary;
  close(): void;
}

/** Read-only; works while runs are active. Throws when there is no results database. */
export function openResults(results: string): Results {
  const store = openForReading(resolve(results));
  const named = (run: string) => requireRun(store, run);
  return {
    runs: () => listRuns(store).map((run) => recorded(store, run)),
    run: (run) => recorded(store, named(run)),
    manifest: (run) => storedManifest(named(run)),
    trials: (run) => trialLines(store, named(run).id),
    verdicts: (run) => [...verdictsOf(store, named(run).id).values()],
    report(run, options = {}) {
      const data = reportData(store, named(run).id)!;
      return summarize(data, { pricesOf: pricesOfRun(data), ...options });
    },
    close: () => store.close(),
  };
}

function recorded(store: Store, run: RunRow): RecordedRun {
  const { nano, unknownCalls } = spentNano(store, run.id);
  return {
    name: run.name,
    status: statusOf(dirname(store.name), run),
    createdAt: run.created_at,
    finishedAt: run.finished_at,
    dataset: { source: run.dataset_source, revision: run.dataset_revision },
    arms: armsOf(store, run.id).map(({ name, model }) => ({ name, model })),
    counts: countsOf(dirname(store.name), run, classCounts(store, run.id)),
    costNano: nano,
    unknownCostCalls: unknownCalls,
  };
}
