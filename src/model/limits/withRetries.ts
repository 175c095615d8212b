/**
 * The one retry layer, by the seed's rules: immediate first try, then base * 2^(n-1) capped at the maximum with a jitter of
 * ±20 %; what the server asks for takes precedence, up to `max_retry_after_s`. A rate limit is no failure of anybody's, so however many
 * answers say so, they are waited for as long as that in all. So is a server that is away, once the conversation has had an answer: without
 * it the attempt would end, and the next one would buy its steps again (observed: tests/faults/deadServer.test.ts). The SDK's own retries are off.
 */
import type { Diagnosis } from '../classify.ts';
import {
  abortError,
  type ModelResponse,
  modelFailure,
  modelSuccess,
  type ProviderErrorMetadata,
} from '../model.ts';
import type { RetryConfig } from '../modelConfig.ts';
import { type Clock, formatDuration } from './clock.ts';
import type { Wait } from './retryAfter.ts';

/** Delay before the try of this number; 0 is the first. */
export function backoffMs(config: RetryConfig, number: number, random: () => number): number {
  if (number <= 0) return 0;
  const capped = Math.min(config.base_delay_ms * 2 ** (number - 1), config.max_delay_ms);
  return config.enable_jitter ? capped * (1 + (random() * 2 - 1) * 0.2) : capped;
}

export interface FailedTry {
  readonly ok: false;
  readonly verdict: Diagnosis;
  /** The fault, for people: `rate limited (429)`, `truncated body`... */
  readonly what: string;
  /** The server's own words, shortened and without secrets. */
  readonly last: string | null;
  readonly wait: Wait;
  /** How long it stood in queues, and in pauses that others were asked for, before it left. */
  readonly queuedMs?: number;
  readonly metadata: ProviderErrorMetadata;
}
export type TryResult<T> = { readonly ok: true; readonly value: T } | FailedTry;

type Plan =
  | { readonly kind: 'retry'; readonly delayMs: number }
  | { readonly kind: 'give_up' }
  | { readonly kind: 'too_long'; readonly askedMs: number };

/** Nobody answered, or a server that says "not now": nothing of such a try is billed (observed: tests/model/retry.test.ts). */
const isAway = ({ verdict, metadata }: Pick<FailedTry, 'verdict' | 'metadata'>): boolean =>
  verdict.retryable && (metadata.unreachable === true || (metadata.statusCode ?? 0) >= 500);

/** Tries beyond `max_retries` come at most once a second (observed: tests/model/retry.test.ts). */
const PATIENT_MS = 1000;

/**
 * The next step after a try that failed like `tried` others before it. `heldMs`: how long failures that are waited for with patience have kept
 * this call by now, without the time in queues; undefined for other failures.
 */
export function planRetry(
  config: RetryConfig,
  failed: Pick<FailedTry, 'verdict' | 'wait'>,
  tried: number,
  random: () => number,
  heldMs = failed.verdict.code === 'RATE_LIMITED' ? 0 : undefined,
): Plan {
  if (!failed.verdict.retryable) return { kind: 'give_up' };
  const asked = failed.wait.kind === 'wait' ? failed.wait.ms : null;
  if (asked !== null && asked > config.max_retry_after_s * 1000) return { kind: 'too_long', askedMs: asked };
  if (!config.enabled) return { kind: 'give_up' };
  const delayMs = asked ?? backoffMs(config, tried + 1, random);
  if (tried < config.max_retries) return { kind: 'retry', delayMs };
  const patientMs = Math.max(delayMs, PATIENT_MS);
  const patient = heldMs !== undefined && heldMs + patientMs <= config.max_retry_after_s * 1000;
  return patient ? { kind: 'retry', delayMs: patientMs } : { kind: 'give_up' };
}

function finalText(
  failed: FailedTry,
  plan: Plan,
  tries: number,
  elapsedMs: number,
  config: RetryConfig,
): string {
  const last = failed.last ? `; last: "${failed.last}"` : '';
  if (plan.kind === 'too_long') {
    const limit = formatDuration(config.max_retry_after_s * 1000);
    return `${failed.what}: server asked to wait ${formatDuration(plan.askedMs)}, more than max_retry_after_s allows (${limit})${last}`;
  }
  if (!failed.verdict.retryable) return failed.what;
  return `${failed.what} after ${tries} ${tries === 1 ? 'try' : 'tries'} over ${formatDuration(elapsedMs)}${last}`;
}

export async function withRetries<T>({
  config,
  clock,
  signal,
  onBackoff,
  answered = false,
  ask,
}: {
  readonly config: RetryConfig;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  readonly onBackoff: () => void;
  /** The conversation has had an answer, which was paid for. */
  readonly answered?: boolean;
  readonly ask: (tried: number) => Promise<TryResult<T>>;
}): Promise<ModelResponse<T>> {
  const start = clock.now();
  /** Failures in a row that are waited for with patience, and all others. */
  let held = 0;
  let heldSince = 0;
  let failures = 0;
  for (let tried = 0; ; tried += 1) {
    const result = await ask(tried);
    if (result.ok) return modelSuccess(result.value);
    const patient = result.verdict.code === 'RATE_LIMITED' || (answered && isAway(result));
    // Queues and the pauses of others use up nobody's patience.
    heldSince = patient && held === 0 ? clock.now() : heldSince + (result.queuedMs ?? 0);
    const heldMs = patient ? clock.now() - heldSince : undefined;
    const plan = planRetry(config, result, patient ? held : failures, clock.random, heldMs);
    held = patient ? held + 1 : 0;
    if (!patient) failures += 1;
    if (plan.kind !== 'retry') {
      const message = finalText(result, plan, tried + 1, clock.now() - start, config);
      const failure = modelFailure(result.verdict.code, message, result.metadata);
      return result.wait.kind === 'wait' ? { ...failure, retryAfterMs: result.wait.ms } : failure;
    }
    onBackoff();
    try {
      await clock.sleep(plan.delayMs, signal);
    } catch (error) {
      if (signal?.aborted) throw abortError(signal);
      throw error;
    }
  }
}
