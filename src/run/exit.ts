/**
 * The meaning of the end of an attempt: its exit reason, detail and message, of a closed vocabulary; the patch that
 * its prediction carries; and whether its trial runs again. Pure.
 */

import { isUtf8 } from 'node:buffer';
import type { AgentResult } from '../agent/contract.ts';
import { sha256 } from '../base/sha256.ts';
import { stackOf } from '../base/text/sourceLines.ts';
import {
  type CapturedPatch,
  EnvironmentError,
  type EnvironmentErrorCode,
  LOGIN_SHELL,
  OPEN_NETWORK,
  REFUSED_OPTION,
  WRONG_ENVIRONMENT,
} from '../environment/environment.ts';
import { PULL_FAILURES } from '../environment/places/pullFailure.ts';
import type { ModelFailureKind } from '../model/model.ts';
import { EXIT_REASONS, type ExitReason, exitClassOf, type PatchSource, type PatchState } from '../outcome.ts';
import type { Settlement } from '../store/records/trials.ts';
import { blamed } from '../userModule.ts';
import { StopReason } from './control/stop.ts';

export interface Ending {
  readonly reason: ExitReason;
  readonly detail: string | null;
  /** The message for people; null where the reason says enough. */
  readonly message: string | null;
  readonly evidence: Readonly<Record<string, unknown>> | null;
  /** mini-swe-agent's word for trajectories and exit_statuses.yaml. */
  readonly exitStatus: string;
  /** A command of the agent ended its environment; false wherever that is not proven. */
  readonly byAgent?: boolean;
  /** The request was rejected, and no call of the model had succeeded yet. */
  readonly beforeAnyAnswer?: boolean;
  /** The address of the model has no listener: no fault of this trial. */
  readonly unreachable?: boolean;
  /** A module of the user's threw, or returned what nobody can use. */
  readonly ofModule?: boolean;
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
  bad_call: 'format_errors_exceeded',
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
  image_build_failed: 'env_image_build_failed',
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
      ...base,
      reason,
      detail: code,
      message,
      evidence,
      ...(first && { beforeAnyAnswer: true }),
      ...(metadata?.unreachable && { unreachable: true }),
    };
  }
  const limit = result.limit && LIMITS[result.limit];
  if (limit) return { ...base, reason: limit, detail: result.limit ?? null };
  return {
    ...base,
    // Agents of ours end in no other way.
    reason: 'config_invalid',
    ofModule: true,
    message: `the agent ended with "${result.exitStatus}": it may end with "Submitted", with a limit (${Object.keys(LIMITS).join(', ')}) or with an error`,
  };
}

/** Detail of `disk_full` when the run stopped the attempt because this machine's disk was low; the trial is not the cause. */
export const HOST_FLOOR = 'host_floor';

const OF_CONFIGURATION: ReadonlySet<string> = new Set([LOGIN_SHELL, OPEN_NETWORK, REFUSED_OPTION]);

/** Detail of an attempt that the container engine took with it when it went away. */
export const ENGINE_LOST = 'daemon_lost';

/** `agentBegan`: the environment ran the agent. */
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
  const module = blamed(error);
  if (module) {
    const cause = module.cause instanceof Error ? module.cause : module;
    return {
      reason: 'config_invalid',
      detail: 'module',
      message: module.message,
      evidence: { stack: stackOf(cause) ?? null },
      exitStatus: cause.name,
      ofModule: true,
    };
  }
  return {
    reason: 'internal_error',
    detail: known.name,
    message: `swebatch failed on this instance: ${known.message}. Please report it with the log.`,
    evidence: { stack: stackOf(known) ?? null },
    exitStatus: known.name,
  };
}

/** An abort counts as ours only when our signal fired. */
function stopReasonOf(error: unknown, signal: AbortSignal): StopReason | null {
  if (!signal.aborted) return null;
  if (signal.reason instanceof StopReason) return signal.reason;
  const name = (error as { name?: string })?.name;
  return name === 'AbortError' ? new StopReason('cancelled', 'the attempt was cancelled') : null;
}

/**
 * An agent that ends its container once gets a fresh one: it may be an accident. The second time is the agent's failure
 * (ownEnd.test.ts), else the agent could take an instance out of the count.
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

/** "limit_steps" -> "LimitSteps": a class-like word where mini-swe-agent would show an exception's name. */
const statusWord = (reason: ExitReason): string =>
  reason
    .split('_')
    .map((w) => w[0]!.toUpperCase() + w.slice(1))
    .join('');

export interface RetryPolicy {
  /** Attempts of a trial for reasons that may be retried, the first included. */
  readonly attempts: number;
  /** Attempts for one reason, where it differs. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Attempts made of each trial in this invocation, by reason. */
  readonly made: Map<number, Map<ExitReason, number>>;
  /** The number of times that the engine or the model's server went away under each trial in this invocation. */
  readonly outages: Map<number, number>;
}

/** Outages under one trial that use up no attempt. */
export const FREE_OUTAGES = 5;

export function settlementOf(
  policy: RetryPolicy,
  trialId: number,
  ending: Pick<Ending, 'reason' | 'detail' | 'recordedAgain' | 'byAgent' | 'beforeAnyAnswer' | 'unreachable'>,
): Settlement {
  const { reason, detail, recordedAgain, byAgent } = ending;
  // A replay follows the recorded decision.
  if (recordedAgain) return 'again';
  // A low disk uses up no attempt.
  if (detail === HOST_FLOOR) return 'again';
  // Sealed as infra it would be out of the count: the next such end is the agent's result.
  if (byAgent && exitClassOf(reason) === 'infra') return 'again';
  // The engine or the model's server was away. An outage that repeats may be this trial's doing.
  if (detail === ENGINE_LOST || ending.unreachable) {
    const lost = (policy.outages.get(trialId) ?? 0) + 1;
    policy.outages.set(trialId, lost);
    if (lost <= FREE_OUTAGES) return 'again';
  }
  const made = policy.made.get(trialId) ?? new Map<ExitReason, number>();
  policy.made.set(trialId, made);
  made.set(reason, (made.get(reason) ?? 0) + 1);
  const total = [...made.values()].reduce((a, b) => a + b, 0);
  const exitClass = exitClassOf(reason);
  if (exitClass === 'config' || exitClass === 'not_run') return 'not_run';
  if (exitClass === 'cancelled') return 'again';
  const forReason = policy.reasons[reason];
  // The next instance tells whether every request is rejected, or this one alone (breaker.ts).
  if (ending.beforeAnyAnswer && forReason === undefined) return made.get(reason)! < 2 ? 'again' : 'seal';
  if (!EXIT_REASONS[reason].retry && forReason === undefined) return 'seal';
  // A registry that denies access, or lacks the platform, answers the same the next time.
  if (forReason === undefined && reason === 'env_image_pull_failed' && !pullMayHelp(detail)) return 'seal';
  // The next container is from the same image.
  if (forReason === undefined && detail === WRONG_ENVIRONMENT) return 'seal';
  const allowed = total < policy.attempts && made.get(reason)! < (forReason ?? policy.attempts);
  return allowed ? 'again' : 'seal';
}

export const pullMayHelp = (kind: string | null): boolean =>
  kind === null || (PULL_FAILURES as Record<string, { again: boolean }>)[kind]?.again !== false;

type PatchPolicy = 'submitted' | 'captured' | 'submitted-else-captured';

export interface PatchFacts {
  readonly modelPatch: string;
  readonly sha256: string;
  readonly source: PatchSource;
  readonly state: PatchState;
  /** Sentences for people. */
  readonly notes: readonly string[];
}

/** The end of the agent's part of an attempt. `result`: null when the agent did not end by itself. */
export interface AgentEnd {
  readonly ending: Ending;
  readonly result: AgentResult | null;
}

/** The submission, and the patch of the prediction. An agent that leaves its patch submits only what it hands over as bytes. */
export function patchOfAttempt(
  policy: PatchPolicy,
  { leavesPatch }: { readonly leavesPatch: boolean },
  { ending, result }: AgentEnd,
  captured: CapturedPatch | null,
): { readonly submitted: Uint8Array | null; readonly patch: PatchFacts } {
  const submits = ending.reason === 'submitted' && (!leavesPatch || result?.submissionBytes !== undefined);
  const submitted = submits ? (result?.submissionBytes ?? Buffer.from(result?.submission ?? '')) : null;
  const chosen = leavesPatch ? (submits ? 'submitted' : 'captured') : policy;
  return { submitted, patch: choosePatch(chosen, submitted, captured) };
}

/** `submitted` is null when nothing was submitted; a submission of nothing is an empty array. */
export function choosePatch(
  policy: PatchPolicy,
  submitted: Uint8Array | null,
  captured: CapturedPatch | null,
): PatchFacts {
  const hasSubmitted = submitted !== null && submitted.length > 0;
  const hasCaptured = captured !== null && captured.patch.length > 0;
  const wanted =
    policy === 'submitted'
      ? submitted
      : policy === 'captured'
        ? (captured?.patch ?? null)
        : hasSubmitted
          ? submitted
          : (captured?.patch ?? null);
  const modelPatch = wanted === null ? '' : Buffer.from(wanted).toString('utf8');
  const source: PatchSource = hasSubmitted ? 'submitted' : hasCaptured ? 'captured_at_exit' : 'none';
  // JSON cannot hold such bytes, so the prediction differs from the patch. The record keeps the bytes.
  const changed = wanted !== null && !isUtf8(wanted);
  const state = stateOf(source, submitted, captured);
  return {
    modelPatch,
    sha256: sha256(modelPatch),
    source,
    state: changed && state === 'ok' ? 'invalid' : state,
    notes: changed
      ? ['the patch is not UTF-8: predictions cannot hold it unchanged, the record keeps its bytes']
      : [],
  };
}

function stateOf(
  source: PatchSource,
  submitted: Uint8Array | null,
  captured: CapturedPatch | null,
): PatchState {
  if (source === 'none')
    return captured?.state === 'oversized' || captured?.state === 'invalid' ? captured.state : 'empty';
  if (source === 'captured_at_exit') return captured!.state;
  return looksLikePatch(submitted!) ? 'ok' : 'invalid';
}

/** A cheap check: a submission without a diff header cannot apply anywhere. */
const looksLikePatch = (bytes: Uint8Array): boolean =>
  /^(diff --git |--- |Index: )/m.test(Buffer.from(bytes).toString('latin1'));
