/** The Docker environment: one container an attempt. This file is the factory; dockerStart.ts makes a container ready for the agent. */
import type Docker from 'dockerode';
import { engineClient } from './client.ts';
import type { EnvironmentConfig } from './config.ts';
import type { DockerFactoryOptions } from './dockerOptions.ts';
import { startEnvironment } from './dockerStart.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type StartRequest,
} from './environment.ts';
import { type EnsureImageOptions, ensureImage, type ImageFacts } from './images.ts';
import { createQuotaProbe } from './quota.ts';
import { createSealer } from './seal.ts';
import { createSemaphore } from './semaphore.ts';

type EnsureOptions = Omit<EnsureImageOptions, 'platform' | 'stallMs'>;

export interface DockerFactory extends EnvironmentFactory {
  readonly docker: Docker;
  /** Inspect, or pull by the configured policy. Call it outside of slots. */
  ensureImage(image: string, options?: EnsureOptions): Promise<ImageFacts>;
  prepare(request: StartRequest): void;
}

const CONCURRENT_STARTS = 8;
const MAX_PREPARED = 2;

export function createDockerFactory(
  config: EnvironmentConfig,
  options: DockerFactoryOptions = {},
): DockerFactory {
  const docker = engineClient(options.docker);
  const removals = new Set<Promise<unknown>>();
  const prepared = new Map<string, Promise<Environment>>();
  const keyOf = (request: StartRequest) =>
    `${request.owner.run}\0${request.owner.attempt}\0${request.instanceId}`;
  let closed = false;

  const ensure = (image: string, more: EnsureOptions = {}) =>
    ensureImage(docker, config.image ?? image, config.pull, {
      ...more,
      ...(config.platform ? { platform: config.platform } : {}),
      stallMs: config.pull_timeout * 1000,
    });

  const shared = {
    docker,
    config,
    options,
    ensure,
    starting: createSemaphore(options.concurrentStarts ?? CONCURRENT_STARTS),
    sealer: createSealer(docker, config),
    quotaBytes: createQuotaProbe(docker, config.disk),
    track(removal: Promise<unknown>) {
      removals.add(removal);
      void removal.finally(() => removals.delete(removal));
    },
  };
  const begin = (request: StartRequest) => startEnvironment(shared, request);

  return {
    kind: 'docker',
    docker,
    ensureImage: ensure,
    prepare(request) {
      if (closed || prepared.has(keyOf(request)) || prepared.size >= (options.maxPrepared ?? MAX_PREPARED))
        return;
      const ahead = begin(request);
      // Who takes it sees the failure; nobody else has to.
      ahead.catch(() => undefined);
      prepared.set(keyOf(request), ahead);
    },
    async start(request) {
      if (closed) throw new EnvironmentError('start_failed', 'the environment factory is closed');
      const ahead = prepared.get(keyOf(request));
      if (!ahead) return begin(request);
      prepared.delete(keyOf(request));
      return ahead;
    },
    async close() {
      closed = true;
      const unused = [...prepared.values()];
      prepared.clear();
      await Promise.allSettled(unused.map(async (ahead) => (await ahead).close()));
      while (removals.size > 0) await Promise.allSettled([...removals]);
    },
  };
}
