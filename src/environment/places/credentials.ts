/** The login for a registry, from what the docker CLI keeps: `auths` in its configuration, and the credential helpers it names. */

import { execFile } from 'node:child_process';
import { z } from 'zod';
import { DOCKER_HUB } from '../../base/imageReference.ts';
import { stripChars } from '../../base/python/text.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { DockerCliConfig, StoredLogin } from './endpoint.ts';

export interface RegistryLogin {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
  readonly registrytoken?: string;
  readonly serveraddress: string;
}

/** Docker Hub is stored under its old index address. */
const HUB_KEY = 'https://index.docker.io/v1/';
const serverAddressOf = (registry: string): string => (registry === DOCKER_HUB ? HUB_KEY : registry);

/** Keys may be a host, a URL, or a URL with a path. */
const hostOf = (key: string): string => key.replace(/^https?:\/\//, '').split('/', 1)[0]!;
const sameRegistry = (key: string, registry: string): boolean =>
  key === serverAddressOf(registry) ||
  hostOf(key) === registry ||
  (registry === DOCKER_HUB && ['index.docker.io', 'registry-1.docker.io'].includes(hostOf(key)));

function loginOf(entry: StoredLogin, serveraddress: string): RegistryLogin | undefined {
  const { auth, identitytoken, registrytoken } = entry;
  let { username, password } = entry;
  if (auth) {
    const decoded = Buffer.from(auth, 'base64').toString('utf8');
    const colon = decoded.indexOf(':');
    if (colon > 0)
      [username, password] = [decoded.slice(0, colon), stripChars(decoded.slice(colon + 1), '\0', 'right')];
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

const runCredentialHelper: RunHelper = (helper, server) =>
  new Promise((resolve, reject) => {
    const child = execFile(
      `docker-credential-${helper}`,
      ['get'],
      { timeout: HELPER_TIMEOUT_MS },
      (error, stdout) => {
        // Helpers print "credentials not found in native keychain" to stdout and fail: nobody is logged in, and nothing is wrong.
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
      const reason = errorText(error);
      onWarning(`docker-credential-${helper} gave no login for ${registry}: ${reason}`);
    }
  }
  const entry = Object.entries(config.auths).find(([key]) => sameRegistry(key, registry))?.[1];
  return entry && loginOf(entry, serveraddress);
}
