/** Chooses the environment a configuration names: docker, local, or a module of the user's. */
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { engineOptionsOf } from './client.ts';
import type { EnvironmentConfig } from './config.ts';
import { createDockerFactory } from './docker.ts';
import type { DockerFactoryOptions } from './dockerOptions.ts';
import type { EnvironmentFactory } from './environment.ts';
import { createHostsFactory, pingOf } from './hosts.ts';
import { createLocalFactory, type LocalFactoryOptions } from './local.ts';

export interface EnvironmentFactoryOptions {
  readonly docker?: DockerFactoryOptions;
  readonly local?: LocalFactoryOptions;
  /** Folder that relative module paths start from; default: the working directory. */
  readonly baseDir?: string;
}

const isFactory = (value: unknown): value is EnvironmentFactory =>
  typeof value === 'object' &&
  value !== null &&
  'start' in value &&
  typeof value.start === 'function' &&
  'close' in value &&
  typeof value.close === 'function';

async function loadModule(config: EnvironmentConfig, baseDir: string): Promise<EnvironmentFactory> {
  const name = config.environment_class;
  const where = isAbsolute(name) || name.startsWith('.') || name.includes('/') || /\.[cm]?[jt]s$/.test(name);
  if (!where)
    throw new Error(
      `environment.environment_class "${name}" is not known: use docker, local, or the path of a module that exports createEnvironmentFactory`,
    );
  const module: unknown = await import(pathToFileURL(resolve(baseDir, name)).href);
  const create =
    typeof module === 'object' && module !== null && 'createEnvironmentFactory' in module
      ? module.createEnvironmentFactory
      : undefined;
  if (typeof create !== 'function')
    throw new Error(`${name} does not export a function createEnvironmentFactory`);
  const factory: unknown = await create(config);
  if (!isFactory(factory))
    throw new Error(`createEnvironmentFactory of ${name} must return an object with kind, start and close`);
  return factory;
}

function severalEngines(config: EnvironmentConfig, options: DockerFactoryOptions = {}): EnvironmentFactory {
  const hosts = config.hosts.map(({ host, slots }) => {
    const docker = engineOptionsOf(host);
    if (!docker) throw new Error(`environment.hosts names "${host}", and nothing says how engines are found`);
    const factory = createDockerFactory(config, { ...options, docker });
    return { name: host, slots, factory, ping: pingOf(factory.docker) };
  });
  return createHostsFactory(hosts, {
    onChange: (host, state, reason) =>
      options.onWarning?.(`engine ${host} is ${state}${reason ? `: ${reason}` : ''}`),
  });
}

export async function createEnvironmentFactory(
  config: EnvironmentConfig,
  options: EnvironmentFactoryOptions = {},
): Promise<EnvironmentFactory> {
  if (config.environment_class === 'docker')
    return config.hosts.length > 0
      ? severalEngines(config, options.docker)
      : createDockerFactory(config, options.docker);
  if (config.environment_class === 'local') return createLocalFactory(config, options.local);
  return loadModule(config, options.baseDir ?? '.');
}
