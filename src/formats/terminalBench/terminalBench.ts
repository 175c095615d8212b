/**
 * A run folder of Terminal-Bench 1 (`tb run`) as a run: results.json has all trials; where the run died before it was written, those of the trials
 * below. Its accuracy counts a trial without a verdict as a failure.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import type { ExitReason } from '../../outcome.ts';
import { hasKeys, readForeignFile, topOf } from '../foreignFile.ts';
import {
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignIdProblem,
  foreignInstance,
  type TrialIdentity,
  trialKey,
  UNKNOWN_MODEL,
  wholeCall,
} from '../foreignFormat.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';
import { withPrinted, withReport } from '../verdicts.ts';

const RESULTS = 'results.json';
const METADATA = 'run_metadata.json';
const isResults = (head: string): boolean =>
  hasKeys(head, 'results', 'task_id') && (hasKeys(head, 'trial_name') || hasKeys(head, 'is_resolved'));
const isTrial = (head: string): boolean => hasKeys(head, 'trial_name', 'task_id', 'is_resolved');
const isMetadata = (head: string): boolean => hasKeys(head, 'run_id', 'agent_name', 'n_attempts');

export const terminalBench: ForeignFormat = {
  recognise({ files, head }) {
    if (files === null)
      return isResults(head('')) || isTrial(head(''))
        ? { words: 'results of Terminal-Bench 1', certain: 'sure' }
        : null;
    const top = topOf(files);
    const found =
      (top.includes(RESULTS) && (isResults(head(RESULTS)) || isTrial(head(RESULTS)))) ||
      (top.includes(METADATA) && isMetadata(head(METADATA)));
    return found ? { words: 'a run of Terminal-Bench 1', certain: 'sure' } : null;
  },
  read: (source, report) => {
    const folder = statSync(source).isDirectory() ? source : dirname(resolve(source));
    return withReport(readRun(folder, source), report);
  },
};

const count = z.number().nullish();
const text = z.string().nullish();
const trialSchema = z.looseObject({
  trial_name: z.string().default(''),
  task_id: z.string(),
  instruction: text,
  is_resolved: z.boolean().nullish(),
  failure_mode: text,
  parser_results: z.record(z.string(), z.unknown()).nullish(),
  total_input_tokens: count,
  total_output_tokens: count,
  trial_started_at: text,
  trial_ended_at: text,
});
type TerminalTrial = z.infer<typeof trialSchema>;

/** All trials of a run, or one of them: both files are called results.json. */
const resultsSchema = z.preprocess(
  (value) => (isRecord(value) && !Array.isArray(value.results) ? { results: [value] } : value),
  z.looseObject({ results: z.array(trialSchema) }),
);

export function readTerminalResults(body: RawBody): Read<readonly TerminalTrial[]> {
  const read = readForeign(
    body,
    resultsSchema,
    (value) =>
      isRecord(value) && (Array.isArray(value.results) || ('task_id' in value && 'is_resolved' in value)),
    'it has no results of Terminal-Bench',
  );
  return read.ok ? { ok: true, value: read.value.results } : read;
}

const metadataSchema = z.looseObject({
  agent_name: text,
  model_name: text,
  task_ids: z.array(z.string()).nullish(),
  n_attempts: z.number().int().min(1).max(1000).nullish(),
});
type Metadata = z.infer<typeof metadataSchema>;

export function readTerminalMetadata(body: RawBody): Read<Metadata> {
  return readForeign(body, metadataSchema, isRecord, 'it is no metadata of a run of Terminal-Bench');
}

const REASONS: Readonly<Record<string, ExitReason>> = {
  agent_timeout: 'limit_wall_time',
  context_length_exceeded: 'context_window_exceeded',
  output_length_exceeded: 'context_window_exceeded',
  fatal_llm_parse_error: 'format_errors_exceeded',
  agent_installation_failed: 'env_start_failed',
};

/** Failures of the trial itself end it before a test is judged, and leave no verdict. */
function verdictOf({ is_resolved: resolved, failure_mode: mode }: TerminalTrial): ForeignVerdict {
  const lost = typeof resolved !== 'boolean' || mode === 'agent_installation_failed';
  return {
    verdict: lost ? 'error' : resolved ? 'resolved' : 'unresolved',
    reason: lost ? (mode ?? 'no_verdict') : null,
    report: null,
    grader: 'terminal-bench',
  };
}

const secondsOf = (date: string | null | undefined): number | null =>
  timestampOrNull(Date.parse(date ?? '') / 1000);

/** Its own word for nothing that went wrong, before and after 0.2.5. */
const NOTHING: ReadonlySet<string> = new Set(['unset', 'none']);

function instanceOf(
  trial: TerminalTrial,
  place: TrialIdentity,
  model: string,
  file: string,
): ForeignInstance {
  const mode = NOTHING.has(trial.failure_mode ?? 'unset') ? null : trial.failure_mode!;
  const used = {
    inputTokens: tokensOrNull(trial.total_input_tokens),
    outputTokens: tokensOrNull(trial.total_output_tokens),
  };
  const startedAt = secondsOf(trial.trial_started_at);
  return foreignInstance({
    ...place,
    model,
    format: 'terminal-bench',
    exitStatus: mode,
    exitReason: (mode && Object.hasOwn(REASONS, mode) && REASONS[mode]) || 'submitted',
    errorMessage: mode,
    messages: trial.instruction ? [{ role: 'user', content: trial.instruction }] : [],
    // Agents that are programs of others state zeros.
    calls: used.inputTokens || used.outputTokens ? [wholeCall({ model, ...used, at: startedAt })] : [],
    startedAt,
    endedAt: secondsOf(trial.trial_ended_at),
    file,
    notes: ['Terminal-Bench keeps no patch and no conversation in its results'],
  });
}

/** "task.2-of-5" is the second of five. */
const attemptIn = (name: string): number => Number(/\.(\d{1,4})-of-\d{1,4}(?:\.|$)/.exec(name)?.[1] ?? 0);

/** `<task>/<trial>/results.json` */
const trialFiles = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const task = join(folder, name);
      return readdirSync(task, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(task, entry.name, RESULTS));
    })
    .filter(existsSync)
    .sort();

interface Found {
  readonly trial: TerminalTrial;
  readonly file: string;
}

function trialsOf(folder: string, problems: string[]): Found[] {
  const whole = join(folder, RESULTS);
  const files = existsSync(whole) ? [whole] : trialFiles(folder);
  return files.flatMap((file) => {
    const read = readTerminalResults(readForeignFile(file));
    if (read.ok) return read.value.map((trial) => ({ trial, file }));
    problems.push(`${file}: ${read.message}`);
    return [];
  });
}

function metadataOf(folder: string, problems: string[]): Metadata {
  const path = join(folder, METADATA);
  if (!existsSync(path)) return {};
  const read = readTerminalMetadata(readForeignFile(path));
  if (read.ok) return read.value;
  problems.push(`${path}: ${read.message}`);
  return {};
}

function readRun(folder: string, source: string): ForeignRun {
  const problems: string[] = [];
  const metadata = metadataOf(folder, problems);
  const found = trialsOf(folder, problems);
  const model = metadata.model_name ?? metadata.agent_name ?? UNKNOWN_MODEL;
  const instances: ForeignInstance[] = [];
  const verdicts = new Map<string, ForeignVerdict>();
  const epochs = new Map<string, number>();
  const order = ({ trial }: Found) => attemptIn(trial.trial_name);
  for (const { trial, file } of found.toSorted((a, b) => order(a) - order(b))) {
    const wrong = foreignIdProblem(file, trial.task_id);
    if (wrong !== null) {
      problems.push(wrong);
      continue;
    }
    const epoch = (epochs.get(trial.task_id) ?? 0) + 1;
    epochs.set(trial.task_id, epoch);
    const place = { instanceId: trial.task_id, epoch };
    instances.push(instanceOf(trial, place, model, file));
    verdicts.set(trialKey(place), verdictOf(trial));
  }
  const run: ForeignRun = {
    folder: source,
    instances: instances.sort((a, b) =>
      a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : 0,
    ),
    verdicts,
    neverRun: neverRun(epochs, metadata),
    warnings: [],
    problems,
  };
  const resolved = found.filter(({ trial }) => trial.is_resolved === true).length;
  return withPrinted(run, { resolved, of: found.length });
}

/** What the run was meant to have, by its metadata. */
function neverRun(epochs: ReadonlyMap<string, number>, { task_ids, n_attempts }: Metadata): TrialIdentity[] {
  const planned = new Set(
    [...(task_ids ?? []), ...epochs.keys()].filter((id) => foreignIdProblem('', id) === null),
  );
  return [...planned].flatMap((instanceId) => {
    const has = epochs.get(instanceId) ?? 0;
    return Array.from({ length: Math.max(0, (n_attempts ?? 1) - has) }, (_, at) => ({
      instanceId,
      epoch: has + at + 1,
    }));
  });
}
