/**
 * Starts environments on several engines: each on its place, images cached by each engine on its own. An engine that dies loses nothing but
 * the attempts that run on it: those end as env_died and are tried again, which then happens elsewhere.
 */

import type { Environment, EnvironmentFactory, Place, StartRequest } from '../environment.ts';
import { EngineDrains, type EnginePool, isLoss } from './enginePool.ts';
import type { EngineWatch } from './engineWatch.ts';

export interface HostsParts {
  readonly pool: EnginePool;
  /** One for each engine of the pool. */
  readonly factories: ReadonlyMap<string, EnvironmentFactory>;
  /** Engines that a start without a place should go to: they have the image. */
  readonly prefer?: ((host: string, image: string) => boolean) | undefined;
  /** Of all engines together: while none answers, a start waits. */
  readonly watch?: Pick<EngineWatch, 'back' | 'suspect'> | undefined;
}

function lose({ pool, watch }: HostsParts, host: string, reason: string): void {
  pool.lose(host, reason);
  if (pool.alive().length === 0) watch?.suspect();
}

/** Nothing has run yet, so the next engine takes it. Throws what another engine does not change. */
function leaveEngine(parts: HostsParts, host: string, error: unknown): void {
  if (isLoss(error)) lose(parts, host, error.message);
  else if (!(error instanceof EngineDrains)) throw error;
}

async function chosen({ pool, prefer, watch }: HostsParts, { image, signal }: StartRequest): Promise<Place> {
  for (;;) {
    try {
      return await pool.choose(prefer && ((host) => prefer(host, image)));
    } catch (error) {
      if (!watch || !isLoss(error)) throw error;
      await watch.back(signal);
    }
  }
}

export function createHostsFactory(parts: HostsParts): EnvironmentFactory {
  const { factories } = parts;

  async function startOn(place: Place, request: StartRequest): Promise<Environment> {
    const { host } = place;
    await place.enter(request.signal);
    const environment = await factories.get(host)!.start(request);
    const watched = async <T>(work: Promise<T>): Promise<T> => {
      try {
        return await work;
      } catch (error) {
        if (isLoss(error)) lose(parts, host, error.message);
        throw error;
      }
    };
    const { listen } = environment;
    return {
      ...(listen && { listen: (port, onConnection) => watched(listen(port, onConnection)) }),
      info: { ...environment.info, notes: [...environment.info.notes, `engine: ${host}`] },
      execute: (command, more) => watched(environment.execute(command, more)),
      templateVars: () => environment.templateVars(),
      capturePatch: () => watched(environment.capturePatch()),
      putFile: (path, content, mode) => watched(environment.putFile(path, content, mode)),
      getFile: (path) => watched(environment.getFile(path)),
      ...(environment.putFiles && { putFiles: (files) => watched(environment.putFiles!(files)) }),
      ...(environment.getFiles && { getFiles: (path, most) => watched(environment.getFiles!(path, most)) }),
      ...(environment.keepWork && { keepWork: () => watched(environment.keepWork!()) }),
      async close() {
        await environment.close();
        place.release();
      },
    };
  }

  /** What gives up a start that was begun ahead, by attempt. */
  const ahead = new Map<string, AbortController>();

  return {
    kind: 'docker',
    // Nobody noted where it was made: each engine is asked.
    async discardWork(image) {
      for (const factory of factories.values()) await factory.discardWork?.(image);
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
          place = undefined;
        }
      }
    },
    async close() {
      await Promise.allSettled([...factories.values()].map((factory) => factory.close()));
    },
  };
}
