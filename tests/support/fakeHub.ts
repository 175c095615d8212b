// A local server that speaks the part of the Hugging Face hub's API that a dataset download uses, with faults on demand.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HubRepoFixture {
  readonly commit: string;
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** Requests without this token get 401, as a gated repository answers. */
  readonly token?: string;
  /** What every file's checksum is said to be; default: what it is. */
  readonly etag?: string;
  /** Files kept in git itself, whose etag is a git blob id. */
  readonly inGit?: readonly string[];
}

/** What the next matching requests suffer; each fault is used up once per entry. */
type HubFault =
  | { readonly on: string; readonly kind: 'status'; readonly status: number; readonly retryAfter?: string }
  | {
      readonly on: string;
      readonly kind: 'cut' | 'stall' | 'corrupt';
      readonly afterBytes: number;
      /** cut: not before this holds; a client that is cut at once may drop what it has received and not read. */
      readonly when?: () => boolean;
    };

export interface FakeHub {
  readonly url: string;
  readonly requests: {
    method: string;
    path: string;
    range: string | undefined;
    authorization: string | undefined;
  }[];
  readonly faults: HubFault[];
  readonly repos: Record<string, HubRepoFixture>;
  close(): Promise<void>;
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const gitBlob = (bytes: Uint8Array) =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Uint8Array,
  fault: HubFault | undefined,
) {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const from = range ? Number(range[1]) : 0;
  const to = range?.[2] ? Math.min(Number(range[2]), bytes.length - 1) : bytes.length - 1;
  const body = Buffer.from(bytes.subarray(from, to + 1));
  response.writeHead(range ? 206 : 200, {
    'content-length': body.length,
    etag: `"${sha256(bytes)}"`,
    'accept-ranges': 'bytes',
    ...(range && { 'content-range': `bytes ${from}-${to}/${bytes.length}` }),
  });
  if (!fault || fault.kind === 'status') return response.end(body);
  if (fault.kind === 'corrupt') {
    body[Math.min(fault.afterBytes, body.length - 1)]! ^= 0xff;
    return response.end(body);
  }
  response.write(body.subarray(0, fault.afterBytes), () => {
    if (fault.kind !== 'cut') return;
    const look = () => {
      if (fault.when?.() === false && !response.destroyed) setTimeout(look, 10);
      else response.destroy();
    };
    look();
  });
}

function answer(
  repos: FakeHub['repos'],
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  fault: HubFault | undefined,
) {
  const match = /^(?:\/api)?\/datasets\/([^/]+\/[^/]+)\/(revision|tree|resolve)\/([^/]+)(?:\/(.*))?$/.exec(
    path,
  );
  const repo = match ? repos[match[1]!] : undefined;
  if (!match || !repo) return json(response, 401, { error: 'Invalid username or password.' });
  if (repo.token && request.headers.authorization !== `Bearer ${repo.token}`)
    return json(response, 401, { error: 'Access to this dataset is restricted' });
  const [, name, verb, revision, file] = match;
  if (revision !== 'main' && revision !== repo.commit)
    return json(response, 404, { error: 'Invalid rev id' });
  if (verb === 'revision')
    return json(response, 200, {
      _id: 'x',
      id: name,
      sha: repo.commit,
      lastModified: '2026-01-01T00:00:00Z',
    });
  if (verb === 'tree')
    return json(
      response,
      200,
      Object.entries(repo.files).map(([path, bytes]) => ({
        type: 'file',
        path,
        size: bytes.length,
        oid: gitBlob(bytes),
        ...(!repo.inGit?.includes(path) && {
          lfs: { oid: repo.etag ?? sha256(bytes), size: bytes.length, pointerSize: 130 },
        }),
      })),
    );
  const bytes = repo.files[file ?? ''];
  if (!bytes) return json(response, 404, { error: 'Entry not found' });
  return sendFile(request, response, bytes, fault);
}

export async function startFakeHub(repos: Record<string, HubRepoFixture>): Promise<FakeHub> {
  const requests: FakeHub['requests'] = [];
  const faults: HubFault[] = [];

  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://hub');
    const path = decodeURIComponent(url.pathname);
    requests.push({
      method: request.method!,
      path,
      range: request.headers.range,
      authorization: request.headers.authorization,
    });
    // The client probes a file with one byte before it reads it; faults are for the reading.
    const isProbe = request.headers.range === 'bytes=0-0';
    const index = isProbe ? -1 : faults.findIndex((fault) => path.includes(fault.on));
    const fault = index < 0 ? undefined : faults.splice(index, 1)[0];
    if (fault?.kind === 'status') {
      if (fault.retryAfter) response.setHeader('retry-after', fault.retryAfter);
      return json(response, fault.status, { error: 'injected' });
    }
    answer(repos, request, response, path, fault);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    repos,
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(() => closed());
      }),
  };
}
