/** Results of other tools as a run of a results root: mini-swe-agent's folders, and what the harness or sb-cli reported. */
import { existsSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathInside } from '../../base/files/pathInside.ts';
import type { Outcome } from '../../outcome.ts';
import { exportRun } from '../../runner/record/exportRun.ts';
import type { Store } from '../../store/open.ts';
import { insertEvaluation } from '../../store/records/evaluations.ts';
import { removeRun } from '../../store/records/removeRun.ts';
import { type RunRow, runByName } from '../../store/records/runs.ts';
import { trialLines } from '../../store/records/trialResults.ts';
import { attemptById } from '../../store/records/trials.ts';
import type { Caller } from '../caller.ts';
import { requireDataset } from '../requireDataset.ts';
import { makeAndOpen, refuseRunName } from '../resultsRoot.ts';
import { UserError } from '../userError.ts';
import { VERSION } from '../version.ts';
import { placeKey } from './importedRun.ts';
import { importRun, placeInRecord } from './importRun.ts';
import { readHarborJob } from './readHarborJob.ts';
import { readInspectLogs } from './readInspectLog.ts';
import { readMiniRun } from './readMiniRun.ts';
import {
  type GradedElsewhere,
  type RunReportVerdicts,
  runFromInstanceReport,
  runFromInstanceReports,
  runFromReport,
  type Verdicts,
  verdictsOfLeaderboard,
  verdictsOfRunReport,
} from './readReports.ts';

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

/** Throws a UserError when something cannot be read, before anything is written. */
export async function importResults(
  options: ImportOptions,
  { env, tell }: Pick<Caller, 'env' | 'tell'>,
): Promise<ImportedResults> {
  const { source, results: root } = options;
  const { imported, verdicts } = await read(source, options.report);
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
  await exportOrTakeBack(store, run, dir);
  return {
    run: run.name,
    instances: new Set(imported.instances.map(({ instanceId }) => instanceId)).size,
    ...(imported.instances.some(({ epoch = 1, arm }) => epoch > 1 || arm !== undefined) && {
      trials: imported.instances.length,
    }),
    verdicts: { found: verdicts.size, judged },
  };
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
function importedName(source: string): string {
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

/** A folder of trajectories or predictions, a folder of instance reports, or a run report. */
async function read(source: string, report: string | undefined): Promise<GradedElsewhere> {
  const found = statSync(source, { throwIfNoEntry: false });
  if (!found)
    throw new UserError(`there is no file or folder ${source}`, {
      hint: 'name a folder of mini-swe-agent, logs/run_evaluation of the harness, or a run report',
    });
  const logs = await readInspectLogs(source);
  if (logs) return logs;
  if (!found.isDirectory())
    return runFromInstanceReport(source) ?? runFromReport(source, checked(verdictsOfRunReport(source)));
  const job = readHarborJob(source);
  if (job) return job;
  const mini = readMiniRun(source);
  const run =
    mini.instances.length > 0 || mini.problems.length > 0
      ? { imported: mini, verdicts: new Map() }
      : runFromInstanceReports(source);
  return report === undefined ? run : { ...run, verdicts: verdictsAt(report, run.imported) };
}

/** A run report, a leaderboard entry's results.json, or a folder of instance reports. */
function verdictsAt(path: string, run: GradedElsewhere['imported']): Verdicts {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new UserError(`there is no report ${path}`);
  if (!found.isDirectory()) return checked(verdictsOfLeaderboard(path, run) ?? verdictsOfRunReport(path));
  const { verdicts } = runFromInstanceReports(path);
  if (verdicts.size === 0) throw new UserError(`there are no instance folders in ${path}`);
  return verdicts;
}

function checked(read: RunReportVerdicts): Verdicts {
  if (!read.ok) throw new UserError(read.message);
  return read.verdicts;
}

const OUTCOME: Record<string, { outcome: Outcome; resolved: number | null } | undefined> = {
  resolved: { outcome: 'resolved', resolved: 1 },
  unresolved: { outcome: 'unresolved', resolved: 0 },
  empty_patch: { outcome: 'empty_patch', resolved: null },
  error: { outcome: 'infra', resolved: null },
};

function importVerdicts(store: Store, run: RunRow, verdicts: Verdicts): number {
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
