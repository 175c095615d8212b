/**
 * The files of a run's folder, made from the database and always able to be made again. Each is written beside itself and renamed,
 * so a reader never sees half a file.
 */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { writeYaml } from '../../base/text/yaml.ts';
import { armNameOf } from '../../config/loadConfig.ts';
import { attemptWriterOf } from '../../formats/formats.ts';
import {
  exitStatusesYaml,
  trajectoryJson,
  trajectoryPath,
} from '../../formats/miniSweAgent/writeTrajectory.ts';
import { predsJson, predsJsonl } from '../../formats/predictions.ts';
import { RECORD_FILE } from '../../formats/writtenRun.ts';
import { publishedMessages } from '../../model/dialects/published/publishedMessages.ts';
import { exportSummary } from '../../report/exportSummary.ts';
import { partsOf, predictionsOf } from '../../report/predictionsOf.ts';
import type { Store } from '../../store/open.ts';
import {
  type AttemptRecord,
  attemptRecord,
  attemptRecords,
  endedAttempts,
  observedIn,
  predictionRows,
} from '../../store/records/attemptBodies.ts';
import { endedCalls } from '../../store/records/modelCalls.ts';
import { type RunRow, runById, storedManifest, wholeConfig } from '../../store/records/runs.ts';
import { crashPoint } from '../control/crash.ts';
import { plannedArms } from '../plan/planRecord.ts';
import { reportData } from '../standing.ts';
import { UserError } from '../userError.ts';
import { partFolder } from './partFolder.ts';
import { programsSeen } from './programRecord.ts';
import { recordFile } from './recordFile.ts';
import { pricesOfRun } from './tokenPrices.ts';

export interface ExportTarget {
  readonly store: Store;
  readonly run: RunRow;
  /** DIR/<run> */
  readonly dir: string;
  readonly version: string;
}

/** preds.json, all_preds.jsonl and exit_statuses.yaml of every arm and epoch. Returns the paths of the preds.json files. */
export async function exportPredictions({ store, run, dir }: ExportTarget): Promise<string[]> {
  const written: string[] = [];
  for (const part of partsOf(predictionRows(store, run.id))) {
    const folder = pathInside(dir, part.folder);
    const predictions = predictionsOf(part.rows, run.emit_empty === 1);
    await writeAtomically(pathInside(folder, 'preds.json'), predsJson(predictions));
    await writeAtomically(pathInside(folder, 'all_preds.jsonl'), predsJsonl(predictions));
    await writeAtomically(pathInside(folder, 'exit_statuses.yaml'), exitStatusesYaml(part.rows));
    written.push(join(folder, 'preds.json'));
  }
  return written;
}

/** The predictions of one arm and epoch as one file: its form says neither, so it cannot hold several. */
export async function exportPredictionsFile({ store, run }: ExportTarget, path: string): Promise<string> {
  const parts = partsOf(predictionRows(store, run.id));
  if (parts.length > 1)
    throw new UserError(
      `${run.name} has ${parts.length} sets of predictions, one for each arm and epoch, and ${path} holds one`,
      { hint: 'name a folder with --to, and take a file from it' },
    );
  const predictions = predictionsOf(parts[0]?.rows ?? [], run.emit_empty === 1);
  await writeAtomically(path, path.endsWith('.jsonl') ? predsJsonl(predictions) : predsJson(predictions));
  return path;
}

async function exportTrajectory(target: ExportTarget, attemptId: number, written: Written): Promise<void> {
  const attempt = attemptRecord(target.store, attemptId);
  if (!attempt) return;
  await writeTrajectory(target, attempt);
  written.set(attemptId, attempt.final);
}

/** A trajectory repeats the record. From this size on a run compresses the files that it writes unasked; a user who asks gets the plain file. */
const LARGE_CHARS = 1024 * 1024;
const gzipLater = promisify(gzip);

async function writeTrajectory(
  { store, run, dir, version }: ExportTarget,
  attempt: AttemptRecord,
  asked = false,
): Promise<string> {
  const part = partFolder(store, run, attempt.arm, attempt.epoch);
  const plain = pathInside(dir, part, trajectoryPath(attempt));
  const packed = `${plain}.gz`;
  const json = await trajectoryJson(attempt, { version, published: publishedMessages });
  const isPacked = !asked && json.length > LARGE_CHARS;
  const [path, other] = isPacked ? [packed, plain] : [plain, packed];
  await writeAtomically(path, isPacked ? await gzipLater(json) : json);
  await rm(other, { force: true });
  return path;
}

/** The trajectories of all ended attempts, one at a time, as plain files. */
export async function exportTrajectories(target: ExportTarget): Promise<string[]> {
  const written: string[] = [];
  for (const attempt of attemptRecords(target.store, target.run.id))
    written.push(await writeTrajectory(target, attempt, true));
  return written;
}

/** Facts of a run that are known only later; of programs also what they said to their models. */
export async function observedOf(store: Store, runId: number) {
  const programs = await programsSeen(store, runId);
  return { ...observedIn(store, runId), ...(Object.keys(programs).length > 0 && { programs }) };
}

export async function exportManifest(
  { store, run, dir }: ExportTarget,
  path = pathInside(dir, 'run.json'),
): Promise<string> {
  // The manifest of the start, and what was observed since.
  const manifest = { ...storedManifest(runById(store, run.id)!), observed: await observedOf(store, run.id) };
  await writeAtomically(path, `${JSON.stringify(manifest, null, 2)}\n`);
  return path;
}

/** The record file, which brings the run back beside the other files. Returns its path. */
export async function exportRecord({ store, run, dir }: ExportTarget): Promise<string> {
  const path = pathInside(dir, RECORD_FILE);
  await writeAtomically(path, recordFile(store, run.id));
  return path;
}

/** Trajectories that lie in the folder as the record has them, and whether each was that of the final attempt. */
type Written = Map<number, boolean>;

/** `written`: the attempts that an exporter wrote while the run worked. */
export async function exportRun(target: ExportTarget, written: Written = new Map()): Promise<string[]> {
  crashPoint('before_export');
  await exportManifest(target);
  const predictions = await exportPredictions(target);
  for (const { id, final, changed } of endedAttempts(target.store, target.run.id))
    if (changed === 1 || written.get(id) !== (final === 1)) await exportTrajectory(target, id, written);
  await exportSummary(reportData(target.store, target.run.id)!, target.dir, pricesOfRun);
  await exportRecord(target);
  return predictions;
}

/** Rewriting preds.json costs its size each time; a person following a run needs it now and then. */
const PREDICTIONS_EVERY = 20;
/** The share of ended trials until the next writing: so the files of a large run are not written thousands of times. */
const PREDICTIONS_SHARE = 0.05;

export type Exporter = ReturnType<typeof createExporter>;

/** Exports while a run works: a trajectory as its trial is sealed, the predictions every few trials, and never two at a time. */
export function createExporter(target: ExportTarget) {
  const written: Written = new Map();
  let chain: Promise<void> = Promise.resolve();
  let failure: unknown = null;
  let ended = 0;
  let next = 1;
  const enqueue = (work: () => Promise<unknown>) => {
    chain = chain.then(work).then(
      () => {},
      (error: unknown) => {
        failure ??= error;
      },
    );
  };
  return {
    written,
    attemptEnded(attemptId: number): void {
      enqueue(() => exportTrajectory(target, attemptId, written));
      ended += 1;
      if (ended < next) return;
      next = ended + Math.max(PREDICTIONS_EVERY, Math.floor(ended * PREDICTIONS_SHARE));
      enqueue(() => exportPredictions(target));
    },
    /** Resolves once everything asked for is written; rejects with the first failure. */
    async flush(): Promise<void> {
      await chain;
      if (failure !== null) throw failure instanceof Error ? failure : new Error(String(failure));
    },
  };
}

/** Every ended attempt as a file of another tool, one at a time. */
export async function exportAttempts(
  { store, run, dir, version }: ExportTarget,
  format: string,
): Promise<string[]> {
  const write = await attemptWriterOf(format);
  const written: string[] = [];
  for (const attempt of attemptRecords(store, run.id)) {
    const { instanceId: id, number, final } = attempt;
    const name = `${id}${final ? '' : `.attempt-${number}`}.${format}.json`;
    const part = partFolder(store, run, attempt.arm, attempt.epoch);
    const path = pathInside(dir, part, 'trajectories', id, name);
    const document = write({ ...attempt, calls: endedCalls(store, attempt.attemptId) }, version);
    await writeAtomically(path, `${JSON.stringify(document, null, 2)}\n`);
    written.push(path);
  }
  return written;
}

// The configuration of a run as a file that starts the same run again: sections, arms, and the rows it had. Pure.

type ExportedRun = Pick<RunRow, 'config' | 'dataset_source' | 'dataset_hash' | 'imported'>;

/** The configuration that `run -c -` reads: sections for one arm, `arms:` where there are several or a name of its own. */
export function exportConfig(run: ExportedRun, ids: readonly string[]): string {
  const { arms = [], dataset, ...sections } = wholeConfig(run);
  if (run.imported === 1) {
    // An import has only the published settings; the rest are the defaults of this program.
    const { name: _, ...published } = arms[0] ?? { name: '' };
    return writeYaml({ ...published, dataset: rowsOf(run, ids) });
  }
  const rows = {
    subset: run.dataset_source,
    ...dataset,
    ...(dataset ? { rows_sha256: run.dataset_hash } : {}),
  };
  // A replay takes the name for its predictions from its recording again.
  const plain = plannedArms(run).map(({ predictsAs: _, ...arm }) => arm);
  const [only] = plain;
  if (plain.length === 1 && only && only.name === armNameOf(only)) {
    const { name: _, ...parts } = only;
    return writeYaml({ ...parts, ...sections, dataset: rows });
  }
  return writeYaml({ ...sections, arms: plain, dataset: rows });
}

const rowsOf = (run: ExportedRun, ids: readonly string[]) => ({
  subset: run.dataset_source,
  instances: ids,
});
