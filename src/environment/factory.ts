/** Chooses the environment a configuration names: docker, kubernetes, local, or a module of the user's. */
import { importUserModule, isModulePath } from '../userModule.ts';
import { createDockerFactory } from './docker/dockerFactory.ts';
import type { DockerFactoryOptions } from './docker/dockerOptions.ts';
import type { EnvironmentFactory } from './environment.ts';
import type { EnvironmentConfig } from './environmentConfig.ts';
import { createKubernetesFactory } from './kubernetes/kubernetesFactory.ts';
import { createLocalFactory, type LocalFactoryOptions } from './local/localFactory.ts';
import { engineClient, engineOptionsOf } from './places/engines/engineClient.ts';
import {
  createEnginePool,
  type EnginePool,
  type PooledEngine,
  type RunPool,
} from './places/engines/enginePool.ts';
import { createHostsFactory } from './places/engines/hostsFactory.ts';
import { LOST_AFTER_MS } from './places/engines/poolState.ts';
import type { EnsureImage } from './places/images/ensureImage.ts';

export interface EnvironmentFactoryOptions {
  readonly docker?: DockerFactoryOptions;
  readonly local?: LocalFactoryOptions;
  /** Several engines that are shared with other factories; default: a pool of its own. */
  readonly pool?: EnginePool | undefined;
  /** How images come onto each engine; default: each start sees to its own. */
  readonly images?: EngineImageSource | undefined;
  /** Environments will be asked to `listen`: a place that cannot add a relay later starts with one. */
  readonly listens?: boolean;
  /** Folder that relative module paths start from; default: the working directory. */
  readonly baseDir?: string;
}

export interface EngineImageSource {
  ensureOn(host: string | undefined): EnsureImage;
  has(host: string, image: string): boolean;
}

const isFactory = (value: unknown): value is EnvironmentFactory =>
  typeof value === 'object' &&
  value !== null &&
  'start' in value &&
  typeof value.start === 'function' &&
  'close' in value &&
  typeof value.close === 'function';

type CreateFactory = (config: EnvironmentConfig) => unknown;

const BUILT_IN = ['docker', 'kubernetes', 'local'];

/** The factory function of the user's module. Throws with an explanation when the module has none. */
async function findModule(name: string, baseDir: string): Promise<CreateFactory> {
  if (!isModulePath(name))
    throw new Error(
      `environment.environment_class "${name}" is not known: use docker, kubernetes, local, or the path of a module that exports createEnvironmentFactory`,
    );
  const { createEnvironmentFactory: create } = await importUserModule(
    'environment.environment_class',
    name,
    baseDir,
  );
  if (typeof create !== 'function')
    throw new Error(
      `environment.environment_class: ${name} does not export a function createEnvironmentFactory; docs/extension.md has an example`,
    );
  return create as CreateFactory;
}

/** Rejects when nothing can be made of `environment_class`; makes nothing. */
export async function checkEnvironmentClass(name: string, baseDir = '.'): Promise<void> {
  if (!BUILT_IN.includes(name)) await findModule(name, baseDir);
}

async function loadModule(config: EnvironmentConfig, baseDir: string): Promise<EnvironmentFactory> {
  const name = config.environment_class;
  const create = await findModule(name, baseDir);
  const factory: unknown = await create(config);
  if (!isFactory(factory))
    throw new Error(`createEnvironmentFactory of ${name} must return an object with kind, start and close`);
  return factory;
}

/** The engines of `environment.hosts`, as places; says which are lost and back. Throws when a name means nothing. */
export function enginePoolOf(
  hosts: EnvironmentConfig['hosts'],
  onWarning: (message: string) => void = () => {},
): RunPool {
  return createEnginePool(hosts.map(pooledEngine), {
    onChange: (host, state, reason) => onWarning(`engine ${host} is ${state}${reason ? `: ${reason}` : ''}`),
  });
}

function pooledEngine({ host, slots }: EnvironmentConfig['hosts'][number]): PooledEngine {
  const docker = engineClient(requiredEngine(host));
  return { name: host, slots, ping: () => docker.ping() };
}

function requiredEngine(host: string) {
  const docker = engineOptionsOf(host);
  if (!docker) throw new Error(`environment.hosts names "${host}", and nothing says how engines are found`);
  return docker;
}

function severalEngines(config: EnvironmentConfig, options: EnvironmentFactoryOptions): EnvironmentFactory {
  const { images } = options;
  // One engine is waited for briefly, because another may take the work; all of them together as one is elsewhere.
  const { watch, ...docker } = options.docker ?? {};
  const create = (host: string) => {
    const own = images && { images: images.ensureOn(host) };
    return createDockerFactory(config, {
      ...docker,
      ...own,
      ...{ docker: requiredEngine(host), outageMs: LOST_AFTER_MS },
    });
  };
  const pool = options.pool ?? enginePoolOf(config.hosts, options.docker?.onWarning);
  return createHostsFactory({
    pool,
    factories: new Map(config.hosts.map(({ host }) => [host, create(host)])),
    prefer: images && ((host, image) => images.has(host, image)),
    watch,
  });
}

export async function createEnvironmentFactory(
  config: EnvironmentConfig,
  options: EnvironmentFactoryOptions = {},
): Promise<EnvironmentFactory> {
  const { images } = options;
  if (config.environment_class === 'docker')
    return config.hosts.length > 0
      ? severalEngines(config, options)
      : createDockerFactory(config, {
          ...options.docker,
          ...(images && { images: images.ensureOn(undefined) }),
        });
  if (config.environment_class === 'kubernetes') {
    const { quietEnv, snapshot, capAdd, program, onWarning } = options.docker ?? {};
    const { listens: relay } = options;
    return createKubernetesFactory(config, { quietEnv, snapshot, capAdd, program, relay, onWarning });
  }
  if (config.environment_class === 'local') return createLocalFactory(config, options.local);
  return loadModule(config, options.baseDir ?? '.');
}
