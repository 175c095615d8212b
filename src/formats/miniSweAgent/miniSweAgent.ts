/**
 * Reads mini-swe-agent's output folder: trajectories and predictions. Unknown values stay null; no verdict is guessed. A file that is
 * cut off, because its process died, is skipped with a warning.
 */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ownEntry } from '../../base/isRecord.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { gunzipped, readForeignFile } from '../foreignFile.ts';
import {
  counted,
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  foreignIdProblem,
  foreignInstance,
  reasonOfException,
  spanOf,
  UNKNOWN_MODEL,
} from '../foreignFormat.ts';
import { runFromInstanceReports } from '../harness/reports.ts';
import { NO_MODEL, type Prediction, readPredictions } from '../predictions.ts';
import { withReport } from '../verdicts.ts';
import {
  type MiniTrajectory,
  readTrajectory,
  recordedCalls,
  type TrajectoryMessage,
  timestampOf,
} from './trajectory.ts';

const TRAJECTORY = /\.traj\.json(?:\.gz)?$/;

export const miniSweAgent: ForeignFormat = {
  recognise: ({ files }) =>
    files?.some((file) => TRAJECTORY.test(file))
      ? { words: 'a folder of mini-swe-agent', certain: 'likely' }
      : null,
  read: (source, report) => readMiniFolder(source, report),
};

/** A folder with the harness's reports of its predictions; without trajectories and predictions, the reports alone. */
export function readMiniFolder(folder: string, report: string | undefined): ForeignRun {
  const mini = readMiniRun(folder);
  if (mini.instances.length === 0 && mini.problems.length === 0)
    return withReport(runFromInstanceReports(folder), report);
  const ids = new Set(mini.instances.map(({ instanceId }) => instanceId));
  return withReport({ ...mini, verdicts: runFromInstanceReports(folder, ids).verdicts }, report);
}

type Notes = { readonly warnings: string[]; readonly problems: string[] };
type Predictions = ReadonlyMap<string, Prediction>;

export function readMiniRun(folder: string): ForeignRun {
  const notes: Notes = { warnings: [], problems: [] };
  const predictions = predictionsIn(folder, notes);
  const instances = instancesWithFiles(folder, predictions, notes);
  const changed = [...instances.values()].filter(
    ({ submission, modelPatch }) => submission !== null && submission !== modelPatch,
  );
  const named = counted(
    changed.map((i) => i.instanceId),
    3,
  );
  if (changed.length > 0)
    notes.warnings.push(
      `the predictions of ${changed.length} instances (${named}) differ from what their trajectories submitted; the predictions are used`,
    );
  for (const [id, prediction] of predictions)
    if (!instances.has(id)) instances.set(id, instanceOf(id, null, prediction, null));
  if (instances.size === 0 && notes.problems.length === 0)
    notes.warnings.push(`${folder} holds neither trajectories nor predictions`);
  return {
    folder,
    instances: [...instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
    verdicts: new Map(),
    ...notes,
  };
}

/** A leaderboard entry has one of the two files. Broken lines are replaced by the trajectories; a bad row with an instance id is a problem. */
function predictionsIn(folder: string, { warnings, problems }: Notes): Predictions {
  const file = ['preds.json', 'all_preds.jsonl'].map((name) => join(folder, name)).find((f) => existsSync(f));
  const read = file === undefined ? undefined : readPredictions(readForeignFile(file), file);
  if (read === undefined) return new Map();
  for (const { about, line, message } of read.problems)
    if (about === 'file')
      warnings.push(
        `${file} cannot be read (${message}): the submissions of the trajectories are used instead`,
      );
    else if (about === 'line') warnings.push(`${file}:${line} cannot be read: ${message}`);
    else if (about === 'id')
      warnings.push(`${file}:${line}: a prediction cannot be used: instance_id is missing`);
    else problems.push(`${file}: ${message}`);
  warnings.push(...read.warnings.map((warning) => `${file}: ${warning}`));
  return new Map(read.predictions.map((p) => [p.instance_id, p]));
}

function instancesWithFiles(
  folder: string,
  predictions: Predictions,
  { warnings, problems }: Notes,
): Map<string, ForeignInstance> {
  const instances = new Map<string, ForeignInstance>();
  const add = (id: string, file: string, instance: () => ForeignInstance): void => {
    const noId = foreignIdProblem(file, id);
    if (noId !== null) problems.push(noId);
    else if (instances.has(id)) warnings.push(`${id} has several trajectories; ${file} is left out`);
    else instances.set(id, instance());
  };
  const files = trajectoryFiles(folder).map((file) => ({
    file,
    name: basename(file).replace(TRAJECTORY, ''),
    read: trajectoryIn(file),
  }));
  for (const { file, name, read } of files) {
    if (typeof read === 'string') continue;
    const id = read.instanceId ?? name;
    add(id, file, () => instanceOf(id, read, predictions.get(id), file));
  }
  // Unreadable trajectories were run, so they are part of the run, but their outcome is unknown.
  for (const { file, name, read } of files) {
    if (typeof read !== 'string') continue;
    warnings.push(`${file} ${read}`);
    add(name, file, () => unreadable(name, read, predictions.get(name), file));
  }
  return instances;
}

/** <id>/<id>.traj.json, at any depth; our own earlier attempts are not results. */
function trajectoryFiles(folder: string): string[] {
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((f) => TRAJECTORY.test(f) && !/\.attempt-\d+\.traj\.json(?:\.gz)?$/.test(f))
    .map((f) => join(folder, f))
    .sort();
}

/** The trajectory, or what is wrong with the file. */
function trajectoryIn(path: string): MiniTrajectory | string {
  let bytes: Uint8Array;
  try {
    // Reading a pipe would wait, and reading a device would never end.
    if (!statSync(path).isFile()) return 'cannot be read: it is not a file';
    bytes = gunzipped(path, readFileSync(path));
  } catch (error) {
    return `cannot be read: ${(error as Error).message}`;
  }
  const read = readTrajectory(bytes);
  if (read.ok) return read.value;
  return `${read.fault === 'not_json' ? 'cannot be read' : 'is not a trajectory'}: ${read.message}`;
}

/** Items of the Responses API have no role: an output answers a call, and a response is the model's. */
const roleOf = ({ type }: TrajectoryMessage): string =>
  type === 'function_call_output' ? 'tool' : 'assistant';

/** Nothing is guessed about a file that cannot be read, not even that its empty prediction was intended. */
function unreadable(
  id: string,
  why: string,
  prediction: Prediction | undefined,
  file: string,
): ForeignInstance {
  const alone = instanceOf(id, null, prediction, file);
  const exitReason = alone.exitReason === 'submitted' ? 'submitted' : 'cancelled';
  return { ...alone, exitReason, errorMessage: `the trajectory ${why}` };
}

/** A patch with git's headers, or of diff alone. */
const isPatch = (text: string | null): boolean =>
  text !== null && /^(?:diff --git |Index: |--- \S.*\n\+\+\+ \S)/m.test(text);

/** The prediction was graded, so it wins. Version 1 wrote the exception's text as the patch of a failed instance. */
function patchOf(
  submitted: boolean,
  prediction: Prediction | undefined,
  trajectory: MiniTrajectory | null,
): string {
  const predicted = prediction ? (prediction.model_patch ?? '') : null;
  if (!submitted && !isPatch(predicted)) return '';
  return predicted ?? trajectory?.submission ?? '';
}

function instanceOf(
  instanceId: string,
  trajectory: MiniTrajectory | null,
  prediction: Prediction | undefined,
  file: string | null,
): ForeignInstance {
  const { config = {}, messages = [], costDollars = null, exitStatus = null } = trajectory ?? {};
  const calls = recordedCalls(messages);
  const steps = trajectory?.apiCalls ?? calls.length;
  const costNano = plausibleNano(costDollars);
  const refusedCost = costDollars !== null && costNano === null;
  const submitted = exitStatus === 'Submitted';
  const predicted = prediction?.model_name_or_path;
  const exitReason =
    trajectory !== null
      ? reasonOf(exitStatus, config, steps)
      : isPatch(prediction?.model_patch ?? null)
        ? 'submitted'
        : 'env_start_failed';
  return foreignInstance({
    instanceId,
    model: (predicted === NO_MODEL ? undefined : predicted) ?? modelOf(config) ?? UNKNOWN_MODEL,
    format: trajectory?.format ?? 'none',
    version: trajectory?.version ?? null,
    exitStatus,
    exitReason,
    errorMessage: trajectory?.exception ?? null,
    submission: submitted ? (trajectory?.submission ?? '') : null,
    modelPatch: patchOf(submitted, prediction, trajectory),
    steps,
    costNano,
    config,
    messages: messages.map((message) => ({ role: roleOf(message), ...message })),
    calls,
    ...spanOf(messages.flatMap((message) => timestampOf(message) ?? [])),
    file,
    ...(refusedCost && { notes: [`cost ${costDollars} cannot be: unknown`] }),
  });
}

const modelOf = (config: Readonly<Record<string, unknown>>): string | null => {
  const name = (config.model as { model_name?: unknown } | null | undefined)?.model_name;
  return typeof name === 'string' ? name : null;
};

const REASONS: Readonly<Record<string, ExitReason>> = {
  Submitted: 'submitted',
  TimeExceeded: 'limit_wall_time',
  RepeatedFormatError: 'format_errors_exceeded',
  CalledProcessError: 'env_start_failed',
  TimeoutExpired: 'env_image_pull_failed',
  UndefinedError: 'config_invalid',
};

export function reasonOf(
  status: string | null,
  config: Readonly<Record<string, unknown>>,
  steps: number,
): ExitReason {
  // Version 2 writes '' while the agent works, so this one never recorded its end.
  if (status === null || status === '') return 'cancelled';
  if (status === 'LimitsExceeded') {
    const limit = (config.agent as { step_limit?: unknown } | undefined)?.step_limit;
    return typeof limit === 'number' && limit > 0 && steps >= limit ? 'limit_steps' : 'limit_cost';
  }
  // OpenRouterRateLimitError, RequestyAPIError: the gateways' own exceptions carry their name in front.
  const name = status.replace(/^(?:Uncaught )?(?:OpenRouter|Requesty|Portkey)?/, '');
  return ownEntry(REASONS, name) ?? reasonOfException(name) ?? 'internal_error';
}
