/** Connects to the engine of the caller's variables, and makes its image service. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { errorText } from '../../base/text/errorText.ts';
import { connectEngine, DOCKER_VARIABLES, type EngineConnection } from '../../environment/places/endpoint.ts';
import {
  createImageService,
  type ImageService,
  type ImageServiceOptions,
} from '../../environment/places/imageService.ts';
import { type Variables, variable } from '../caller.ts';
import { UserError } from '../userError.ts';

/** The folder of the list of pulled images, which all runs share. */
export const stateDir = (env: Variables): string =>
  join(
    variable(env, 'XDG_STATE_HOME') ?? join(variable(env, 'HOME') ?? homedir(), '.local', 'state'),
    'swebatch',
  );

type EngineConnected = Extract<EngineConnection, { ok: true }>;

export function requireEngine(env: Variables): EngineConnected {
  const variables = Object.fromEntries(DOCKER_VARIABLES.map((name) => [name, variable(env, name)]));
  const connection = connectEngine(variables);
  if (!connection.ok) throw new UserError(connection.message);
  return connection;
}

/** The engine does not answer: says which variable chose it, because the address in it is the usual mistake. */
export function engineSilent(reason: string, env: Variables, problems: readonly string[] = []) {
  const chosen = (['DOCKER_HOST', 'DOCKER_CONTEXT'] as const).find(
    (name) => variable(env, name) !== undefined,
  );
  const where = chosen ? `; $${chosen} is ${variable(env, chosen)}` : '';
  return new UserError([...problems, `Docker does not answer (${reason}${where})`].join('\n'), {
    next: { do: 'check_engine' },
  });
}

/** Options of clients; undefined leaves the default socket to dockerode. */
export function engineOptions(env: Variables) {
  const { options, source } = requireEngine(env);
  return source === 'default' ? undefined : options;
}

export async function openImages(env: Variables, options: ImageServiceOptions): Promise<ImageService> {
  const { docker, configDir, source } = requireEngine(env);
  try {
    await docker.ping();
  } catch (error) {
    const reason = errorText(error);
    throw new UserError(`the Docker engine (${source}) does not answer: ${reason}`, {
      next: { do: 'check_engine' },
    });
  }
  return createImageService({ docker, dockerConfigDir: configDir, stateDir: stateDir(env) }, options);
}
