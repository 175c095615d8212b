/**
 * Logs of Inspect as a run: .eval files and .json logs, or a folder of them. Samples are trials and epochs are epochs. A sample that ended by an
 * error has no score in Inspect and is missing here; one that ended by a limit of the agent has the score that it got.
 */
import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import type { Read } from '../../formats/foreignJson.ts';
import { readInspectJson } from '../../formats/reports/inspectLog.ts';
import { readForeignFile } from './foreignFile.ts';
import { type ImportedInstance, placeKey, type TrialPlace } from './importedRun.ts';
import { inspectDifference } from './inspectDifference.ts';
import { type InspectLog, instanceOfSample, verdictOfSample } from './inspectSamples.ts';
import { readEvalFile } from './readEvalFile.ts';
import type { GradedElsewhere, VerdictOf } from './readReports.ts';

/** A JSON log is read as a whole; the .eval format is there for larger ones. */
const MOST_JSON = 256 * 1024 * 1024;

/** A log, or why it cannot be read; null for a file of another kind. */
async function readLog(path: string): Promise<InspectLog | string | null> {
  if (!/\.(?:eval|json)$/.test(path)) return null;
  if (!statSync(path).isFile()) return `${path} is not a file`;
  if (path.endsWith('.eval')) {
    const read = await readEvalFile(path);
    return typeof read === 'string' ? `${path}: ${read}` : { path, ...read };
  }
  if (statSync(path).size > MOST_JSON)
    return `${path} is longer than 256 MB: "inspect log convert" makes an .eval file of it`;
  const read: Read<Pick<InspectLog, 'header' | 'samples'>> = readInspectJson(readForeignFile(path));
  if (read.ok) return { path, ...read.value, warnings: [] };
  return read.fault === 'damaged' ? `${path}: ${read.message}` : null;
}

/** Null for another kind of file or folder. */
export async function readInspectLogs(source: string): Promise<GradedElsewhere | null> {
  const isFolder = statSync(source).isDirectory();
  const files = isFolder
    ? readdirSync(source)
        .filter((name) => /\.(?:eval|json)$/.test(name))
        .sort()
        .map((name) => join(source, name))
    : [source];
  if (isFolder && !files.some((file) => file.endsWith('.eval')) && !files.some(isLogName)) return null;
  const read = await Promise.all(files.map(readLog));
  const problems = read.filter((each) => typeof each === 'string');
  const logs = read.filter((each) => each !== null && typeof each !== 'string');
  if (logs.length === 0 && problems.length === 0) return null;
  return asRun(source, logs, problems);
}

/** `2026-01-31T12-00-00+00-00_task_id.json`: other JSON files of a folder are not opened for this. */
const isLogName = (path: string): boolean =>
  /^\d{4}-\d\d-\d\dT/.test(basename(path)) && path.endsWith('.json');

function asRun(folder: string, logs: readonly InspectLog[], problems: readonly string[]): GradedElsewhere {
  const warnings = logs.flatMap((log) => log.warnings);
  const { kept, left } = newestOfEach(logs);
  for (const { path } of left) warnings.push(`${path} is left out: a newer log repeats its task`);
  const arms = armNames(kept);
  const all = [...problems];
  const instances: ImportedInstance[] = [];
  const neverRun: TrialPlace[] = [];
  const verdicts = new Map<string, VerdictOf>();
  for (const log of kept) {
    const arm = arms.get(log);
    const place = (instanceId: string, epoch: number): TrialPlace => ({
      ...{ instanceId, epoch, ...(arm !== undefined && { arm }) },
    });
    const seen = new Set<string>();
    for (const sample of log.samples) {
      const wrong = instanceIdProblem(sample.id);
      const at = place(sample.id, sample.epoch);
      if (wrong !== null)
        all.push(`${log.path}: the name ${JSON.stringify(sample.id)} is not an instance id: it ${wrong}`);
      else if (seen.has(placeKey(at))) all.push(`${log.path} has sample ${placeKey(at)} twice`);
      else {
        seen.add(placeKey(at));
        instances.push({ ...instanceOfSample(log, sample), ...at });
        verdicts.set(placeKey(at), verdictOfSample(log, sample));
      }
    }
    neverRun.push(...lacking(log, seen, place));
    warnings.push(...inspectDifference(log));
  }
  const order = (a: TrialPlace, b: TrialPlace) =>
    a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : a.epoch! - b.epoch!;
  const imported = { folder, instances: instances.sort(order), neverRun, warnings, problems: all };
  return { imported, verdicts };
}

/** Inspect writes a new log for each retry of a task, under the same id; the newest holds what the older ones had finished. */
function newestOfEach(logs: readonly InspectLog[]): { kept: InspectLog[]; left: InspectLog[] } {
  const created = ({ header }: InspectLog): string => header.eval.created;
  const sorted = [...logs].sort((a, b) => (created(a) < created(b) ? 1 : created(a) > created(b) ? -1 : 0));
  const idOf = ({ header: { eval: is }, path }: InspectLog): string =>
    is.task_id === '' ? path : `${is.task_id} ${is.model}`;
  const newest = new Map<string, InspectLog>();
  for (const log of sorted) if (!newest.has(idOf(log))) newest.set(idOf(log), log);
  const kept = logs.filter((log) => newest.get(idOf(log)) === log);
  return { kept, left: logs.filter((log) => !kept.includes(log)) };
}

/** One log is the run's only arm. Several are named by model, by task and model, or by their place, whatever tells them apart. */
function armNames(logs: readonly InspectLog[]): ReadonlyMap<InspectLog, string> {
  if (logs.length < 2) return new Map();
  const byModel = logs.map(({ header }) => header.eval.model);
  const byTask = logs.map(({ header }) => `${header.eval.task}/${header.eval.model}`);
  const unique = (names: readonly string[]): boolean => new Set(names).size === names.length;
  const names = unique(byModel)
    ? byModel
    : unique(byTask)
      ? byTask
      : byTask.map((name, at) => `${name}/${at + 1}`);
  return new Map(logs.map((log, at) => [log, names[at]!]));
}

/** No dataset has more; a header is somebody else's claim. */
const MOST_PLANNED = 1_000_000;

function lacking(
  { header }: InspectLog,
  seen: ReadonlySet<string>,
  place: (instanceId: string, epoch: number) => TrialPlace,
): TrialPlace[] {
  const ids = (header.eval.dataset.sample_ids ?? []).filter((id) => instanceIdProblem(id) === null);
  const epochs = header.eval.config.epochs ?? 1;
  if (ids.length * epochs > MOST_PLANNED) return [];
  return [...new Set(ids)].flatMap((id) =>
    Array.from({ length: epochs }, (_, at) => place(id, at + 1)).filter((at) => !seen.has(placeKey(at))),
  );
}
