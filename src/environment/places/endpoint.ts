/**
 * The engine that is meant, as the docker CLI decides: DOCKER_HOST, DOCKER_CONTEXT, the current context of its
 * config.json, the default socket, and Podman's socket where there is no Docker. Files come in through `readFile`, so the rules are a pure
 * function of the machine's files.
 */

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { Agent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { z } from 'zod';
import { sha256 } from '../../base/sha256.ts';
import { errorText } from '../../base/text/errorText.ts';
import { engineClient } from './chosenEngine.ts';

export interface EndpointInput {
  readonly env: {
    readonly DOCKER_HOST?: string | undefined;
    readonly DOCKER_CONTEXT?: string | undefined;
    readonly DOCKER_TLS_VERIFY?: string | undefined;
    readonly DOCKER_CERT_PATH?: string | undefined;
    readonly XDG_RUNTIME_DIR?: string | undefined;
  };
  /** `~/.docker`, or DOCKER_CONFIG. */
  readonly configDir: string;
  readonly currentContext?: string | undefined;
  /** Undefined when there is no such file. */
  readonly readFile: (path: string) => string | undefined;
  /** Whether there is a socket at this path. */
  readonly hasSocket: (path: string) => boolean;
}

interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly skipVerify: boolean;
}

type DockerAddress =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: TlsFiles | undefined }
  | ({ readonly kind: 'ssh' } & SshAddress);

type Endpoint =
  | { readonly ok: true; readonly address: DockerAddress; readonly source: string }
  | { readonly ok: false; readonly message: string };

const DEFAULT_SOCKET = '/var/run/docker.sock';
const PODMAN_SOCKET = '/run/podman/podman.sock';
const contextSchema = z.looseObject({
  Endpoints: z.looseObject({
    docker: z.looseObject({ Host: z.string().default(''), SkipTLSVerify: z.boolean().default(false) }),
  }),
});

const TLS_PORT = 2376;
const PLAIN_PORT = 2375;

/** `unix://`, `tcp://`, `http(s)://`, `ssh://`, or a bare `host:port`. */
export function parseDockerHost(
  host: string,
  tls: TlsFiles | undefined,
): DockerAddress | { problem: string } {
  if (host.startsWith('unix://'))
    return { kind: 'socket', path: host.slice('unix://'.length) || DEFAULT_SOCKET };
  if (host.startsWith('npipe://')) return { kind: 'socket', path: host.slice('npipe://'.length) };
  if (host.startsWith('/')) return { kind: 'socket', path: host };
  let url: URL;
  try {
    url = new URL(host.includes('://') ? host.replace(/^tcp:/, 'http:') : `http://${host}`);
  } catch {
    return { problem: `"${host}" is not the address of an engine` };
  }
  if (url.protocol === 'ssh:') {
    if (url.password !== '') return { problem: 'an ssh address takes no password: use a key or an agent' };
    return {
      kind: 'ssh',
      host: url.hostname,
      port: url.port === '' ? undefined : Number(url.port),
      username: url.username === '' ? undefined : decodeURIComponent(url.username),
      socket: url.pathname.length > 1 ? url.pathname : undefined,
    };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return {
      problem: `"${host}": ${url.protocol}// is not supported; use unix://, tcp://, https:// or ssh://`,
    };
  const secure = tls ?? (url.protocol === 'https:' ? { skipVerify: false } : undefined);
  const port = Number(url.port || (secure ? TLS_PORT : PLAIN_PORT));
  return { kind: 'tcp', host: url.hostname.replace(/^\[|\]$/g, ''), port, tls: secure };
}

const withoutUndefined = (files: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(files).filter(([, text]) => text !== undefined)) as Record<
    string,
    string
  >;

function readTls(dir: string, skipVerify: boolean, { readFile }: EndpointInput): TlsFiles | undefined {
  const files = withoutUndefined({
    ca: readFile(join(dir, 'ca.pem')),
    cert: readFile(join(dir, 'cert.pem')),
    key: readFile(join(dir, 'key.pem')),
  });
  return Object.keys(files).length > 0 || skipVerify ? { ...files, skipVerify } : undefined;
}

const found = (address: ReturnType<typeof parseDockerHost>, source: string): Endpoint =>
  'problem' in address
    ? { ok: false, message: `${source}: ${address.problem}` }
    : { ok: true, address, source };

function fromContext(name: string, source: string, input: EndpointInput): Endpoint {
  if (name === 'default') return fromEnvironment(input) ?? fallback(input);
  const id = sha256(name);
  const path = join(input.configDir, 'contexts', 'meta', id, 'meta.json');
  const text = input.readFile(path);
  if (text === undefined)
    return {
      ok: false,
      message: `${source} names the Docker context "${name}", which does not exist; see "docker context ls"`,
    };
  try {
    const { Host, SkipTLSVerify } = contextSchema.parse(JSON.parse(text)).Endpoints.docker;
    const tls = readTls(join(input.configDir, 'contexts', 'tls', id, 'docker'), SkipTLSVerify, input);
    return found(parseDockerHost(Host || `unix://${DEFAULT_SOCKET}`, tls), `Docker context "${name}"`);
  } catch {
    // A damaged context is never the default engine (observed: tests/environment/places/engines/endpoint.test.ts).
    return { ok: false, message: `the Docker context "${name}" cannot be read: ${path} is damaged` };
  }
}

/** The CLI takes certificates from DOCKER_CERT_PATH, else from its config directory, and only when DOCKER_TLS_VERIFY is set. */
function tlsOfEnvironment(input: EndpointInput): TlsFiles | undefined {
  const { DOCKER_TLS_VERIFY, DOCKER_CERT_PATH } = input.env;
  if (!DOCKER_TLS_VERIFY) return undefined;
  return readTls(DOCKER_CERT_PATH || input.configDir, false, input) ?? { skipVerify: false };
}

function fromEnvironment(input: EndpointInput): Endpoint | undefined {
  const { DOCKER_HOST } = input.env;
  return DOCKER_HOST
    ? found(parseDockerHost(DOCKER_HOST, tlsOfEnvironment(input)), 'DOCKER_HOST')
    : undefined;
}

/** The person's own Podman comes before the machine's. */
function fallback({ env, hasSocket }: EndpointInput): Endpoint {
  const own = env.XDG_RUNTIME_DIR ? [join(env.XDG_RUNTIME_DIR, 'podman', 'podman.sock')] : [];
  const podman = hasSocket(DEFAULT_SOCKET) ? undefined : [...own, PODMAN_SOCKET].find(hasSocket);
  return {
    ok: true,
    address: { kind: 'socket', path: podman ?? DEFAULT_SOCKET },
    source: podman === undefined ? 'default' : `Podman's socket ${podman}`,
  };
}

export function resolveDockerEndpoint(input: EndpointInput): Endpoint {
  const { env, currentContext } = input;
  const fromEnv = fromEnvironment(input);
  if (fromEnv) return fromEnv;
  if (env.DOCKER_CONTEXT) return fromContext(env.DOCKER_CONTEXT, 'DOCKER_CONTEXT', input);
  if (currentContext) return fromContext(currentContext, 'currentContext of config.json', input);
  return fallback(input);
}

/**
 * The options of dockerode's constructor. dockerode reads DOCKER_HOST and its certificates by itself and mixes them in, so that the engine
 * of a context would silently become the one of that variable. Every option that it could read there is therefore set here (observed:
 * tests/environment/places/engines/endpoint.test.ts).
 */
export function dockerodeOptions(address: DockerAddress): Record<string, unknown> {
  const nothing = { socketPath: undefined, host: undefined, port: undefined, username: undefined };
  const plain = { ...nothing, ca: undefined, cert: undefined, key: undefined, protocol: 'http' };
  if (address.kind === 'socket') return { ...plain, socketPath: address.path };
  // The name in the address is not looked up: the connection is there already.
  if (address.kind === 'ssh') return { ...plain, host: 'docker.over.ssh', agent: sshAgent(address) };
  const { host, port, tls } = address;
  if (!tls) return { ...plain, host, port };
  const { skipVerify, ...files } = tls;
  return {
    ...plain,
    protocol: 'https',
    host,
    port,
    ...files,
    // dockerode hands no such setting to the request; an agent does.
    ...(skipVerify && { agent: new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }) }),
  };
}

interface SshAddress {
  readonly host: string;
  /** Undefined: what ssh's own configuration says. */
  readonly port: number | undefined;
  readonly username: string | undefined;
  /** Socket of the engine over there, where it is not the usual one. */
  readonly socket: string | undefined;
}

const CONNECT_TIMEOUT_S = 30;
const KEPT_STDERR = 2000;

export function sshArguments({ host, port, username, socket }: SshAddress): string[] {
  return [
    ...['-o', `ConnectTimeout=${CONNECT_TIMEOUT_S}`],
    // Nobody is there to answer a question, and a machine that is gone must be noticed.
    ...['-o', 'BatchMode=yes', '-o', 'ServerAliveInterval=15', '-o', 'ServerAliveCountMax=4', '-T'],
    ...(username === undefined ? [] : ['-l', username]),
    ...(port === undefined ? [] : ['-p', String(port)]),
    ...['--', host, 'docker', ...(socket === undefined ? [] : ['--host', `unix://${socket}`])],
    ...['system', 'dial-stdio'],
  ];
}

/** The stdio of the child as the socket that an HTTP client expects. */
function dial(address: SshAddress): Duplex {
  const child = spawn('ssh', sshArguments(address), { stdio: ['pipe', 'pipe', 'pipe'] });
  const { stdin, stdout, stderr } = child;
  let said = '';
  const socket = new Duplex({
    read: () => void stdout.resume(),
    write: (chunk: Buffer, _, done) => void stdin.write(chunk, () => done()), // `close` reports a broken pipe, with ssh's words (sshAgent.test.ts)
    final: (done) => void stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill();
      done(error);
    },
  });
  const fail = (why: string) => {
    const message = `ssh to ${address.host}: ${said.trim() || why}`;
    socket.destroy(Object.assign(new Error(message), { code: 'ECONNRESET' }));
  };
  stdin.on('error', () => {});
  stdout.on('data', (chunk: Buffer) => {
    if (!socket.push(chunk)) stdout.pause();
  });
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-KEPT_STDERR);
  });
  child.on('error', (error) => fail(error.message));
  child.on('close', (code) => {
    if (code !== 0) return fail(code === null ? 'the connection was ended' : `ended with ${code}`);
    socket.once('end', () => socket.destroy()).push(null);
    // Nobody reads an idle connection: without this it would look alive, and the next request would wait in it for ever (observed:
    // tests/environment/places/engines/sshAgent.test.ts).
    if (socket.readableLength === 0) socket.resume();
  });
  // Idle connections must not keep the program from ending.
  const parts = [child, stdin, stdout, stderr] as unknown as { ref?(): void; unref?(): void }[];
  const each = (work: 'ref' | 'unref') => () => {
    for (const part of parts) part[work]?.();
    return socket;
  };
  const itself = () => socket;
  // The rest is what an HTTP client sets on a socket, and ssh does by itself.
  const methods = { setKeepAlive: itself, setNoDelay: itself, setTimeout: itself };
  return Object.assign(socket, methods, { ref: each('ref'), unref: each('unref') });
}

/**
 * Reaches an engine over ssh as the docker CLI does: `ssh HOST docker system dial-stdio`, one process for each connection. The user's own
 * ssh decides about keys, agents, host aliases and known hosts; a library would have to do all that again, and check less. Connections are
 * kept and used again: each costs a login.
 */
function sshAgent(address: SshAddress): Agent {
  const agent = new Agent({ keepAlive: true });
  return Object.assign(agent, { createConnection: () => dial(address) });
}

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
export type StoredLogin = z.infer<typeof entrySchema>;
export type DockerCliConfig = z.infer<typeof configSchema>;

const dockerConfigDir = (env: { DOCKER_CONFIG?: string | undefined; HOME?: string | undefined }): string =>
  env.DOCKER_CONFIG || join(env.HOME ?? homedir(), '.docker');

/**
 * The docker CLI's own `config.json`: its current context, and the logins and credential helpers that it keeps. Warns about an unreadable
 * file: pulling without the login would fail later with a misleading message (observed: tests/environment/places/images/pure.test.ts).
 */
export function readDockerCliConfig(dir: string): { config: DockerCliConfig; warning?: string } {
  const path = join(dir, 'config.json');
  const nothing = configSchema.parse({});
  if (!existsSync(path)) return { config: nothing };
  try {
    return { config: configSchema.parse(JSON.parse(readFileSync(path, 'utf8'))) };
  } catch (error) {
    const reason = errorText(error);
    return { config: nothing, warning: `${path} cannot be read, so no registry login is used: ${reason}` };
  }
}

export const DOCKER_VARIABLES = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'DOCKER_CONFIG',
  'HOME',
  'XDG_RUNTIME_DIR',
] as const;
type DockerEnv = Partial<Record<(typeof DOCKER_VARIABLES)[number], string | undefined>>;

export type EngineConnection =
  | {
      readonly ok: true;
      readonly docker: Docker;
      /** Options of `createDockerFactory({docker: …})`. */
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

/** From the environment of a process to a client of the engine it means: contexts and DOCKER_HOST as the docker CLI reads them. */
export function connectEngine(env: DockerEnv): EngineConnection {
  const configDir = dockerConfigDir(env);
  const input: EndpointInput = {
    env,
    configDir,
    currentContext: readDockerCliConfig(configDir).config.currentContext,
    readFile: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
    hasSocket,
  };
  const endpoint = resolveDockerEndpoint(input);
  if (!endpoint.ok) return endpoint;
  const options = dockerodeOptions(endpoint.address) as Docker.DockerOptions;
  return { ok: true, docker: engineClient(options), options, source: endpoint.source, configDir };
}
