/**
 * The forward proxy of one container that has no network. The relay hands each connection over: the proxy listens nowhere, opens hosts of a list, by
 * CONNECT and by plain HTTP, resolves their names here, and connects to the addresses that it has judged. Bytes inside of TLS are neither
 * read nor changed; only the name in the first message is compared with that of the CONNECT.
 */
import { lookup } from 'node:dns/promises';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import pLimit from 'p-limit';
import { type Network, type Reach, reachOf, readTarget, type Target } from '../../base/allowList.ts';
import { startTimer } from '../../base/async/timer.ts';
import { compact } from '../../base/compact.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { EgressConnection, EgressPhase } from '../environment.ts';
import { readClientHello } from './clientHello.ts';

const CONNECT_MS = 30_000;
const HELLO_MS = 30_000;
/** RFC 8446, section 6.2: unrecognized_name, so that a client says more than that the connection broke. */
const TLS_ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

export interface EgressOptions {
  /** Entries of the person who runs the task: of the agent and of what comes before it, not of the tests. */
  readonly own: readonly string[];
  /** Once for each tunnel and each plain request, when it is over. */
  readonly onEnd: (connection: EgressConnection) => void;
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  readonly dial?: (address: string, port: number) => Socket;
  readonly ofThisMachine?: () => readonly string[];
}

export interface EgressProxy {
  /** One connection of a program in the container. Never throws. */
  handle(connection: Duplex): void;
  /** Begins a phase. Open connections that are not allowed any more are closed. */
  enter(phase: EgressPhase, network: Network): void;
  /** Closes and tells what is open. */
  close(): void;
}

/**
 * Lookups at a time. Each takes a thread of the few that files are read and written by: a container that asks for many names holds up the
 * others (observed: tests/environment/egress/egressProxy.test.ts).
 */
const lookups = pLimit(2);
const resolved = async (host: string): Promise<readonly string[]> =>
  (await lookups(() => lookup(host, { all: true }))).map(({ address }) => address);
const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
const dialled = (host: string, port: number): Socket => connect({ host, port, allowHalfOpen: true });

class Refused extends Error {}

const LEFT = 'the program went away before it was done';

interface Open {
  readonly target: Target;
  /** `reason`: why it was not allowed, or failed. Counts once. */
  end(outcome: EgressConnection['outcome'], reason?: string): void;
  upstream: Socket | undefined;
  /** Cuts the side of the container. */
  destroy: () => void;
}

export function createEgressProxy({
  own,
  onEnd,
  resolve = resolved,
  dial = dialled,
  ofThisMachine = ownAddresses,
}: EgressOptions): EgressProxy {
  const connections = new Set<Duplex>();
  const open = new Set<Open>();
  let phase: EgressPhase = 'setup';
  let reach: Reach = reachOf('none', own, ofThisMachine);
  let closed = false;

  const begin = (via: EgressConnection['via'], target: Target, destroy: () => void): Open => {
    const began = performance.now();
    const startedAt = Date.now();
    const inPhase = phase;
    const one: Open = {
      target,
      upstream: undefined,
      destroy,
      end(outcome, reason) {
        if (!open.delete(one)) return;
        onEnd({
          phase: inPhase,
          via,
          ...target,
          outcome,
          reason: reason ?? null,
          bytesIn: one.upstream?.bytesRead ?? 0,
          bytesOut: one.upstream?.bytesWritten ?? 0,
          startedAt,
          durationMs: Math.round(performance.now() - began),
        });
      },
    };
    open.add(one);
    return one;
  };
  /** Tells of a request that names no target that could be judged. */
  const tellUnread = (via: EgressConnection['via'], reason: string) =>
    begin(via, { host: '', port: 0 }, () => {}).end('refused', reason);

  /** A connection to an address of the target that may be reached. Throws Refused, or what went wrong. */
  const reached = async (one: Open): Promise<Socket> => {
    const { host, port } = one.target;
    const addresses = isIP(host) === 0 ? await resolve(host) : [host];
    // The phase may have changed meanwhile: what holds now is asked.
    const judged = reach.judge(one.target);
    if ('refused' in judged) throw new Refused(judged.refused);
    const usable = addresses.filter((address) => reach.mayConnect(address, port));
    if (usable.length === 0)
      throw new Refused(
        isIP(host) === 0
          ? `${host} leads to ${addresses.join(', ').slice(0, 200)}, which is not public`
          : `${host} is not public`,
      );
    let last: unknown;
    for (const address of usable)
      try {
        if (!open.has(one)) break;
        return await connected(dial(address, port), one);
      } catch (error) {
        last = error;
      }
    throw last ?? new Error('it was closed');
  };

  const tunnel = async (request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> => {
    const text = request.url ?? '';
    const target = readTarget(text);
    if (!target) {
      tellUnread('connect', `"${text.slice(0, 200)}" is no host and port`);
      client.end(answer(400, 'CONNECT needs HOST:PORT'));
      client.resume();
      return;
    }
    const one = begin('connect', target, () => client.destroy());
    let isOpen = false;
    client.on('close', () => (isOpen ? one.end('allowed') : one.end('failed', LEFT)));
    const judged = reach.judge(target);
    if ('refused' in judged) {
      one.end('refused', judged.refused);
      client.end(answer(403, judged.refused));
      client.resume();
      return;
    }
    let upstream: Socket;
    try {
      upstream = await reached(one);
    } catch (error) {
      const refused = error instanceof Refused;
      one.end(refused ? 'refused' : 'failed', errorText(error));
      client.end(answer(refused ? 403 : 502, errorText(error)));
      client.resume();
      return;
    }
    if (!open.has(one)) {
      upstream.destroy();
      return;
    }
    const finish = (reason?: string) => {
      one.end(reason === undefined ? 'allowed' : 'failed', reason);
      upstream.destroy();
      client.destroy();
    };
    upstream.on('error', (error) => finish(errorText(error)));
    upstream.on('close', () => {
      if (!upstream.errored) one.end('allowed');
      // Bytes on their way to the client are still delivered.
      client.end();
    });
    client.on('close', () => upstream.destroy());
    isOpen = true;
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    upstream.pipe(client);
    const first = await firstBytes(client, head, target, judged.portNamed);
    if ('refused' in first) {
      one.end('refused', first.refused);
      upstream.destroy();
      client.end(TLS_ALERT);
      client.resume();
      return;
    }
    upstream.write(first.bytes);
    client.pipe(upstream);
  };

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const refuse = (status: number, reason: string) => {
      // The body is not read: the next bytes on the connection could be a part of it.
      response.shouldKeepAlive = false;
      request.resume();
      response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(`${reason}\n`);
    };
    const { authority, path } = partsOf(request.url ?? '');
    const target = readTarget(authority, 80);
    const problem = problemOf(request, authority, target);
    if (!target || problem !== undefined) {
      if (target) begin('http', target, () => {}).end('refused', problem);
      else tellUnread('http', problem ?? 'it names no host');
      refuse(400, problem ?? 'a request needs the whole address: http://HOST/...');
      return;
    }
    const one = begin('http', target, () => request.socket.destroy());
    response.on('close', () => {
      if (response.writableFinished) one.end('allowed');
      else one.end('failed', LEFT);
      one.upstream?.destroy();
    });
    try {
      const judged = reach.judge(target);
      if ('refused' in judged) throw new Refused(judged.refused);
      const upstream = await reached(one);
      upstream.on('error', () => {});
      const asked = send({
        method: request.method,
        path: path.startsWith('/') ? path : `/${path}`,
        headers: headersOnward(request, authority),
        createConnection: () => upstream,
      });
      asked.on('error', (error) => {
        one.end('failed', errorText(error));
        if (response.headersSent) response.destroy();
        else refuse(502, errorText(error));
      });
      asked.on('response', (answered) => {
        response.sendDate = false;
        response.writeHead(answered.statusCode ?? 502, answered.statusMessage, headersBack(answered));
        answered.on('error', () => response.destroy());
        answered.pipe(response);
      });
      // A server that changes the protocol was not asked to.
      asked.on('upgrade', (_answered, socket) => {
        one.end('failed', 'the host changed the protocol');
        socket.destroy();
        response.destroy();
      });
      request.on('error', () => asked.destroy());
      request.pipe(asked);
    } catch (error) {
      const refused = error instanceof Refused;
      one.end(refused ? 'refused' : 'failed', errorText(error));
      refuse(refused ? 403 : 502, errorText(error));
    }
  };

  const server = createServer(
    // An offer to change the protocol is not taken: the request is answered as it came.
    { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0, shouldUpgradeCallback: () => false },
    (request, response) => void forward(request, response).catch(() => response.destroy()),
  );
  server.on('connect', (request, client: Duplex, head) => {
    client.on('error', () => client.destroy());
    void tunnel(request, client, head).catch(() => client.destroy());
  });
  server.on('clientError', (error, client) => {
    // A program that goes away sends nothing that could be refused.
    if ('bytesParsed' in error) tellUnread('http', `it is no request: ${errorText(error)}`);
    if (client.writable) client.end(answer(400, 'it is no request'));
    else client.destroy();
  });

  const endAll = (which: (one: Open) => string | undefined): void => {
    for (const one of open) {
      const reason = which(one);
      if (reason === undefined) continue;
      one.end('allowed', reason);
      one.upstream?.destroy();
      one.destroy();
    }
  };
  return {
    handle(connection) {
      if (closed) {
        connection.destroy();
        return;
      }
      connections.add(connection);
      connection.on('close', () => connections.delete(connection));
      connection.on('error', () => connection.destroy());
      server.emit('connection', connection);
    },
    enter(next, network) {
      phase = next;
      reach = reachOf(network, next === 'verifier' ? [] : own, ofThisMachine);
      endAll(({ target }) =>
        'refused' in reach.judge(target) ? `closed as the phase "${next}" began` : undefined,
      );
    },
    close() {
      closed = true;
      endAll(() => 'open at the end');
      for (const connection of connections) connection.destroy();
    },
  };
}

const SCHEME = 'http://';

/** Parts of the address of a plain request; empty where it is another. */
function partsOf(url: string): { readonly authority: string; readonly path: string } {
  if (url.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return { authority: '', path: '' };
  const rest = url.slice(SCHEME.length);
  const end = rest.search(/[/?#]/);
  return end < 0 ? { authority: rest, path: '' } : { authority: rest.slice(0, end), path: rest.slice(end) };
}

const answer = (status: number, text: string): string =>
  `HTTP/1.1 ${status} ${status === 403 ? 'Forbidden' : status === 400 ? 'Bad Request' : 'Bad Gateway'}\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(text) + 1}\r\nconnection: close\r\n\r\n${text}\n`;

async function connected(socket: Socket, one: Open): Promise<Socket> {
  one.upstream = socket;
  const done = Promise.withResolvers<void>();
  const late = startTimer(CONNECT_MS, () => socket.destroy(new Error('the host did not answer in time')));
  socket.once('connect', done.resolve);
  socket.once('error', done.reject);
  socket.once('close', () => done.reject(new Error('it was closed')));
  try {
    await done.promise;
    return socket;
  } finally {
    late.cancel();
  }
}

/** All bytes up to where it is known what the client asks for. */
async function firstBytes(
  client: Duplex,
  head: Buffer,
  { host }: Target,
  portNamed: boolean,
): Promise<{ readonly bytes: Buffer } | { readonly refused: string }> {
  let bytes = head;
  // A server of another protocol may speak first, on a port that somebody named.
  const late = startTimer(portNamed ? 0 : HELLO_MS, () =>
    client.destroy(new Error('nothing was said in time')),
  );
  try {
    for (;;) {
      const hello = bytes.length > 0 ? readClientHello(bytes) : ({ kind: 'more' } as const);
      if (hello.kind === 'not_tls')
        return portNamed ? { bytes } : { refused: `what was sent to ${host} is no TLS` };
      if (hello.kind === 'broken')
        return { refused: `what was sent to ${host} begins like TLS, and is none` };
      if (hello.kind === 'hello') {
        const refused = refusalOfHello(hello, host);
        return refused === undefined ? { bytes } : { refused };
      }
      const more = await nextChunk(client);
      if (!more) return bytes.length === 0 ? { bytes } : { refused: `what was sent to ${host} was cut` };
      bytes = Buffer.concat([bytes, more]);
    }
  } finally {
    late.cancel();
  }
}

function refusalOfHello(
  { name, hidden }: { readonly name: string | undefined; readonly hidden: boolean },
  host: string,
): string | undefined {
  if (hidden) return `TLS to ${host} may hide another name (encrypted_client_hello)`;
  // An address has no name to ask for.
  if (name === undefined)
    return isIP(host) === 0 ? `TLS to ${host} does not say which name it asks for (SNI)` : undefined;
  return readTarget(name, 443)?.host === host
    ? undefined
    : `TLS to ${host} asks for another name (SNI): ${name.slice(0, 100)}`;
}

/** Undefined at its end. Leaves the stream as it was. */
async function nextChunk(stream: Duplex): Promise<Buffer | undefined> {
  if (stream.destroyed || stream.readableEnded) return undefined;
  const next = Promise.withResolvers<Buffer | undefined>();
  const onData = (chunk: Buffer) => {
    stream.pause();
    next.resolve(chunk);
  };
  const onEnd = () => next.resolve(undefined);
  stream.on('data', onData).on('end', onEnd).on('close', onEnd);
  stream.resume();
  try {
    return await next.promise;
  } finally {
    stream.off('data', onData).off('end', onEnd).off('close', onEnd);
  }
}

/** Why a request is not sent on, as a clause: where two readers could disagree on where it goes, or where it ends. */
function problemOf(
  request: IncomingMessage,
  authority: string,
  target: Target | undefined,
): string | undefined {
  if (!target) return 'a request needs the whole address of a host: http://HOST/...';
  const hosts = request.headersDistinct.host ?? [];
  if (hosts.length > 1) return 'it has several Host headers';
  const [named = authority] = hosts;
  const other = readTarget(named, 80);
  if (!other || other.host !== target.host || other.port !== target.port)
    return `its Host header names another host than its address: ${named.slice(0, 100)}`;
  const codings = request.headersDistinct['transfer-encoding'] ?? [];
  if (codings.length > 0 && codings.join().toLowerCase() !== 'chunked')
    return `its transfer-encoding is ${codings.join().slice(0, 100)}`;
  if (codings.length > 0 && request.headers['content-length'] !== undefined)
    return 'its length is told twice';
  return undefined;
}

/** RFC 9110, section 7.6.1: of one connection alone. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'proxy-connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['proxy-authorization', 'proxy-authenticate', 'proxy-authentication-info', 'expect'],
]);

function endToEnd({ rawHeaders, headers }: IncomingMessage): [string, string][] {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) pairs.push([rawHeaders[i]!, rawHeaders[i + 1]!]);
  return pairs.filter(([name]) => {
    const lower = name.toLowerCase();
    // The length of a request decides where the next one begins, whatever a client calls it.
    return lower === 'content-length' || !(OF_CONNECTION.has(lower) || named.has(lower));
  });
}

const HAS_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

function headersOnward(request: IncomingMessage, authority: string): string[] {
  const { headers, method = 'GET' } = request;
  const isChunked = headers['transfer-encoding'] !== undefined;
  const isEmpty = !isChunked && headers['content-length'] === undefined && HAS_BODY.has(method);
  return [
    ...endToEnd(request).filter(([name]) => name.toLowerCase() !== 'host'),
    ...compact([isChunked && ['transfer-encoding', 'chunked'], isEmpty && ['content-length', '0']]),
    ['host', authority],
    ['connection', 'close'],
  ].flat();
}

const headersBack = (answered: IncomingMessage): string[] =>
  endToEnd(answered)
    .filter(
      ([name]) =>
        name.toLowerCase() !== 'content-length' || answered.headers['transfer-encoding'] === undefined,
    )
    .flat();
