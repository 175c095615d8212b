/** Brings one image onto one engine: mirrors in turn, retries, the wait for a registry that said "too many". */

import { pause, startTimer } from '../../base/async/timer.ts';
import {
  candidatesOf,
  canonicalName,
  familiarName,
  type ImageReference,
  parseReference,
  sourceOf,
} from '../../base/imageReference.ts';
import type { EnvironmentError } from '../environment.ts';
import { readFault } from './dockerFault.ts';
import type { ImageEngine, LocalImage, PullEvent } from './imageEngine.ts';
import type { ImagesConfig } from './imagesConfig.ts';
import { classifyPullMessage, PULL_FAILURES, type PullFailureKind, pullError } from './pullFailure.ts';
import type { RegistryLogin } from './registry.ts';
export type PullEventForPeople =
  | { readonly type: 'progress'; readonly image: string; readonly progress: PullProgress }
  | {
      readonly type: 'retry';
      readonly image: string;
      readonly message: string;
      readonly waitMs: number;
    }
  | {
      readonly type: 'paused';
      readonly reason: 'rate_limited' | 'budget';
      readonly until: number;
      readonly message: string;
      /** Which one refuses; a budget holds for all. */
      readonly registry?: string;
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
  /** Carries out a long wait without taking up one of the concurrent pulls. */
  readonly resting?: (wait: () => Promise<void>) => Promise<void>;
}

type PulledImage =
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
  for (let nth = 1; nth <= config.tries; nth++) {
    round = [];
    for (const reference of candidates) {
      const login = await context.loginOf(reference.registry);
      const result = await tryOnce(image, reference, login, context, signal);
      if (result.ok) return settle(image, reference, result, context);
      if (result.kind === 'cancelled') return { ok: false, cancelled: true };
      // An engine that is gone is not the registry's fault: what this throws is reported as daemon_lost.
      if (nth === config.tries) await context.engine.answers();
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
      nth--; // the registry's limit is not a failed try
    } else if (round.some(({ kind }) => PULL_FAILURES[kind].again) && nth < config.tries) {
      const retryMs = config.retry_seconds * 1000 * 2 ** (nth - 1);
      context.onEvent({ type: 'retry', image, message: wordsOf(round), waitMs: retryMs });
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

interface PullOnceOptions {
  readonly engine: ImageEngine;
  readonly reference: ImageReference;
  readonly platform?: string | undefined;
  readonly login?: Readonly<Record<string, string>> | undefined;
  /** 0 waits for ever. */
  readonly stallMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}
type PullOnceResult =
  | { readonly ok: true; readonly progress: PullProgress }
  | { readonly ok: false; readonly kind: PullFailureKind | 'cancelled'; readonly message: string };

/** One try of one pull from one registry, cut when nothing moves. */
async function pullOnce(options: PullOnceOptions): Promise<PullOnceResult> {
  const { engine, reference, platform, login, stallMs, signal, onProgress } = options;
  const progress = pullProgress();
  const stall = new AbortController();
  const timer = startTimer(stallMs, () => stall.abort(new Error('stalled')));
  try {
    await engine.pull({
      registry: reference.registry,
      repository: reference.repository,
      tagOrDigest: reference.digest ?? reference.tag ?? 'latest',
      platform,
      login,
      signal: AbortSignal.any([signal, stall.signal]),
      onEvent: (event) => {
        if (progress.add(event)) timer.restart();
        onProgress(progress.now());
      },
    });
    return { ok: true, progress: progress.now() };
  } catch (error) {
    if (signal.aborted) return { ok: false, kind: 'cancelled', message: 'cancelled' };
    if (stall.signal.aborted) {
      const { downloadedBytes, totalBytes } = progress.now();
      const message = `nothing moved for ${stallMs / 1000} s, at ${mb(downloadedBytes)} of ${mb(totalBytes)} MB`;
      return { ok: false, kind: 'stalled', message };
    }
    const message = readFault(error).text;
    return { ok: false, kind: classifyPullMessage(message), message };
  } finally {
    timer.cancel();
  }
}

const mb = (bytes: number) => (bytes / 1e6).toFixed(1);

export interface PullProgress {
  readonly downloadedBytes: number;
  /** Of the layers whose size is known so far; grows while the engine still asks. */
  readonly totalBytes: number;
  readonly layersDone: number;
  readonly layers: number;
}

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

/** Lines of the engine that show no work: while it only repeats these, the pull stands still. */
const IDLE = /^(Retrying in|Waiting)/;

/** Adds up the engine's pull events, layer by layer. */
export function pullProgress() {
  const layers = new Map<string, Layer>();
  return {
    /** True when the event shows that something moved. */
    add({ layer, status, current, total }: PullEvent): boolean {
      if (layer === undefined || /^(Pulling from|Digest|Status)/.test(status)) return true;
      if (IDLE.test(status)) {
        if (!layers.has(layer)) layers.set(layer, { current: 0, total: 0, done: false });
        return false;
      }
      const known = layers.get(layer) ?? { current: 0, total: 0, done: false };
      if (status === 'Downloading') {
        known.total = total ?? known.total;
        known.current = current ?? known.current;
      }
      if (status === 'Download complete') known.current = known.total;
      if (status === 'Pull complete' || status === 'Already exists') known.done = true;
      layers.set(layer, known);
      return true;
    },
    now(): PullProgress {
      const all = [...layers.values()];
      return {
        downloadedBytes: all.reduce((sum, layer) => sum + layer.current, 0),
        totalBytes: all.reduce((sum, layer) => sum + layer.total, 0),
        layersDone: all.filter((layer) => layer.done).length,
        layers: all.length,
      };
    },
  };
}

/** Time for pulls and for the wait for disk; tests pass their own. */
export interface PullClock {
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemPullClock: PullClock = {
  now: Date.now,
  sleep: pause,
};

/**
 * When a pull may begin: a sliding window of pulls for each registry, which engines and processes share, and the pause that a registry's 429 imposes on all pulls from it, and on nothing else:
 * a mirror serves on while the registry behind it refuses.
 */

type PullThrottle = ReturnType<typeof pullThrottle>;

interface PullAsk {
  readonly registry: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Pulls of one window. */
  readonly pulls: number;
  readonly windowMs: number;
}

/** The pulls of all who share a budget. */
export interface PullBook {
  take(ask: PullAsk): number;
}

/** Of those who have nothing else in common. */
export function ownPullBook(): PullBook {
  const begunOf = new Map<string, number[]>();
  return {
    take({ registry, at, pulls, windowMs }) {
      const begun = (begunOf.get(registry) ?? []).filter((one) => one > at - windowMs);
      begunOf.set(registry, begun);
      if (begun.length >= pulls) return begun[begun.length - pulls]! + windowMs - at;
      begun.push(at);
      return 0;
    },
  };
}

const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 15 * 60_000;

interface Refusal {
  until: number;
  times: number;
}

export function pullThrottle(limits: {
  pulls: number;
  windowMs: number;
  /** Shared with other engines and processes. */
  book?: PullBook | undefined;
}) {
  const { pulls, windowMs, book = ownPullBook() } = limits;
  const refusals = new Map<string, Refusal>();
  return {
    /** 0 when the pull may begin, and is counted; else after how many milliseconds there may be room. */
    take: (registry: string, at: number): number =>
      pulls === 0 ? 0 : book.take({ registry, at, pulls, windowMs }),
    /** The registry refused; returns when pulls from it go on. */
    refuse(registry: string, now: number, resetMs: number | undefined): number {
      const before = refusals.get(registry) ?? { until: 0, times: 0 };
      // Pulls that ran side by side are refused together: that is one refusal.
      const alreadyKnown = now < before.until;
      const growing = Math.min(FIRST_PAUSE_MS * 2 ** before.times, LONGEST_PAUSE_MS);
      // "Now", or a moment that has passed, and refused all the same: asking at once again would go on for ever.
      const pause = resetMs !== undefined && resetMs > 0 ? resetMs : alreadyKnown ? 0 : growing;
      const until = Math.max(before.until, now + pause);
      refusals.set(registry, { until, times: before.times + (alreadyKnown ? 0 : 1) });
      return until;
    },
    /** Until when the registry is to be left alone; undefined when it may be asked. */
    refusedUntil(registry: string, now: number): number | undefined {
      const until = refusals.get(registry)?.until ?? 0;
      return now < until ? until : undefined;
    },
    /** A pull came through: the next refusal starts from the short pause again. */
    succeed(registry: string): void {
      const known = refusals.get(registry);
      if (known) known.times = 0;
    },
  };
}
