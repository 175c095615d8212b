/** Registry logins as the docker CLI keeps them: `config.json` with `auths`, and the credential helpers it names. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { DOCKER_HUB } from './reference.ts';

const entrySchema = z.looseObject({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
  registrytoken: z.string().optional(),
});
const configSchema = z.looseObject({
  auths: z.record(z.string(), entrySchema).default({}),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).default({}),
  currentContext: z.string().optional(),
});
export type DockerCliConfig = z.infer<typeof configSchema>;

export interface RegistryLogin {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
  readonly registrytoken?: string;
  readonly serveraddress: string;
}

export const dockerConfigDir = (env: {
  DOCKER_CONFIG?: string | undefined;
  HOME?: string | undefined;
}): string => env.DOCKER_CONFIG || join(env.HOME ?? homedir(), '.docker');

/** An unreadable file is said, not ignored: pulling without the login would fail later with a misleading message. */
export function readDockerCliConfig(dir: string): { config: DockerCliConfig; warning?: string } {
  const path = join(dir, 'config.json');
  const nothing = configSchema.parse({});
  if (!existsSync(path)) return { config: nothing };
  try {
    return { config: configSchema.parse(JSON.parse(readFileSync(path, 'utf8'))) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { config: nothing, warning: `${path} cannot be read, so no registry login is used: ${reason}` };
  }
}

/** Docker Hub is stored under its old index address. */
const HUB_KEY = 'https://index.docker.io/v1/';
export const serverAddressOf = (registry: string): string => (registry === DOCKER_HUB ? HUB_KEY : registry);

/** Keys may be a host, a URL, or a URL with a path. */
const hostOf = (key: string): string => key.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
const sameRegistry = (key: string, registry: string): boolean =>
  key === serverAddressOf(registry) ||
  hostOf(key) === registry ||
  (registry === DOCKER_HUB && ['index.docker.io', 'registry-1.docker.io'].includes(hostOf(key)));

function loginOf(entry: z.infer<typeof entrySchema>, serveraddress: string): RegistryLogin | undefined {
  const { auth, identitytoken, registrytoken } = entry;
  let { username, password } = entry;
  if (auth) {
    const decoded = Buffer.from(auth, 'base64').toString('utf8');
    const colon = decoded.indexOf(':');
    if (colon > 0)
      [username, password] = [decoded.slice(0, colon), decoded.slice(colon + 1).replace(/\0+$/, '')];
  }
  if (!username && !identitytoken && !registrytoken) return undefined;
  return {
    serveraddress,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(identitytoken && { identitytoken }),
    ...(registrytoken && { registrytoken }),
  };
}

/** Runs `docker-credential-<helper> get` with the server on its stdin; JSON `{Username, Secret}` comes back. */
export type RunHelper = (helper: string, server: string) => Promise<string>;

const HELPER_TIMEOUT_MS = 20_000;

export const runCredentialHelper: RunHelper = (helper, server) =>
  new Promise((resolve, reject) => {
    const child = execFile(
      `docker-credential-${helper}`,
      ['get'],
      { timeout: HELPER_TIMEOUT_MS },
      (error, stdout) => {
        // Helpers print "credentials not found in native keychain" to stdout and fail: that is no login, not a fault.
        if (error && /not found/i.test(stdout)) resolve('');
        else if (error) reject(error);
        else resolve(stdout);
      },
    );
    child.stdin?.on('error', () => {}); // the helper is missing or ended early: execFile reports it
    child.stdin?.end(server);
  });

const helperAnswer = z.looseObject({ Username: z.string(), Secret: z.string() });

/** The login for a registry, or undefined. A helper that fails is reported through `onWarning`. */
export async function findLogin(
  config: DockerCliConfig,
  registry: string,
  run: RunHelper = runCredentialHelper,
  onWarning: (message: string) => void = () => {},
): Promise<RegistryLogin | undefined> {
  const serveraddress = serverAddressOf(registry);
  const named = Object.entries(config.credHelpers).find(([key]) => sameRegistry(key, registry))?.[1];
  const helper = named ?? config.credsStore;
  if (helper !== undefined && /^[\w.-]+$/.test(helper)) {
    try {
      const text = await run(helper, serveraddress);
      if (text.trim() !== '') {
        const { Username, Secret } = helperAnswer.parse(JSON.parse(text));
        if (Username === '<token>') return { serveraddress, identitytoken: Secret };
        if (Secret !== '') return { serveraddress, username: Username, password: Secret };
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      onWarning(`docker-credential-${helper} gave no login for ${registry}: ${reason}`);
    }
  }
  const entry = Object.entries(config.auths).find(([key]) => sameRegistry(key, registry))?.[1];
  return entry && loginOf(entry, serveraddress);
}
