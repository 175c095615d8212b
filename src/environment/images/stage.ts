/**
 * The pull stage: images come onto the engine ahead of the slots and apart from them. One pull an image however many trials ask for it, a
 * bounded number at a time and ahead, and no slot or attempt ever pays for the waiting: a trial is started when its image is ready.
 */
import { EnvironmentError } from '../environment.ts';
import { engineWords } from './engine.ts';
import { pullError } from './failure.ts';
import type { ImageLedger } from './ledger.ts';
import type { PullProgress } from './progress.ts';
import { type PullContext, type PullEventForPeople, pullImage } from './pullImage.ts';
import { canonicalName, parseReference } from './reference.ts';

export interface ReadyImage {
  /** As the caller named it; a container can be created from it. */
  readonly image: string;
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
  readonly paused: { readonly reason: string; readonly until: number } | undefined;
}

export interface StageOptions extends Omit<PullContext, 'onEvent'> {
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
  state: 'looking' | 'waiting' | 'active' | 'ready' | 'failed';
  /** Once it is ready. */
  readyId: string | undefined;
  since: number;
  progress: PullProgress | undefined;
}

const keyOf = (image: string): string => {
  const parsed = parseReference(image);
  return parsed.ok ? canonicalName(parsed.reference) : image;
};

export function createPullStage(options: StageOptions): PullStage {
  const { engine, config, clock, policy, platform } = options;
  const closing = new AbortController();
  const jobs = new Map<string, Job>();
  const running = new Set<Promise<void>>();
  let upcoming: readonly string[] = [];
  let paused: StageStatus['paused'];
  let host: Promise<{ id: string; os: string; architecture: string }> | undefined;

  const emit = (event: StageEvent) => {
    if (event.type === 'progress') {
      const job = jobs.get(keyOf(event.image));
      if (job) job.progress = event.progress;
    }
    if (event.type === 'paused') paused = { reason: event.reason, until: event.until };
    options.onEvent?.(event);
  };

  function addJob(image: string, wanted: boolean): Job {
    const { promise, resolve, reject } = Promise.withResolvers<ReadyImage>();
    promise.catch(() => {}); // a pull ahead may fail before anybody waits for it
    const job: Job = {
      key: keyOf(image),
      image,
      result: promise,
      resolve,
      reject,
      wanted,
      state: 'looking',
      readyId: undefined,
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
      const next = upcoming.find((image) => !jobs.has(keyOf(image)));
      if (next === undefined) break;
      all.push(addJob(next, false));
    }
    let room = config.max_concurrent_pulls - all.filter((job) => job.state === 'active').length;
    for (const job of [...all.filter((j) => j.wanted), ...all.filter((j) => !j.wanted)]) {
      if (room <= 0) return;
      if (job.state !== 'waiting') continue;
      room--;
      start(job);
    }
  }

  const finish = (job: Job, ready: ReadyImage) => {
    job.state = 'ready';
    job.readyId = ready.id;
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
      const present = policy === 'always' ? undefined : await localCopy(job.image);
      if (present) return finish(job, present);
      if (policy === 'never')
        throw pullError('not_local', {
          image: job.image,
          registry: '',
          hasCredentials: false,
          engineMessage: '',
        });
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
    const pulled = await pullImage(image, { ...options, onEvent: emit }, closing.signal);
    paused = undefined;
    if (!pulled.ok) throw pulled.cancelled ? cancelled(image) : pulled.error;
    const { local, from, digest, bytes } = pulled;
    const pullMs = clock.now() - begun;
    // An image that was here before, even in an older version, belongs to whoever pulled it.
    if (!before) {
      const engineId = (await hostInfo()).id;
      await options.ledger?.pulled({
        engine: engineId,
        image,
        id: local.id,
        bytes: local.size,
        at: clock.now(),
      });
    }
    // The engine takes an image of another platform without a word when its name has only one.
    const warnings = await platformWarnings(image, local);
    const { id, architecture } = local;
    return { image, id, digest, architecture, pulled: true, from, bytes, pullMs, warnings };
  }

  async function localCopy(image: string): Promise<ReadyImage | undefined> {
    const local = await engine.inspect(image);
    if (!local) return undefined;
    const warnings = await platformWarnings(image, local);
    const digest = local.digests[0] ?? local.id;
    const { id, architecture } = local;
    return { image, id, digest, architecture, pulled: false, from: image, bytes: 0, pullMs: 0, warnings };
  }

  const hostInfo = () => {
    host ??= engine.info();
    return host;
  };

  async function platformWarnings(
    image: string,
    local: { os: string; architecture: string },
  ): Promise<readonly string[]> {
    const built = `${local.os}/${local.architecture}`;
    const parsed = parseReference(image);
    const facts = {
      image,
      registry: parsed.ok ? parsed.reference.registry : '',
      hasCredentials: false,
      platform,
    };
    if (platform !== undefined && !`${platform}/`.startsWith(`${built}/`))
      throw pullError('wrong_platform', { ...facts, engineMessage: `the local copy is built for ${built}` });
    const own = await hostInfo();
    if (own.architecture === local.architecture) return [];
    const words = `image ${image} is built for ${built}, this engine runs ${own.os}/${own.architecture}`;
    if (!config.allow_emulation) throw pullError('wrong_platform', { ...facts, engineMessage: words });
    return [`${words}: it is EMULATED, many times slower, and limits of time may hit`];
  }

  return {
    async ensure(image, signal) {
      let job = jobs.get(keyOf(image));
      // It may have been removed since, by the policy or by hand, or built anew.
      if (job?.readyId !== undefined) {
        const local = await engine.inspect(image).catch((error: unknown) => {
          throw engineLost(image, error);
        });
        const id = local?.id;
        if (id !== job.readyId && jobs.get(job.key) === job) jobs.delete(job.key);
      }
      job = jobs.get(keyOf(image)) ?? addJob(image, true);
      job.wanted = true;
      pump();
      return signal ? untilAborted(job.result, signal, image) : job.result;
    },
    prefetch(images) {
      upcoming = images;
      pump();
    },
    forget(image) {
      const key = keyOf(image);
      if (jobs.get(key)?.state === 'ready') jobs.delete(key);
    },
    isReady: (image) => jobs.get(keyOf(image))?.state === 'ready',
    status() {
      const all = [...jobs.values()];
      const now = clock.now();
      const active = all
        .filter((job) => job.state === 'active')
        .map(({ image, since, progress }) => ({ image, sinceMs: now - since, progress }));
      const count = (state: Job['state']) => all.filter((job) => job.state === state).length;
      return {
        active,
        waiting: count('waiting'),
        ready: count('ready'),
        paused: paused && paused.until > now ? paused : undefined,
      };
    },
    async close() {
      closing.abort(new Error('the pull stage was closed'));
      for (const job of jobs.values()) if (job.state === 'waiting') job.reject(cancelled(job.image));
      await Promise.allSettled(running);
    },
  };
}

const engineLost = (image: string, cause: unknown): EnvironmentError =>
  new EnvironmentError(
    'daemon_lost',
    `the container engine did not answer while image ${image} was looked up (${engineWords(cause)}); check "docker info"`,
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
