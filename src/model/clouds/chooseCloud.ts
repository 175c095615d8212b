/** The cloud that a name means, if any, and whether it can be asked here. */

import type { Dialect } from '../dialects/dialect.ts';
import { DIALECTS } from '../dialects/dialects.ts';
import { ModelConfigError } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { type CloudName, dialectNameOf, nameMeans } from '../names.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { type Cloud, CredentialError, missingText } from './cloud.ts';
import { vertex } from './vertex.ts';

const CLOUDS: Readonly<Record<CloudName, Cloud>> = { azure, bedrock, vertex_ai: vertex };

export function cloudOf(config: Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>): Cloud | null {
  const name = nameMeans(config)?.provider.cloud;
  return name === undefined ? null : CLOUDS[name];
}

/** null when everything is there that the model's cloud needs beside credentials. */
export async function missingPackages(
  config: ModelConfig,
): Promise<{ readonly message: string; readonly fix: string } | null> {
  const cloud = cloudOf(config);
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
  const auth = await cloudOf(config)?.createAuth(config, undefined);
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

export async function dialectOf(
  config: Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect'>,
): Promise<Dialect> {
  const dialect = await DIALECTS[dialectNameOf(config)].load();
  return cloudOf(config)?.dialect(dialect) ?? dialect;
}
