/**
 * The images of a run, on one engine or on several: which engine a trial is meant for, and its image there before it takes a slot. Every
 * engine has its own pulls, disk floor and policy; what is needed is known to all of them.
 */

import { parseSize } from '../../base/text/units.ts';
import { type EnginePool, isLoss } from '../engines/enginePool.ts';
import { EnvironmentError, type Place } from '../environment.ts';
import type { Collected } from './disk/collect.ts';
import { type EnsureImage, ensureBy } from './ensureImage.ts';
import type { ImagePlan } from './imagePlan.ts';
import type { ImageService } from './imageService.ts';
import { type ImagePolicy, parsePolicy } from './imagesConfig.ts';
import type { StageStatus } from './pull/stageEvents.ts';

export interface ReadyPlace {
  /** Absent with one engine, which has no places. */
  readonly place: Place | undefined;
  readonly warnings: readonly string[];
}

export interface EngineStatus {
  readonly host: string | undefined;
  readonly status: StageStatus;
}

export interface EnginePlan {
  readonly host: string | undefined;
  readonly plan: ImagePlan;
  readonly freeBytes: number | undefined;
}

/** What of the configuration a run has to know. */
export interface RunImagesConfig {
  readonly ahead: number;
  readonly policy: string;
  readonly disk_low: string;
  /** environment.pull */
  readonly pull: 'never' | 'missing' | 'always';
}

export interface RunImages {
  /** Images fetched before a slot is free, on all engines. */
  readonly ahead: number;
  readonly policy: ImagePolicy;
  /** Free space below which nothing new starts. */
  readonly floorBytes: number;
  /** Waits until an engine has the image and room for it. Rejects with an EnvironmentError, or with the signal. */
  ready(image: string, signal: AbortSignal): Promise<ReadyPlace>;
  /** How a start on that engine gets its image; here it is at once after `ready`. */
  ensureOn(host: string | undefined): EnsureImage;
  /** Whether something may start there now: the disk may have filled up since `ready`. */
  hasRoom(host: string | undefined): Promise<boolean>;
  /** Whether the engine is known to have the image. */
  has(host: string, image: string): boolean;
  /** The images that queued trials and gradings of this process still need. */
  need(images: readonly string[]): Promise<void>;
  /** The images of the whole run: what `remove-after` may take. Others were fetched for somebody else. */
  belong(images: readonly string[]): void;
  /** Nothing in this process needs the image any more: the policy may take it. */
  done(image: string): Promise<Collected>;
  collect(): Promise<Collected>;
  /** Per engine that answers; what is not known when the signal aborts stays unknown. */
  plan(images: readonly string[], signal: AbortSignal): Promise<EnginePlan[]>;
  status(): EngineStatus[];
  /** Where the only engine keeps its layers, on this machine; each of several watches its own disk. */
  engineDir(): Promise<string | undefined>;
  close(): Promise<void>;
}

const NOT_HERE: ReadonlySet<string> = new Set(['image_missing', 'image_pull_failed', 'disk_full']);
const cannotBeHere = (error: unknown) => error instanceof EnvironmentError && NOT_HERE.has(error.code);

const planOf = async (
  host: string | undefined,
  service: ImageService,
  images: readonly string[],
  config: RunImagesConfig,
  signal: AbortSignal,
): Promise<EnginePlan> => {
  const plan = await service.plan(images, { ask: config.pull !== 'never', signal });
  return { host, plan, freeBytes: await service.freeBytes() };
};

const settingsOf = (config: RunImagesConfig, engines: number) => ({
  ahead: config.ahead * engines,
  policy: parsePolicy(config.policy),
  floorBytes: parseSize(config.disk_low),
});

export function imagesOfOneEngine(service: ImageService, config: RunImagesConfig): RunImages {
  const ensure = ensureBy(service.stage);
  let among: readonly string[] | undefined;
  return {
    ...settingsOf(config, 1),
    async ready(image, signal) {
      await service.disk.pass(signal);
      signal.throwIfAborted();
      const { warnings } = await service.stage.ensure(image, signal);
      return { place: undefined, warnings };
    },
    ensureOn: () => ensure,
    hasRoom: async () => (await service.disk.check()).open,
    has: (_, image) => service.stage.isReady(image),
    need: (images) => service.need(images),
    belong(images) {
      among = images;
    },
    done: (image) => service.done(image, among),
    collect: () => service.collect({ among }),
    plan: async (images, signal) => [await planOf(undefined, service, images, config, signal)],
    engineDir: () => service.layersDir(),
    status: () => [{ host: undefined, status: service.stage.status() }],
    close: () => service.close(),
  };
}

export function imagesOfSeveralEngines(
  services: ReadonlyMap<string, ImageService>,
  pool: EnginePool,
  config: RunImagesConfig,
  onError: (message: string) => void = () => {},
): RunImages {
  const all = [...services.values()];
  let among: readonly string[] | undefined;
  const aliveOnes = () => pool.alive().map((host) => ({ host, service: services.get(host)! }));
  const has = (host: string, image: string) => services.get(host)!.stage.isReady(image);

  /** Engines whose disk has room, of those that may have the image; waits while none has. */
  async function withRoom(without: ReadonlySet<string>, signal: AbortSignal): Promise<ReadonlySet<string>> {
    for (;;) {
      signal.throwIfAborted();
      const alive = aliveOnes().filter(({ host }) => !without.has(host));
      const looked = await Promise.all(
        alive.map(async ({ host, service }) => ({ host, open: (await service.disk.check()).open })),
      );
      const open = looked.filter((one) => one.open).map((one) => one.host);
      if (open.length > 0 || alive.length === 0) return new Set(open);
      const settled = new AbortController();
      const until = AbortSignal.any([signal, settled.signal]);
      await Promise.race(alive.map(({ service }) => service.disk.pass(until)));
      settled.abort();
    }
  }

  /** One after the other, so that trials are placed in their order; one that only a full engine can take is passed. */
  let placing: Promise<unknown> = Promise.resolve();
  function inTurn(without: ReadonlySet<string>, signal: AbortSignal): Promise<Place> {
    const choose = async () => {
      const room = await withRoom(without, signal);
      // The least taken engine, even when another one has the image: the slots of all are to be used.
      return pool.choose((host) => room.has(host));
    };
    if (without.size > 0) return choose();
    const place = placing.then(choose);
    placing = place.catch(() => {});
    return place;
  }

  /** An engine that died must not keep the others from going on. */
  async function onEach(work: (service: ImageService) => Promise<Collected>): Promise<Collected> {
    const results = await Promise.all(
      aliveOnes().map(({ host, service }) =>
        work(service).catch((error: unknown) => {
          onError(`images on ${host}: ${error instanceof Error ? error.message : String(error)}`);
        }),
      ),
    );
    const done = results.filter((result) => result !== undefined);
    return { removed: done.flatMap((r) => r.removed), kept: done.flatMap((r) => r.kept) };
  }

  return {
    ...settingsOf(config, services.size),
    async ready(image, signal) {
      const without = new Set<string>();
      for (;;) {
        const place = await inTurn(without, signal);
        try {
          const { warnings } = await services.get(place.host)!.stage.ensure(image, signal);
          await place.enter(signal);
          return { place, warnings };
        } catch (error) {
          place.release();
          if (isLoss(error)) pool.lose(place.host, error.message);
          // Built by hand on one of them only, or its registry is not reached from all.
          else if (
            cannotBeHere(error) &&
            !pool.alive().every((host) => without.has(host) || host === place.host)
          )
            without.add(place.host);
          else throw error;
        }
      }
    },
    ensureOn: (host) => ensureBy(services.get(host!)!.stage),
    hasRoom: async (host) => (await services.get(host!)!.disk.check()).open,
    has,
    // One list for all: who waits is not meant for an engine yet.
    need: (images) => all[0]!.need(images),
    belong(images) {
      among = images;
    },
    done: (image) => onEach((service) => service.done(image, among)),
    collect: () => onEach((service) => service.collect({ among })),
    async plan(images, signal) {
      const plans = await Promise.allSettled(
        aliveOnes().map(({ host, service }) => planOf(host, service, images, config, signal)),
      );
      return plans.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : []));
    },
    engineDir: async () => undefined,
    status: () => [...services].map(([host, service]) => ({ host, status: service.stage.status() })),
    async close() {
      await Promise.allSettled(all.map((service) => service.close()));
    },
  };
}
