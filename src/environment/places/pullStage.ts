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
import { readFault } from './dockerFault.ts';
import type { ImageEngine, LocalImage } from './imageEngine.ts';
import type { ImageLedger } from './imageLedger.ts';
import type { ImagesConfig } from './imagesConfig.ts';
import { pullError } from './pullFailure.ts';
import { type PullContext, type PullEventForPeople, type PullProgress, pullImage } from './pullImage.ts';

export type ImagePlace = 'here' | 'coming' | 'absent';

export interface PullStage {
  /** Resolves when the image can be used; rejects with an EnvironmentError that names image, cause and fix. */
  ensure(image: string, signal?: AbortSignal): Promise<ReadyImage>;
  /** The image was removed: the next `ensure` looks again. */
  forget(image: string): void;
  /** Images that will be asked for, in order; a few of them are pulled ahead. Called again, it replaces the list. */
  prefetch(images: readonly string[]): void;
  isReady(image: string): boolean;
  /** The images that are ready, by the names that the engine has for them, the newest first. */
  ready(): readonly string[];
  /** Whether the engine has the image, or gets it. Where the engine does not say, it is absent. */
  placeOf(image: string): Promise<ImagePlace>;
  status(): StageStatus;
  /** Stops all pulls. */
  close(): Promise<void>;
}

export function createPullStage(options: StageOptions): PullStage {
  const { engine, config, clock, platform, ledger } = options;
  const jobs: Jobs = {
    options,
    here: localImages({ engine, config, platform, ledger }),
    closing: new AbortController(),
    byKey: new Map(),
    running: new Set(),
    upcoming: [],
    paused: undefined,
  };
  const { byKey, closing } = jobs;
  return {
    async ensure(image, signal) {
      const known = byKey.get(imageKey(image));
      if (known?.held !== undefined) await forgetChanged(jobs, known, known.held);
      const job = byKey.get(imageKey(image)) ?? addJob(jobs, image, true);
      job.wanted = true;
      pump(jobs);
      return signal ? untilAborted(job.result, signal, image) : job.result;
    },
    prefetch(images) {
      jobs.upcoming = images;
      pump(jobs);
    },
    forget(image) {
      const key = imageKey(image);
      const state = byKey.get(key)?.state;
      if (state === 'ready' || state === 'failed') byKey.delete(key);
    },
    isReady: (image) => byKey.get(imageKey(image))?.state === 'ready',
    ready: () => [...byKey.values()].flatMap(({ held }) => held?.as ?? []).toReversed(),
    placeOf: (image) => placeOf(jobs, image),
    status: () => statusOf([...byKey.values()], jobs.paused, clock.now()),
    async close() {
      closing.abort(new Error('the pull stage was closed'));
      for (const job of byKey.values()) {
        job.goOn();
        if (job.state === 'waiting') job.reject(cancelled(job.image));
      }
      await Promise.allSettled(jobs.running);
    },
  };
}

async function placeOf({ byKey, here, options }: Jobs, image: string): Promise<ImagePlace> {
  const state = byKey.get(imageKey(image))?.state;
  if (state === 'ready') return 'here';
  if (state === 'failed') return 'absent';
  if (state !== undefined && state !== 'looking') return 'coming';
  if (options.policy === 'always') return 'absent';
  const found = await here.find(image).catch(() => undefined);
  return found ? 'here' : state === 'looking' ? 'coming' : 'absent';
}

/** A ready image may have been removed since, by the policy or by hand, or built anew. */
async function forgetChanged(
  { byKey, options }: Jobs,
  job: Job,
  held: NonNullable<Job['held']>,
): Promise<void> {
  const local = await options.engine.inspect(held.as).catch((error: unknown) => {
    throw engineLost(job.image, error);
  });
  if (local?.id !== held.id && byKey.get(job.key) === job) byKey.delete(job.key);
}

function statusOf(all: readonly Job[], paused: StageStatus['paused'], now: number): StageStatus {
  const count = (state: Job['state']) => all.filter((job) => job.state === state).length;
  return {
    active: all
      .filter((job) => job.state === 'active')
      .map(({ image, since, progress }) => ({ image, sinceMs: now - since, progress })),
    waiting: count('waiting') + count('resting') + count('returning'),
    ready: count('ready'),
    paused: paused && paused.until > now ? paused : undefined,
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

export interface StageOptions extends Omit<PullContext, 'onEvent' | 'resting'> {
  readonly policy: 'never' | 'missing' | 'always';
  readonly onEvent?: (event: StageEvent) => void;
  /** Where pulled images are remembered as ours. */
  readonly ledger?: ImageLedger;
  /** Waits until the disk has room, by the disk gate and the eviction policy. */
  readonly beforePull?: (image: string, signal: AbortSignal) => Promise<void>;
}

interface Job {
  readonly key: string;
  readonly image: string;
  readonly result: Promise<ReadyImage>;
  readonly resolve: (ready: ReadyImage) => void;
  readonly reject: (error: unknown) => void;
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

interface Jobs {
  readonly options: StageOptions;
  readonly here: LocalImages;
  readonly closing: AbortController;
  readonly byKey: Map<string, Job>;
  readonly running: Set<Promise<void>>;
  /** Asked for later, in this order. */
  upcoming: readonly string[];
  paused: StageStatus['paused'];
}

function emit(jobs: Jobs, event: StageEvent): void {
  if (event.type === 'progress') {
    const job = jobs.byKey.get(imageKey(event.image));
    if (job) job.progress = event.progress;
  }
  if (event.type === 'paused' && event.until > (jobs.paused?.until ?? 0)) {
    const { reason, until, registry } = event;
    jobs.paused = { reason, until, ...(registry !== undefined && { registry }) };
  }
  jobs.options.onEvent?.(event);
}

/** One job for each image, from the first look until it is ready. Pulls have limited places; awaited images go first. */
function addJob(jobs: Jobs, image: string, wanted: boolean): Job {
  const { promise, resolve, reject } = Promise.withResolvers<ReadyImage>();
  promise.catch(() => {}); // a pull ahead may fail before anybody waits for it
  const job: Job = {
    key: imageKey(image),
    image,
    result: promise,
    resolve,
    reject,
    wanted,
    state: 'looking',
    goOn: () => {},
    restedMs: 0,
    held: undefined,
    since: jobs.options.clock.now(),
    progress: undefined,
  };
  jobs.byKey.set(job.key, job);
  track(jobs, look(jobs, job));
  return job;
}

function track(jobs: Jobs, work: Promise<void>): void {
  const tracked = work.finally(() => {
    jobs.running.delete(tracked);
    pump(jobs);
  });
  jobs.running.add(tracked);
}

/** Starts what may start: wanted images first, then those pulled ahead. */
function pump(jobs: Jobs): void {
  if (jobs.closing.signal.aborted) return;
  const { config } = jobs.options;
  const all = [...jobs.byKey.values()];
  const idleAhead = all.filter((job) => !job.wanted && job.state !== 'failed').length;
  for (let room = config.ahead - idleAhead; room > 0; room--) {
    const next = jobs.upcoming.find((image) => !jobs.byKey.has(imageKey(image)));
    if (next === undefined) break;
    all.push(addJob(jobs, next, false));
  }
  let room = config.max_concurrent_pulls - all.filter((job) => job.state === 'active').length;
  const returning = all.filter((job) => job.state === 'returning');
  for (const job of [...returning, ...all.filter((j) => j.wanted), ...all.filter((j) => !j.wanted)]) {
    if (room <= 0) return;
    if (job.state === 'waiting') start(jobs, job);
    else if (job.state === 'returning') {
      job.state = 'active';
      job.goOn();
    } else continue;
    room--;
  }
}

/** An image that is here needs no place of the puller, so it never waits behind a long pull. */
async function look(jobs: Jobs, job: Job): Promise<void> {
  const { policy } = jobs.options;
  const { image } = job;
  const facts = { image, registry: '', hasCredentials: false };
  try {
    const parsed = parseReference(image);
    if (!parsed.ok) throw pullError('wrong_name', { ...facts, engineMessage: parsed.message });
    const present = policy === 'always' ? undefined : await jobs.here.find(image);
    if (present) return finish(jobs, job, present);
    if (policy === 'never') throw pullError('not_local', { ...facts, engineMessage: '' });
    if (jobs.closing.signal.aborted) throw cancelled(image);
    job.state = 'waiting';
  } catch (error) {
    fail(jobs, job, error);
  }
}

function start(jobs: Jobs, job: Job): void {
  job.state = 'active';
  job.since = jobs.options.clock.now();
  track(
    jobs,
    bring(jobs, job).then(
      (ready) => finish(jobs, job, ready),
      (error: unknown) => fail(jobs, job, error),
    ),
  );
}

async function bring(jobs: Jobs, job: Job): Promise<ReadyImage> {
  const { options, closing, here } = jobs;
  const { engine, clock } = options;
  const { image } = job;
  await options.beforePull?.(image, closing.signal);
  const before = await engine.inspect(image);
  const onEvent = (event: StageEvent) => emit(jobs, event);
  onEvent({ type: 'started', image });
  const begun = clock.now();
  const context: PullContext = { ...options, onEvent, resting: (wait) => resting(jobs, job, wait) };
  const pulled = await pullImage(image, context, closing.signal);
  if (!pulled.ok) throw pulled.cancelled ? cancelled(image) : pulled.error;
  const { local, from, heldAs, digest, bytes } = pulled;
  const { id, architecture, size } = local;
  const pullMs = clock.now() - begun - job.restedMs;
  // An image that was here before, even in an older version, belongs to whoever pulled it.
  if (!before) {
    const engineId = (await here.engine()).id;
    const at = clock.now();
    await options.ledger?.pulled({ engine: engineId, image: heldAs, id, digest, bytes: size, at });
  }
  // The engine takes an image of another platform without a word when its name has only one.
  const warnings = await here.warningsOf(image, local, 'pulled');
  return { image, heldAs, id, digest, architecture, pulled: true, from, bytes, pullMs, warnings };
}

/** A registry that refuses for hours must not keep out the images that another one would give. */
async function resting(jobs: Jobs, job: Job, wait: () => Promise<void>): Promise<void> {
  const { clock } = jobs.options;
  const begun = clock.now();
  job.state = 'resting';
  pump(jobs);
  await wait();
  if (!jobs.closing.signal.aborted) {
    const { promise, resolve } = Promise.withResolvers<void>();
    job.goOn = resolve;
    job.state = 'returning';
    pump(jobs);
    await promise;
  }
  job.restedMs += clock.now() - begun;
}

function finish(jobs: Jobs, job: Job, ready: ReadyImage): void {
  job.state = 'ready';
  job.held = { id: ready.id, as: ready.heldAs };
  job.resolve(ready);
  emit(jobs, { type: 'ready', ready });
}

function fail(jobs: Jobs, job: Job, cause: unknown): void {
  job.state = 'failed';
  const error = cause instanceof EnvironmentError ? cause : engineLost(job.image, cause);
  // What another try may mend is tried again when asked again; a missing image stays missing for all its trials.
  if (error.code !== 'image_missing') jobs.byKey.delete(job.key);
  job.reject(error);
  emit(jobs, { type: 'failed', image: job.image, error });
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

/** What a pull stage has to say: events as they happen, and its state when asked. */
export type StageEvent =
  | PullEventForPeople
  | { readonly type: 'started'; readonly image: string }
  | { readonly type: 'ready'; readonly ready: ReadyImage }
  | { readonly type: 'failed'; readonly image: string; readonly error: EnvironmentError };

export interface StageStatus {
  readonly active: readonly {
    readonly image: string;
    readonly sinceMs: number;
    readonly progress: PullProgress | undefined;
  }[];
  readonly waiting: number;
  readonly ready: number;
  /** What is paused the longest; `registry`: whose refusal it is. */
  readonly paused: PullPause | undefined;
}

interface PullPause {
  readonly reason: 'rate_limited' | 'budget';
  readonly until: number;
  readonly registry?: string;
}

export interface ImageFacts {
  readonly id: string;
  /** Repo digest, else the image id. */
  readonly digest: string;
  readonly architecture: string;
  readonly pulled: boolean;
}

/** How the start of a container gets its image onto the engine. Resolves to what an engine has under that name, however it got there. */
export type EnsureImage = (
  image: string,
  options?: { signal?: AbortSignal | undefined },
) => Promise<ImageFacts>;

export const ensureBy =
  (stage: PullStage): EnsureImage =>
  async (image, { signal } = {}) => {
    const { id, digest, architecture, pulled } = await stage.ensure(image, signal);
    return { id, digest, architecture, pulled };
  };

interface ReadyImage {
  /** As the caller named it. */
  readonly image: string;
  /** The name that the engine has for it: another one only for a digest that came from a mirror. */
  readonly heldAs: string;
  readonly id: string;
  /** Repo digest, else the id: what is recorded. */
  readonly digest: string;
  readonly architecture: string;
  readonly pulled: boolean;
  readonly from: string;
  readonly bytes: number;
  /** Time of the pull alone; for the record, charged to nobody. */
  readonly pullMs: number;
  /** What people should hear: emulation. */
  readonly warnings: readonly string[];
}

interface LocalImages {
  /** Undefined when the engine has no image of that name. */
  find(image: string): Promise<ReadyImage | undefined>;
  /** Warnings to show before it runs; throws when it must not run here. */
  warningsOf(image: string, built: Built, how: 'pulled' | 'found'): Promise<readonly string[]>;
  /** Asked once. */
  engine(): ReturnType<ImageEngine['info']>;
}
type Built = Pick<LocalImage, 'os' | 'architecture'>;

function localImages(parts: {
  engine: ImageEngine;
  config: Pick<ImagesConfig, 'rewrite' | 'mirrors' | 'allow_emulation'>;
  platform?: string | undefined;
  ledger?: ImageLedger | undefined;
}): LocalImages {
  const { engine, config, platform, ledger } = parts;
  let info: ReturnType<ImageEngine['info']> | undefined;
  const engineInfo = () => {
    info ??= engine.info().catch((error: unknown) => {
      info = undefined; // it may come back
      throw error;
    });
    return info;
  };

  /** An image with a digest is the same whatever its source, and keeps the name of its source. */
  function namesHere(image: string): string[] {
    const wanted = sourceOf(image, config.rewrite);
    if (!wanted.ok || wanted.reference.digest === undefined) return [image];
    return [image, ...candidatesOf(wanted.reference, config.mirrors).map(canonicalName)];
  }

  /** The engine forgets the digest of an image from a mirror when the mirror's name is removed. */
  async function digestPulled(image: string, id: string): Promise<string | undefined> {
    const own = (await ledger?.own((await engineInfo()).id)) ?? [];
    return own.find((one) => one.id === id && imageKey(one.image) === imageKey(image))?.digest;
  }

  async function warningsOf(
    image: string,
    local: Built,
    how: 'pulled' | 'found',
  ): Promise<readonly string[]> {
    const built = `${local.os}/${local.architecture}`;
    const parsed = parseReference(image);
    const registry = parsed.ok ? parsed.reference.registry : '';
    const facts = { image, registry, hasCredentials: false, platform, local: how === 'found' };
    if (platform !== undefined && !`${platform}/`.startsWith(`${built}/`))
      throw pullError('wrong_platform', { ...facts, engineMessage: `the local copy is built for ${built}` });
    const own = await engineInfo();
    if (own.architecture === local.architecture) return [];
    const words = `image ${image} is built for ${built}, this engine runs ${own.os}/${own.architecture}`;
    if (!config.allow_emulation) throw pullError('wrong_platform', { ...facts, engineMessage: words });
    return [`${words}: it is EMULATED, many times slower, and limits of time may hit`];
  }

  return {
    engine: engineInfo,
    warningsOf,
    async find(image) {
      for (const heldAs of namesHere(image)) {
        const local = await engine.inspect(heldAs);
        if (!local) continue;
        const warnings = await warningsOf(image, local, 'found');
        const digest = local.digests[0] ?? (await digestPulled(image, local.id)) ?? local.id;
        const { id, architecture } = local;
        const nothing = { pulled: false, from: image, bytes: 0, pullMs: 0 };
        return { image, heldAs, id, digest, architecture, ...nothing, warnings };
      }
      return undefined;
    },
  };
}
