/**
 * Reads mini-swe-agent's output folder (trajectory formats 1 and 1.1) into plain data: what a run of ours would have recorded, as far
 * as the files say it. Nothing is guessed into a verdict: unknown stays null.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { dollarsToNano } from '../../money.ts';
import { type ExitClass, type ExitReason, exitClassOf } from '../../outcome.ts';
import { issueOf, type Prediction, readPredictions } from './importPredictions.ts';

const message = z.looseObject({
  role: z.string().default('assistant'),
  content: z.unknown().optional(),
  timestamp: z.number().optional(),
  extra: z.record(z.string(), z.unknown()).optional(),
});

const trajectorySchema = z.looseObject({
  info: z
    .looseObject({
      model_stats: z
        .looseObject({ instance_cost: z.number().nullable().optional(), api_calls: z.number().optional() })
        .optional(),
      config: z.record(z.string(), z.unknown()).default({}),
      mini_version: z.string().optional(),
      exit_status: z.string().nullable().optional(),
      submission: z.string().nullable().optional(),
      exception_str: z.string().nullable().optional(),
    })
    .default({ config: {} }),
  messages: z.array(message).default([]),
  trajectory_format: z.string().default('mini-swe-agent-1'),
  instance_id: z.string().optional(),
});

/** Where neither prediction nor trajectory names one. */
export const UNKNOWN_MODEL = 'unknown';

export interface ImportedCall {
  readonly step: number;
  readonly model: string | null;
  readonly responseId: string | null;
  readonly finishReason: string | null;
  /** As the provider sent it. */
  readonly rawUsage: unknown;
  readonly inputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly outputTokens: number | null;
  readonly reasoningTokens: number | null;
  /** The reply's own cost, null where it states none. */
  readonly costNano: number | null;
  /** Seconds since 1970; null in format 1 before 1.16. */
  readonly at: number | null;
}

export interface ImportedInstance {
  readonly instanceId: string;
  readonly model: string;
  readonly format: string;
  readonly version: string | null;
  readonly exitStatus: string | null;
  readonly exitReason: ExitReason;
  readonly exitClass: ExitClass;
  readonly errorMessage: string | null;
  readonly submission: string | null;
  /** Null where it is not known: a report alone holds verdicts and no patch. */
  readonly modelPatch: string | null;
  readonly steps: number;
  readonly costNano: number | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly calls: readonly ImportedCall[];
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Null when only a prediction was there: without a patch the environment never started, for then mini-swe-agent writes no trajectory. */
  readonly file: string | null;
}

export interface ImportedRun {
  readonly folder: string;
  readonly instances: readonly ImportedInstance[];
  readonly warnings: readonly string[];
}

type Trajectory = z.infer<typeof trajectorySchema>;

export function readMiniRun(folder: string): ImportedRun {
  const warnings: string[] = [];
  const predictions = readPredictions(folder, warnings);
  const instances = new Map<string, ImportedInstance>();
  const add = (id: string, file: string, instance: () => ImportedInstance): void => {
    if (instances.has(id)) warnings.push(`${id} has several trajectories; ${file} is left out`);
    else instances.set(id, instance());
  };
  const files = trajectoryFiles(folder).map((file) => ({
    file,
    name: nameOf(file),
    read: readTrajectory(file),
  }));
  for (const { file, name, read } of files) {
    if (typeof read === 'string') continue;
    const id = read.instance_id ?? name;
    add(id, file, () => instanceOf(id, read, predictions.get(id), file));
  }
  // Somebody ran these: they are part of the run, and what came of them is not known.
  for (const { file, name, read } of files) {
    if (typeof read !== 'string') continue;
    warnings.push(`${file} ${read}`);
    add(name, file, () => unreadable(name, read, predictions.get(name), file));
  }
  const changed = [...instances.values()].filter(
    ({ submission, modelPatch }) => submission !== null && submission !== modelPatch,
  );
  if (changed.length > 0)
    warnings.push(
      `the predictions of ${changed.length} instances (${named(changed)}) are not what their trajectories submitted; the predictions are taken`,
    );
  for (const [id, prediction] of predictions)
    if (!instances.has(id)) instances.set(id, instanceOf(id, null, prediction, null));
  if (instances.size === 0) warnings.push(`${folder} holds neither trajectories nor predictions`);
  return {
    folder,
    instances: [...instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
    warnings,
  };
}

const nameOf = (file: string): string => basename(file).replace(/\.traj\.json$/, '');

const named = (instances: readonly ImportedInstance[]): string =>
  instances
    .slice(0, 3)
    .map((i) => i.instanceId)
    .join(', ') + (instances.length > 3 ? ', …' : '');

/** The trajectory, or what is wrong with the file. */
function readTrajectory(path: string): Trajectory | string {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return `cannot be read: ${(error as Error).message}`;
  }
  const parsed = trajectorySchema.safeParse(json);
  return parsed.success ? parsed.data : `is no trajectory: ${issueOf(parsed.error)}`;
}

/** <id>/<id>.traj.json, at any depth; our own earlier attempts are not results. */
function trajectoryFiles(folder: string): string[] {
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.traj.json') && !/\.attempt-\d+\.traj\.json$/.test(f))
    .map((f) => join(folder, f))
    .sort();
}

/** Nothing of the file is known, and nothing is guessed: not even that its empty prediction was meant. */
function unreadable(
  id: string,
  why: string,
  prediction: Prediction | undefined,
  file: string,
): ImportedInstance {
  const alone = instanceOf(id, null, prediction, file);
  if (alone.exitReason === 'submitted') return { ...alone, errorMessage: `the trajectory ${why}` };
  return { ...alone, exitReason: 'cancelled', exitClass: 'cancelled', errorMessage: `the trajectory ${why}` };
}

const isPatch = (text: string | null | undefined): boolean => /^diff --git /m.test(text ?? '');

function instanceOf(
  instanceId: string,
  trajectory: Trajectory | null,
  prediction: Prediction | undefined,
  file: string | null,
): ImportedInstance {
  const info = trajectory?.info;
  const config = info?.config ?? {};
  const calls = callsOf(trajectory);
  const steps = info?.model_stats?.api_calls ?? calls.length;
  const status = info?.exit_status ?? null;
  const cost = info?.model_stats?.instance_cost;
  const stamps = (trajectory?.messages ?? []).flatMap((m) => timestampOf(m) ?? []);
  const patchAlone = trajectory === null && isPatch(prediction?.model_patch);
  const exitReason =
    trajectory !== null ? reasonOf(status, config, steps) : patchAlone ? 'submitted' : 'env_start_failed';
  const submission = info?.submission ?? null;
  return {
    instanceId,
    model: prediction?.model_name_or_path ?? modelOf(config) ?? UNKNOWN_MODEL,
    format: trajectory?.trajectory_format ?? 'none',
    version: info?.mini_version ?? null,
    exitStatus: status,
    exitReason,
    exitClass: exitClassOf(exitReason),
    errorMessage: info?.exception_str ?? null,
    submission: status === 'Submitted' ? (submission ?? '') : null,
    // What the prediction carried is what was graded; version 1 wrote the exception's text as the patch of a failed instance.
    modelPatch:
      status === 'Submitted' || isPatch(prediction?.model_patch)
        ? (prediction?.model_patch ?? submission ?? '')
        : '',
    steps,
    costNano: cost === undefined || cost === null ? null : dollarsToNano(cost),
    config,
    messages: trajectory?.messages ?? [],
    calls,
    startedAt: stamps.length ? Math.min(...stamps) : null,
    endedAt: stamps.length ? Math.max(...stamps) : null,
    file,
  };
}

const modelOf = (config: Readonly<Record<string, unknown>>): string | null => {
  const name = (config.model as { model_name?: unknown } | undefined)?.model_name;
  return typeof name === 'string' ? name : null;
};

const timestampOf = (m: z.infer<typeof message>): number | null => {
  const value = m.timestamp ?? m.extra?.timestamp;
  return typeof value === 'number' ? value : null;
};

const usageSchema = z.looseObject({
  prompt_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  cost: z.number().nullable().optional(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.number().nullable().optional() }).nullish(),
  completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullable().optional() }).nullish(),
});

const responseSchema = z.looseObject({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: z.array(z.looseObject({ finish_reason: z.string().nullish() })).default([]),
  usage: z.unknown().optional(),
});

/** One call for each reply that was kept, also those inside format errors (version 2). */
function callsOf(trajectory: Trajectory | null): ImportedCall[] {
  const replies = (trajectory?.messages ?? []).filter((m) => m.extra?.response !== undefined);
  return replies.map((m, i): ImportedCall => {
    const response = responseSchema.safeParse(m.extra!.response);
    const raw = response.success ? response.data.usage : undefined;
    const usage = usageSchema.safeParse(raw ?? undefined);
    const u = usage.success ? usage.data : null;
    const cached = u?.prompt_tokens_details?.cached_tokens ?? 0;
    const own = u?.cost ?? (typeof m.extra!.cost === 'number' ? m.extra!.cost : null);
    return {
      step: i + 1,
      model: (response.success && response.data.model) || null,
      responseId: (response.success && response.data.id) || null,
      finishReason: (response.success && response.data.choices[0]?.finish_reason) || null,
      rawUsage: raw ?? null,
      inputTokens: u?.prompt_tokens === undefined ? null : Math.max(0, u.prompt_tokens - cached),
      cacheReadTokens: u === null ? null : cached,
      outputTokens: u?.completion_tokens ?? null,
      reasoningTokens: u?.completion_tokens_details?.reasoning_tokens ?? null,
      costNano: own === null ? null : dollarsToNano(own),
      at: timestampOf(m),
    };
  });
}

/** Exception names of litellm, its providers and Python, by what they say about the end (reference agent.md 1.6). */
const REASONS: Readonly<Record<string, ExitReason>> = {
  Submitted: 'submitted',
  TimeExceeded: 'limit_wall_time',
  RepeatedFormatError: 'format_errors_exceeded',
  ContextWindowExceededError: 'context_window_exceeded',
  ContentPolicyViolationError: 'model_refusal',
  RateLimitError: 'model_unavailable',
  RetryError: 'model_unavailable',
  APIError: 'model_unavailable',
  APIConnectionError: 'model_unavailable',
  InternalServerError: 'model_unavailable',
  ServiceUnavailableError: 'model_unavailable',
  Timeout: 'model_unavailable',
  BadRequestError: 'model_rejected',
  UnsupportedParamsError: 'model_rejected',
  AuthenticationError: 'auth_failed',
  PermissionDeniedError: 'auth_failed',
  NotFoundError: 'model_not_found',
  CalledProcessError: 'env_start_failed',
  TimeoutExpired: 'env_image_pull_failed',
  UndefinedError: 'config_invalid',
  KeyboardInterrupt: 'cancelled',
};

export function reasonOf(
  status: string | null,
  config: Readonly<Record<string, unknown>>,
  steps: number,
): ExitReason {
  // Version 2 writes '' while the agent is at work: it never said how it ended.
  if (status === null || status === '') return 'cancelled';
  if (status === 'LimitsExceeded') {
    const limit = (config.agent as { step_limit?: unknown } | undefined)?.step_limit;
    return typeof limit === 'number' && limit > 0 && steps >= limit ? 'limit_steps' : 'limit_cost';
  }
  // OpenRouterRateLimitError, RequestyAPIError: the gateways' own exceptions carry their name in front.
  return REASONS[status.replace(/^(?:Uncaught )?(?:OpenRouter|Requesty|Portkey)?/, '')] ?? 'internal_error';
}

/** Name for the run: the folder's. */
export const importedName = (folder: string): string => basename(folder) || basename(dirname(folder));
