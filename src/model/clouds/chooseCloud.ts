/** The cloud that a name means, if any, and whether it can be asked here. */

import type { Dialect } from '../dialects/dialect.ts';
import { DIALECTS } from '../dialects/dialects.ts';
import { ModelConfigError } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { type CloudName, namedModel } from '../names.ts';
import { type Cloud, CredentialError, missingText } from './cloud.ts';

/** Each is loaded with the first model that it serves. */
const CLOUDS: Readonly<Record<CloudName, () => Promise<Cloud>>> = {
  azure: async () => (await import('./azure.ts')).azure,
  bedrock: async () => (await import('./bedrock.ts')).bedrock,
  vertex_ai: async () => (await import('./vertex.ts')).vertex,
};

export async function cloudOf(config: Parameters<typeof namedModel>[0]): Promise<Cloud | null> {
  const name = namedModel(config).provider?.cloud;
  return name === undefined ? null : CLOUDS[name]();
}

/** null when everything is there that the model's cloud needs beside credentials. */
export async function missingPackages(
  config: ModelConfig,
): Promise<{ readonly message: string; readonly fix: string } | null> {
  const cloud = await cloudOf(config);
  if (!cloud) return null;
  try {
    await cloud.createAuth(config, undefined);
    await cloud.prepare?.();
    return null;
  } catch (error) {
    if (!(error instanceof ModelConfigError)) throw error;
    return missingText(cloud.name, cloud.packages);
  }
}

/** null when the cloud's own credentials are there. A place of credentials that does not answer now may do so at the first call. */
export async function missingCredentials(
  config: ModelConfig,
): Promise<{ readonly message: string; readonly fix: string } | null> {
  const cloud = await cloudOf(config);
  const auth = await cloud?.createAuth(config, undefined);
  if (!auth || !config.base_url) return null;
  try {
    await auth.authorize({ url: new URL(config.base_url), headers: {}, body: new Uint8Array() });
    return null;
  } catch (error) {
    if (!(error instanceof CredentialError)) throw error;
    if (error.passing) return null;
    return { message: error.message, fix: `give them there, or a key in $${config.api_key_env}` };
  }
}

export async function dialectOf(config: Parameters<typeof namedModel>[0]): Promise<Dialect> {
  const dialect = await DIALECTS[namedModel(config).dialect].load();
  return (await cloudOf(config))?.dialect(dialect) ?? dialect;
}
