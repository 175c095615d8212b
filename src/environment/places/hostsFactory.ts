/**
 * Starts environments on several engines: each on its place, images cached by each engine on its own. An engine that dies loses nothing but
 * the attempts that run on it: those end as env_died and are tried again, which then happens elsewhere.
 */

import { orAborted } from '../../base/async/timer.ts';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import { errorText } from '../../base/text/errorText.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  isLoss,
  type Place,
  type StartRequest,
} from '../environment.ts';
import { type EnginePool, PlaceGone } from './enginePool.ts';
import type { EngineWatch } from './engineWatch.ts';

export interface HostsParts {
  readonly pool: EnginePool;
  /** One for each engine of the pool. */
  readonly factories: Pick<ReadonlyMap<string, EnvironmentFactory>, 'get' | 'values'>;
  /** Engines that a start without a place should go to: they have the image. */
  readonly prefer?: ((host: string, image: string) => boolean) | undefined;
  /** Of all engines together: while none answers, a start waits. */
  readonly watch?: Pick<EngineWatch, 'back' | 'suspect'> | undefined;
}

function lose({ pool, watch }: HostsParts, host: string, reason: string): void {
  // One that was given up is asked by the pool itself.
  if (!pool.endOf(host).aborted) pool.lose(host, reason);
  if (pool.alive().length === 0) watch?.suspect();
}

/** Nothing has run yet, so the next engine takes it. Throws what another engine does not change. */
function leaveEngine(parts: HostsParts, host: string, error: unknown): void {
  if (isLoss(error)) lose(parts, host, error.message);
  else if (!(error instanceof PlaceGone)) throw error;
}

/** The engine that has an end state; undefined for other images, and where no engine has it. */
async function holderOf({ pool, factories }: HostsParts, image: string): Promise<string | undefined> {
  if (!image.startsWith(`${WORK_IMAGES}:`)) return undefined;
  for (const host of pool.alive()) if (await factories.get(host)?.holdsWork?.(image)) return host;
  return undefined;
}

async function chosen(parts: HostsParts, { image, signal }: StartRequest): Promise<Place> {
  const { pool, watch } = parts;
  const holder = await holderOf(parts, image);
  const prefer = holder === undefined ? parts.prefer : (host: string) => host === holder;
  for (;;) {
    try {
      return await pool.choose(prefer && ((host) => prefer(host, image)));
    } catch (error) {
      if (!watch || !isLoss(error)) throw error;
      await watch.back(signal);
    }
  }
}

interface Placed {
  readonly place: Place;
  /** Fires when the engine is lost. */
  readonly end: AbortSignal;
  readonly endLease: ReturnType<EnginePool['lease']>;
}

/** An environment that ends with its engine. */
function placed(parts: HostsParts, { place, end, endLease }: Placed, environment: Environment): Environment {
  const { host } = place;
  let lost = false;
  const watched = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await untilEnd(work, end);
    } catch (error) {
      if (!isLoss(error)) throw error;
      lost = true;
      lose(parts, host, error.message);
      throw error.evidence.engine === undefined ? ofEngine(error, host) : error;
    }
  };
  // Its containers are gone with the engine, whatever the agent waits for.
  const close = () => void environment.close();
  end.addEventListener('abort', close, { once: true });
  const { listen, putFiles, getFiles, keepWork } = environment;
  return {
    ...(listen && { listen: (port, onConnection) => watched(() => listen(port, onConnection)) }),
    info: { ...environment.info, notes: [...environment.info.notes, `engine: ${host}`] },
    execute: (command, more) => watched(() => environment.execute(command, more)),
    templateVars: () => environment.templateVars(),
    capturePatch: () => watched(() => environment.capturePatch()),
    putFile: (path, content, mode) => watched(() => environment.putFile(path, content, mode)),
    getFile: (path) => watched(() => environment.getFile(path)),
    ...(putFiles && { putFiles: (files) => watched(() => putFiles(files)) }),
    ...(getFiles && { getFiles: (path, most) => watched(() => getFiles(path, most)) }),
    ...(keepWork && { keepWork: () => watched(() => keepWork()) }),
    async close() {
      end.removeEventListener('abort', close);
      await environment.close();
      endLease(lost || end.aborted ? 'lost' : 'closed');
      place.release();
    },
  };
}

/** The record says where it was. */
const ofEngine = ({ code, message, sub, fromWithin, evidence, cause }: EnvironmentError, engine: string) =>
  new EnvironmentError(code, message, {
    ...(sub !== undefined && { sub }),
    ...{ fromWithin, cause, evidence: { ...evidence, engine } },
  });

/** Rejects with the reason of `end` when that fires first; what comes later is handed to `late`. */
async function untilEnd<T>(
  begin: () => Promise<T>,
  end: AbortSignal,
  late?: (value: T) => unknown,
): Promise<T> {
  end.throwIfAborted();
  return orAborted(begin(), end, late);
}

/**
 * The start has a slot of the run, and those who have the places of the other engines may wait for that slot: so it never waits for a place.
 * The attempt ends as one whose engine was lost, and its trial comes back.
 */
async function otherPlace(parts: HostsParts, request: StartRequest, error: unknown): Promise<Place> {
  const place = await chosen(parts, request);
  if (place.hasRoom()) return place;
  place.release();
  const { host } = request.place!;
  if (error instanceof EnvironmentError)
    throw error.evidence.engine === undefined ? ofEngine(error, host) : error;
  throw new EnvironmentError('daemon_lost', errorText(error), { evidence: { engine: host } });
}

export function createHostsFactory(parts: HostsParts): EnvironmentFactory {
  const { factories } = parts;

  async function startOn(place: Place, request: StartRequest): Promise<Environment> {
    const { host } = place;
    await place.enter(request.signal);
    const end = parts.pool.endOf(host);
    const endLease = parts.pool.lease(host, request.owner.attempt);
    try {
      const signal = request.signal ? AbortSignal.any([request.signal, end]) : end;
      const starting = () => factories.get(host)!.start({ ...request, signal });
      const environment = await untilEnd(starting, end, (late) => late.close());
      return placed(parts, { place, end, endLease }, environment);
    } catch (error) {
      endLease('moved');
      throw error;
    }
  }

  /** What gives up a start that was begun ahead, by attempt. */
  const ahead = new Map<string, AbortController>();

  return {
    kind: 'docker',
    // Nobody noted where it was made: each engine is asked.
    async discardWork(image) {
      for (const host of parts.pool.alive()) await factories.get(host)?.discardWork?.(image);
    },
    prepare(request) {
      const { place, signal, owner } = request;
      // Only where the image is ready, and never instead of one that waits: an engine holds no more than its slots.
      if (!place?.hasRoom()) return;
      const abort = new AbortController();
      ahead.set(owner.attempt, abort);
      factories.get(place.host)?.prepare?.({
        ...request,
        signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
      });
    },
    async start(request) {
      let place = request.place;
      const begun = ahead.get(request.owner.attempt);
      ahead.delete(request.owner.attempt);
      for (;;) {
        request.signal?.throwIfAborted();
        place ??= await chosen(parts, request);
        try {
          return await startOn(place, request);
        } catch (error) {
          place.release();
          leaveEngine(parts, place.host, error);
          begun?.abort(error);
          place = request.place && (await otherPlace(parts, request, error));
        }
      }
    },
    async close() {
      await Promise.allSettled([...factories.values()].map((factory) => factory.close()));
    },
  };
}
