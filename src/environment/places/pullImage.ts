/** Pulls one image: mirrors in turn, tries, the wait for a registry that said "too many". */

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
      /** The registry that refuses; a budget holds for all. */
      readonly registry?: string;
    };

export interface PullContext {
  readonly engine: ImageEngine;
  readonly config: ImagesConfig;
  readonly platform?: string | undefined;
  readonly stallMs: number;
  readonly clock: PullClock;
  readonly throttle: PullThrottle;
  readonly loginOf: (registry: string) => Promise<RegistryLogin | undefined>;
  readonly askReset: (
    reference: ImageReference,
    login: RegistryLogin | undefined,
  ) => Promise<number | undefined>;
  readonly onEvent: (event: PullEventForPeople) => void;
  /** A turn among the pulls that may go on at a time. Waits between tries are outside of it. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  /** Said before each wait. */
  readonly waits: () => void;
}

interface PulledImage {
  readonly local: LocalImage;
  readonly from: string;
  /** The name that the engine knows it by. */
  readonly heldAs: string;
  readonly digest: string;
  readonly bytes: number;
}

interface Failed {
  readonly kind: PullFailureKind;
  readonly message: string;
  readonly reference: ImageReference;
  readonly hasCredentials: boolean;
}

const SHORTEST_WAIT_MS = 1000;

/** Rejects with an EnvironmentError that says what to do, or with the signal's reason. */
export async function pullImage(
  image: string,
  context: PullContext,
  signal: AbortSignal,
): Promise<PulledImage> {
  const { config, clock, throttle } = context;
  const wanted = sourceOf(image, config.rewrite);
  if (!wanted.ok) {
    const facts = { image, registry: '', hasCredentials: false, engineMessage: wanted.message };
    throw pullError('wrong_name', facts);
  }
  const candidates = candidatesOf(wanted.reference, config.mirrors);
  let refusedSince: number | undefined;
  for (let nth = 1; ; ) {
    const last = nth === config.tries;
    const round = await context.inTurn(() => tryEach(image, candidates, last, context, signal));
    if ('local' in round) return round;
    const full = round.some(({ kind }) => kind === 'disk_full');
    let waitMs: number;
    if (!full && round.some(({ kind }) => kind === 'rate_limited')) {
      const now = clock.now();
      const ends = round.flatMap(({ reference }) => throttle.refusedUntil(reference.registry, now) ?? []);
      // A registry's pause may have ended while others were asked.
      waitMs = Math.max(ends.length > 0 ? Math.min(...ends) - now : 0, SHORTEST_WAIT_MS);
      refusedSince ??= now;
      if (now + waitMs - refusedSince > config.rate_limit_patience_seconds * 1000)
        throw errorOf(image, round, context);
    } else if (round.some(({ kind }) => PULL_FAILURES[kind].again) && !last) {
      waitMs = config.retry_seconds * 1000 * 2 ** (nth - 1);
      // A registry's limit is not a failed try (observed: tests/environment/places/images/imageJobs.test.ts).
      nth++;
      context.onEvent({ type: 'retry', image, message: wordsOf(round), waitMs });
    } else throw errorOf(image, round, context);
    context.waits();
    await clock.sleep(waitMs, signal);
    signal.throwIfAborted();
  }
}

/** The image, or what each place said. */
async function tryEach(
  image: string,
  candidates: readonly ImageReference[],
  last: boolean,
  context: PullContext,
  signal: AbortSignal,
): Promise<PulledImage | readonly Failed[]> {
  const round: Failed[] = [];
  for (const reference of candidates) {
    const login = await context.loginOf(reference.registry);
    const result = await tryOnce(image, reference, login, context, signal);
    if (result.ok) return settle(image, reference, result.progress, context);
    // An engine that is gone is not the registry's fault (T-35): what this throws is reported as daemon_lost.
    if (last) await context.engine.answers();
    const { kind, message } = result;
    round.push({ kind, message, reference, hasCredentials: login !== undefined });
    if (kind === 'disk_full') break;
  }
  return round;
}

/** The words of each place. */
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

/** Waits for the budget, then pulls. Asking and counting is one step, so parallel pulls share one budget. */
async function tryOnce(
  image: string,
  reference: ImageReference,
  login: RegistryLogin | undefined,
  context: PullContext,
  signal: AbortSignal,
): Promise<Try> {
  const { throttle, clock, onEvent } = context;
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
    context.waits();
    await clock.sleep(ms, signal);
    signal.throwIfAborted();
  }
  const result = await pullOnce(image, reference, login, context, signal);
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
  { downloadedBytes: bytes }: PullProgress,
  { engine }: PullContext,
): Promise<PulledImage> {
  const from = canonicalName(reference);
  const local = await engine.inspect(from);
  if (!local) {
    const engineMessage = 'the engine pulled it and does not have it';
    const facts = { image, registry: reference.registry, hasCredentials: false, engineMessage };
    throw pullError('interrupted', facts);
  }
  const repository = familiarName(from).replace(/[@:][^/]*$/, '');
  const digest = local.digests.find((d) => d.startsWith(`${repository}@`)) ?? local.digests[0] ?? local.id;
  const parsed = parseReference(image);
  const renamed = parsed.ok && canonicalName(parsed.reference) !== from;
  if (renamed && parsed.reference.digest !== undefined) return { local, from, heldAs: from, digest, bytes };
  if (renamed) {
    await engine.tag(local.id, image);
    await engine.remove(from);
  }
  return { local, from, heldAs: image, digest, bytes };
}

type Try =
  | { readonly ok: true; readonly progress: PullProgress }
  | { readonly ok: false; readonly kind: PullFailureKind; readonly message: string };

/** One try of one pull from one registry, cut when nothing moves. */
async function pullOnce(
  image: string,
  { registry, repository, tag = 'latest', digest }: ImageReference,
  login: RegistryLogin | undefined,
  { engine, platform, stallMs, onEvent, waits }: PullContext,
  signal: AbortSignal,
): Promise<Try> {
  const progress = pullProgress();
  const stall = new AbortController();
  const timer = startTimer(stallMs, () => stall.abort(new Error('stalled')));
  try {
    await engine.pull({
      ...{ registry, repository, platform },
      tagOrDigest: digest ?? tag,
      login: login && { ...login },
      signal: AbortSignal.any([signal, stall.signal]),
      onEvent: (event) => {
        if (progress.add(event)) {
          timer.restart();
          waits();
        }
        onEvent({ type: 'progress', image, progress: progress.now() });
      },
    });
    return { ok: true, progress: progress.now() };
  } catch (error) {
    signal.throwIfAborted();
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
  /** Bytes of the layers whose size is known so far; grows while the engine still asks. */
  readonly totalBytes: number;
  readonly layersDone: number;
  readonly layers: number;
}

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

/** Lines of the engine that show no work: while it only repeats these, the pull stands still (T-34, registry.test.ts). */
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
 * The start of a pull: a sliding window of pulls for each registry, which processes share, and the pause that a registry's 429 imposes on all
 * pulls from it, and on nothing else: a mirror serves on while the registry behind it refuses (observed:
 * tests/environment/places/images/imageJobs.test.ts).
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

/** A book of one process. */
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
  /** The book that other processes share. */
  book?: PullBook | undefined;
}) {
  const { pulls, windowMs, book = ownPullBook() } = limits;
  const refusals = new Map<string, Refusal>();
  return {
    /** Milliseconds until there may be room; 0 when the pull may begin, and is counted. */
    take: (registry: string, at: number): number =>
      pulls === 0 ? 0 : book.take({ registry, at, pulls, windowMs }),
    /** The registry refused; returns when pulls from it go on. */
    refuse(registry: string, now: number, resetMs: number | undefined): number {
      const before = refusals.get(registry) ?? { until: 0, times: 0 };
      // Pulls that ran side by side are refused together: that is one refusal (observed: tests/environment/places/images/pure.test.ts).
      const alreadyKnown = now < before.until;
      const growing = Math.min(FIRST_PAUSE_MS * 2 ** before.times, LONGEST_PAUSE_MS);
      // "Now", or a moment that has passed, and refused all the same: asking at once again would go on for ever (imageJobs.test.ts).
      const pause = resetMs !== undefined && resetMs > 0 ? resetMs : alreadyKnown ? 0 : growing;
      const until = Math.max(before.until, now + pause);
      refusals.set(registry, { until, times: before.times + (alreadyKnown ? 0 : 1) });
      return until;
    },
    /** The end of the registry's pause; undefined when it may be asked. */
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
