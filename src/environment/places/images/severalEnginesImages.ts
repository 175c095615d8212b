/** The images of a run on several engines: each trial gets a place on one of them, and its image there. */

import { within } from '../../../base/async/timer.ts';
import { errorText } from '../../../base/text/errorText.ts';
import { EnvironmentError, isLoss, type Place } from '../../environment.ts';
import { type EnginePool, PlaceGone } from '../engines/enginePool.ts';
import type { Collected } from './disk/collect.ts';
import { ensureBy } from './ensureImage.ts';
import type { ImageService } from './imageService.ts';
import { bestEngines } from './placement.ts';
import {
  planOf,
  type ReadyPlace,
  type RunImages,
  type RunImagesConfig,
  runImagesSettings,
} from './runImages.ts';

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
