/**
 * The one retry layer, by the seed's rules: immediate first try, then base * 2^(n-1) capped at the maximum with a jitter of
 * ±20 %; what the server asks for takes precedence, up to `max_retry_after_s`. A rate limit is no failure of anybody's, so however many
 * answers say so, they are waited for as long as that in all. The SDK's own retries are off.
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
  /** What happened, for people: `rate limited (429)`, `truncated body`... */
  readonly what: string;
  /** The server's own words, shortened and without secrets. */
  readonly last: string | null;
  readonly wait: Wait;
  readonly metadata: ProviderErrorMetadata;
}
export type TryResult<T> = { readonly ok: true; readonly value: T } | FailedTry;

type Plan =
  | { readonly kind: 'retry'; readonly delayMs: number }
  | { readonly kind: 'give_up' }
  | { readonly kind: 'too_long'; readonly askedMs: number };

/** What to do after a try that failed like `tried` others before it; `limitedMs` is how long rate limits have kept this call by now. */
export function planRetry(
  config: RetryConfig,
  failed: Pick<FailedTry, 'verdict' | 'wait'>,
  tried: number,
  random: () => number,
  limitedMs = 0,
): Plan {
  if (!failed.verdict.retryable) return { kind: 'give_up' };
  const asked = failed.wait.kind === 'wait' ? failed.wait.ms : null;
  if (asked !== null && asked > config.max_retry_after_s * 1000) return { kind: 'too_long', askedMs: asked };
  if (!config.enabled) return { kind: 'give_up' };
  const delayMs = asked ?? backoffMs(config, tried + 1, random);
  const patient =
    failed.verdict.code === 'RATE_LIMITED' && limitedMs + delayMs <= config.max_retry_after_s * 1000;
  return tried < config.max_retries || patient ? { kind: 'retry', delayMs } : { kind: 'give_up' };
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

interface RetryParts<T> {
  readonly config: RetryConfig;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  readonly onBackoff: () => void;
  readonly ask: (tried: number) => Promise<TryResult<T>>;
}

export async function withRetries<T>(parts: RetryParts<T>): Promise<ModelResponse<T>> {
  const { config, clock, signal } = parts;
  const start = clock.now();
  /** Rate limits in a row, and all other failures. */
  let limits = 0;
  let limitedSince = 0;
  let failures = 0;
  for (let tried = 0; ; tried += 1) {
    const result = await parts.ask(tried);
    if (result.ok) return modelSuccess(result.value);
    const limited = result.verdict.code === 'RATE_LIMITED';
    if (limited && limits === 0) limitedSince = clock.now();
    const limitedMs = clock.now() - limitedSince;
    const plan = planRetry(config, result, limited ? limits : failures, clock.random, limitedMs);
    limits = limited ? limits + 1 : 0;
    if (!limited) failures += 1;
    if (plan.kind !== 'retry') {
      const message = finalText(result, plan, tried + 1, clock.now() - start, config);
      const failure = modelFailure(result.verdict.code, message, result.metadata);
      return result.wait.kind === 'wait' ? { ...failure, retryAfterMs: result.wait.ms } : failure;
    }
    parts.onBackoff();
    try {
      await clock.sleep(plan.delayMs, signal);
    } catch (error) {
      if (signal?.aborted) throw abortError(signal);
      throw error;
    }
  }
}
