/**
 * The HTTP server of the gateway. The server listens on no port: each connection is handed to it by the session whose container it comes from,
 * and a request counts only with the key of that session.
 */

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { startTimer } from '../../base/async/timer.ts';
import { codingsOf, KNOWN_CODINGS, TooLong, unpackedBody } from '../../base/contentCoding.ts';
import { errorText } from '../../base/text/errorText.ts';
import { untakenBytes } from '../../environment/relay/carrier.ts';
import type { DialectName } from '../../model/dialects/dialects.ts';
import { type Refusal, STATUS } from '../../model/dialects/programSide.ts';
import type { Wire } from '../../model/model.ts';
import type { Answer, AnswerOutcome } from './answer.ts';
import type { Gateway, GatewaySession, SessionSpec } from './gateway.ts';
import { attemptKeyOf, type CallRoute, returnedHeaders, routeOf, SIDES, sideOf } from './routes.ts';
import { createSessionCore, type SessionCore } from './session.ts';

/** The largest body that a provider takes (observed: tests/agent/gateway/gateway.test.ts). */
const MAX_BODY_BYTES = 33_554_432;
/**
 * Memory that requests of one attempt may take together, while they are read and while they are out (observed:
 * tests/agent/gateway/gateway.test.ts).
 */
const HELD_BYTES = 134_217_728;

export interface GatewayOptions {
  /** The time between signs of life of a stream that waits. */
  readonly keepAliveMs?: number;
  /** Bytes of requests that one attempt may have here at a time. */
  readonly heldBytes?: number;
}

const KEEP_ALIVE_MS = 10_000;

interface OpenSession {
  readonly core: SessionCore;
  readonly spec: SessionSpec;
  readonly wire: Wire;
  readonly digest: string;
  readonly connections: Set<Duplex>;
  closed: boolean;
  /** Bytes of bodies that are here. */
  held: number;
}

const digestOf = (key: string): string => createHash('sha256').update(key).digest('base64');

/**
 * The body as it was before it was packed. Throws TooLong where there is more than anybody takes. The bytes read count as held until `release`
 * (observed: tests/agent/gateway/packedBodies.test.ts).
 */
async function bodyOf(
  open: OpenSession,
  heldBytes: number,
  request: IncomingMessage,
  codings: readonly string[],
): Promise<{ body: Buffer; release(): void }> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw new TooLong('too long');
  const parts: Buffer[] = [];
  let mine = 0;
  const release = (): void => {
    open.held -= mine;
    mine = 0;
  };
  try {
    // An answer follows: the connection must outlive what was not read (observed: tests/agent/gateway/packedBodies.test.ts).
    const sent = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const part of unpackedBody(sent, codings, MAX_BODY_BYTES)) {
      if (open.held + part.length > heldBytes) throw new TooLong('too long');
      open.held += part.length;
      mine += part.length;
      parts.push(part);
    }
    return { body: Buffer.concat(parts), release };
  } catch (error) {
    release();
    throw error;
  }
}

const modelList = (names: readonly string[]) => ({
  object: 'list',
  data: names.map((id) => ({
    id,
    object: 'model',
    type: 'model',
    display_name: id,
    created: 0,
    owned_by: 'swebatch',
  })),
  has_more: false,
});

/** State that the requests of all sessions share. */
interface Shared {
  /** Keys, also of attempts that are over: whose key it was is worth knowing (observed: tests/agent/gateway/gateway.test.ts). */
  readonly given: Set<string>;
  readonly keepAliveMs: number;
  readonly heldBytes: number;
}

/** The reason why a key does not count here; null where it does. */
function keyProblem({ given }: Shared, open: OpenSession, key: string | null): string | null {
  if (key === null) return 'a call without a key';
  const digest = digestOf(key);
  if (digest === open.digest) return open.closed ? 'a call after the end of its attempt' : null;
  return given.has(digest)
    ? 'a call with the key of another attempt'
    : 'a call with a key that is none of ours';
}

async function serve(
  shared: Shared,
  open: OpenSession,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = request.url ?? '/';
  const route = routeOf(request.method ?? 'GET', target);
  const problem = keyProblem(shared, open, attemptKeyOf(request.headers, target));
  if (problem !== null) {
    open.core.note(`gateway: ${problem} was refused`);
    open.core.noteRefusal(problem);
    leaveBody(request, response);
    const message = `${problem}: the key is the one in the environment of this attempt`;
    refuse(response, route.dialect, 'authentication', message);
  } else if (route.kind === 'call') await call(shared, open, route, request, response);
  else if (route.kind === 'unknown') {
    refuseRequest(open, request, response, {
      dialect: route.dialect,
      refusal: 'not_found',
      why: route.message,
    });
  } else {
    const names = [open.wire.model, ...Object.keys(open.spec.config.models)];
    const text = JSON.stringify((sideOf(route.dialect).modelList ?? modelList)(names));
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  }
}

async function call(
  { keepAliveMs, heldBytes }: Shared,
  open: OpenSession,
  { dialect, operation, model, query }: Extract<CallRoute, { kind: 'call' }>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { core } = open;
  const refusing = (refusal: Refusal, why: string): void =>
    refuseRequest(open, request, response, { dialect, refusal, why });
  const encoding = request.headers['content-encoding'];
  const codings = codingsOf(encoding);
  if (codings === null) {
    const known = KNOWN_CODINGS.join(', ');
    refusing(
      'unsupported',
      `the body is packed with content-encoding ${encoding?.slice(0, 40)}, and ${known} are read: send it unpacked`,
    );
    return;
  }
  let reading: Awaited<ReturnType<typeof bodyOf>>;
  try {
    reading = await bodyOf(open, heldBytes, request, codings);
  } catch (error) {
    // The program went away.
    if (request.destroyed && !request.complete) throw error;
    if (error instanceof TooLong)
      refusing(
        'too_large',
        `more than ${MAX_BODY_BYTES >> 20} MB in a request, or ${heldBytes >> 20} MB in all that are open, is not sent`,
      );
    else
      refusing(
        'bad_request',
        `the body is not what its content-encoding ${encoding} says: ${errorText(error)}`,
      );
    return;
  }
  let answer: Answer;
  try {
    answer = core.ask({ dialect, operation, model, query, body: reading.body, headers: request.headers });
  } catch (error) {
    reading.release();
    core.noteRefusal(`it broke here: ${errorText(error)}`);
    throw error;
  }
  answer.ended(reading.release);
  deliver(answer, { response, dialect, streamed: core.isStreamed(answer), keepAliveMs });
}

function openSession(spec: SessionSpec, key: string): OpenSession {
  const { wire } = spec.model;
  if (!wire)
    throw new Error(`the model "${spec.model.name}" has no provider that a program could be connected to`);
  const core = createSessionCore(spec, wire);
  return { core, spec, wire, digest: digestOf(key), connections: new Set(), closed: false, held: 0 };
}

export function createGateway({
  keepAliveMs = KEEP_ALIVE_MS,
  heldBytes = HELD_BYTES,
}: GatewayOptions = {}): Gateway {
  const bySocket = new WeakMap<Duplex, OpenSession>();
  const live = new Set<OpenSession>();
  const shared: Shared = { given: new Set(), keepAliveMs, heldBytes };
  const server = serverFor(
    (request, response) => {
      const open = bySocket.get(request.socket);
      if (open) void serve(shared, open, request, response).catch(() => response.destroy());
      else response.destroy();
    },
    (socket, why) => bySocket.get(socket)?.core.noteRefusal(why),
  );
  return {
    open(spec) {
      const key = `swebatch-${randomBytes(24).toString('base64url')}`;
      const open = openSession(spec, key);
      live.add(open);
      shared.given.add(open.digest);
      const enter = (connection: Duplex): void => {
        bySocket.set(connection, open);
        server.emit('connection', connection);
      };
      return sessionOf(open, key, enter, () => live.delete(open));
    },
    async close() {
      await Promise.all([...live].map((open) => open.core.close()));
      live.clear();
    },
  };
}

/** Counts as one that was refused, so that a program whose every request was has not worked (observed: tests/agent/gateway/packedBodies.test.ts). */
function refuseRequest(
  open: OpenSession,
  request: IncomingMessage,
  response: ServerResponse,
  {
    dialect,
    refusal,
    why,
  }: { readonly dialect: DialectName; readonly refusal: Refusal; readonly why: string },
): void {
  open.core.noteRefusal(why);
  if (request.method === 'POST') open.spec.onRefused?.(why);
  leaveBody(request, response);
  refuse(response, dialect, refusal, why);
}

/** An unread body must not hold the connection up: it ends with the answer. */
function leaveBody(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.setHeader('connection', 'close');
  response.shouldKeepAlive = false;
}

function sessionOf(
  open: OpenSession,
  key: string,
  enter: (connection: Duplex) => void,
  forget: () => void,
): GatewaySession {
  const { core, wire, connections } = open;
  return {
    key,
    model: wire.model,
    dialect: wire.dialect,
    ended: core.ended,
    state: core.state,
    refuse: core.refuse,
    handle(connection) {
      connections.add(connection);
      connection.on('close', () => connections.delete(connection));
      connection.on('error', () => connection.destroy());
      enter(connection);
    },
    async close() {
      open.closed = true;
      const summary = await core.close();
      for (const connection of connections) connection.destroy();
      forget();
      return summary;
    },
  };
}

/** Some programs try a WebSocket first, several times and slowly, unless it is refused at once (observed: tests/agent/gateway/gateway.test.ts). */
const NO_WEBSOCKETS = 'WebSockets are not served here: use HTTP';
const UPGRADE_REFUSED = (() => {
  const text = JSON.stringify([...SIDES.values()][0]!.errorBody('upgrade', NO_WEBSOCKETS));
  return `HTTP/1.1 ${STATUS.upgrade} Upgrade Required\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`;
})();

/**
 * A request for something else than an answer, a tunnel for example, is refused before anybody else sees it (observed:
 * tests/agent/gateway/packedBodies.test.ts).
 */
function serverFor(
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  noteRefusal: (socket: Duplex, why: string) => void,
): Server {
  const server = createServer(
    {
      requestTimeout: 0,
      headersTimeout: 0,
      keepAliveTimeout: 0,
      // Java's client offers HTTP/2 with every request, which is answered as it came (observed: tests/agent/gateway/gateway.test.ts).
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    },
    onRequest,
  );
  server.on('upgrade', (_request, socket) => {
    noteRefusal(socket, NO_WEBSOCKETS);
    socket.end(UPGRADE_REFUSED);
  });
  server.on('connect', ({ url = '' }, socket) => {
    noteRefusal(socket, `a tunnel to ${url.slice(0, 200)}: the gateway is no proxy`);
    socket.end(emptyAnswer('405 Method Not Allowed'));
  });
  server.on('checkExpectation', ({ headers, socket }, response) => {
    noteRefusal(socket, `a request that expects ${String(headers.expect).slice(0, 40)}`);
    response.writeHead(417, { connection: 'close' }).end();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Else the connection broke, and nothing was asked on it.
    if (error.code?.startsWith('HPE_'))
      noteRefusal(socket, `what was sent is no HTTP/1: ${errorText(error)}`);
    if (socket.writable) socket.end(emptyAnswer('400 Bad Request'));
    else socket.destroy();
  });
  return server;
}

const emptyAnswer = (status: string): string =>
  `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;

const JSON_TYPE = { 'content-type': 'application/json' };
/** Clients that try again heed it. */
const NO_RETRY = { 'x-should-retry': 'false' };

function refuse(response: ServerResponse, dialect: DialectName, refusal: Refusal, message: string): void {
  const text = JSON.stringify(sideOf(dialect).errorBody(refusal, message));
  response.writeHead(STATUS[refusal], { ...JSON_TYPE, ...NO_RETRY }).end(text);
}

/** For each connection the function that takes back that its last answer was got. */
const lastOf = new WeakMap<Duplex, () => void>();

/** A connection of the relay says so by closing without its end, or with bytes that nobody took; one of this machine by an error. */
const brokeOff = (socket: Duplex): boolean =>
  socket instanceof Socket ? socket.errored !== null : !socket.readableEnded || untakenBytes(socket) > 0;

/**
 * A client that breaks a connection off leaves bytes on their way unread, also when the last one has left here (observed:
 * tests/agent/gateway/gateway.test.ts).
 */
function ifBrokenOff(socket: Duplex, takeBack: () => void): void {
  if (!lastOf.has(socket))
    socket.once('close', () => {
      if (brokeOff(socket)) lastOf.get(socket)?.();
    });
  lastOf.set(socket, takeBack);
}

interface Delivery {
  readonly response: ServerResponse;
  readonly dialect: DialectName;
  readonly streamed: boolean;
  readonly keepAliveMs: number;
}

function deliver(answer: Answer, { response, dialect, streamed, keepAliveMs }: Delivery): void {
  /** A sign of life has gone out: the status is said, so an error has to be an event (observed: tests/agent/gateway/gateway.test.ts). */
  let early = false;
  const alive = startTimer(streamed ? keepAliveMs : 0, () => {
    if (!early) response.writeHead(200, { 'content-type': 'text/event-stream' });
    early = true;
    response.write(sideOf(dialect).signOfLife ?? ': waiting for the provider\n\n');
    alive.restart();
  });
  const fail = (outcome: Extract<AnswerOutcome, { kind: 'refused' | 'error' }>): void => {
    if (early) {
      const message = outcome.kind === 'error' ? outcome.message : outcome.text.slice(0, 2000);
      const refusal = outcome.kind === 'error' ? outcome.refusal : 'bad_request';
      response.end(sideOf(dialect).errorEvent(refusal, message));
    } else if (outcome.kind === 'error') refuse(response, dialect, outcome.refusal, outcome.message);
    else
      response
        .writeHead(outcome.status, { ...returnedHeaders(outcome.headers), ...NO_RETRY })
        .end(outcome.text);
  };
  const reading = answer.read({
    head({ status, headers }) {
      alive.cancel();
      if (!early) response.writeHead(status, returnedHeaders(headers));
      response.flushHeaders();
    },
    data: (bytes) => response.write(bytes),
    end(outcome) {
      alive.cancel();
      if (outcome.kind === 'whole') response.end();
      // A clean end would look like the whole answer (observed: tests/agent/gateway/gateway.test.ts).
      else if (outcome.kind === 'cut') response.destroy();
      else fail(outcome);
    },
  });
  response.on('drain', reading.more);
  // A response that has ended has no socket any more.
  const { socket } = response;
  response.on('finish', () => {
    const takeBack = answer.delivered();
    if (socket) ifBrokenOff(socket, takeBack);
  });
  response.on('close', () => {
    alive.cancel();
    reading.leave();
  });
}
