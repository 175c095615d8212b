/** Asks a registry about an image without pulling it: sizes of its layers for the disk plan, and when a refused puller may come back. */

import { execFile } from 'node:child_process';
import { z } from 'zod';
import { retryAfterMs } from '../../base/async/timer.ts';
import {
  candidatesOf,
  DOCKER_HUB,
  type ImageReference,
  isMadeHere,
  sourceOf,
} from '../../base/imageReference.ts';
import { stripChars } from '../../base/python/text.ts';
import { errorText } from '../../base/text/errorText.ts';
import { type DockerCliConfig, readDockerCliConfig, type StoredLogin } from './endpoint.ts';
import type { ImagesConfig } from './imagesConfig.ts';

const descriptorSchema = z.looseObject({ digest: z.string(), size: z.number() });
const indexSchema = z.looseObject({
  manifests: z.array(
    descriptorSchema.extend({
      platform: z
        .looseObject({ os: z.string(), architecture: z.string(), variant: z.string().optional() })
        .optional(),
    }),
  ),
});
const manifestSchema = z.looseObject({ config: descriptorSchema, layers: z.array(descriptorSchema) });
const tokenSchema = z.looseObject({ token: z.string().optional(), access_token: z.string().optional() });

export interface RemoteLayer {
  readonly digest: string;
  /** Compressed. */
  readonly size: number;
}
export type ManifestAnswer =
  | {
      readonly ok: true;
      readonly digest: string;
      readonly layers: readonly RemoteLayer[];
      readonly platforms: readonly string[];
    }
  | {
      readonly ok: false;
      readonly status: number;
      readonly retryAfterMs: number | undefined;
      readonly message: string;
    };

interface RegistryOptions {
  readonly fetch?: typeof fetch;
  readonly login?:
    | {
        readonly username?: string;
        readonly password?: string;
        readonly identitytoken?: string;
        readonly registrytoken?: string;
      }
    | undefined;
  readonly platform?: string | undefined;
  readonly insecure?: readonly string[];
  readonly timeoutMs?: number;
  readonly now?: () => number;
  readonly signal?: AbortSignal | undefined;
}

const ACCEPT = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);

function baseUrl({ registry }: ImageReference, insecure: readonly string[]): string {
  if (registry === DOCKER_HUB) return 'https://registry-1.docker.io';
  return `${isLoopback(registry) || insecure.includes(registry) ? 'http' : 'https'}://${registry}`;
}

/** `Bearer realm="…",service="…",scope="…"` */
function challenge(header: string): { scheme: string; fields: Record<string, string> } {
  const scheme = header.split(' ', 1)[0]!.toLowerCase();
  const fields = Object.fromEntries([...header.matchAll(/\b(\w+)="([^"]*)"/g)].map((m) => [m[1]!, m[2]!]));
  return { scheme, fields };
}

/**
 * Docker Hub names the moment in `ratelimit-reset`; others send Retry-After in seconds or as a date (T-34; observed:
 * tests/environment/places/images/registry.test.ts).
 */
function resetOf(headers: Headers, now: number): number | undefined {
  const reset = headers.get('ratelimit-reset') ?? headers.get('x-ratelimit-reset');
  return retryAfterMs(headers.get('retry-after'), now) ?? retryAfterMs(reset, now);
}

async function authorize(header: string, repository: string, options: Asking): Promise<string | undefined> {
  const { scheme, fields } = challenge(header);
  const { login } = options;
  const basic =
    login?.username !== undefined && login.password !== undefined
      ? `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`
      : undefined;
  if (scheme === 'basic') return basic;
  if (scheme !== 'bearer' || !fields.realm) return undefined;
  if (login?.registrytoken !== undefined) return `Bearer ${login.registrytoken}`;
  const url = new URL(fields.realm);
  if (url.protocol !== 'https:' && !isLoopback(url.host)) return undefined; // no password over a readable line
  const scope = fields.scope ?? `repository:${repository}:pull`;
  const service = fields.service ? { service: fields.service } : {};
  const refresh = login?.identitytoken;
  // A token of a helper or a login by browser is exchanged as OAuth has it; a password goes in a header.
  const form = new URLSearchParams({ grant_type: 'refresh_token', client_id: 'swebatch', ...service, scope });
  if (refresh !== undefined) form.set('refresh_token', refresh);
  else for (const [name, value] of Object.entries({ ...service, scope })) url.searchParams.set(name, value);
  const response =
    refresh !== undefined
      ? await options.get(url.href, {}, 'POST', form)
      : await options.get(url.href, basic ? { authorization: basic } : {});
  if (!response.ok) return undefined;
  const { token, access_token } = tokenSchema.parse(await response.json());
  return `Bearer ${token ?? access_token ?? ''}`;
}

function asking(options: RegistryOptions) {
  const { fetch: send = fetch, timeoutMs = 20_000, signal } = options;
  const get = (
    url: string,
    headers: Record<string, string>,
    method = 'GET',
    body?: URLSearchParams,
  ): Promise<Response> => {
    const signals = [AbortSignal.timeout(timeoutMs), signal].filter((s) => s !== undefined);
    return send(url, { method, headers, signal: AbortSignal.any(signals), ...(body && { body }) });
  };
  return { ...options, get };
}
type Asking = ReturnType<typeof asking>;

async function request(
  reference: ImageReference,
  options: Asking,
  method: 'GET' | 'HEAD' = 'GET',
  target = reference.digest ?? reference.tag ?? 'latest',
): Promise<Response> {
  const url = `${baseUrl(reference, options.insecure ?? [])}/v2/${reference.repository}/manifests/${target}`;
  const first = await options.get(url, { accept: ACCEPT }, method);
  const asked = first.status === 401 ? first.headers.get('www-authenticate') : null;
  if (asked === null) return first;
  const authorization = await authorize(asked, reference.repository, options);
  return authorization === undefined ? first : options.get(url, { accept: ACCEPT, authorization }, method);
}

async function refusalOf(response: Response, { now = Date.now }: RegistryOptions): Promise<ManifestAnswer> {
  const text = (await response.text()).slice(0, 400).trim();
  const message = `the registry answers ${response.status}${text ? `: ${text}` : ''}`;
  return { ok: false, status: response.status, retryAfterMs: resetOf(response.headers, now()), message };
}

/**
 * When the registry lets this machine pull again. A HEAD does not count against Docker Hub's limit, and is answered when that is used up; the
 * GET behind it is what gets the refusal with the moment in it (observed: tests/environment/places/images/registry.test.ts).
 */
export async function askReset(
  reference: ImageReference,
  options: RegistryOptions = {},
): Promise<number | undefined> {
  const now = options.now ?? Date.now;
  try {
    for (const method of ['HEAD', 'GET'] as const) {
      const response = await request(reference, asking(options), method);
      await response.body?.cancel();
      if (response.status === 429) return resetOf(response.headers, now());
    }
    return undefined;
  } catch {
    return undefined; // an unknown time is not a failure
  }
}

const platformName = (p: { os: string; architecture: string; variant?: string | undefined }) =>
  [p.os, p.architecture, p.variant].filter(Boolean).join('/');

/** A registry that cannot be reached has status 0. */
async function answered(ask: () => Promise<ManifestAnswer>): Promise<ManifestAnswer> {
  try {
    return await ask();
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { ok: false, status: 0, retryAfterMs: undefined, message: errorText(cause) };
  }
}

const digestOf = ({ headers }: Response): string => headers.get('docker-content-digest') ?? '';

/** Whether the registry has the image and lets us have it; a HEAD, which counts against nobody's limit. */
export const askExists = (
  reference: ImageReference,
  options: RegistryOptions = {},
): Promise<ManifestAnswer> =>
  answered(async () => {
    const response = await request(reference, asking(options), 'HEAD');
    if (!response.ok) return refusalOf(response, options);
    return { ok: true, digest: digestOf(response), layers: [], platforms: [] };
  });

export const askManifest = (
  reference: ImageReference,
  options: RegistryOptions = {},
): Promise<ManifestAnswer> =>
  answered(async () => {
    const ask = asking(options);
    let response = await request(reference, ask);
    if (!response.ok) return refusalOf(response, options);
    const digest = digestOf(response);
    let body: unknown = await response.json();
    let platforms: string[] = [];
    const index = indexSchema.safeParse(body);
    if (index.success) {
      const built = index.data.manifests.filter((m) => m.platform && m.platform.os !== 'unknown');
      platforms = built.map((m) => platformName(m.platform!));
      const wanted = options.platform ?? 'linux/amd64';
      const match = built.find((m) => platformName(m.platform!).startsWith(wanted));
      const message = `no matching manifest for ${wanted}; there is ${platforms.join(', ')}`;
      if (!match) return { ok: false, status: 404, retryAfterMs: undefined, message };
      response = await request(reference, ask, 'GET', match.digest);
      if (!response.ok) return refusalOf(response, options);
      body = await response.json();
    }
    const { layers, config } = manifestSchema.parse(body);
    const sizes = [...layers, config].map(({ digest: of, size }) => ({ digest: of, size }));
    return { ok: true, digest, platforms, layers: sizes };
  });

/** Built on the engine: nobody knows its size before, and no registry is asked. */
const BUILT_HERE: ManifestAnswer = { ok: true, digest: '', layers: [], platforms: [] };

/** Questions to the registries of an image, mirrors first, with the logins that the docker CLI keeps. */
export function createRegistryQuestions({
  config,
  platform,
  dockerConfigDir,
  onWarning,
}: {
  readonly config: Pick<ImagesConfig, 'rewrite' | 'mirrors' | 'insecure_registries'>;
  readonly platform?: string | undefined;
  readonly dockerConfigDir: string;
  readonly onWarning: (message: string) => void;
}) {
  const told = new Set<string>();
  const warnOnce = (message: string) => {
    if (!told.has(message)) onWarning(message);
    told.add(message);
  };
  // Read anew for each pull, as Docker does: helpers give tokens that last an hour, and a night may need a login that came later (observed:
  // tests/environment/places/images/registry.test.ts).
  const loginOf = (registry: string): Promise<RegistryLogin | undefined> => {
    const cli = readDockerCliConfig(dockerConfigDir);
    if (cli.warning) warnOnce(cli.warning);
    return findLogin(cli.config, registry, undefined, warnOnce);
  };
  const given = (login: RegistryLogin | undefined) => ({
    login,
    platform,
    insecure: config.insecure_registries,
  });
  const sourcesOf = (image: string): ImageReference[] => {
    const wanted = sourceOf(image, config.rewrite);
    return wanted.ok ? candidatesOf(wanted.reference, config.mirrors) : [];
  };
  const ask = async (
    image: string,
    question: typeof askManifest,
    signal: AbortSignal | undefined,
  ): Promise<ManifestAnswer> => {
    if (isMadeHere(image)) return BUILT_HERE;
    let answer: ManifestAnswer | undefined;
    for (const [i, reference] of sourcesOf(image).entries()) {
      // Behind a mirror that lacks images, each question for sizes would use up a pull of Docker Hub's.
      const free = i > 0 && reference.registry === DOCKER_HUB ? askExists : question;
      answer = await free(reference, { ...given(await loginOf(reference.registry)), signal });
      if (answer.ok) return answer;
    }
    if (answer) return answer;
    const wanted = sourceOf(image, config.rewrite);
    const message = wanted.ok ? '' : wanted.message;
    return { ok: false, status: 0, retryAfterMs: undefined, message };
  };
  return {
    loginOf,
    /** Layers and sizes. */
    manifestOf: (image: string, signal?: AbortSignal) => ask(image, askManifest, signal),
    /** Whether it is there, without using up a pull. */
    existsOf: (image: string, signal?: AbortSignal) => ask(image, askExists, signal),
    /** Until when a registry that refused stays closed. */
    resetOf: (reference: ImageReference, login: RegistryLogin | undefined) =>
      askReset(reference, given(login)),
    /** A question for its manifest counts as a pull. */
    isCostly: (image: string): boolean => sourcesOf(image)[0]?.registry === DOCKER_HUB,
  };
}

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
type RunHelper = (helper: string, server: string) => Promise<string>;

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

/**
 * The login for a registry, or undefined. A helper that fails is reported through `onWarning` (observed:
 * tests/environment/places/images/pure.test.ts).
 */
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
