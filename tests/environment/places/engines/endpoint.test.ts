// DOCKER_HOST and contexts as the docker CLI reads them.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  connectEngine,
  dockerodeOptions,
  type EndpointInput,
  parseDockerHost,
  resolveDockerEndpoint,
  sshArguments,
} from '../../../../src/environment/places/endpoint.ts';

const idOf = (name: string) => createHash('sha256').update(name).digest('hex');
const meta = (name: string, docker: unknown) => ({
  [`/c/contexts/meta/${idOf(name)}/meta.json`]: JSON.stringify({ Name: name, Endpoints: { docker } }),
});
function resolve(more: Partial<EndpointInput> = {}, files: Record<string, string> = {}) {
  return resolveDockerEndpoint({
    env: {},
    configDir: '/c',
    readFile: (path) => files[path],
    hasSocket: () => false,
    ...more,
  });
}

describe('addresses', () => {
  test.each([
    ['unix:///run/x.sock', { kind: 'socket', path: '/run/x.sock' }],
    ['/run/x.sock', { kind: 'socket', path: '/run/x.sock' }],
    ['tcp://h', { kind: 'tcp', host: 'h', port: 2375, tls: undefined }],
    ['tcp://[::1]:9', { kind: 'tcp', host: '::1', port: 9, tls: undefined }],
    ['h:1234', { kind: 'tcp', host: 'h', port: 1234, tls: undefined }],
    ['https://h', { kind: 'tcp', host: 'h', port: 2376, tls: { skipVerify: false } }],
    ['ssh://me@h', { kind: 'ssh', host: 'h', port: undefined, username: 'me', socket: undefined }],
    [
      'ssh://h:2222/run/x.sock',
      { kind: 'ssh', host: 'h', port: 2222, username: undefined, socket: '/run/x.sock' },
    ],
  ])('%s', (host, address) => {
    expect(parseDockerHost(host, undefined)).toEqual(address);
  });

  test.each(['ftp://h', 'tcp://', ':::'])('%s is refused by name', (host) => {
    expect(parseDockerHost(host, undefined)).toEqual({ problem: expect.stringContaining(host) });
  });
});

describe('precedence', () => {
  const files = { ...meta('far', { Host: 'tcp://far:1' }), ...meta('near', { Host: 'tcp://near:1' }) };
  const hostOf = (more: Partial<EndpointInput>) => {
    const endpoint = resolve(more, files);
    return endpoint.ok && endpoint.address.kind === 'tcp' ? endpoint.address.host : endpoint;
  };

  test('DOCKER_HOST, DOCKER_CONTEXT, current context, default socket', () => {
    const all = {
      env: { DOCKER_HOST: 'tcp://env:1', DOCKER_CONTEXT: 'far' },
      currentContext: 'far',
    };
    expect(hostOf(all)).toBe('env');
    expect(hostOf({ env: { DOCKER_CONTEXT: 'near' }, currentContext: 'far' })).toBe('near');
    expect(hostOf({ currentContext: 'far' })).toBe('far');
    expect(hostOf({})).toMatchObject({ ok: true, source: 'default', address: { kind: 'socket' } });
  });

  test('the context "default" means DOCKER_HOST or the socket', () => {
    expect(hostOf({ env: { DOCKER_CONTEXT: 'default' } })).toMatchObject({
      ok: true,
      address: { kind: 'socket' },
    });
    expect(hostOf({ currentContext: 'default', env: { DOCKER_HOST: 'tcp://env:1' } })).toBe('env');
  });

  test('without Docker the engine is Podman: the person’s own before the machine’s, and never before Docker', () => {
    const chosen = (...there: string[]) =>
      resolve({ env: { XDG_RUNTIME_DIR: '/run/user/7' }, hasSocket: (path) => there.includes(path) });
    const own = '/run/user/7/podman/podman.sock';
    const rootful = '/run/podman/podman.sock';
    const at = (path: string) => ({ address: { kind: 'socket', path }, source: `Podman's socket ${path}` });
    expect(chosen(own, rootful)).toMatchObject(at(own));
    expect(chosen(rootful)).toMatchObject(at(rootful));
    const docker = { address: { kind: 'socket', path: '/var/run/docker.sock' }, source: 'default' };
    expect(chosen('/var/run/docker.sock', own, rootful)).toMatchObject(docker);
    expect(chosen()).toMatchObject(docker);
    const named = { env: { DOCKER_HOST: 'unix:///run/x.sock' }, hasSocket: () => true };
    expect(resolve(named)).toMatchObject({ source: 'DOCKER_HOST', address: { path: '/run/x.sock' } });
  });

  test('a context that does not exist or cannot be read is an error, never the default engine', () => {
    expect(resolve({ env: { DOCKER_CONTEXT: 'gone' } })).toEqual({
      ok: false,
      message: expect.stringMatching(/DOCKER_CONTEXT.*"gone".*docker context ls/),
    });
    const damaged = { [`/c/contexts/meta/${idOf('x')}/meta.json`]: '{' };
    expect(resolve({ currentContext: 'x' }, damaged)).toEqual({
      ok: false,
      message: expect.stringContaining('damaged'),
    });
  });
});

test('an engine that is named is that one, whatever DOCKER_HOST and its certificates say to the client library', () => {
  const before = { ...process.env };
  Object.assign(process.env, { DOCKER_HOST: 'tcp://elsewhere:1', DOCKER_TLS_VERIFY: '1' });
  try {
    const modemOf = (host: string) => {
      const made = connectEngine({ DOCKER_CONFIG: '/none', DOCKER_HOST: host });
      if (!made.ok) throw new Error(made.message);
      return made.docker.modem as unknown as Record<string, unknown>;
    };
    expect(modemOf('unix:///run/x.sock')).toMatchObject({ socketPath: '/run/x.sock', protocol: 'http' });
    expect(modemOf('unix:///run/x.sock').host).toBeUndefined();
    expect(modemOf('tcp://near:2')).toMatchObject({ host: 'near', port: 2, protocol: 'http' });
  } finally {
    process.env = before;
  }
});

test('ssh is the user’s own, without questions; an address with a password is refused', () => {
  expect(sshArguments({ host: 'lab', port: 2222, username: 'me', socket: '/run/x.sock' })).toEqual([
    ...['-o', 'ConnectTimeout=30', '-o', 'BatchMode=yes'],
    ...['-o', 'ServerAliveInterval=15', '-o', 'ServerAliveCountMax=4', '-T', '-l', 'me', '-p', '2222'],
    ...['--', 'lab', 'docker', '--host', 'unix:///run/x.sock', 'system', 'dial-stdio'],
  ]);
  expect(parseDockerHost('ssh://me:secret@lab', undefined)).toEqual({
    problem: expect.not.stringContaining('secret'),
  });
});

describe('TLS', () => {
  const pem = (dir: string) => ({
    [`${dir}/ca.pem`]: 'CA',
    [`${dir}/cert.pem`]: 'CERT',
    [`${dir}/key.pem`]: 'KEY',
  });

  test('certificates of DOCKER_CERT_PATH count only with DOCKER_TLS_VERIFY', () => {
    const env = { DOCKER_HOST: 'tcp://h', DOCKER_CERT_PATH: '/certs' };
    const secure = resolve({ env: { ...env, DOCKER_TLS_VERIFY: '1' } }, pem('/certs'));
    expect(secure.ok && dockerodeOptions(secure.address)).toMatchObject({
      protocol: 'https',
      host: 'h',
      port: 2376,
      ca: 'CA',
      cert: 'CERT',
      key: 'KEY',
    });
    const plain = resolve({ env }, pem('/certs'));
    expect(plain.ok && dockerodeOptions(plain.address)).toMatchObject({
      protocol: 'http',
      host: 'h',
      port: 2375,
    });
  });

  test('a context brings its own, and may skip the check', () => {
    const files = {
      ...meta('t', { Host: 'tcp://h:9', SkipTLSVerify: true }),
      ...pem(`/c/contexts/tls/${idOf('t')}/docker`),
    };
    const endpoint = resolve({ currentContext: 't' }, files);
    expect(endpoint.ok && dockerodeOptions(endpoint.address)).toMatchObject({
      protocol: 'https',
      port: 9,
      key: 'KEY',
      agent: { options: { rejectUnauthorized: false } },
    });
  });
});

test('from real files: the current context of config.json decides', () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-context-'));
  try {
    const folder = join(dir, 'contexts', 'meta', idOf('lab'));
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, 'meta.json'),
      JSON.stringify({ Endpoints: { docker: { Host: 'unix:///run/lab.sock' } } }),
    );
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ currentContext: 'lab' }));
    expect(connectEngine({ DOCKER_CONFIG: dir })).toMatchObject({
      ok: true,
      source: 'Docker context "lab"',
      options: { socketPath: '/run/lab.sock' },
    });
    expect(connectEngine({ DOCKER_CONFIG: dir, DOCKER_HOST: 'ssh://u@h' })).toMatchObject({
      ok: true,
      options: { protocol: 'http', agent: expect.anything() },
    });
    expect(connectEngine({ DOCKER_CONFIG: dir, DOCKER_CONTEXT: 'nope' })).toMatchObject({ ok: false });
  } finally {
    rmSync(dir, { recursive: true });
  }
});
