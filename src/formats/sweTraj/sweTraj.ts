/**
 * Trajectories of SWE-agent (`<id>.traj`, versions 0.x and 1.x) as a run: one file, or a folder of them with its predictions. A trajectory states
 * what was submitted, why it ended and what it cost; verdicts are those of the harness below or beside, or of a report.
 */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { stepsOrNull, tokensOrNull } from '../../base/plausible.ts';
import { contentText } from '../../base/text/contentText.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { hasKeys, readerOf, readForeignFile } from '../foreignFile.ts';
import {
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  foreignIdProblem,
  foreignInstance,
  trialKey,
  UNKNOWN_MODEL,
  wholeCall,
} from '../foreignFormat.ts';
import { NO_MODEL, type Prediction, predictionsIn } from '../predictions.ts';
import { SourceError } from '../sourceError.ts';
import { withReportNear } from '../verdicts.ts';

const TRAJECTORY = /\.traj(?:\.gz)?$/;

export const sweTraj: ForeignFormat = {
  recognise({ name, files, head }) {
    if (files !== null)
      return files.some((file) => TRAJECTORY.test(file))
        ? { words: 'a folder of SWE-agent', certain: 'likely' }
        : null;
    const isOne =
      TRAJECTORY.test(name) || (name.endsWith('.json') && hasKeys(head(''), 'environment', 'trajectory'));
    return isOne ? { words: 'a trajectory of SWE-agent', certain: 'likely', reads: 'above' } : null;
  },
  read: (source, report) => readSweAgent(source, report),
};

const text = z.string().nullish();
const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.unknown())]).nullish(),
  tool_calls: z.array(z.unknown()).nullish(),
  tool_call_ids: z.array(z.string()).nullish(),
});
const modelOfConfig = z.looseObject({ agent: z.looseObject({ model: z.looseObject({ name: z.string() }) }) });
const trajectorySchema = z.looseObject({
  trajectory: z.array(z.looseObject({ response: text, observation: text })).default([]),
  history: z.array(messageSchema).default([]),
  info: z
    .looseObject({
      exit_status: text,
      submission: text,
      swe_agent_version: text,
      model_stats: z
        .looseObject({
          instance_cost: z.number().nullish(),
          tokens_sent: z.number().nullish(),
          tokens_received: z.number().nullish(),
          api_calls: z.number().nullish(),
        })
        .nullish(),
    })
    .default({}),
  /** Since 1.0, as an object or as JSON in a text. */
  replay_config: z.unknown().optional(),
});
type Trajectory = z.infer<typeof trajectorySchema>;

export const readSweTrajectory = readerOf(
  trajectorySchema,
  (value) => isRecord(value) && ('trajectory' in value || 'history' in value),
  'it has neither trajectory nor history, so it is not of SWE-agent',
);

function modelOf({ replay_config: config }: Trajectory): string | null {
  let value = config;
  if (typeof value === 'string')
    try {
      value = JSON.parse(value);
    } catch {
      return null;
    }
  return modelOfConfig.safeParse(value).data?.agent.model.name ?? null;
}

function messagesOf({ history, trajectory }: Trajectory): Readonly<Record<string, unknown>>[] {
  if (history.length > 0)
    return history.map(({ role, content, tool_calls, tool_call_ids, is_demo }) => ({
      role,
      content: contentText(content),
      ...(tool_calls && tool_calls.length > 0 && { tool_calls }),
      ...(tool_call_ids?.[0] !== undefined && { tool_call_id: tool_call_ids[0] }),
      ...(is_demo === true && { is_demo }),
    }));
  return trajectory.flatMap(({ response, observation }) => [
    { role: 'assistant', content: response ?? '' },
    { role: 'user', content: observation ?? '' },
  ]);
}

const REASONS: ReadonlyMap<string, ExitReason> = new Map([
  ['submitted', 'submitted'],
  ['exit_forfeit', 'submitted'],
  ['exit_command', 'submitted'],
  ['exit_cost', 'limit_cost'],
  ['exit_context', 'context_window_exceeded'],
  ['exit_format', 'format_errors_exceeded'],
  ['exit_command_timeout', 'command_timeouts_exceeded'],
  ['exit_total_execution_time', 'limit_wall_time'],
  ['exit_total_cost', 'budget_stopped'],
  ['exit_api', 'model_unavailable'],
  ['exit_environment_error', 'env_died'],
]);

/** "submitted (exit_cost)": cut off, and what was there was submitted. Without a status its process died. */
export function sweReasonOf(status: string | null): ExitReason {
  if (status === null || status === '' || status === 'early_exit') return 'cancelled';
  const inner = /^submitted \((\w{1,50})\)/.exec(status)?.[1] ?? status.split(' ', 1)[0]!;
  return REASONS.get(inner) ?? 'internal_error';
}

function instanceOf(
  instanceId: string,
  trajectory: Trajectory,
  prediction: Prediction | undefined,
  file: string,
): ForeignInstance {
  const { info } = trajectory;
  const stats = info.model_stats;
  const named = prediction?.model_name_or_path;
  const model = modelOf(trajectory) ?? (named === NO_MODEL ? undefined : named) ?? UNKNOWN_MODEL;
  const costNano = plausibleNano(stats?.instance_cost);
  const used = {
    inputTokens: tokensOrNull(stats?.tokens_sent),
    outputTokens: tokensOrNull(stats?.tokens_received),
    costNano,
  };
  // A replay asks no model, and its statistics are zeros.
  const asked = Object.values(used).some((value) => value !== null && value > 0);
  return foreignInstance({
    instanceId,
    model,
    format: 'swe-agent',
    version: info.swe_agent_version ?? null,
    exitStatus: info.exit_status ?? null,
    exitReason: sweReasonOf(info.exit_status ?? null),
    submission: info.submission ?? null,
    modelPatch: prediction ? (prediction.model_patch ?? '') : (info.submission ?? ''),
    steps: stepsOrNull(stats?.api_calls) || trajectory.trajectory.length,
    costNano: asked ? costNano : null,
    messages: messagesOf(trajectory),
    calls: asked ? [wholeCall({ model, rawUsage: stats, ...used })] : [],
    file,
  });
}

/** `attempt_1/` below an instance holds what its retries left; the file above has the one that was chosen. */
const isAttempt = (path: string): boolean => /(?:^|\/)attempt_\d+\//.test(path);

/** `<run>/<id>.traj` before 1.0, `<run>/<id>/<id>.traj` since; '.' for the folder itself. */
function runFolder(file: string): string {
  const folder = dirname(file.replace(/(^|\/)attempt_\d+\//, '$1'));
  return basename(folder) === idOf(file) ? dirname(folder) : folder;
}

const idOf = (file: string): string => basename(file).replace(/(?:\.traj(?:\.gz)?|\.json)$/, '');

/** Folders below that hold a run each: several of them have a trajectory of the same instance. Shards of one run share none. */
function runsBelow(files: readonly string[]): readonly string[] {
  const runs = Map.groupBy(files, runFolder);
  const ids = [...runs.values()].flatMap((own) => [...new Set(own.map(idOf))]);
  return ids.length > new Set(ids).size && !runs.has('.') ? [...runs.keys()].sort() : [];
}

/** The runs, each an arm under the name of its folder. */
function readRuns(source: string, runs: readonly string[], report: string | undefined): ForeignRun {
  if (report !== undefined)
    throw new SourceError(
      `${source} holds ${runs.length} runs, and ${report} is of one`,
      `name one of them: ${runs.map((run) => join(source, run)).join(', ')}`,
    );
  const parts = runs.map((arm) => ({ arm, run: readSweAgent(join(source, arm)) }));
  return {
    folder: source,
    instances: parts.flatMap(({ arm, run }) => run.instances.map((each) => ({ ...each, arm }))),
    verdicts: new Map(
      parts.flatMap(({ arm, run }) =>
        [...run.verdicts].map(([instanceId, verdict]) => [trialKey({ instanceId, arm }), verdict] as const),
      ),
    ),
    neverRun: parts.flatMap(({ arm, run }) => (run.neverRun ?? []).map((place) => ({ ...place, arm }))),
    warnings: parts.flatMap(({ arm, run }) => run.warnings.map((warning) => `${arm}: ${warning}`)),
    problems: parts.flatMap(({ run }) => run.problems),
  };
}

export function readSweAgent(source: string, report?: string): ForeignRun {
  const isFolder = statSync(source).isDirectory();
  const files = isFolder
    ? readdirSync(source, { recursive: true, encoding: 'utf8' })
        .filter((file) => TRAJECTORY.test(file))
        .sort((a, b) => a.split('/').length - b.split('/').length || (a < b ? -1 : 1))
    : [basename(source)];
  const runs = runsBelow(files);
  if (runs.length > 1) return readRuns(source, runs, report);
  const folder = isFolder ? source : dirname(resolve(source));
  const problems: string[] = [];
  const warnings: string[] = [];
  // Beside a lone trajectory too: `<run>/<id>/<id>.traj` and `<run>/preds.json`.
  const predictions = predictionsIn(isFolder ? [folder] : [folder, dirname(folder)], problems);
  const instances = new Map<string, ForeignInstance>();
  for (const name of files) {
    const file = join(folder, name);
    const id = idOf(name);
    const wrong = foreignIdProblem(file, id);
    if (wrong !== null) problems.push(wrong);
    else if (!instances.has(id)) {
      const read = readSweTrajectory(readForeignFile(file));
      if (read.ok) instances.set(id, instanceOf(id, read.value, predictions.get(id), file));
      else {
        warnings.push(`${file} cannot be read: ${read.message}`);
        instances.set(id, unread(id, read.message, predictions.get(id), file));
      }
    } else if (!isAttempt(name)) warnings.push(`${id} has several trajectories; ${file} is left out`);
  }
  if (isFolder)
    for (const [id, prediction] of predictions)
      if (!instances.has(id)) instances.set(id, unread(id, 'there is none', prediction, null));
  const run: ForeignRun = {
    folder: source,
    instances: [...instances.values()],
    verdicts: new Map(),
    warnings,
    problems,
  };
  const graded = withReportNear(run, isFolder ? folder : dirname(folder), { report });
  return isFolder ? graded : ofThese(graded, run);
}

/** One trajectory of a run is not the whole of what its report says. */
const ofThese = (graded: ForeignRun, { instances, warnings }: ForeignRun): ForeignRun => ({
  ...graded,
  verdicts: new Map(
    instances.flatMap(({ instanceId: id }) => {
      const verdict = graded.verdicts.get(id);
      return verdict ? [[id, verdict] as const] : [];
    }),
  ),
  neverRun: [],
  warnings,
});

/** The instance was run, so it is part of the run; nothing else is known but its prediction. */
const unread = (
  instanceId: string,
  why: string,
  prediction: Prediction | undefined,
  file: string | null,
): ForeignInstance =>
  foreignInstance({
    instanceId,
    model: prediction?.model_name_or_path ?? UNKNOWN_MODEL,
    format: 'swe-agent',
    exitReason: prediction?.model_patch ? 'submitted' : 'cancelled',
    errorMessage: `its trajectory cannot be read: ${why}`,
    modelPatch: prediction?.model_patch ?? '',
    file,
  });
