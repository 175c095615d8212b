/**
 * A run folder of Terminal-Bench 1 (`tb run`) as a run: results.json has all trials; where the run died before it was written, those of the trials
 * below. Terminal-Bench's accuracy counts a trial without a verdict as a failure.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { tokensOrNull } from '../../base/plausible.ts';
import type { ExitReason } from '../../outcome.ts';
import { hasKeys, readerOf, readIfThere, topOf } from '../foreignFile.ts';
import {
  epochsOf,
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignIdProblem,
  foreignInstance,
  lacking,
  numbered,
  secondsOf,
  type TrialIdentity,
  trialKey,
  UNKNOWN_MODEL,
  wholeCall,
  withIds,
} from '../foreignFormat.ts';
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

/** The trials of a run, or one of them: both files are called results.json. */
const resultsSchema = z.preprocess(
  (value) => (isRecord(value) && !Array.isArray(value.results) ? { results: [value] } : value),
  z.looseObject({ results: z.array(trialSchema) }),
);

export const readTerminalResults = readerOf(
  resultsSchema.transform(({ results }) => results),
  (value) =>
    isRecord(value) && (Array.isArray(value.results) || ('task_id' in value && 'is_resolved' in value)),
  'it has no results of Terminal-Bench',
);

const metadataSchema = z.looseObject({
  agent_name: text,
  model_name: text,
  task_ids: z.array(z.string()).nullish(),
  n_attempts: z.number().int().min(1).max(1000).nullish(),
});

export const readTerminalMetadata = readerOf(
  metadataSchema,
  isRecord,
  'it is no metadata of a run of Terminal-Bench',
);

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

/** Terminal-Bench's own words for "nothing went wrong", before and after 0.2.5. */
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

function trialsOf(folder: string, problems: string[]) {
  const whole = join(folder, RESULTS);
  const files = existsSync(whole) ? [whole] : trialFiles(folder);
  return files
    .flatMap((path) =>
      (readIfThere(path, readTerminalResults, problems) ?? []).map((trial) => {
        return { path, trial, instanceId: trial.task_id };
      }),
    )
    .toSorted((a, b) => attemptIn(a.trial.trial_name) - attemptIn(b.trial.trial_name));
}

function readRun(folder: string, source: string): ForeignRun {
  const problems: string[] = [];
  const metadata = readIfThere(join(folder, METADATA), readTerminalMetadata, problems);
  const found = trialsOf(folder, problems);
  const model = metadata?.model_name ?? metadata?.agent_name ?? UNKNOWN_MODEL;
  const trials = numbered(withIds(found, problems));
  const planned = [...(metadata?.task_ids ?? []), ...trials.map(({ instanceId }) => instanceId)]
    .filter((id) => foreignIdProblem('', id) === null)
    .flatMap((instanceId) => epochsOf({ instanceId }, metadata?.n_attempts ?? 1));
  const run: ForeignRun = {
    folder: source,
    instances: trials
      .map(({ trial, path, instanceId, epoch }) => instanceOf(trial, { instanceId, epoch }, model, path))
      .sort((a, b) => (a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : 0)),
    verdicts: new Map(trials.map((each) => [trialKey(each), verdictOf(each.trial)])),
    neverRun: lacking(planned, trials),
    warnings: [],
    problems,
  };
  const resolved = found.filter(({ trial }) => trial.is_resolved === true).length;
  return withPrinted(run, { resolved, of: found.length });
}
