/** The image service of the engine that this process's environment means. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  connectEngine,
  DOCKER_VARIABLES,
  type EngineConnection,
} from '../environment/engines/connectEngine.ts';
import {
  createImageService,
  type ImageService,
  type ImageServiceOptions,
} from '../environment/images/imageService.ts';
import { CliError, env } from './terminal/context.ts';

/** Where swebatch remembers across runs which images it pulled. */
export const stateDir = (): string =>
  join(env('XDG_STATE_HOME') ?? join(env('HOME') ?? homedir(), '.local', 'state'), 'swebatch');

export function requireEngine(host?: string): Extract<EngineConnection, { ok: true }> {
  const variables = Object.fromEntries(DOCKER_VARIABLES.map((name) => [name, env(name)]));
  const connection = connectEngine(variables, host);
  if (!connection.ok) throw new CliError(connection.message);
  return connection;
}

/** For every client of this process; undefined leaves the default socket to dockerode. */
export function engineOptions(host?: string) {
  const { options, source } = requireEngine(host);
  return source === 'default' && host === undefined ? undefined : options;
}

type Given = Omit<ImageServiceOptions, 'docker' | 'dockerConfigDir' | 'stateDir'>;

export async function openImages(options: Given, host?: string): Promise<ImageService> {
  const { docker, source } = requireEngine(host);
  try {
    await docker.ping();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(`the Docker engine (${source}) does not answer: ${reason}`, {
      hint: 'start it, or see "swebatch doctor"',
    });
  }
  return imagesOn(options, host);
}

/** Without asking whether the engine answers: one of several may come later. */
export function imagesOn(options: Given, host?: string): ImageService {
  const { docker, configDir } = requireEngine(host);
  return createImageService({ docker, dockerConfigDir: configDir, stateDir: stateDir(), ...options });
}
