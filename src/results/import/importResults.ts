/** Results of other tools as a run of a results root. */
import { existsSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { VERSION } from '../../base/files/packageFile.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { percent } from '../../base/text/numbers.ts';
import { SourceError } from '../../formats/foreignFile.ts';
import { counted, type ForeignRun, type ForeignVerdicts, placeKey } from '../../formats/foreignFormat.ts';
import { readForeignRun, recogniseSource } from '../../formats/formats.ts';
import type { Outcome } from '../../outcome.ts';
import { scoredTrials } from '../../report/measure/score.ts';
import type { Caller } from '../../run/caller.ts';
import { requireDataset } from '../../run/datasets.ts';
import { exportRun } from '../../run/record/exportRun.ts';
import { makeAndOpen, refuseRunName } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { insertEvaluation } from '../../store/records/evaluations.ts';
import { loadRunData, type RunData } from '../../store/records/reportQueries.ts';
import { type RunRow, removeRun, runByName } from '../../store/records/runs.ts';
import { attemptById, trialLines } from '../../store/records/trials.ts';
import { importRun, placeInRecord } from './importRun.ts';

export interface ImportOptions {
  /** A folder or file of another tool, relative to the working directory of the process. */
  readonly source: string;
  /** The results root. */
  readonly results: string;
  /** Name of the run; default: the source's. */
  readonly name?: string | undefined;
  /** Its dataset, so that it can be graded and reported by repository. */
  readonly dataset?: { readonly subset: string; readonly split?: string | undefined } | undefined;
  readonly dataDir?: string | undefined;
  /** Where the verdicts are, when they are not beside the source. */
  readonly report?: string | undefined;
}

export interface ImportedResults {
  readonly run: string;
  readonly instances: number;
  /** Where instances have several trials. */
  readonly trials?: number;
  /** Verdicts that were found, and those of them that belong to an imported prediction. */
  readonly verdicts: { readonly found: number; readonly judged: number };
}

type Told = Pick<Caller, 'env' | 'tell'>;

/** Throws a UserError when something cannot be read, before anything is written. */
export const importResults = (options: ImportOptions, caller: Told): Promise<ImportedResults> =>
  importInto(options, caller, { files: true });

/** `files`: the run's exported files are written beside the record. */
export async function importInto(
  options: ImportOptions,
  { env, tell }: Told,
  { files }: { readonly files: boolean },
): Promise<ImportedResults> {
  const { source, results: root } = options;
  const imported = await readSource(source, options.report);
  const { verdicts } = imported;
  for (const text of imported.warnings) tell({ level: 'warning', text });
  if (imported.problems.length > 0) throw new UserError(imported.problems.join('\n'));
  if (imported.instances.length === 0)
    throw new UserError(`nothing to import in ${source}`, {
      hint: 'it holds neither trajectories, predictions nor reports',
    });
  const { dataDir } = options;
  const dataset =
    options.dataset &&
    (await requireDataset(options.dataset.subset, { split: options.dataset.split, dataDir, env }));
  using store = makeAndOpen(root);
  const name = options.name ?? importedName(source);
  refuseName(store, name, source, root);
  const dir = pathInside(root, name);
  const { run, judged } = store.transaction(() => {
    const added = importRun(store, {
      name,
      imported,
      rows: new Map(dataset?.rows.map((r) => [r.instance.instance_id, r]) ?? []),
      dataset: { source: options.dataset?.subset ?? source, revision: dataset?.revision ?? null },
      createdAt: new Date().toISOString(),
    });
    return { run: added, judged: importVerdicts(store, added, verdicts) };
  })();
  tell({
    level: 'info',
    text: readLine(loadRunData(store, run.id)!, (await recogniseSource(source))?.words),
  });
  if (files) await exportOrTakeBack(store, run, dir);
  return {
    run: run.name,
    instances: new Set(imported.instances.map(({ instanceId }) => instanceId)).size,
    ...(imported.instances.some(({ epoch = 1, arm }) => epoch > 1 || arm !== undefined) && {
      trials: imported.instances.length,
    }),
    verdicts: { found: verdicts.size, judged },
  };
}

/** Throws a UserError for what cannot be read. */
export async function readSource(source: string, report?: string): Promise<ForeignRun> {
  if (!existsSync(source))
    throw new UserError(`there is no file or folder ${source}`, {
      hint: 'name a folder of mini-swe-agent, logs/run_evaluation of the harness, or a run report',
    });
  try {
    return await readForeignRun(source, report);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new UserError(error.message, error.hint === undefined ? {} : { hint: error.hint });
  }
}

/** All or nothing, so that the import can be repeated under the same name once the cause is fixed. */
async function exportOrTakeBack(store: Store, run: RunRow, dir: string): Promise<void> {
  const isNew = !existsSync(dir);
  try {
    await exportRun({ store, run, dir, version: VERSION });
  } catch (error) {
    removeRun(store, run.id);
    if (isNew) rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

/** That of the folder or file, as one component of a path that is short enough for a run. */
export function importedName(source: string): string {
  // `..` is a path with a name, but not a name for a run.
  const name = basename(resolve(source))
    .replace(/\.(?:json|eval)$/, '')
    .replace(/[^A-Za-z0-9_.-]/g, '_')
    .slice(0, 100);
  return /^\.*$/.test(name) ? 'imported' : name;
}

function refuseName(store: Store, name: string, source: string, root: string): void {
  refuseRunName(name);
  if (resolve(source) === join(root, name))
    throw new UserError(`${source} is where the files of run ${name} would be written`, {
      next: { do: 'choose_name' },
    });
  if (runByName(store, name))
    throw new UserError(`run ${name} already exists`, { next: { do: 'choose_name' } });
}

const OUTCOME: Record<string, { outcome: Outcome; resolved: number | null } | undefined> = {
  resolved: { outcome: 'resolved', resolved: 1 },
  unresolved: { outcome: 'unresolved', resolved: 0 },
  empty_patch: { outcome: 'empty_patch', resolved: null },
  error: { outcome: 'infra', resolved: null },
};

function importVerdicts(store: Store, run: RunRow, verdicts: ForeignVerdicts): number {
  let count = 0;
  for (const line of trialLines(store, run.id)) {
    const found = verdicts.get(placeKey(placeInRecord(line.arm, line.instance_id, line.epoch)));
    const verdict = found && OUTCOME[found.verdict];
    const attempt = line.attempt_id === null ? undefined : attemptById(store, line.attempt_id);
    if (!verdict || !attempt) continue;
    count += 1;
    insertEvaluation(store, {
      run_id: run.id,
      trial_id: line.trial_id,
      attempt_id: attempt.id,
      instance_id: line.instance_id,
      model: line.model,
      patch_sha256: attempt.patch_sha256 ?? '',
      spec_hash: '',
      dialect: found.grader,
      ...verdict,
      reward: found.reward ?? null,
      rewards: found.rewards ? JSON.stringify(found.rewards) : null,
      report: found.report,
      infra_reason: found.reason,
      suspicion: '[]',
      source: 'import',
      started_at: new Date().toISOString(),
    });
  }
  return count;
}

const WHY: Readonly<Record<string, string>> = {
  grading_infra: 'lost, or without a verdict',
  infra: 'lost by infrastructure',
  config: 'could not work',
  cancelled: 'cancelled',
  not_run: 'never ran',
  not_graded: 'not graded',
};
const NAMED = 5;

/** "read as a job folder of Harbor: 12 trials …": what a source came to, from the record that was made of it. */
function readLine(data: RunData, words = 'results of another tool'): string {
  const rows = data.arms.flatMap(({ name }) => scoredTrials(data.trials.filter((t) => t.arm === name)));
  const instances = new Set(rows.map((row) => row.instanceId)).size;
  const valid = rows.filter((row) => row.valid);
  const resolved = valid.filter((row) => row.resolved).length;
  const missing = rows.flatMap(({ standing, trial }) =>
    standing.valid ? [] : [{ trial, why: standing.why }],
  );
  const parts = [
    rows.length === instances ? `${instances} instances` : `${rows.length} trials of ${instances} instances`,
    ...(data.arms.length > 1 ? [`${data.arms.length} arms`] : []),
    valid.length > 0
      ? `${resolved} of ${valid.length} resolved = ${percent(resolved / valid.length)}`
      : 'no verdicts',
    ...[...Map.groupBy(missing, ({ why }) => why)].map(([why, group]) => {
      const names = group.map(({ trial }) => trial.instanceId);
      // Where nothing is graded, every instance would stand here.
      const who = why === 'not_graded' && valid.length === 0 ? '' : `: ${counted(names, NAMED)}`;
      return `missing ${group.length} (${WHY[why] ?? why})${who}`;
    }),
  ];
  return `read as ${words}: ${parts.join('; ')}`;
}
