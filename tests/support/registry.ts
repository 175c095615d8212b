// A real registry (Debian's docker-registry) on a loopback port, with images made without an engine, behind a proxy that injects faults.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { freePort } from '../environment/relay/freePort.ts';

const BINARY = '/usr/bin/docker-registry';
/** Installed by the set-up scripts; required where Docker is. */
export function registryAvailable(): boolean {
  if (existsSync(BINARY)) return true;
  if (process.env.SWEBATCH_REQUIRE_DOCKER === '1')
    throw new Error('docker-registry is not installed: apt-get install docker-registry');
  return false;
}

interface RegistryFault {
  /** Part of the request path. */
  readonly on: string;
  /** Only of this method. */
  readonly method?: string;
  readonly kind: 'status' | 'cut' | 'stall' | 'slow';
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** cut, stall: after so many bytes of the body. */
  readonly afterBytes?: number;
  /** slow: pause between chunks of 64 KiB. */
  readonly pauseMs?: number;
  /** Requests it hits; for ever when not given. */
  times?: number;
}

export interface TestRegistry {
  /** host:port of the proxy: what images are named with. */
  readonly host: string;
  readonly faults: RegistryFault[];
  readonly requests: { method: string; path: string; authorization: string | undefined }[];
  /** Pushes an image with layers of random bytes; returns repository:tag with the host. */
  push(name: string, image?: TestImage): Promise<string>;
  close(): Promise<void>;
}
interface TestImage {
  readonly layerBytes?: readonly number[];
  readonly architecture?: string;
  /** Layers that several images share, by seed. */
  readonly baseSeed?: string;
}

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

async function tarOf(name: string, content: Buffer): Promise<Buffer> {
  const tar = pack();
  tar.entry({ name, mtime: new Date(0) }, content);
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Bytes that depend on the seed only and do not compress. */
function seededBytes(seed: string, length: number): Buffer {
  const out: Buffer[] = [];
  for (let i = 0, n = 0; n < length; i++, n += 32)
    out.push(createHash('sha256').update(`${seed}/${i}`).digest());
  return Buffer.concat(out).subarray(0, length);
}

/** Resolves with whether it answers: false when it ended, as it does when somebody else took its port first. */
async function untilUp(url: string, child: ChildProcess): Promise<boolean> {
  const deadline = Date.now() + 120_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) return false;
    const up = await fetch(url).then(
      (r) => r.headers.has('docker-distribution-api-version'),
      () => false,
    );
    if (up) return true;
    await new Promise((done) => setTimeout(done, 50));
  }
  child.kill('SIGKILL');
  throw new Error('docker-registry did not come up within 2 min');
}

/** The registry cannot choose its port itself, so the free one it is given may be gone when it listens. */
async function startProcess(dir: string, auth: string): Promise<{ child: ChildProcess; port: number }> {
  for (let tries = 0; tries < 5; tries += 1) {
    const port = await freePort();
    writeFileSync(
      join(dir, 'config.yml'),
      `version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: ${join(dir, 'data')}\nhttp:\n  addr: 127.0.0.1:${port}\n${auth}`,
    );
    const child = spawn(BINARY, ['serve', join(dir, 'config.yml')], { stdio: 'ignore' });
    if (await untilUp(`http://127.0.0.1:${port}/v2/`, child)) return { child, port };
  }
  throw new Error('docker-registry ended five times before it answered');
}

interface PushTarget {
  readonly upstream: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

async function putBlob(
  { upstream, headers: authorization }: PushTarget,
  repository: string,
  bytes: Uint8Array,
): Promise<string> {
  const digest = digestOf(bytes);
  const begun = await fetch(`${upstream}/v2/${repository}/blobs/uploads/`, {
    method: 'POST',
    headers: { ...authorization },
  });
  const location = new URL(begun.headers.get('location')!, upstream);
  location.searchParams.set('digest', digest);
  const headers = { 'content-type': 'application/octet-stream', ...authorization };
  const done = await fetch(location, { method: 'PUT', body: new Uint8Array(bytes), headers });
  if (done.status !== 201) throw new Error(`push of a blob: ${done.status} ${await done.text()}`);
  return digest;
}

async function pushImage(to: PushTarget, name: string, image: TestImage = {}): Promise<string> {
  const [repository = '', tag = 'latest'] = name.split(':');
  const sizes = image.layerBytes ?? [50_000];
  const layers: { tar: Buffer; gz: Buffer }[] = [];
  for (const [i, size] of sizes.entries()) {
    const content = i === 0 && image.baseSeed ? seededBytes(image.baseSeed, size) : randomBytes(size);
    const tar = await tarOf(`layer-${i}`, content);
    // Random bytes become no less.
    layers.push({ tar, gz: gzipSync(tar, { level: 0 }) });
  }
  const config = Buffer.from(
    JSON.stringify({
      architecture: image.architecture ?? (process.arch === 'arm64' ? 'arm64' : 'amd64'),
      os: 'linux',
      config: { Cmd: ['/bin/true'] },
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => digestOf(layer.tar)) },
    }),
  );
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      size: config.length,
      digest: await putBlob(to, repository, config),
    },
    layers: await Promise.all(
      layers.map(async ({ gz }) => ({
        mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
        size: gz.length,
        digest: await putBlob(to, repository, gz),
      })),
    ),
  };
  const headers = { 'content-type': mediaType, ...to.headers };
  const url = `${to.upstream}/v2/${repository}/manifests/${tag}`;
  const done = await fetch(url, { method: 'PUT', body: JSON.stringify(manifest), headers });
  if (done.status !== 201) throw new Error(`push of a manifest: ${done.status} ${await done.text()}`);
  return `${repository}:${tag}`;
}

export async function startRegistry(options: { htpasswd?: string } = {}): Promise<TestRegistry> {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-registry-'));
  const auth = options.htpasswd
    ? `auth:\n  htpasswd:\n    realm: test\n    path: ${join(dir, 'htpasswd')}\n`
    : '';
  if (options.htpasswd) writeFileSync(join(dir, 'htpasswd'), options.htpasswd);
  const { child, port } = await startProcess(dir, auth);
  const upstream = `http://127.0.0.1:${port}`;

  const faults: RegistryFault[] = [];
  const requests: TestRegistry['requests'] = [];
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url!;
    requests.push({ method: incoming.method!, path, authorization: incoming.headers.authorization });
    const index = faults.findIndex(
      (fault) => path.includes(fault.on) && (fault.method ?? incoming.method) === incoming.method,
    );
    const fault = faults[index];
    if (fault?.times !== undefined && --fault.times <= 0) faults.splice(index, 1);
    forward(incoming, outgoing, port, fault);
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  const host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const authorization = options.htpasswd ? { authorization: `Basic ${btoa('tester:secret')}` } : undefined;

  return {
    host,
    faults,
    requests,
    push: async (name, image) =>
      `${host}/${await pushImage({ upstream, headers: authorization }, name, image)}`,
    async close() {
      proxy.closeAllConnections();
      await new Promise((done) => proxy.close(done));
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true });
    },
  };
}

function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  port: number,
  fault: RegistryFault | undefined,
): void {
  if (fault?.kind === 'status') {
    outgoing.writeHead(fault.status!, fault.headers);
    outgoing.end(fault.body ?? '');
    return;
  }
  const { method, url, headers } = incoming;
  const upstream = httpRequest({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers);
    if (!fault) answer.pipe(outgoing);
    // A registry that ends while it answers is a broken connection to its client, not an error of the test.
    else passOn(answer, outgoing, fault).catch(() => outgoing.destroy());
  });
  upstream.on('error', () => outgoing.destroy());
  incoming.pipe(upstream);
}

async function passOn(
  answer: AsyncIterable<Buffer>,
  outgoing: ServerResponse,
  fault: RegistryFault,
): Promise<void> {
  let sent = 0;
  for await (const chunk of answer) {
    const room = fault.kind === 'slow' ? chunk.length : Math.max(0, (fault.afterBytes ?? 0) - sent);
    sent += chunk.length;
    if (room > 0) outgoing.write(chunk.subarray(0, room));
    if (fault.kind === 'slow') await new Promise((done) => setTimeout(done, fault.pauseMs));
    else if (room < chunk.length) {
      if (fault.kind === 'cut') outgoing.destroy();
      return; // a stall: the connection stays open and silent
    }
  }
  outgoing.end();
}
