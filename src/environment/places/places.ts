/**
 * Where the trials of a run may go, and what must lie there first: on one engine, or on the several of `environment.hosts`. Every engine has its
 * own pulls, disk floor and policy (imageService.ts); all of them know which images are needed, and share their slots (enginePool.ts).
 */
import { within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { parseSize } from '../../base/text/units.ts';
import { EnvironmentError, isLoss, type Place } from '../environment.ts';
import { engineClient, engineOptionsOf } from './chosenEngine.ts';
import { createEnginePool, type EnginePool, PlaceGone, type RunPool } from './enginePool.ts';
import { createEngineWatch, type EngineWatch } from './engineWatch.ts';
import type { Collected } from './imageLedger.ts';
import type { ImageService } from './imageService.ts';
import { parsePolicy } from './imagesConfig.ts';
import { ensureBy, type ImagePlace } from './pullStage.ts';

export function requiredEngine(host: string) {
  const docker = engineOptionsOf(host);
  if (!docker) throw new Error(`environment.hosts names "${host}", and nothing says how engines are found`);
  return docker;
}

/** Says which are lost and back. Throws when a name means nothing. */
export const enginePoolOf = (
  hosts: readonly { readonly host: string; readonly slots: number }[],
  onWarning: (message: string) => void = () => {},
): RunPool =>
  createEnginePool(
    hosts.map(({ host, slots }) => {
      const docker = engineClient(requiredEngine(host));
      return { name: host, slots, ping: () => docker.ping() };
    }),
    {
      onChange: (host, state, reason) =>
        onWarning(`engine ${host} is ${state}${reason ? `: ${reason}` : ''}`),
    },
  );

/**
 * Of several engines together, which stand in for each other: they are away when none answers. Without them, of the engine that is used
 * where nobody names one.
 */
export function watchEngines(limitS: number, several?: EnginePool): EngineWatch {
  const limitMs = limitS * 1000;
  if (several) return createEngineWatch({ ping: several.anyAnswers, limitMs });
  const docker = engineClient();
  return createEngineWatch({ ping: () => docker.ping(), limitMs });
}

/** An image that is ready, and its place; one engine has no places. */
export interface ReadyPlace {
  readonly place: Place | undefined;
  readonly warnings: readonly string[];
}

/** What of the configuration a run has to know. */
interface RunImagesConfig {
  readonly ahead: number;
  readonly policy: string;
  readonly disk_low: string;
  /** environment.pull */
  readonly pull: 'never' | 'missing' | 'always';
  /** environment.memory of the arm that asks for most; 0 for no limit. */
  readonly memoryBytes?: number | undefined;
}

const NOT_HERE: ReadonlySet<string> = new Set([
  ...['image_missing', 'image_pull_failed', 'image_build_failed', 'disk_full'],
]);

/** An engine that is slow to say where an image is must not hold up the trials of others. */
const ANSWER_MS = 2000;

export type RunImages = ReturnType<typeof imagesOfEngines>;
export type EnginePlan = Awaited<ReturnType<RunImages['plan']>>[number];

/**
 * The images of a run. `services`: by engine; the only one of those that have no places is undefined. `pool`: the places of several. `admit`:
 * refuses an engine that must not get trials.
 */
export function imagesOfEngines(
  services: ReadonlyMap<string | undefined, ImageService>,
  config: RunImagesConfig,
  pool?: EnginePool,
  onError: (message: string) => void = () => {},
  admit: (host: string) => Promise<void> = async () => {},
) {
  const all = [...services.values()];
  const only = all[0]!;
  let among: readonly string[] | undefined;
  const serviceOf = (host: string | undefined) => services.get(host) ?? only;
  const alive = () =>
    pool
      ? pool.alive().map((host) => ({ host, service: serviceOf(host) }))
      : [{ host: undefined, service: only }];

  /** An engine that died must not keep the others from going on. */
  async function onEach(work: (service: ImageService) => Promise<Collected>): Promise<Collected> {
    if (!pool) return work(only);
    const results = await Promise.all(
      alive().map(({ host, service }) =>
        work(service).catch((error: unknown) => {
          onError(`images on ${host}: ${errorText(error)}`);
        }),
      ),
    );
    const done = results.filter((result) => result !== undefined);
    return { removed: done.flatMap((r) => r.removed), kept: done.flatMap((r) => r.kept) };
  }

  /** An engine that has gone away is looked for half a minute: its disk must not hold up the trials of all others. */
  async function hasRoom(host: string | undefined): Promise<boolean> {
    const check = () => serviceOf(host).disk.check();
    if (!pool || host === undefined) return (await check()).open;
    // A trial whose place is on an engine that was lost or refused goes back, and gets one elsewhere.
    if (!pool.alive().includes(host)) return false;
    const checking = check();
    const looked = await within(checking, ANSWER_MS);
    return looked ? looked.open : (await pool.takesNow(host)) && (await checking).open;
  }

  const ready = pool ? placeFinder(pool) : undefined;

  /** The places of several engines: each trial gets one, and its image there. */
  function placeFinder(pool: EnginePool) {
    /** Engines whose disk has room, of those that may have the image; waits while none has. */
    async function withRoom(without: ReadonlySet<string>, signal: AbortSignal): Promise<string[]> {
      for (;;) {
        signal.throwIfAborted();
        await Promise.all(pool.alive().map(admit));
        const hosts = pool.alive().filter((host) => !without.has(host));
        const room = await Promise.all(hosts.map(hasRoom));
        const open = hosts.filter((_, i) => room[i]);
        if (open.length > 0 || hosts.length === 0) return open;
        const settled = new AbortController();
        const until = AbortSignal.any([signal, settled.signal]);
        await Promise.race(hosts.map((host) => serviceOf(host).disk.pass(until)));
        settled.abort();
      }
    }

    /** The memory of an engine does not change; where an image is does. */
    const memory = new Map<string, number>();
    async function factsOf(host: string, image: string) {
      const { stage, engine } = serviceOf(host);
      const ask = async (): Promise<ImagePlace> => {
        if (!memory.has(host)) memory.set(host, (await engine.info()).memoryBytes ?? 0);
        return stage.placeOf(image);
      };
      const place = await within(
        ask().catch(() => 'absent' as const),
        ANSWER_MS,
      );
      return { host, image: place ?? 'absent', memoryBytes: memory.get(host) || undefined };
    }

    async function choose(image: string, without: ReadonlySet<string>, signal: AbortSignal) {
      const room = await withRoom(without, signal);
      const facts = await Promise.all(room.map((host) => factsOf(host, image)));
      let best: readonly string[] | undefined;
      return pool.choose((host) => {
        // Asked when the pool chooses: what is placed there may have changed meanwhile.
        best ??= bestEngines(
          facts
            .filter((one) => pool.alive().includes(one.host))
            .map((one) => ({ ...one, ...pool.load(one.host) })),
          config.memoryBytes ?? 0,
        );
        return best.includes(host);
      });
    }

    /** One after the other, so that trials are placed in their order; one that only a full engine can take is passed. */
    let placing: Promise<unknown> = Promise.resolve();
    const inTurn = (image: string, signal: AbortSignal): Promise<Place> => {
      const place = placing.then(() => choose(image, new Set(), signal));
      placing = place.catch(() => {});
      return place;
    };

    return async (image: string, signal: AbortSignal, onImage?: () => void): Promise<ReadyPlace> => {
      /** Engines that cannot have the image. */
      const without = new Set<string>();
      for (;;) {
        const place = await (without.size > 0 ? choose(image, without, signal) : inTurn(image, signal));
        try {
          const { warnings } = await serviceOf(place.host).stage.ensure(image, signal);
          onImage?.();
          await place.enter(signal);
          return { place, warnings };
        } catch (error) {
          place.release();
          const left = () => pool.alive().some((host) => host !== place.host && !without.has(host));
          if (isLoss(error)) pool.lose(place.host, error.message);
          else if (error instanceof PlaceGone) continue;
          // Built by hand on one of them only, or its registry is not reached from all.
          else if (error instanceof EnvironmentError && NOT_HERE.has(error.code) && left())
            without.add(place.host);
          else throw error;
        }
      }
    };
  }

  return {
    /** Images fetched before a slot is free, on all engines. */
    ahead: config.ahead * Math.max(1, services.size),
    policy: parsePolicy(config.policy),
    /** Free space below which nothing new starts. */
    floorBytes: parseSize(config.disk_low),
    /** Waits until an engine has the image and room for it. `onImage`: it has the image, and only its slot is waited for. Rejects with an EnvironmentError, or with the signal. */
    async ready(image: string, signal: AbortSignal, onImage?: () => void): Promise<ReadyPlace> {
      if (ready) return ready(image, signal, onImage);
      await only.disk.pass(signal);
      signal.throwIfAborted();
      const { warnings } = await only.stage.ensure(image, signal);
      return { place: undefined, warnings };
    },
    /** How a start on that engine gets its image; here it is at once after `ready`. */
    ensureOn: (host: string | undefined) => ensureBy(serviceOf(host).stage),
    /** Whether something may start there now: the disk may have filled up since `ready`. */
    hasRoom,
    /** Whether the engine is known to have the image. */
    has: (host: string, image: string) => serviceOf(host).stage.isReady(image),
    /** The images that queued trials and gradings of this process still need: one list for all, as who waits is not meant for an engine yet. */
    need: async (images: readonly string[]) => only?.need(images),
    /** The images of the whole run: what `remove-after` may take. Others were fetched for somebody else. */
    belong(images: readonly string[]) {
      among = images;
    },
    /** Nothing in this process needs the image any more: the policy may take it. */
    done: (image: string) => onEach((service) => service.done(image, among)),
    collect: () => onEach((service) => service.collect({ among })),
    /** Per engine that answers; what is not known when the signal aborts stays unknown. */
    async plan(images: readonly string[], signal: AbortSignal) {
      const planned = alive().map(async ({ host, service }) => {
        const plan = await service.plan(images, { ask: config.pull !== 'never', signal });
        return { host, plan, freeBytes: await service.freeBytes() };
      });
      if (!pool) return Promise.all(planned);
      const plans = await Promise.allSettled(planned);
      return plans.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : []));
    },
    status: () => [...services].map(([host, service]) => ({ host, status: service.stage.status() })),
    /** Where the only engine keeps its layers, on this machine; each of several watches its own disk. */
    engineDir: async () => (pool ? undefined : only.layersDir()),
    async close() {
      await Promise.allSettled(all.map((service) => service.close()));
    },
  };
}

/**
 * Which engines a trial may go to: with a free slot, then with memory for one more, then where its image is, then where it is on its way.
 * A free slot comes first: an image is pulled once, and a trial that waits for an engine may wait for an hour. Disk is asked before.
 */

export interface EngineFacts {
  readonly host: string;
  /** Trials placed there, entered or not. */
  readonly placed: number;
  /** 0: no limit. */
  readonly slots: number;
  /** Undefined where the engine does not tell. */
  readonly memoryBytes: number | undefined;
  readonly image: ImagePlace;
}

const IMAGE_ORDER: readonly ImagePlace[] = ['here', 'coming', 'absent'];

/** The best of them, alike in all this; the emptiest of those is to be taken. `memoryBytes`: what a trial may use, 0 for no limit. */
export function bestEngines(engines: readonly EngineFacts[], memoryBytes: number): readonly string[] {
  const least = Math.min(...engines.map(({ placed }) => placed));
  const ranked = engines.map((engine) => ({
    host: engine.host,
    rank: [
      waitFor(engine, least, memoryBytes),
      lackOf(engine, memoryBytes),
      IMAGE_ORDER.indexOf(engine.image),
    ],
  }));
  const best = ranked.map(({ rank }) => rank).reduce((a, b) => (before(b, a) ? b : a), []);
  return ranked.filter(({ rank }) => !before(best, rank)).map(({ host }) => host);
}

/** How long the trial would wait for a slot, in rounds of all slots of the engine. */
function waitFor({ placed, slots, memoryBytes }: EngineFacts, least: number, perTrial: number): number {
  if (slots > 0) return Math.max(0, (placed + 1 - slots) / slots);
  // Nothing says when such an engine is full, so they are filled evenly.
  return memoryBytes === undefined || perTrial === 0 ? placed - least : 0;
}

/** By how much its memory would be promised away, as a share of it. */
const lackOf = ({ placed, memoryBytes }: EngineFacts, perTrial: number): number =>
  memoryBytes ? Math.max(0, ((placed + 1) * perTrial) / memoryBytes - 1) : 0;

/** An empty rank is after all others. */
function before(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && (b[at] === undefined || a[at]! < b[at]);
}
