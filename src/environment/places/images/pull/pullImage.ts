/** Brings one image onto one engine: mirrors in turn, retries, the wait for a registry that said "too many". */

import {
  candidatesOf,
  canonicalName,
  familiarName,
  type ImageReference,
  parseReference,
  sourceOf,
} from '../../../../base/imageReference.ts';
import type { EnvironmentError } from '../../../environment.ts';
import type { ImageEngine, LocalImage } from '../imageEngine.ts';
import type { ImagesConfig } from '../imagesConfig.ts';
import type { RegistryLogin } from '../registry/credentials.ts';
import type { PullClock } from './pullClock.ts';
import { PULL_FAILURES, type PullFailureKind, pullError } from './pullFailure.ts';
import { pullOnce } from './pullOnce.ts';
import type { PullThrottle } from './pullThrottle.ts';
import type { PullEventForPeople } from './stageEvents.ts';

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
  /** Carries out a long wait without taking up one of the concurrent pulls. */
  readonly resting?: (wait: () => Promise<void>) => Promise<void>;
}

export type PulledImage =
  | {
      readonly ok: true;
      readonly local: LocalImage;
      readonly from: string;
      /** The name that the engine knows it by. */
      readonly heldAs: string;
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

const SHORTEST_WAIT_MS = 1000;

export async function pullImage(
  image: string,
  context: PullContext,
  signal: AbortSignal,
): Promise<PulledImage> {
  const { config, clock } = context;
  const wanted = sourceOf(image, config.rewrite);
  if (!wanted.ok) {
    const facts = { image, registry: '', hasCredentials: false, engineMessage: wanted.message };
    return { ok: false, cancelled: false, error: pullError('wrong_name', facts) };
  }
  const candidates = candidatesOf(wanted.reference, config.mirrors);
  const refusedUntil = (registry: string, now: number) =>
    context.throttle.refusedUntil(registry, now) ?? Number.POSITIVE_INFINITY;
  let round: Failed[] = [];
  let refusedSince: number | undefined;
  for (let attempt = 1; attempt <= config.attempts; attempt++) {
    round = [];
    for (const reference of candidates) {
      const login = await context.loginOf(reference.registry);
      const result = await tryOnce(image, reference, login, context, signal);
      if (result.ok) return settle(image, reference, result, context);
      if (result.kind === 'cancelled') return { ok: false, cancelled: true };
      // An engine that is gone is not the registry's fault: what this throws is reported as daemon_lost.
      if (context.elsewhere || attempt === config.attempts) await context.engine.info();
      const { kind, message } = result;
      round.push({ kind, message, reference, hasCredentials: login !== undefined });
      if (kind === 'disk_full') break;
    }
    const full = round.some(({ kind }) => kind === 'disk_full');
    if (!full && round.some(({ kind }) => kind === 'rate_limited')) {
      const now = clock.now();
      const until = Math.min(...round.map(({ reference }) => refusedUntil(reference.registry, now)));
      // Its pause may have ended while others were asked.
      const waitMs = Math.max(Number.isFinite(until) ? until - now : 0, SHORTEST_WAIT_MS);
      refusedSince ??= now;
      if (now + waitMs - refusedSince > config.rate_limit_patience_seconds * 1000) break;
      await rest(context, waitMs, signal);
      attempt--; // the registry's limit is not a failed try
    } else if (round.some(({ kind }) => PULL_FAILURES[kind].again) && attempt < config.attempts) {
      const retryMs = config.retry_seconds * 1000 * 2 ** (attempt - 1);
      context.onEvent({ type: 'retry', image, attempt, message: wordsOf(round), waitMs: retryMs });
      await clock.sleep(retryMs, signal);
    } else break;
    if (signal.aborted) return { ok: false, cancelled: true };
  }
  return { ok: false, cancelled: false, error: errorOf(image, round, context) };
}

/** With mirrors each place has something to say. */
const wordsOf = (round: readonly Failed[]): string =>
  round.length === 1
    ? round[0]!.message
    : round.map(({ reference, message }) => `${reference.registry}: ${message.trim()}`).join('; ');

/** The registry's own failure decides the advice, unless a disk is full or a place said "later": those can be mended. */
function errorOf(image: string, round: readonly Failed[], { platform }: PullContext): EnvironmentError {
  const { kind, reference, hasCredentials } =
    round.find((one) => one.kind === 'disk_full') ??
    round.find((one) => one.kind === 'rate_limited') ??
    round.at(-1)!;
  const { registry } = reference;
  return pullError(kind, { image, registry, hasCredentials, platform, engineMessage: wordsOf(round) });
}

/** A pull that waits for a registry leaves its place to those that have another one. */
const rest = (context: PullContext, ms: number, signal: AbortSignal): Promise<void> =>
  context.resting ? context.resting(() => context.clock.sleep(ms, signal)) : context.clock.sleep(ms, signal);

/** Waits for the budget, then pulls. Asking and counting is one step, so parallel pulls share one budget. */
async function tryOnce(
  image: string,
  reference: ImageReference,
  login: RegistryLogin | undefined,
  context: PullContext,
  signal: AbortSignal,
): Promise<Try> {
  const { engine, throttle, clock, platform, stallMs, onEvent } = context;
  const { registry } = reference;
  for (;;) {
    const now = clock.now();
    const until = throttle.refusedUntil(registry, now);
    if (until !== undefined) {
      const message = `refuses pulls until ${new Date(until).toISOString()}`;
      return { ok: false, kind: 'rate_limited', message };
    }
    const ms = throttle.take(registry, now);
    if (ms === 0) break;
    const message = 'the budget of pulls for this window is used up';
    onEvent({ type: 'paused', reason: 'budget', until: now + ms, message });
    await clock.sleep(ms, signal);
    if (signal.aborted) return { ok: false, kind: 'cancelled', message: 'cancelled' };
  }
  const result = await pullOnce({
    engine,
    reference,
    platform,
    login: login && { ...login },
    stallMs,
    signal,
    onProgress: (progress) => onEvent({ type: 'progress', image, progress }),
  });
  if (result.ok) throttle.succeed(registry);
  else if (result.kind === 'rate_limited') {
    const reset = await context.askReset(reference, login);
    const until = throttle.refuse(registry, clock.now(), reset);
    const message = `${registry} refuses further pulls (${result.message.trim().slice(0, 200)})`;
    onEvent({ type: 'paused', reason: 'rate_limited', until, message, registry });
    return { ...result, message: `${result.message.trim()}; until ${new Date(until).toISOString()}` };
  }
  return result;
}

/**
 * The image must be found under the name of the dataset row, whatever mirror it came from. Only a digest cannot be given as a name: there
 * the engine keeps the place it came from.
 */
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
    const engineMessage = 'the engine pulled it and does not have it';
    const facts = { image, registry: reference.registry, hasCredentials: false, engineMessage };
    return { ok: false, cancelled: false, error: pullError('interrupted', facts) };
  }
  const repository = familiarName(from).replace(/[@:][^/]*$/, '');
  const digest = local.digests.find((d) => d.startsWith(`${repository}@`)) ?? local.digests[0] ?? local.id;
  const parsed = parseReference(image);
  const renamed = parsed.ok && canonicalName(parsed.reference) !== from;
  if (renamed && parsed.reference.digest === undefined) {
    await engine.tag(local.id, image);
    await engine.remove(from);
  }
  const heldAs = renamed && parsed.reference.digest !== undefined ? from : image;
  return { ok: true, local, from, heldAs, digest, bytes: result.progress.downloadedBytes };
}
