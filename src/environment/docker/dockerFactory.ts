/** The Docker environment: one container an attempt. This file is the factory; dockerStart.ts makes a container ready for the agent. */

import type Docker from 'dockerode';
import pLimit from 'p-limit';
import { createPreparedStarts } from '../container/preparedStarts.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  isLoss,
  type StartRequest,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EnvironmentOptions } from '../environmentKind.ts';
import { HARNESS } from '../exec/channel.ts';
import { engineClient } from '../places/chosenEngine.ts';
import { readFault } from '../places/dockerFault.ts';
import { createEngineWatch } from '../places/engineWatch.ts';
import { createHostsFactory } from '../places/hostsFactory.ts';
import { createFactoryPulls } from '../places/imageService.ts';
import { discardWork, removeContainer } from '../places/leftovers.ts';
import { enginePoolOf, requiredEngine } from '../places/places.ts';
import { LOST_AFTER_MS } from '../places/poolState.ts';
import type { EnsureImage } from '../places/pullStage.ts';
import { createProgramVolumes } from '../programs/programVolume.ts';
import { type Discard, removeLater } from './container.ts';
import { createQuotaProbe } from './diskWatch.ts';
import { type DockerFactoryOptions, startEnvironment } from './dockerStart.ts';
import { createSealer } from './seal.ts';
import { changesIn, holdsWork } from './workImages.ts';

export interface DockerFactory extends EnvironmentFactory {
  readonly docker: Docker;
  prepare(request: StartRequest): void;
}

const CONCURRENT_STARTS = 8;
/** More would only wait for the daemon, and each is a container beside those of the slots. */
const MAX_PREPARED = CONCURRENT_STARTS;

/** For a caller that has no watch of its own. */
const SHORT_OUTAGE_MS = 30_000;
/** An engine that goes away in every one of them is not waited for again. */
const STARTS = 5;

/** The connection to the engine was cut, whatever the container did meanwhile. */
const cutOff = (error: unknown): boolean =>
  readFault(error).daemonGone ||
  isLoss(error) ||
  (error instanceof EnvironmentError && readFault(error.cause).daemonGone) ||
  (error instanceof EnvironmentError && error.code === 'died' && error.evidence.while === HARNESS);

export function createDockerFactory(
  config: EnvironmentConfig,
  options: DockerFactoryOptions = {},
): DockerFactory {
  const docker = engineClient(options.docker);
  const removals = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const limitMs = options.outageMs ?? SHORT_OUTAGE_MS;
  const watch = options.watch ?? createEngineWatch({ ping: () => docker.ping(), limitMs });

  const pulls = createFactoryPulls(docker, {
    policy: config.pull,
    platform: config.platform,
    stallMs: config.pull_timeout * 1000,
  });
  const ensureFrom = options.images ?? pulls.ensure;
  const ensure: EnsureImage = (image, more) => ensureFrom(config.image ?? image, more);

  const track = (removal: Promise<unknown>) => {
    removals.add(removal);
    void removal.finally(() => removals.delete(removal));
  };
  const discard: Discard = async (container) => {
    const removal = removeContainer(container);
    track(removal);
    if (await removal) return;
    track(removeLater(container, closing.signal, (text) => options.onWarning?.(text), undefined, watch));
  };

  const shared = {
    docker,
    watch,
    discard,
    config,
    options,
    ensure,
    starting: pLimit(CONCURRENT_STARTS),
    sealer: createSealer(docker),
    programs: createProgramVolumes(docker, discard),
    quotaBytes: createQuotaProbe(docker, config.disk),
  };
  const begin = async (request: StartRequest): Promise<Environment> => {
    for (let tried = 1; ; tried++) {
      try {
        return await startEnvironment(shared, request);
      } catch (error) {
        if (!cutOff(error) || request.signal?.aborted || tried === STARTS) throw error;
        // Nothing of the agent's has run: once the engine is back the start is made again from its beginning.
        await watch.back(request.signal);
      }
    }
  };
  const prepared = createPreparedStarts(begin, options.maxPrepared ?? MAX_PREPARED);

  return {
    kind: 'docker',
    docker,
    prepare: prepared.prepare,
    async start(request) {
      if (closing.signal.aborted)
        throw new EnvironmentError('start_failed', 'the environment factory is closed');
      return prepared.take(request) ?? begin(request);
    },
    holdsWork: (image) => holdsWork(docker, image),
    systemChanges: (image) => changesIn(docker, image),
    discardWork: (image) => discardWork(docker, image),
    async close() {
      closing.abort();
      await prepared.close();
      await pulls.close();
      while (removals.size > 0) await Promise.allSettled([...removals]);
      if (!options.watch) watch.close();
    },
  };
}

/** Those of an arm, on one engine or on those of `environment.hosts`. */
export function createDockerEnvironments(
  config: EnvironmentConfig,
  { images, pool, watch, ...options }: EnvironmentOptions,
): EnvironmentFactory {
  if (config.hosts.length === 0)
    return createDockerFactory(config, { ...options, watch, images: images?.ensureOn(undefined) });
  // One engine is waited for briefly, because another may take the work; all of them together as one is elsewhere.
  const onEngine = (host: string) =>
    createDockerFactory(config, {
      ...options,
      images: images?.ensureOn(host),
      docker: requiredEngine(host),
      outageMs: LOST_AFTER_MS,
    });
  return createHostsFactory({
    pool: pool ?? enginePoolOf(config.hosts, options.onWarning),
    factories: new Map(config.hosts.map(({ host }) => [host, onEngine(host)])),
    prefer: images && ((host, image) => images.has(host, image)),
    watch,
  });
}
