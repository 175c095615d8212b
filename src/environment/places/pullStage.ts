/**
 * The pull stage: images come onto the engine ahead of the slots and apart from them. One pull an image however many trials ask for it, a
 * bounded number at a time and ahead, and no slot or attempt ever pays for the waiting: a trial is started when its image is ready.
 */
import {
  candidatesOf,
  canonicalName,
  imageKey,
  parseReference,
  sourceOf,
} from '../../base/imageReference.ts';
import { EnvironmentError } from '../environment.ts';
import { recipeOf } from './buildRecipes.ts';
import { readFault } from './dockerFault.ts';
import type { LocalImage } from './imageEngine.ts';
import type { ImageLedger } from './imageLedger.ts';
import { pullError } from './pullFailure.ts';
import { type PullContext, type PullEventForPeople, type PullProgress, pullImage } from './pullImage.ts';

export interface StageOptions extends Omit<PullContext, 'onEvent' | 'resting'> {
  readonly policy: 'never' | 'missing' | 'always';
  readonly onEvent?: ((event: StageEvent) => void) | undefined;
  /** Where pulled images are remembered as ours. */
  readonly ledger?: ImageLedger;
  /** Waits until the disk has room, and asks the eviction policy to make some. */
  readonly beforePull?: (image: string, signal: AbortSignal) => Promise<void>;
}

export interface ReadyImage {
  /** As the caller named it. */
  readonly image: string;
  /** The name that the engine has for it: another one only for a digest that came from a mirror. */
  readonly heldAs: string;
  readonly id: string;
  /** Repo digest, else the id: what is recorded. */
  readonly digest: string;
  readonly architecture: string;
  /** Who its programs run as; '' for root. */
  readonly user: string;
  /** Of its own instructions and those that it inherits; what lies there is no part of an image that is made of its container. */
  readonly volumes?: readonly string[];
  readonly pulled: boolean;
  readonly from: string;
  readonly bytes: number;
  /** Time of the pull alone; for the record, charged to nobody. */
  readonly pullMs: number;
  /** What people should hear: emulation. */
  readonly warnings: readonly string[];
}

/** What a pull stage has to say as it happens. */
export type StageEvent =
  | PullEventForPeople
  | { readonly type: 'started'; readonly image: string }
  | { readonly type: 'ready'; readonly ready: ReadyImage }
  | { readonly type: 'failed'; readonly image: string; readonly error: EnvironmentError };

/** From the first look until the image is ready. */
interface Job {
  readonly key: string;
  readonly image: string;
  readonly result: PromiseWithResolvers<ReadyImage>;
  /** Somebody waits: goes before what is only pulled ahead. */
  wanted: boolean;
  /** resting: waits for a registry, in no place of the puller; returning: wants a place again. */
  state: 'looking' | 'waiting' | 'active' | 'resting' | 'returning' | 'ready' | 'failed';
  goOn: () => void;
  restedMs: number;
  /** Once it is ready: its id, and the name by which the engine knows it. */
  held: { readonly id: string; readonly as: string } | undefined;
  since: number;
  progress: PullProgress | undefined;
}

type PullStage = ReturnType<typeof createPullStage>;

export function createPullStage(options: StageOptions) {
  const { engine, config, clock, platform, ledger, policy } = options;
  const closing = new AbortController();
  const byKey = new Map<string, Job>();
  const running = new Set<Promise<void>>();
  /** Asked for later, in this order. */
  let upcoming: readonly string[] = [];
  let paused: { reason: 'rate_limited' | 'budget'; until: number; registry?: string } | undefined;

  let info: ReturnType<typeof engine.info> | undefined;
  /** Asked once, unless it failed: the engine may come back. */
  const engineInfo = () => {
    info ??= engine.info().catch((error: unknown) => {
      info = undefined;
      throw error;
    });
    return info;
  };

  /** Warnings to show before it runs; throws when it must not run here. */
  async function warningsOf(
    image: string,
    { os, architecture }: Pick<LocalImage, 'os' | 'architecture'>,
    local: boolean,
  ): Promise<readonly string[]> {
    const built = `${os}/${architecture}`;
    const parsed = parseReference(image);
    const registry = parsed.ok ? parsed.reference.registry : '';
    const facts = { image, registry, hasCredentials: false, platform, local };
    if (platform !== undefined && !`${platform}/`.startsWith(`${built}/`))
      throw pullError('wrong_platform', { ...facts, engineMessage: `the local copy is built for ${built}` });
    const own = await engineInfo();
    if (own.architecture === architecture) return [];
    const words = `image ${image} is built for ${built}, this engine runs ${own.os}/${own.architecture}`;
    if (!config.allow_emulation) throw pullError('wrong_platform', { ...facts, engineMessage: words });
    return [`${words}: it is EMULATED, many times slower, and limits of time may hit`];
  }

  /** Undefined when the engine has no image of that name. */
  async function find(image: string): Promise<ReadyImage | undefined> {
    const wanted = sourceOf(image, config.rewrite);
    // An image with a digest is the same whatever its source, and keeps the name of its source.
    const sources =
      wanted.ok && wanted.reference.digest !== undefined
        ? candidatesOf(wanted.reference, config.mirrors).map(canonicalName)
        : [];
    for (const heldAs of [image, ...sources]) {
      const local = await engine.inspect(heldAs);
      if (!local) continue;
      const { id, architecture, user, volumes = [] } = local;
      const warnings = await warningsOf(image, local, true);
      const digest = local.digests[0] ?? (await digestPulled(image, id)) ?? id;
      const nothing = { pulled: false, from: image, bytes: 0, pullMs: 0 };
      return { image, heldAs, id, digest, architecture, user, volumes, ...nothing, warnings };
    }
    return undefined;
  }

  /** The engine forgets the digest of an image from a mirror when the mirror's name is removed. */
  async function digestPulled(image: string, id: string): Promise<string | undefined> {
    const own = (await ledger?.own((await engineInfo()).id)) ?? [];
    return own.find((one) => one.id === id && imageKey(one.image) === imageKey(image))?.digest;
  }

  function emit(event: StageEvent): void {
    if (event.type === 'progress') {
      const job = byKey.get(imageKey(event.image));
      if (job) job.progress = event.progress;
    }
    if (event.type === 'paused' && event.until > (paused?.until ?? 0)) {
      const { reason, until, registry } = event;
      paused = { reason, until, ...(registry !== undefined && { registry }) };
    }
    options.onEvent?.(event);
  }

  function addJob(image: string, wanted: boolean): Job {
    const result = Promise.withResolvers<ReadyImage>();
    result.promise.catch(() => {}); // a pull ahead may fail before anybody waits for it
    const job: Job = {
      key: imageKey(image),
      image,
      result,
      wanted,
      state: 'looking',
      goOn: () => {},
      restedMs: 0,
      held: undefined,
      since: clock.now(),
      progress: undefined,
    };
    byKey.set(job.key, job);
    track(look(job));
    return job;
  }

  function track(work: Promise<void>): void {
    const tracked = work.finally(() => {
      running.delete(tracked);
      pump();
    });
    running.add(tracked);
  }

  /** Starts what may start: wanted images first, then those pulled ahead. */
  function pump(): void {
    if (closing.signal.aborted) return;
    const all = [...byKey.values()];
    const idleAhead = all.filter((job) => !job.wanted && job.state !== 'failed').length;
    for (let room = config.ahead - idleAhead; room > 0; room--) {
      const next = upcoming.find((image) => !byKey.has(imageKey(image)));
      if (next === undefined) break;
      all.push(addJob(next, false));
    }
    let room = config.max_concurrent_pulls - all.filter((job) => job.state === 'active').length;
    const returning = all.filter((job) => job.state === 'returning');
    for (const job of [...returning, ...all.filter((j) => j.wanted), ...all.filter((j) => !j.wanted)]) {
      if (room <= 0) return;
      if (job.state === 'waiting') track(bring(job));
      else if (job.state === 'returning') {
        job.state = 'active';
        job.goOn();
      } else continue;
      room--;
    }
  }

  /** An image that is here needs no place of the puller, so it never waits behind a long pull. */
  async function look(job: Job): Promise<void> {
    const { image } = job;
    const facts = { image, registry: '', hasCredentials: false };
    try {
      const parsed = parseReference(image);
      if (!parsed.ok) throw pullError('wrong_name', { ...facts, engineMessage: parsed.message });
      const present = policy === 'always' ? undefined : await find(image);
      if (present) return finish(job, present);
      if (policy === 'never')
        throw pullError('not_local', { ...facts, registry: parsed.reference.registry, engineMessage: '' });
      if (closing.signal.aborted) throw cancelled(image);
      job.state = 'waiting';
    } catch (error) {
      fail(job, error);
    }
  }

  /** Takes up a place of the puller at once. */
  async function bring(job: Job): Promise<void> {
    job.state = 'active';
    job.since = clock.now();
    let ready: ReadyImage;
    try {
      ready = await pulled(job);
    } catch (error) {
      return fail(job, error);
    }
    finish(job, ready);
  }

  async function pulled(job: Job): Promise<ReadyImage> {
    const { image } = job;
    const base = recipeOf(image)?.from;
    // Its own build may wait for a place of the puller.
    if (base !== undefined && recipeOf(base)) await resting(job, () => ensure(base, closing.signal));
    await options.beforePull?.(image, closing.signal);
    const before = await engine.inspect(image);
    emit({ type: 'started', image });
    const begun = clock.now();
    const context = { ...options, onEvent: emit, resting: (wait: () => Promise<void>) => resting(job, wait) };
    const result = await pullImage(image, context, closing.signal);
    if (!result.ok) throw result.cancelled ? cancelled(image) : result.error;
    const { local, from, heldAs, digest, bytes } = result;
    const { id, architecture, user, volumes = [], size } = local;
    const pullMs = clock.now() - begun - job.restedMs;
    // An image that was here before, even in an older version, belongs to whoever pulled it.
    if (!before) {
      const engineId = (await engineInfo()).id;
      const at = clock.now();
      await ledger?.pulled({ engine: engineId, image: heldAs, id, digest, bytes: size, at });
    }
    // The engine takes an image of another platform without a word when its name has only one.
    const warnings = await warningsOf(image, local, false);
    return {
      image,
      heldAs,
      id,
      digest,
      architecture,
      user,
      volumes,
      pulled: true,
      from,
      bytes,
      pullMs,
      warnings,
    };
  }

  /** A registry that refuses for hours must not keep out the images that another one would give. */
  async function resting(job: Job, wait: () => Promise<unknown>): Promise<void> {
    const begun = clock.now();
    job.state = 'resting';
    pump();
    await wait();
    if (!closing.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      job.goOn = resolve;
      job.state = 'returning';
      pump();
      await promise;
    }
    job.restedMs += clock.now() - begun;
  }

  function finish(job: Job, ready: ReadyImage): void {
    job.state = 'ready';
    job.held = { id: ready.id, as: ready.heldAs };
    job.result.resolve(ready);
    emit({ type: 'ready', ready });
  }

  function fail(job: Job, cause: unknown): void {
    job.state = 'failed';
    const error = cause instanceof EnvironmentError ? cause : engineLost(job.image, cause);
    // What another try may mend is tried again when asked again; a missing image stays missing for all its trials.
    if (error.code !== 'image_missing') byKey.delete(job.key);
    job.result.reject(error);
    emit({ type: 'failed', image: job.image, error });
  }

  /** A ready image may have been removed since, by the policy or by hand, or built anew. */
  async function forgetChanged(job: Job | undefined): Promise<void> {
    if (job?.held === undefined) return;
    const local = await engine.inspect(job.held.as).catch((error: unknown) => {
      throw engineLost(job.image, error);
    });
    if (local?.id !== job.held.id && byKey.get(job.key) === job) byKey.delete(job.key);
  }

  /** Resolves when the image can be used; rejects with an EnvironmentError that names image, cause and fix. */
  async function ensure(image: string, signal?: AbortSignal): Promise<ReadyImage> {
    await forgetChanged(byKey.get(imageKey(image)));
    const job = byKey.get(imageKey(image)) ?? addJob(image, true);
    job.wanted = true;
    pump();
    const { promise } = job.result;
    return signal ? untilAborted(promise, signal, image) : promise;
  }

  return {
    ensure,
    /** Images that will be asked for, in order; a few of them are pulled ahead. Called again, it replaces the list. */
    prefetch(images: readonly string[]): void {
      upcoming = images;
      pump();
    },
    /** The image was removed: the next `ensure` looks again. */
    forget(image: string): void {
      const key = imageKey(image);
      const state = byKey.get(key)?.state;
      if (state === 'ready' || state === 'failed') byKey.delete(key);
    },
    /** The images that are ready, by the names that the engine has for them, the newest first. */
    ready: (): readonly string[] => [...byKey.values()].flatMap(({ held }) => held?.as ?? []).toReversed(),
    status() {
      const all = [...byKey.values()];
      const count = (state: Job['state']) => all.filter((job) => job.state === state).length;
      const now = clock.now();
      return {
        active: all
          .filter((job) => job.state === 'active')
          .map(({ image, since, progress }) => ({ image, sinceMs: now - since, progress })),
        waiting: count('waiting') + count('resting') + count('returning'),
        ready: count('ready'),
        /** What is paused the longest; `registry`: whose refusal it is. */
        paused: paused && paused.until > now ? paused : undefined,
      };
    },
    /** Stops all pulls. */
    async close(): Promise<void> {
      closing.abort(new Error('the pull stage was closed'));
      for (const job of byKey.values()) {
        job.goOn();
        if (job.state === 'waiting') job.result.reject(cancelled(job.image));
      }
      await Promise.allSettled(running);
    },
  };
}

/** The waiting ends with the signal; the pull itself goes on for the others. */
function untilAborted<T>(result: Promise<T>, signal: AbortSignal, image: string): Promise<T> {
  if (signal.aborted) return Promise.reject(cancelled(image));
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(cancelled(image));
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([result, promise]).finally(() => signal.removeEventListener('abort', stop));
}

const engineLost = (image: string, cause: unknown): EnvironmentError =>
  new EnvironmentError(
    'daemon_lost',
    `the container engine did not answer while image ${image} was looked up (${readFault(cause).text}); check "docker info"`,
    { cause, evidence: { image } },
  );

const cancelled = (image: string): EnvironmentError =>
  pullError('interrupted', {
    image,
    registry: '',
    hasCredentials: false,
    engineMessage: 'the run was stopped',
  });

export type ImageFacts = Pick<ReadyImage, 'id' | 'digest' | 'architecture' | 'user' | 'volumes' | 'pulled'>;

/** How the start of a container gets its image onto the engine. Resolves to what an engine has under that name, however it got there. */
export type EnsureImage = (
  image: string,
  options?: { signal?: AbortSignal | undefined },
) => Promise<ImageFacts>;

export const ensureBy =
  (stage: Pick<PullStage, 'ensure'>): EnsureImage =>
  async (image, { signal } = {}) => {
    const { id, digest, architecture, user, volumes = [], pulled } = await stage.ensure(image, signal);
    return { id, digest, architecture, user, volumes, pulled };
  };
