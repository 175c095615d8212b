/**
 * The pull stage: images come onto the engine ahead of the slots and apart from them. One pull an image however many trials ask for it, a
 * bounded number at a time and ahead, and no slot or attempt ever pays for the waiting: a trial is started when its image is ready.
 */

import { readFault } from '../../engines/dockerFault.ts';
import { EnvironmentError } from '../../environment.ts';
import type { ImageLedger } from '../disk/imageLedger.ts';
import { localImages, type ReadyImage } from '../localImages.ts';
import { imageKey, parseReference } from '../registry/imageReference.ts';
import { pullError } from './pullFailure.ts';
import { type PullContext, type PullEventForPeople, pullImage } from './pullImage.ts';
import type { PullProgress } from './pullProgress.ts';

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

export interface PullPause {
  readonly reason: 'rate_limited' | 'budget';
  readonly until: number;
  readonly registry?: string;
}

export interface StageOptions extends Omit<PullContext, 'onEvent' | 'resting'> {
  readonly policy: 'never' | 'missing' | 'always';
  readonly onEvent?: (event: StageEvent) => void;
  /** Where pulled images are remembered as ours. */
  readonly ledger?: ImageLedger;
  /** Waits until the disk has room; the disk gate and the eviction policy stand behind it. */
  readonly beforePull?: (image: string, signal: AbortSignal) => Promise<void>;
}

export interface PullStage {
  /** Resolves when the image can be used; rejects with an EnvironmentError that names image, cause and fix. */
  ensure(image: string, signal?: AbortSignal): Promise<ReadyImage>;
  /** The image was removed: the next `ensure` looks again. */
  forget(image: string): void;
  /** Images that will be asked for, in order; a few of them are pulled ahead. Called again, it replaces the list. */
  prefetch(images: readonly string[]): void;
  isReady(image: string): boolean;
  status(): StageStatus;
  /** Stops all pulls. */
  close(): Promise<void>;
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

export function createPullStage(options: StageOptions): PullStage {
  const { engine, config, clock, policy, platform } = options;
  const closing = new AbortController();
  const jobs = new Map<string, Job>();
  const running = new Set<Promise<void>>();
  let upcoming: readonly string[] = [];
  let paused: StageStatus['paused'];
  const here = localImages({ engine, config, platform, ledger: options.ledger });

  const emit = (event: StageEvent) => {
    if (event.type === 'progress') {
      const job = jobs.get(imageKey(event.image));
      if (job) job.progress = event.progress;
    }
    if (event.type === 'paused' && event.until > (paused?.until ?? 0)) {
      const { reason, until, registry } = event;
      paused = { reason, until, ...(registry !== undefined && { registry }) };
    }
    options.onEvent?.(event);
  };

  function addJob(image: string, wanted: boolean): Job {
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
      since: clock.now(),
      progress: undefined,
    };
    jobs.set(job.key, job);
    track(look(job));
    return job;
  }

  /** Starts what may start: wanted images first, then those pulled ahead. */
  function pump(): void {
    if (closing.signal.aborted) return;
    const all = [...jobs.values()];
    const idleAhead = all.filter((job) => !job.wanted && job.state !== 'failed').length;
    for (let room = config.ahead - idleAhead; room > 0; room--) {
      const next = upcoming.find((image) => !jobs.has(imageKey(image)));
      if (next === undefined) break;
      all.push(addJob(next, false));
    }
    let room = config.max_concurrent_pulls - all.filter((job) => job.state === 'active').length;
    const returning = all.filter((job) => job.state === 'returning');
    for (const job of [...returning, ...all.filter((j) => j.wanted), ...all.filter((j) => !j.wanted)]) {
      if (room <= 0) return;
      if (job.state === 'waiting') start(job);
      else if (job.state === 'returning') {
        job.state = 'active';
        job.goOn();
      } else continue;
      room--;
    }
  }

  /** A registry that refuses for hours must not keep out the images that another one would give. */
  async function resting(job: Job, wait: () => Promise<void>): Promise<void> {
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

  const finish = (job: Job, ready: ReadyImage) => {
    job.state = 'ready';
    job.held = { id: ready.id, as: ready.heldAs };
    job.resolve(ready);
    emit({ type: 'ready', ready });
  };
  const fail = (job: Job, cause: unknown) => {
    job.state = 'failed';
    const error = cause instanceof EnvironmentError ? cause : engineLost(job.image, cause);
    // What another try may mend is tried again when asked again; a missing image stays missing for all its trials.
    if (error.code !== 'image_missing') jobs.delete(job.key);
    job.reject(error);
    emit({ type: 'failed', image: job.image, error });
  };
  const track = (work: Promise<void>) => {
    const tracked = work.finally(() => {
      running.delete(tracked);
      pump();
    });
    running.add(tracked);
  };

  /** An image that is here needs no slot of the puller, so it never waits behind a long pull. */
  async function look(job: Job): Promise<void> {
    const parsed = parseReference(job.image);
    try {
      if (!parsed.ok) {
        const facts = {
          image: job.image,
          registry: '',
          hasCredentials: false,
          engineMessage: parsed.message,
        };
        throw pullError('wrong_name', facts);
      }
      const present = policy === 'always' ? undefined : await here.find(job.image);
      if (present) return finish(job, present);
      if (policy === 'never')
        throw pullError('not_local', {
          image: job.image,
          registry: '',
          hasCredentials: false,
          engineMessage: '',
        });
      if (closing.signal.aborted) throw cancelled(job.image);
      job.state = 'waiting';
    } catch (error) {
      fail(job, error);
    }
  }

  function start(job: Job): void {
    job.state = 'active';
    job.since = clock.now();
    track(
      bring(job).then(
        (ready) => finish(job, ready),
        (error: unknown) => fail(job, error),
      ),
    );
  }

  async function bring(job: Job): Promise<ReadyImage> {
    const { image } = job;
    await options.beforePull?.(image, closing.signal);
    const before = await engine.inspect(image);
    emit({ type: 'started', image });
    const begun = clock.now();
    const context: PullContext = { ...options, onEvent: emit, resting: (wait) => resting(job, wait) };
    const pulled = await pullImage(image, context, closing.signal);
    if (!pulled.ok) throw pulled.cancelled ? cancelled(image) : pulled.error;
    const { local, from, heldAs, digest, bytes } = pulled;
    const pullMs = clock.now() - begun - job.restedMs;
    // An image that was here before, even in an older version, belongs to whoever pulled it.
    if (!before) {
      const engineId = (await here.engine()).id;
      await options.ledger?.pulled({
        engine: engineId,
        image: heldAs,
        id: local.id,
        digest,
        bytes: local.size,
        at: clock.now(),
      });
    }
    // The engine takes an image of another platform without a word when its name has only one.
    const warnings = await here.warningsOf(image, local, 'pulled');
    const { id, architecture } = local;
    return { image, heldAs, id, digest, architecture, pulled: true, from, bytes, pullMs, warnings };
  }

  return {
    async ensure(image, signal) {
      let job = jobs.get(imageKey(image));
      // It may have been removed since, by the policy or by hand, or built anew.
      if (job?.held !== undefined) {
        const local = await engine.inspect(job.held.as).catch((error: unknown) => {
          throw engineLost(image, error);
        });
        const id = local?.id;
        if (id !== job.held.id && jobs.get(job.key) === job) jobs.delete(job.key);
      }
      job = jobs.get(imageKey(image)) ?? addJob(image, true);
      job.wanted = true;
      pump();
      return signal ? untilAborted(job.result, signal, image) : job.result;
    },
    prefetch(images) {
      upcoming = images;
      pump();
    },
    forget(image) {
      const key = imageKey(image);
      if (jobs.get(key)?.state === 'ready') jobs.delete(key);
    },
    isReady: (image) => jobs.get(imageKey(image))?.state === 'ready',
    status() {
      const all = [...jobs.values()];
      const now = clock.now();
      const active = all
        .filter((job) => job.state === 'active')
        .map(({ image, since, progress }) => ({ image, sinceMs: now - since, progress }));
      const count = (state: Job['state']) => all.filter((job) => job.state === state).length;
      return {
        active,
        waiting: count('waiting') + count('resting') + count('returning'),
        ready: count('ready'),
        paused: paused && paused.until > now ? paused : undefined,
      };
    },
    async close() {
      closing.abort(new Error('the pull stage was closed'));
      for (const job of jobs.values()) {
        job.goOn();
        if (job.state === 'waiting') job.reject(cancelled(job.image));
      }
      await Promise.allSettled(running);
    },
  };
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

/** The waiting ends with the signal; the pull itself goes on for the others. */
function untilAborted<T>(result: Promise<T>, signal: AbortSignal, image: string): Promise<T> {
  if (signal.aborted) return Promise.reject(cancelled(image));
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(cancelled(image));
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([result, promise]).finally(() => signal.removeEventListener('abort', stop));
}
