/** Brings one image onto one engine: mirrors in turn, retries, the wait for a registry that said "too many". */
import type { EnvironmentError } from '../environment.ts';
import type { ImagesConfig } from './config.ts';
import type { RegistryLogin } from './credentials.ts';
import type { ImageEngine, LocalImage } from './engine.ts';
import { PULL_FAILURES, type PullFailureKind, pullError } from './failure.ts';
import type { PullProgress } from './progress.ts';
import { pullOnce } from './pullOnce.ts';
import {
  candidatesOf,
  canonicalName,
  familiarName,
  type ImageReference,
  parseReference,
  rewriteReference,
} from './reference.ts';
import type { PullThrottle } from './throttle.ts';

export interface PullClock {
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export type PullEventForPeople =
  | { readonly type: 'progress'; readonly image: string; readonly progress: PullProgress }
  | {
      readonly type: 'retry';
      readonly image: string;
      readonly attempt: number;
      readonly message: string;
      readonly waitMs: number;
    }
  | {
      readonly type: 'paused';
      readonly reason: 'rate_limited' | 'budget';
      readonly until: number;
      readonly message: string;
    };

export interface PullContext {
  readonly engine: ImageEngine;
  readonly config: ImagesConfig;
  readonly platform?: string | undefined;
  readonly stallMs: number;
  readonly clock: PullClock;
  readonly throttle: PullThrottle;
  /** Another engine can have the image instead: one that does not answer any more is given up at the first failure. */
  readonly elsewhere?: boolean | undefined;
  readonly loginOf: (registry: string) => Promise<RegistryLogin | undefined>;
  readonly askReset: (
    reference: ImageReference,
    login: RegistryLogin | undefined,
  ) => Promise<number | undefined>;
  readonly onEvent: (event: PullEventForPeople) => void;
}

export type PulledImage =
  | {
      readonly ok: true;
      readonly local: LocalImage;
      readonly from: string;
      readonly digest: string;
      readonly bytes: number;
    }
  | { readonly ok: false; readonly cancelled: true }
  | { readonly ok: false; readonly cancelled: false; readonly error: EnvironmentError };

type Try = Awaited<ReturnType<typeof pullOnce>>;
interface Failed {
  readonly kind: PullFailureKind;
  readonly message: string;
  readonly reference: ImageReference;
  readonly hasCredentials: boolean;
}

export async function pullImage(
  image: string,
  context: PullContext,
  signal: AbortSignal,
): Promise<PulledImage> {
  const { config, clock } = context;
  const parsed = parseReference(image);
  if (!parsed.ok) {
    const facts = { image, registry: '', hasCredentials: false, engineMessage: parsed.message };
    return { ok: false, cancelled: false, error: pullError('wrong_name', facts) };
  }
  const wanted = rewriteReference(parsed.reference, config.rewrite);
  const candidates = candidatesOf(wanted, config.mirrors);
  let failed: Failed | undefined;
  let refusedFor = 0;
  for (let attempt = 1; attempt <= config.attempts; attempt++) {
    for (const reference of candidates) {
      const login = await context.loginOf(reference.registry);
      const result = await tryOnce(image, reference, login, context, signal);
      if (result.ok) return settle(image, reference, result, context);
      if (result.kind === 'cancelled') return { ok: false, cancelled: true };
      // An engine that is gone is no trouble of the registry: what this throws is told as daemon_lost.
      if (context.elsewhere || attempt === config.attempts) await context.engine.info();
      failed = { kind: result.kind, message: result.message, reference, hasCredentials: login !== undefined };
      if (result.kind === 'disk_full') break;
      if (result.kind === 'rate_limited' && reference === candidates.at(-1)) {
        const waited = await pause(failed, login, context);
        refusedFor += waited;
        if (refusedFor <= config.rate_limit_patience_seconds * 1000)
          attempt--; // the registry's limit is not a failed try
        else attempt = config.attempts;
      }
    }
    if (!failed || !PULL_FAILURES[failed.kind].again) break;
    if (failed.kind === 'rate_limited' || attempt >= config.attempts) continue;
    const waitMs = config.retry_seconds * 1000 * 2 ** (attempt - 1);
    context.onEvent({ type: 'retry', image, attempt, message: failed.message, waitMs });
    await clock.sleep(waitMs, signal);
  }
  const { kind, reference, message, hasCredentials } = failed!;
  const facts = { image, registry: reference.registry, hasCredentials, platform: context.platform };
  return { ok: false, cancelled: false, error: pullError(kind, { ...facts, engineMessage: message }) };
}

/** Waits until pulls may go on, then pulls. Checking and beginning is one synchronous step, so parallel pulls share one budget. */
async function tryOnce(
  image: string,
  reference: ImageReference,
  login: RegistryLogin | undefined,
  context: PullContext,
  signal: AbortSignal,
): Promise<Try> {
  const { engine, throttle, clock, platform, stallMs, onEvent } = context;
  for (;;) {
    const now = clock.now();
    const { ms, reason } = throttle.wait(now);
    if (ms === 0) break;
    if (reason === 'budget')
      onEvent({
        type: 'paused',
        reason,
        until: now + ms,
        message: 'the budget of pulls for this window is used up',
      });
    await clock.sleep(ms, signal);
    if (signal.aborted) return { ok: false, kind: 'cancelled', message: 'cancelled' };
  }
  throttle.begin(clock.now());
  const result = await pullOnce({
    engine,
    reference,
    platform,
    login: login && { ...login },
    stallMs,
    signal,
    onProgress: (progress) => onEvent({ type: 'progress', image, progress }),
  });
  if (result.ok) throttle.succeed();
  return result;
}

/** Pauses all pulls; returns for how long, so that the caller knows when its patience ends. */
async function pause(
  failed: Failed,
  login: RegistryLogin | undefined,
  context: PullContext,
): Promise<number> {
  const reset = await context.askReset(failed.reference, login);
  const now = context.clock.now();
  const until = context.throttle.refuse(now, reset);
  const message = `${failed.reference.registry} refuses further pulls (${failed.message.trim().slice(0, 200)})`;
  context.onEvent({ type: 'paused', reason: 'rate_limited', until, message });
  return Math.max(1, until - now);
}

/** The image must be found under the name of the dataset row, whatever mirror it came from. */
async function settle(
  image: string,
  reference: ImageReference,
  result: Extract<Try, { ok: true }>,
  context: PullContext,
): Promise<PulledImage> {
  const { engine } = context;
  const from = canonicalName(reference);
  const local = await engine.inspect(from);
  if (!local) {
    const facts = { image, registry: reference.registry, hasCredentials: false, engineMessage: '' };
    return { ok: false, cancelled: false, error: pullError('interrupted', facts) };
  }
  const repository = familiarName(from).replace(/[@:][^/]*$/, '');
  const digest = local.digests.find((d) => d.startsWith(`${repository}@`)) ?? local.digests[0] ?? local.id;
  const parsed = parseReference(image);
  if (parsed.ok && canonicalName(parsed.reference) !== from && parsed.reference.digest === undefined) {
    await engine.tag(local.id, image);
    await engine.remove(from);
  }
  return { ok: true, local, from, digest, bytes: result.progress.downloadedBytes };
}
