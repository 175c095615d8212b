/** Maps the end of an attempt to the closed vocabulary: exit reason, detail, message. Pure. */
import type { AgentResult } from '../agent/contract.ts';
import { EnvironmentError, type EnvironmentErrorCode, OPEN_NETWORK } from '../environment/environment.ts';
import type { ModelFailureKind } from '../model/model.ts';
import type { ExitReason } from '../outcome.ts';

export interface Ending {
  readonly reason: ExitReason;
  readonly detail: string | null;
  /** For people; null where the reason says enough. */
  readonly message: string | null;
  readonly evidence: Readonly<Record<string, unknown>> | null;
  /** mini-swe-agent's word for trajectories and exit_statuses.yaml. */
  readonly exitStatus: string;
  /** What the agent ran ended its environment; false wherever that is not proven. */
  readonly byAgent?: boolean;
  /** The request was rejected, and no call of the model had succeeded yet. */
  readonly beforeAnyAnswer?: boolean;
  /** Nobody listens at the address of the model: no fault of this trial. */
  readonly unreachable?: boolean;
  /** For a replay: another attempt followed in the recording. */
  readonly recordedAgain?: boolean;
}

const LIMITS: Record<string, ExitReason> = {
  steps: 'limit_steps',
  cost: 'limit_cost',
  tokens: 'limit_tokens',
  wall_time: 'limit_wall_time',
  format_errors: 'format_errors_exceeded',
  empty_responses: 'empty_responses_exceeded',
  command_timeouts: 'command_timeouts_exceeded',
};

const FAILURES: Record<ModelFailureKind, ExitReason> = {
  unavailable: 'model_unavailable',
  rejected: 'model_rejected',
  refusal: 'model_refusal',
  quota: 'quota_exhausted',
  auth: 'auth_failed',
  not_found: 'model_not_found',
  context: 'context_window_exceeded',
  empty: 'empty_responses_exceeded',
  config: 'config_invalid',
};

/** For custom models that give a code and no kind. */
const CODES: Record<string, ExitReason> = {
  AUTHENTICATION_ERROR: 'auth_failed',
  MODEL_NOT_FOUND: 'model_not_found',
  CONTEXT_LENGTH_EXCEEDED: 'context_window_exceeded',
  PROVIDER_NOT_CONFIGURED: 'config_invalid',
  PROVIDER_NOT_SUPPORTED: 'config_invalid',
  RATE_LIMITED: 'model_unavailable',
  NETWORK_ERROR: 'model_unavailable',
  TIMEOUT: 'model_unavailable',
  INVALID_RESPONSE: 'model_unavailable',
};

const ENVIRONMENT: Record<EnvironmentErrorCode, ExitReason> = {
  image_missing: 'env_image_missing',
  image_pull_failed: 'env_image_pull_failed',
  start_failed: 'env_start_failed',
  setup_failed: 'env_start_failed',
  died: 'env_died',
  daemon_lost: 'env_died',
  history_unsealed: 'history_unsealed',
  disk_full: 'disk_full',
};

export function endingOfResult(result: AgentResult): Ending {
  const told = result.evidence ?? null;
  const base = { detail: null, message: null, evidence: told, exitStatus: result.exitStatus };
  if (result.exitStatus === 'Submitted') return { ...base, reason: 'submitted' };
  if (result.error) {
    const { code, message, metadata } = result.error;
    if (metadata?.recordedEnd) {
      const { again: recordedAgain, ...end } = metadata.recordedEnd;
      return { ...base, ...end, message, recordedAgain };
    }
    const reason = (metadata?.kind && FAILURES[metadata.kind]) ?? CODES[code] ?? 'model_unavailable';
    const evidence = {
      ...told,
      code,
      ...(metadata?.statusCode === undefined ? {} : { status: metadata.statusCode }),
    };
    const first = reason === 'model_rejected' && metadata?.beforeAnyAnswer === true;
    return {
      ...{ ...base, reason, detail: code, message, evidence },
      ...(first && { beforeAnyAnswer: true }),
      ...(metadata?.unreachable && { unreachable: true }),
    };
  }
  const limit = result.limit && LIMITS[result.limit];
  if (limit) return { ...base, reason: limit, detail: result.limit ?? null };
  return {
    ...base,
    reason: 'internal_error',
    message: `the agent ended with "${result.exitStatus}", which is not a known exit reason`,
  };
}

/** Why our own AbortSignal fired. */
export class StopReason extends Error {
  override readonly name = 'StopReason';
  readonly reason: ExitReason;
  readonly detail: string | null;
  constructor(reason: ExitReason, message: string, detail: string | null = null) {
    super(message);
    this.reason = reason;
    this.detail = detail;
  }
}

/** Detail of `disk_full` when the run stopped the attempt because this machine's disk was low; the trial is not the cause. */
export const HOST_FLOOR = 'host_floor';

/** The exit detail of an attempt that the probe ended. */
export const WRONG_ENVIRONMENT = 'wrong_env';
/** Why it did, where the configuration is the proven cause: every instance would end like this. */
export const LOGIN_SHELL = 'login_shell';
const OF_CONFIGURATION: ReadonlySet<string> = new Set([LOGIN_SHELL, OPEN_NETWORK]);

/** Detail of an attempt that the container engine took with it when it went away. */
export const ENGINE_LOST = 'daemon_lost';

/** `agentBegan`: what ran in the environment was the agent's. */
export function endingOfError(error: unknown, signal: AbortSignal, agentBegan = false): Ending {
  const stop = error instanceof StopReason ? error : stopReasonOf(error, signal);
  if (stop)
    return {
      reason: stop.reason,
      detail: stop.detail,
      message: stop.message,
      evidence: null,
      exitStatus: statusWord(stop.reason),
    };
  if (error instanceof EnvironmentError)
    return {
      reason: OF_CONFIGURATION.has(error.sub ?? '') ? 'config_invalid' : ENVIRONMENT[error.code],
      detail: error.sub ?? (error.code === ENGINE_LOST ? ENGINE_LOST : null),
      message: error.message,
      evidence: error.evidence,
      exitStatus: 'EnvironmentError',
      byAgent: agentBegan && error.fromWithin,
    };
  const known = error instanceof Error ? error : new Error(String(error));
  return {
    reason: 'internal_error',
    detail: known.name,
    message: `swebatch failed on this instance: ${known.message}. Please report it with the log.`,
    evidence: { stack: known.stack ?? null },
    exitStatus: known.name,
  };
}

/**
 * Once may be an accident, and a fresh container is worth a try. Who does it again, in a fresh container, has failed: otherwise an agent
 * could take an instance out of the count by ending its container.
 */
export function withEarlierEnds(ending: Ending, endedByAgentBefore: number): Ending {
  if (!ending.byAgent || endedByAgentBefore === 0) return ending;
  return {
    ...ending,
    reason: 'env_ended_by_agent',
    detail: ending.detail ?? ending.reason,
    message: `the agent ended its environment, as in an attempt before: ${ending.message}`,
  };
}

/** An abort counts as ours only when our signal fired. */
function stopReasonOf(error: unknown, signal: AbortSignal): StopReason | null {
  if (!signal.aborted) return null;
  if (signal.reason instanceof StopReason) return signal.reason;
  const name = (error as { name?: string })?.name;
  return name === 'AbortError' ? new StopReason('cancelled', 'the attempt was cancelled') : null;
}

/** "limit_steps" -> "LimitSteps": a class-like word where mini-swe-agent would show an exception's name. */
const statusWord = (reason: ExitReason): string =>
  reason
    .split('_')
    .map((w) => w[0]!.toUpperCase() + w.slice(1))
    .join('');
