/** The kinds of environments, one line each, and the one that a configuration names: one of these, or a module of the user's. */

import type { Finding } from '../base/finding.ts';
import { nearest } from '../base/text/closest.ts';
import { importUserModule, isModulePath } from '../userModule.ts';
import { NO_CAPABILITIES } from './capabilities.ts';
import { docker } from './docker/docker.ts';
import type { Capability, EnvironmentFactory } from './environment.ts';
import { type EnvironmentConfig, environmentSchema } from './environmentConfig.ts';
import type { ConfiguredArm, EnvironmentKind, EnvironmentOptions, Reaped } from './environmentKind.ts';
import { kubernetes } from './kubernetes/kubernetes.ts';
import { local } from './local/local.ts';
import { userEnvironmentFactory } from './userEnvironment.ts';

/** The first is the default. */
export const environmentKinds: readonly EnvironmentKind[] = [docker, kubernetes, local];

export const DEFAULT_ENVIRONMENT = environmentKinds[0]!.name;

/** All of them, or those with a capability. */
export const environmentNames = (capability?: Capability): readonly string[] =>
  environmentKinds
    .filter(({ capabilities }) => capability === undefined || capabilities[capability])
    .map(({ name }) => name);

/** A module of the user's: of an environment that we do not know nothing is expected but the contract. */
const foreign = (name: string): EnvironmentKind => ({
  name,
  title: name,
  inImages: false,
  onThisMachine: false,
  engines: 'gradings',
  grades: false,
  capabilities: NO_CAPABILITIES,
  create: (config, { baseDir = '.' }) => loadModule(config, baseDir),
});

const known = (name: string): EnvironmentKind | undefined =>
  environmentKinds.find((kind) => kind.name === name);

interface Named {
  readonly environment_class?: string | undefined;
}

/** The kind that a configuration names; another tool's record may name none. */
export const environmentKindOf = ({ environment_class = '' }: Named): EnvironmentKind =>
  known(environment_class) ?? foreign(environment_class);

/** Whether the containers are on a container engine, and the images are brought there. */
export const onEngines = (environment: Named): boolean => environmentKindOf(environment).engines === 'all';

/** The user's keys under `environment:`. */
export const environmentConfigSchema = environmentSchema({
  names: environmentNames(),
  own: Object.fromEntries(
    environmentKinds.flatMap(({ name, ownKeys }) => (ownKeys ? [[name, ownKeys.optional()] as const] : [])),
  ),
  onEngines,
  opensHosts: (environment) => environmentKindOf(environment).capabilities.opensHosts,
});

/** Keys of a configuration that only one kind of environment has, as they were given. */
export const ownKeysOf = (environment: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    environmentKinds.flatMap(({ name }) =>
      environment[name] === undefined ? [] : [[name, environment[name]] as const],
    ),
  );

const armsOf = (kind: EnvironmentKind, arms: readonly ConfiguredArm[]) =>
  arms.filter(({ environment }) => environment.environment_class === kind.name);

/** Whether the environments of these arms can be made. */
export async function environmentFindings(arms: readonly ConfiguredArm[]): Promise<Finding[]> {
  const found = environmentKinds.map(async (kind) => {
    const own = armsOf(kind, arms);
    return own.length > 0 ? ((await kind.findings?.(own)) ?? []) : [];
  });
  return (await Promise.all(found)).flat();
}

/** Removes leftovers of dead processes, of each kind of these configurations; the engine is asked elsewhere. */
export async function reapEnvironments(
  environments: readonly EnvironmentConfig[],
  how = { dryRun: false },
): Promise<Reaped[]> {
  const reaped: Reaped[] = [];
  for (const kind of environmentKinds) {
    const own = environments.filter(({ environment_class: name }) => name === kind.name);
    if (own.length > 0 && kind.reap) reaped.push(...(await kind.reap(own, how)));
  }
  return reaped;
}

type CreateFactory = (config: EnvironmentConfig) => unknown;

/** The factory function of the user's module. Throws with an explanation when the module has none. */
async function findModule(name: string, baseDir: string): Promise<CreateFactory> {
  if (!isModulePath(name))
    throw new Error(
      `environment.environment_class "${name}" is not known${nearest(name, environmentNames()) || ':'} use ${environmentNames().join(', ')}, or the path of a module that exports createEnvironmentFactory`,
    );
  const { createEnvironmentFactory: create } = await importUserModule(
    { key: 'environment.environment_class', what: 'environment' },
    name,
    baseDir,
  );
  if (typeof create !== 'function')
    throw new Error(
      `environment.environment_class: ${name} does not export a function createEnvironmentFactory; docs/extension.md has an example`,
    );
  return create as CreateFactory;
}

/** Rejects when `environment_class` names no environment; makes nothing. */
export async function checkEnvironmentClass(name: string, baseDir = '.'): Promise<void> {
  if (!known(name)) await findModule(name, baseDir);
}

async function loadModule(config: EnvironmentConfig, baseDir: string): Promise<EnvironmentFactory> {
  const name = config.environment_class;
  const create = await findModule(name, baseDir);
  return userEnvironmentFactory({ what: 'environment', path: name }, create, config);
}

export const createEnvironmentFactory = (
  config: EnvironmentConfig,
  options: EnvironmentOptions = {},
): Promise<EnvironmentFactory> => environmentKindOf(config).create(config, options);
