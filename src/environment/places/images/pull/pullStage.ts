/**
 * The pull stage: images come onto the engine ahead of the slots and apart from them. One pull an image however many trials ask for it, a
 * bounded number at a time and ahead, and no slot or attempt ever pays for the waiting: a trial is started when its image is ready.
 */

import { imageKey } from '../../../../base/imageReference.ts';
import { localImages, type ReadyImage } from '../localImages.ts';
import type { ImagePlace } from '../placement.ts';
import { addJob, cancelled, engineLost, type Job, type Jobs, pump, type StageOptions } from './pullJobs.ts';
import type { StageStatus } from './stageEvents.ts';

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
