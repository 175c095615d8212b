/** From the environment of a process to a client of the engine it means: contexts and DOCKER_HOST as the docker CLI reads them. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import Docker from 'dockerode';
import { dockerConfigDir, readDockerCliConfig } from './dockerCliConfig.ts';
import { dockerodeOptions, type EndpointInput, resolveDockerEndpoint } from './endpoint.ts';

export const DOCKER_VARIABLES = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'DOCKER_CONFIG',
  'HOME',
  'XDG_RUNTIME_DIR',
] as const;
export type DockerEnv = Partial<Record<(typeof DOCKER_VARIABLES)[number], string | undefined>>;

export type EngineConnection =
  | {
      readonly ok: true;
      readonly docker: Docker;
      /** For `createDockerFactory({docker: …})`. */
      readonly options: Docker.DockerOptions;
      /** "DOCKER_HOST", "Docker context …": what decided. */
      readonly source: string;
      readonly configDir: string;
    }
  | { readonly ok: false; readonly message: string };

function hasSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    return false; // there is none, or its folder is somebody else's
  }
}

/** `host`: a context name or an address from `environment.hosts`; without it the CLI's own rules. */
export function connectEngine(env: DockerEnv, host?: string): EngineConnection {
  const configDir = dockerConfigDir(env);
  const input: EndpointInput = {
    context: host,
    env,
    configDir,
    currentContext: readDockerCliConfig(configDir).config.currentContext,
    readFile: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
    hasSocket,
  };
  const endpoint = resolveDockerEndpoint(input);
  if (!endpoint.ok) return endpoint;
  const options = dockerodeOptions(endpoint.address) as Docker.DockerOptions;
  return { ok: true, docker: new Docker(options), options, source: endpoint.source, configDir };
}
