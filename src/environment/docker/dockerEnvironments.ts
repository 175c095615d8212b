/** The Docker environments of an arm, on one engine or on those of `environment.hosts`. */
import type { EnvironmentFactory } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { EnvironmentOptions } from '../environmentKind.ts';
import { createHostsFactory, enginePoolOf, requiredEngine } from '../places/hostsFactory.ts';
import { LOST_AFTER_MS } from '../places/poolState.ts';
import { createDockerFactory } from './dockerFactory.ts';

export function createDockerEnvironments(
  config: EnvironmentConfig,
  { images, pool, watch, quietEnv, snapshot, capAdd, program, onWarning }: EnvironmentOptions,
): EnvironmentFactory {
  const options = { quietEnv, snapshot, capAdd, program, onWarning };
  if (config.hosts.length === 0)
    return createDockerFactory(config, {
      ...options,
      watch,
      ...(images && { images: images.ensureOn(undefined) }),
    });
  // One engine is waited for briefly, because another may take the work; all of them together as one is elsewhere.
  const onEngine = (host: string) =>
    createDockerFactory(config, {
      ...options,
      ...(images && { images: images.ensureOn(host) }),
      docker: requiredEngine(host),
      outageMs: LOST_AFTER_MS,
    });
  return createHostsFactory({
    pool: pool ?? enginePoolOf(config.hosts, onWarning),
    factories: new Map(config.hosts.map(({ host }) => [host, onEngine(host)])),
    prefer: images && ((host, image) => images.has(host, image)),
    watch,
  });
}
