/**
 * Jobs that get images ready on an engine: one for each image, however many trials ask for it. The trials share its end.
 *
 *   wanted ──┬─> here       the engine has it
 *            ├─> failed     it has no name, or nothing is to be pulled (environment.pull: never)
 *            └─> asked      the image that it is built from comes first, then its turn (images.max_concurrent_pulls) and room on the disk
 *   asked ─────> pulling    from its mirrors and its registry in turn, or building
 *   pulling ─┬─> here       it is in the book of the machine, so that the policy may remove it
 *            ├─> asked      its registry refuses or breaks off: while it waits for another try, its turn is another image's
 *            └─> failed     with the reason, for all who wait
 *   here ──────> evicted    the policy or a person removed it, or its name means another image: whoever asks next begins anew
 *
 * A job that has failed is begun anew as well by whoever asks next, unless its image is missing: that holds for all its trials.
 */

import { createTurnstile } from '../../base/async/room.ts';
import { orAborted } from '../../base/async/timer.ts';
import {
  candidatesOf,
  canonicalName,
  imageKey,
  isMadeHere,
  parseReference,
  sourceOf,
} from '../../base/imageReference.ts';
import { EnvironmentError } from '../environment.ts';
import { recipeOf } from './buildRecipes.ts';
import { readFault } from './dockerFault.ts';
import type { ImageBook } from './imageBook.ts';
import type { LocalImage } from './imageEngine.ts';
import { pullError } from './pullFailure.ts';
import { type PullContext, type PullEventForPeople, type PullProgress, pullImage } from './pullImage.ts';

export interface ImageJobsOptions extends Omit<PullContext, 'onEvent' | 'inTurn' | 'waits'> {
  readonly pull: 'never' | 'missing' | 'always';
  readonly onEvent?: ((event: ImageEvent) => void) | undefined;
  /** The book in which pulled images are ours. */
  readonly book?: ImageBook;
  /** Waits until the disk has room, and asks the policy to make some. */
  readonly beforePull?: (signal: AbortSignal) => Promise<void>;
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
  /** The user of its programs; '' for root. */
  readonly user: string;
  /** Volumes of its own instructions and those that it inherits; files there are no part of an image that is made of its container. */
  readonly volumes?: readonly string[];
  readonly pulled: boolean;
  readonly from: string;
  readonly bytes: number;
  /** Time of the pull alone; for the record, charged to nobody. */
  readonly pullMs: number;
  /** Words for people: emulation. */
  readonly warnings: readonly string[];
}

export type ImageFacts = Pick<ReadyImage, 'id' | 'digest' | 'architecture' | 'user' | 'volumes' | 'pulled'>;

/** The way of a container's start to its image. Resolves to what the engine has under that name, however it got there. */
export type EnsureImage = (image: string, asks: ImageAsk) => Promise<ImageFacts>;

export interface ImageAsk {
  /** Ends the wait, with its reason; the pull itself goes on for the others. */
  readonly signal: AbortSignal | undefined;
  /** Said before the wait, and again when something moves: the clocks of an attempt stand still meanwhile. */
  readonly waits: () => void;
}

/** Events of the jobs, as they happen. */
export type ImageEvent =
  | PullEventForPeople
  | { readonly type: 'started'; readonly image: string }
  | { readonly type: 'ready'; readonly ready: ReadyImage }
  | { readonly type: 'failed'; readonly image: string; readonly error: EnvironmentError };

interface Job {
  readonly key: string;
  readonly image: string;
  readonly end: PromiseWithResolvers<ReadyImage>;
  readonly waiting: Set<() => void>;
  state: 'wanted' | 'asked' | 'pulling' | 'building' | 'here' | 'failed' | 'evicted';
  /** The id of an image that is here, and the name by which the engine knows it. */
  held: { readonly id: string; readonly as: string } | undefined;
  progress: PullProgress | undefined;
}

/** States in which the caller is told that it waits. The question whether the engine has the image is short. */
const WAITED_FOR: ReadonlySet<Job['state']> = new Set(['asked', 'pulling', 'building']);

export function createImageJobs(options: ImageJobsOptions) {
  const { engine, config, clock, platform, book } = options;
  const closing = new AbortController();
  /** Evicted jobs are dropped, and failed ones too unless the image is missing. */
  const jobs = new Map<string, Job>();
  const turns = createTurnstile(config.max_concurrent_pulls);
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

  /** Resolves when the image can be used; rejects with an EnvironmentError that names image, cause and fix, or with the signal's reason. */
  async function ensure(image: string, { signal, waits }: ImageAsk): Promise<ReadyImage> {
    const key = imageKey(image);
    await lookAgain(jobs.get(key));
    const job = jobs.get(key) ?? begin(key, image);
    if (WAITED_FOR.has(job.state)) waits();
    job.waiting.add(waits);
    try {
      return await orAborted(job.end.promise, signal);
    } finally {
      job.waiting.delete(waits);
    }
  }

  /** An image that is here may have been removed since, by the policy or by hand, or built anew (imageJobs.test.ts). */
  async function lookAgain(job: Job | undefined): Promise<void> {
    if (job?.held === undefined) return;
    const local = await engine.inspect(job.held.as).catch((error: unknown) => {
      throw engineLost(job.image, error);
    });
    if (local?.id !== job.held.id) leave(job, 'evicted');
  }

  function leave(job: Job, state: 'failed' | 'evicted'): void {
    job.state = state;
    if (jobs.get(job.key) === job) jobs.delete(job.key);
  }

  function begin(key: string, image: string): Job {
    const job: Job = {
      ...{ key, image, state: 'wanted', end: Promise.withResolvers<ReadyImage>() },
      ...{ waiting: new Set(), held: undefined, progress: undefined },
    };
    jobs.set(key, job);
    job.end.promise.catch(() => undefined); // whoever asked may have left
    void bring(job).then(
      (ready) => {
        job.state = 'here';
        job.held = { id: ready.id, as: ready.heldAs };
        job.end.resolve(ready);
        emit({ type: 'ready', ready });
      },
      (cause: unknown) => {
        const error = closing.signal.aborted ? stopped(image) : asError(image, cause);
        job.state = 'failed';
        if (error.code !== 'image_missing') leave(job, 'failed');
        job.end.reject(error);
        emit({ type: 'failed', image, error });
      },
    );
    return job;
  }

  async function bring(job: Job): Promise<ReadyImage> {
    const { image } = job;
    const facts = { image, registry: '', hasCredentials: false };
    const parsed = parseReference(image);
    if (!parsed.ok) throw pullError('wrong_name', { ...facts, engineMessage: parsed.message });
    // An image that is here needs no turn, so it never waits behind a long pull.
    const present = options.pull === 'always' ? undefined : await imageHere(image);
    if (present) return present;
    if (options.pull === 'never')
      throw pullError('not_local', { ...facts, registry: parsed.reference.registry, engineMessage: '' });
    const waits = () => {
      for (const tell of job.waiting) tell();
    };
    job.state = 'asked';
    waits();
    const base = recipeOf(image)?.from;
    // Before this one asks for a turn: its base may need the only one.
    if (base !== undefined && recipeOf(base)) await ensure(base, { signal: closing.signal, waits });
    return await pulled(job, waits);
  }

  async function pulled(job: Job, waits: () => void): Promise<ReadyImage> {
    const { image } = job;
    const { signal } = closing;
    let before: { readonly local: LocalImage | undefined } | undefined;
    let pullMs = 0;
    const inTurn: PullContext['inTurn'] = (work) =>
      turns(
        async () => {
          await options.beforePull?.(signal);
          signal.throwIfAborted();
          if (!before) {
            before = { local: await engine.inspect(image) };
            emit({ type: 'started', image });
          }
          job.state = isMadeHere(image) ? 'building' : 'pulling';
          const begun = clock.now();
          try {
            return await work();
          } finally {
            job.state = 'asked';
            pullMs += clock.now() - begun;
          }
        },
        signal,
        waits,
      );
    const { local, from, heldAs, digest, bytes } = await pullImage(
      image,
      { ...options, onEvent: emit, inTurn, waits },
      signal,
    );
    // An image that was here before, even in an older version, belongs to whoever pulled it.
    if (!before?.local) {
      const { id: engineId } = await engineInfo();
      const fact = { engine: engineId, image: heldAs, id: local.id, digest, bytes: local.size };
      await book?.pulled({ ...fact, at: clock.now() });
    }
    // The engine takes an image of another platform without a word when its name has only one (T-34, registry.test.ts).
    const warnings = await warningsOf(image, local, false);
    return { ...readyOf(image, heldAs, local, digest, warnings), pulled: true, from, bytes, pullMs };
  }

  /** Undefined when the engine has no image of that name. */
  async function imageHere(image: string): Promise<ReadyImage | undefined> {
    const wanted = sourceOf(image, config.rewrite);
    // An image with a digest is the same whatever its source, and keeps the name of its source.
    const sources =
      wanted.ok && wanted.reference.digest !== undefined
        ? candidatesOf(wanted.reference, config.mirrors).map(canonicalName)
        : [];
    for (const heldAs of [image, ...sources]) {
      const local = await engine.inspect(heldAs);
      if (!local) continue;
      const warnings = await warningsOf(image, local, true);
      const digest = local.digests[0] ?? (await digestInBook(image, local.id)) ?? local.id;
      return readyOf(image, heldAs, local, digest, warnings);
    }
    return undefined;
  }

  /** The engine forgets the digest of an image from a mirror when the mirror's name is removed. */
  async function digestInBook(image: string, id: string): Promise<string | undefined> {
    const own = (await book?.own((await engineInfo()).id)) ?? [];
    return own.find((one) => one.id === id && imageKey(one.image) === imageKey(image))?.digest;
  }

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

  function emit(event: ImageEvent): void {
    if (event.type === 'progress') {
      const job = jobs.get(imageKey(event.image));
      if (job) job.progress = event.progress;
    }
    if (event.type === 'paused' && event.until > (paused?.until ?? 0)) {
      const { reason, until, registry } = event;
      paused = { reason, until, ...(registry !== undefined && { registry }) };
    }
    options.onEvent?.(event);
  }

  const inState = (...states: Job['state'][]) =>
    [...jobs.values()].filter(({ state }) => states.includes(state));

  return {
    ensure,
    /** The image was removed. A job that goes on is left to its end. */
    evict(image: string): void {
      const job = jobs.get(imageKey(image));
      if (job?.state === 'here' || job?.state === 'failed') leave(job, 'evicted');
    },
    /** The images that are here, by the names that the engine has for them, the newest first. */
    here: (): readonly string[] =>
      inState('here')
        .flatMap(({ held }) => held?.as ?? [])
        .toReversed(),
    status: () => ({
      active: inState('pulling', 'building').map(({ image, progress }) => ({ image, progress })),
      waiting: inState('asked').length,
      /** The longest pause; `registry`: whose refusal it is. */
      paused: paused && paused.until > clock.now() ? paused : undefined,
    }),
    /** Stops all pulls. */
    async close(): Promise<void> {
      closing.abort(new Error('the images are closed'));
      await Promise.allSettled([...jobs.values()].map(({ end }) => end.promise));
    },
  };
}

const readyOf = (
  image: string,
  heldAs: string,
  { id, architecture, user, volumes = [] }: LocalImage,
  digest: string,
  warnings: readonly string[],
): ReadyImage => ({
  ...{ image, heldAs, id, digest, architecture, user, volumes, warnings },
  ...{ pulled: false, from: image, bytes: 0, pullMs: 0 },
});

const asError = (image: string, cause: unknown): EnvironmentError =>
  cause instanceof EnvironmentError ? cause : engineLost(image, cause);

const engineLost = (image: string, cause: unknown): EnvironmentError =>
  new EnvironmentError(
    'daemon_lost',
    `the container engine did not answer while image ${image} was looked up (${readFault(cause).text}); check "docker info"`,
    { cause, evidence: { image } },
  );

const stopped = (image: string): EnvironmentError =>
  pullError('interrupted', {
    image,
    registry: '',
    hasCredentials: false,
    engineMessage: 'the run was stopped',
  });
