/**
 * The images of a run, on one engine or on several: which engine a trial is meant for, and its image there before it takes a slot. Every
 * engine has its own pulls, disk floor and policy; all of them know which images are needed.
 */
import { within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { parseSize } from '../../base/text/units.ts';
import { EnvironmentError, isLoss, type Place } from '../environment.ts';
import { type EnginePool, PlaceGone } from './enginePool.ts';
import type { Collected } from './imageLedger.ts';
import type { ImagePlan } from './imagePlan.ts';
import type { ImageService } from './imageService.ts';
import { type ImagePolicy, parsePolicy } from './imagesConfig.ts';
import { type EnsureImage, ensureBy, type ImagePlace, type StageStatus } from './pullStage.ts';

export interface ReadyPlace {
  /** Absent with one engine, which has no places. */
  readonly place: Place | undefined;
  readonly warnings: readonly string[];
}

interface EngineStatus {
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
  /** environment.memory of the arm that asks for most; 0 for no limit. */
  readonly memoryBytes?: number | undefined;
}

export interface RunImages {
  /** Images fetched before a slot is free, on all engines. */
  readonly ahead: number;
  readonly policy: ImagePolicy;
  /** Free space below which nothing new starts. */
  readonly floorBytes: number;
  /** Waits until an engine has the image and room for it. `onImage`: it has the image, and only its slot is waited for. Rejects with an EnvironmentError, or with the signal. */
  ready(image: string, signal: AbortSignal, onImage?: () => void): Promise<ReadyPlace>;
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

export const planOf = async (
  host: string | undefined,
  service: ImageService,
  images: readonly string[],
  config: RunImagesConfig,
  signal: AbortSignal,
): Promise<EnginePlan> => {
  const plan = await service.plan(images, { ask: config.pull !== 'never', signal });
  return { host, plan, freeBytes: await service.freeBytes() };
};

export const runImagesSettings = (config: RunImagesConfig, engines: number) => ({
  ahead: config.ahead * engines,
  policy: parsePolicy(config.policy),
  floorBytes: parseSize(config.disk_low),
});

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

/** The images of a run on the only engine there is, which has no places. */
export function imagesOfOneEngine(service: ImageService, config: RunImagesConfig): RunImages {
  const ensure = ensureBy(service.stage);
  let among: readonly string[] | undefined;
  return {
    ...runImagesSettings(config, 1),
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

interface Engines {
  readonly services: ReadonlyMap<string, ImageService>;
  readonly pool: EnginePool;
  /** Refuses an engine that must not get trials. */
  readonly admit: (host: string) => Promise<void>;
}

const NOT_HERE: ReadonlySet<string> = new Set(['image_missing', 'image_pull_failed', 'disk_full']);
const cannotBeHere = (error: unknown) => error instanceof EnvironmentError && NOT_HERE.has(error.code);

const aliveOnes = ({ services, pool }: Engines) =>
  pool.alive().map((host) => ({ host, service: services.get(host)! }));

/** The images of a run on several engines: each trial gets a place on one of them, and its image there. */
export function imagesOfSeveralEngines(
  services: ReadonlyMap<string, ImageService>,
  pool: EnginePool,
  config: RunImagesConfig,
  onError: (message: string) => void = () => {},
  admit: Engines['admit'] = async () => {},
): RunImages {
  const engines: Engines = { services, pool, admit };
  const all = () => [...services.values()];
  const choosePlace = placesInTurn(engines, config.memoryBytes ?? 0);
  let among: readonly string[] | undefined;
  return {
    ...runImagesSettings(config, Math.max(1, services.size)),
    ready: (image, signal, onImage) => readySomewhere(engines, choosePlace, { image, signal, onImage }),
    ensureOn: (host) => ensureBy(services.get(host!)!.stage),
    // A trial whose place is on an engine that was lost or refused goes back, and gets one elsewhere.
    hasRoom: (host) => roomOn(engines, host!),
    has: (host, image) => services.get(host)!.stage.isReady(image),
    // One list for all: who waits is not meant for an engine yet.
    need: async (images) => all()[0]?.need(images),
    belong(images) {
      among = images;
    },
    done: (image) => onEach(engines, onError, (service) => service.done(image, among)),
    collect: () => onEach(engines, onError, (service) => service.collect({ among })),
    async plan(images, signal) {
      const plans = await Promise.allSettled(
        aliveOnes(engines).map(({ host, service }) => planOf(host, service, images, config, signal)),
      );
      return plans.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : []));
    },
    engineDir: async () => undefined,
    status: () => [...services].map(([host, service]) => ({ host, status: service.stage.status() })),
    async close() {
      await Promise.allSettled(all().map((service) => service.close()));
    },
  };
}

/** `without`: engines that cannot have the image. */
type ChoosePlace = (image: string, without: ReadonlySet<string>, signal: AbortSignal) => Promise<Place>;

/** One after the other, so that trials are placed in their order; one that only a full engine can take is passed. */
function placesInTurn(engines: Engines, memoryBytes: number): ChoosePlace {
  const { services, pool } = engines;
  const factsOf = askedOnce(services);
  let placing: Promise<unknown> = Promise.resolve();
  return (image, without, signal) => {
    const choose = async () => {
      const room = await withRoom(engines, without, signal);
      const facts = await Promise.all([...room].map((host) => factsOf(host, image)));
      // Asked when the pool chooses: what is placed there may have changed meanwhile.
      const best = () => {
        const now = facts.map((one) => ({ ...one, ...pool.load(one.host) }));
        return new Set(
          bestEngines(
            now.filter(({ host }) => pool.alive().includes(host)),
            memoryBytes,
          ),
        );
      };
      let among: ReadonlySet<string> | undefined;
      return pool.choose((host) => {
        among ??= best();
        return among.has(host);
      });
    };
    if (without.size > 0) return choose();
    const place = placing.then(choose);
    placing = place.catch(() => {});
    return place;
  };
}

/** An engine that is slow to say where an image is must not hold up the trials of others. */
const ANSWER_MS = 2000;

/** The memory of an engine does not change; where an image is does. */
function askedOnce(services: Engines['services']) {
  const memory = new Map<string, number>();
  return async (host: string, image: string) => {
    const { stage, engine } = services.get(host)!;
    const asked = async () => {
      if (!memory.has(host)) memory.set(host, (await engine.info()).memoryBytes ?? 0);
      return stage.placeOf(image);
    };
    const place = await within(
      asked().catch(() => 'absent' as const),
      ANSWER_MS,
    );
    return { host, image: place ?? 'absent', memoryBytes: memory.get(host) || undefined };
  };
}

/** An engine that has gone away is looked for half a minute: its disk must not hold up the trials of all others. */
async function roomOn({ services, pool }: Engines, host: string): Promise<boolean> {
  if (!pool.alive().includes(host)) return false;
  const check = services.get(host)!.disk.check();
  const looked = await within(check, ANSWER_MS);
  if (looked) return looked.open;
  return (await pool.takesNow(host)) && (await check).open;
}

/** Engines whose disk has room, of those that may have the image; waits while none has. */
async function withRoom(
  engines: Engines,
  without: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  for (;;) {
    signal.throwIfAborted();
    await Promise.all(aliveOnes(engines).map(({ host }) => engines.admit(host)));
    const alive = aliveOnes(engines).filter(({ host }) => !without.has(host));
    const looked = await Promise.all(
      alive.map(async ({ host }) => ({ host, open: await roomOn(engines, host) })),
    );
    const open = looked.filter((one) => one.open).map((one) => one.host);
    if (open.length > 0 || alive.length === 0) return new Set(open);
    const settled = new AbortController();
    const until = AbortSignal.any([signal, settled.signal]);
    await Promise.race(alive.map(({ service }) => service.disk.pass(until)));
    settled.abort();
  }
}

/** Engines that may take what this one cannot. */
const others = (pool: EnginePool, host: string): readonly string[] =>
  pool.alive().filter((other) => other !== host);

interface Wanted {
  readonly image: string;
  readonly signal: AbortSignal;
  readonly onImage: (() => void) | undefined;
}

async function readySomewhere(
  { services, pool }: Engines,
  choosePlace: ChoosePlace,
  { image, signal, onImage }: Wanted,
): Promise<ReadyPlace> {
  const without = new Set<string>();
  for (;;) {
    const place = await choosePlace(image, without, signal);
    try {
      const { warnings } = await services.get(place.host)!.stage.ensure(image, signal);
      onImage?.();
      await place.enter(signal);
      return { place, warnings };
    } catch (error) {
      place.release();
      if (isLoss(error)) pool.lose(place.host, error.message);
      else if (error instanceof PlaceGone) continue;
      // Built by hand on one of them only, or its registry is not reached from all.
      else if (cannotBeHere(error) && !others(pool, place.host).every((host) => without.has(host)))
        without.add(place.host);
      else throw error;
    }
  }
}

/** An engine that died must not keep the others from going on. */
async function onEach(
  engines: Engines,
  onError: (message: string) => void,
  work: (service: ImageService) => Promise<Collected>,
): Promise<Collected> {
  const results = await Promise.all(
    aliveOnes(engines).map(({ host, service }) =>
      work(service).catch((error: unknown) => {
        onError(`images on ${host}: ${errorText(error)}`);
      }),
    ),
  );
  const done = results.filter((result) => result !== undefined);
  return { removed: done.flatMap((r) => r.removed), kept: done.flatMap((r) => r.kept) };
}
