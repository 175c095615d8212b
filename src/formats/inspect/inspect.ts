/**
 * Logs of Inspect as a run: .eval files and .json logs, or a folder of them. Samples are trials and epochs are epochs. A sample that ended by an
 * error has no score in Inspect and is missing here; one that ended by a limit of the agent has the score that it got.
 */

import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import { hasKeys, readForeignFile, topOf } from '../foreignFile.ts';
import {
  type CarriedRecord,
  epochsOf,
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignIdProblem,
  lacking,
  type TrialIdentity,
  trialKey,
} from '../foreignFormat.ts';
import { RECORD_IN_LOG } from '../writtenRun.ts';
import {
  type InspectLog,
  inspectScore,
  instanceOfSample,
  readInspectJson,
  sampleScore,
  scoreNameOf,
  verdictOfSample,
} from './samples.ts';

const LOG_HEAD = /"eval"\s{0,100}:\s{0,100}\{/;
const isLogHead = (head: string): boolean => LOG_HEAD.test(head) && hasKeys(head, 'task', 'model');

export const inspect: ForeignFormat = {
  recognise({ name, files, head }) {
    if (files === null) {
      const isEval = name.endsWith('.eval');
      return isEval || isLogHead(head(''))
        ? { words: 'a log of Inspect', certain: isEval ? 'sure' : 'likely', reads: 'itself' }
        : null;
    }
    const top = topOf(files);
    return top.some((file) => file.endsWith('.eval') || (isLogName(file) && isLogHead(head(file))))
      ? { words: 'a folder of logs of Inspect', certain: 'sure' }
      : null;
  },
  read: readInspectLogs,
  records: carriedIn,
};

/** The records of all logs, or of none: an arm without its rows would be missing. */
async function carriedIn(source: string): Promise<readonly CarriedRecord[] | null> {
  const { readFromEval } = await import('./evalFile.ts');
  const paths = logsIn(source);
  const found = await Promise.all(
    paths.map(async (path) => ({
      path,
      bytes: path.endsWith('.eval') ? await readFromEval(path, RECORD_IN_LOG) : null,
    })),
  );
  const carried = found.flatMap(({ path, bytes }) => (bytes ? [{ path, bytes }] : []));
  return carried.length === paths.length ? carried : null;
}

const logsIn = (source: string): string[] =>
  !statSync(source).isDirectory()
    ? [source]
    : readdirSync(source)
        .filter((name) => name.endsWith('.eval') || isLogName(name))
        .sort()
        .map((name) => join(source, name));

/** A log, or why it cannot be read; null for a file of another kind. */
async function readLog(path: string): Promise<InspectLog | string | null> {
  if (!/\.(?:eval|json)$/.test(path)) return null;
  if (!statSync(path).isFile()) return `${path} is not a file`;
  if (path.endsWith('.eval')) {
    const { readEvalFile } = await import('./evalFile.ts');
    const read = await readEvalFile(path);
    return typeof read === 'string' ? `${path}: ${read}` : { path, ...read };
  }
  const read = readInspectJson(readForeignFile(path));
  if (read.ok) return { path, ...read.value, warnings: [] };
  return read.fault === 'damaged' ? `${path}: ${read.message}` : null;
}

/** Null for another kind of file or folder. */
export async function readInspectLogs(source: string): Promise<ForeignRun | null> {
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

function asRun(folder: string, logs: readonly InspectLog[], problems: readonly string[]): ForeignRun {
  const warnings = logs.flatMap((log) => log.warnings);
  const { kept, left } = newestOfEach(logs);
  for (const { path } of left) warnings.push(`${path} is left out: a newer log repeats its task`);
  const arms = armNames(kept);
  const all = [...problems];
  const instances: ForeignInstance[] = [];
  const neverRun: TrialIdentity[] = [];
  const verdicts = new Map<string, ForeignVerdict>();
  for (const log of kept) {
    const name = arms.get(log);
    const arm = name === undefined ? {} : { arm: name };
    const seen = new Map<string, TrialIdentity>();
    for (const sample of log.samples) {
      const wrong = foreignIdProblem(log.path, sample.id);
      const at: TrialIdentity = { instanceId: sample.id, epoch: sample.epoch, ...arm };
      const key = trialKey(at);
      if (wrong !== null) all.push(wrong);
      else if (seen.has(key)) all.push(`${log.path} has sample ${key} twice`);
      else {
        seen.set(key, at);
        instances.push({ ...instanceOfSample(log, sample), ...at });
        verdicts.set(key, verdictOfSample(log, sample));
      }
    }
    neverRun.push(...lacking(plannedIn(log, arm), [...seen.values()]));
    warnings.push(...inspectDifference(log));
  }
  const order = (a: TrialIdentity, b: TrialIdentity) =>
    a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : a.epoch! - b.epoch!;
  return { folder, instances: instances.sort(order), verdicts, neverRun, warnings, problems: all };
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

function plannedIn({ header }: InspectLog, arm: Pick<TrialIdentity, 'arm'>): TrialIdentity[] {
  const ids = (header.eval.dataset.sample_ids ?? []).filter((id) => instanceIdProblem(id) === null);
  const epochs = header.eval.config.epochs ?? 1;
  return ids.flatMap((instanceId) => epochsOf({ instanceId, ...arm }, epochs));
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

const RATES = ['mean', 'accuracy'];

/** The number printed of the score that the verdicts are read from. */
function printedBy({
  header,
  samples,
}: InspectLog): { readonly name: string; readonly value: number } | null {
  const name = samples.map((sample) => scoreNameOf(header, sample)).find((each) => each !== null);
  const score = header.results?.scores.find((each) => each.name === name) ?? header.results?.scores[0];
  for (const metric of RATES) {
    const value = inspectScore(
      Object.values(score?.metrics ?? {}).find((each) => each.name.endsWith(metric))?.value,
    );
    if (value !== null) return { name: metric, value };
  }
  return null;
}

/** Lines on how the number that Inspect printed comes to be, and on the number of the same samples here. */
export function inspectDifference(log: InspectLog): string[] {
  const { header, samples } = log;
  const lost = samples.filter((sample) => sample.error || sampleScore(header, sample).value === null);
  const measured = samples.filter((sample) => !lost.includes(sample));
  const solved = measured.map((sample) => (sampleScore(header, sample).value! >= 1 ? 1 : 0));
  const bySample = [...Map.groupBy(measured, ({ id }) => id).values()].map((group) =>
    mean(group.map((sample) => sampleScore(header, sample).value!)),
  );
  const ours = mean(bySample);
  const printed = printedBy(log);
  const ids = new Set(header.eval.dataset.sample_ids ?? samples.map(({ id }) => id));
  const planned = ids.size * (header.eval.config.epochs ?? 1);
  const absent = Math.max(0, planned - samples.length);
  const lines: string[] = [];
  if (printed)
    lines.push(
      `Inspect's ${printed.name} is ${printed.value.toFixed(3)} over the samples that have a score, epochs averaged; here it is ${ours.toFixed(3)} over ${bySample.length} samples (${signed(ours - printed.value)}), and ${solved.filter((one) => one === 1).length} of ${measured.length} trials are resolved`,
    );
  else
    lines.push(
      `the log holds no number of Inspect's own${header.status === 'success' ? '' : `: its status is ${header.status}`}`,
    );
  if (lost.length + absent > 0) lines.push(missingLine(lost, absent, planned));
  return lines;
}

const signed = (value: number): string =>
  Math.abs(value) < 0.0005 ? 'no difference' : `${value > 0 ? '+' : ''}${value.toFixed(3)}`;

function missingLine(lost: InspectLog['samples'], absent: number, planned: number): string {
  const names = lost
    .slice(0, 5)
    .map(
      ({ id, epoch, error }) =>
        `${id}, epoch ${epoch} (${error ? (error.message.split('\n')[0] ?? '').slice(0, 60) : 'no score'})`,
    );
  const parts = [
    ...(lost.length > 0 ? [`${lost.length} that ended by an error or without a score`] : []),
    ...(absent > 0 ? [`${absent} that never ran`] : []),
  ];
  return `missing of ${planned} trials: ${parts.join(', ')}. Inspect leaves them out of its number without a word${names.length > 0 ? `: ${names.join('; ')}${lost.length > 5 ? '; …' : ''}` : ''}`;
}
