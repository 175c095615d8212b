/**
 * Starts environments on several engines: each on its place, images cached by each engine on its own. An engine that dies loses nothing but
 * the attempts that run on it: those end as env_died and are tried again, which then happens elsewhere.
 */

import { addAbortListener } from 'node:events';
import { orAborted } from '../../base/async/timer.ts';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import { errorText } from '../../base/text/errorText.ts';
import { completeFactory } from '../capabilities.ts';
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

/** The record says where it was. */
function ofEngine(error: EnvironmentError, engine: string): EnvironmentError {
  const { code, message, sub, fromWithin, evidence, cause } = error;
  if (evidence.engine !== undefined) return error;
  return new EnvironmentError(code, message, {
    ...(sub !== undefined && { sub }),
    fromWithin,
    cause,
    evidence: { ...evidence, engine },
  });
}

const notTold = (engine: string, error: unknown): EnvironmentError =>
  new EnvironmentError('daemon_lost', errorText(error), { evidence: { engine }, cause: error });

/** Rejects with the reason of `end` when that fires first; what comes later is handed to `late`. */
async function untilEnd<T>(
  begin: () => Promise<T>,
  end: AbortSignal,
  late?: (value: T) => unknown,
): Promise<T> {
  end.throwIfAborted();
  return orAborted(begin(), end, late);
}

export function createHostsFactory({
  pool,
  factories,
  prefer,
  watch,
}: {
  readonly pool: EnginePool;
  /** One for each engine of the pool. */
  readonly factories: Pick<ReadonlyMap<string, EnvironmentFactory>, 'get' | 'values'>;
  /** Engines that a start without a place should go to: they have the image. */
  readonly prefer?: ((host: string, image: string) => boolean) | undefined;
  /** Of all engines together: while none answers, a start waits. */
  readonly watch?: Pick<EngineWatch, 'back' | 'suspect'> | undefined;
}): EnvironmentFactory {
  /** What gives up a start that was begun ahead, by attempt. */
  const ahead = new Map<string, AbortController>();

  function lose(host: string, reason: string): void {
    // One that was given up is asked by the pool itself.
    if (!pool.endOf(host).aborted) pool.lose(host, reason);
    if (pool.alive().length === 0) watch?.suspect();
  }

  /** The engine that has an end state; undefined for other images, and where no engine has it. */
  async function holderOf(image: string): Promise<string | undefined> {
    if (!image.startsWith(`${WORK_IMAGES}:`)) return undefined;
    const silent: [string, unknown][] = [];
    for (const host of pool.alive())
      try {
        if (await factories.get(host)?.holdsWork(image)) return host;
      } catch (error) {
        silent.push([host, error]);
      }
    for (const [host, error] of silent) throw notTold(host, error);
    return undefined;
  }

  async function chosen({ image, signal }: StartRequest): Promise<Place> {
    const holder = await holderOf(image);
    const wanted =
      holder === undefined
        ? prefer && ((host: string) => prefer(host, image))
        : (host: string) => host === holder;
    for (;;) {
      try {
        return await pool.choose(wanted);
      } catch (error) {
        if (!watch || !isLoss(error)) throw error;
        await watch.back(signal);
      }
    }
  }

  /**
   * The start has a slot of the run, and those who have the places of the other engines may wait for that slot: so it never waits for a place.
   * The attempt ends as one whose engine was lost, and its trial comes back.
   */
  async function otherPlace(request: StartRequest, host: string, error: unknown): Promise<Place> {
    const place = await chosen(request);
    if (place.hasRoom()) return place;
    place.release();
    throw error instanceof EnvironmentError ? ofEngine(error, host) : notTold(host, error);
  }

  /** An environment that ends with its engine. */
  async function startOn(place: Place, request: StartRequest): Promise<Environment> {
    const { host } = place;
    // The phase has no deadline; the factory of the engine tells the next.
    await place.enter(request.signal, () => request.onPhase?.('queue'));
    /** Fires when the engine is lost. */
    const end = pool.endOf(host);
    const endLease = pool.lease(host, request.owner.attempt);
    let environment: Environment;
    try {
      const signal = request.signal ? AbortSignal.any([request.signal, end]) : end;
      const starting = () => factories.get(host)!.start({ ...request, signal });
      environment = await untilEnd(starting, end, (late) => late.close());
    } catch (error) {
      endLease('moved');
      throw error;
    }
    let lost = false;
    const watched = async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        return await untilEnd(work, end);
      } catch (error) {
        if (!isLoss(error)) throw error;
        lost = true;
        lose(host, error.message);
        throw ofEngine(error, host);
      }
    };
    // Its containers are gone with the engine, whatever the agent waits for.
    const listening = addAbortListener(end, () => void environment.close());
    const { as, listen, putFiles, getFiles, keepWork, leftRunning, beside, serviceLogs } = environment;
    const { unkept, systemChanges, putBack, watchWrites } = environment;
    return {
      ...environment,
      info: { ...environment.info, notes: [...environment.info.notes, `engine: ${host}`] },
      execute: (command, more) => watched(() => environment.execute(command, more)),
      as: (user) => ({ execute: (command, more) => watched(() => as(user).execute(command, more)) }),
      capturePatch: (kept) => watched(() => environment.capturePatch(kept)),
      putFile: (path, content, mode) => watched(() => environment.putFile(path, content, mode)),
      getFile: (path) => watched(() => environment.getFile(path)),
      listen: (port, onConnection) => watched(() => listen(port, onConnection)),
      putFiles: (files) => watched(() => putFiles(files)),
      getFiles: (path, most, whole) => watched(() => getFiles(path, most, whole)),
      putBack: (image, path) => watched(() => putBack(image, path)),
      watchWrites: (folders) => watched(() => watchWrites(folders)),
      keepWork: (kept) => watched(() => keepWork(kept)),
      unkept: () => watched(() => unkept()),
      systemChanges: () => watched(() => systemChanges()),
      serviceLogs: () => watched(() => serviceLogs()),
      leftRunning: () => watched(() => leftRunning()),
      beside: (back, network) => watched(() => beside(back, network)),
      async close() {
        listening[Symbol.dispose]();
        await environment.close();
        endLease(lost || end.aborted ? 'lost' : 'closed');
        place.release();
      },
    };
  }

  return completeFactory({
    kind: 'docker',
    // Nobody noted where it was made: each engine is asked.
    async systemChanges(image) {
      const host = await holderOf(image);
      return host === undefined ? undefined : factories.get(host)?.systemChanges(image);
    },
    async discardWork(image) {
      // One that does not answer keeps the others from nothing.
      const asked = pool.alive().map((host) => factories.get(host)?.discardWork(image));
      const failed = (await Promise.allSettled(asked)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
    prepare(request) {
      const { place, signal, owner } = request;
      // Only where the image is ready, and never instead of one that waits: an engine holds no more than its slots.
      if (!place?.hasRoom()) return;
      const abort = new AbortController();
      ahead.set(owner.attempt, abort);
      factories.get(place.host)?.prepare({
        ...request,
        signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
      });
    },
    async start(request) {
      let { place } = request;
      const begun = ahead.get(request.owner.attempt);
      ahead.delete(request.owner.attempt);
      for (;;) {
        request.signal?.throwIfAborted();
        place ??= await chosen(request);
        try {
          return await startOn(place, request);
        } catch (error) {
          place.release();
          // Nothing has run yet, so the next engine takes it, unless that changes nothing.
          if (isLoss(error)) lose(place.host, error.message);
          else if (!(error instanceof PlaceGone)) throw error;
          begun?.abort(error);
          place = request.place && (await otherPlace(request, request.place.host, error));
        }
      }
    },
    async close() {
      await Promise.allSettled([...factories.values()].map((factory) => factory.close()));
    },
  });
}
