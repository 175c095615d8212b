/** The live viewer: one node:http server that reads a results root, serves the built page and says when something changed. */

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { addAbortListener } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { errorText } from '../base/text/errorText.ts';
import { askRun } from '../run/askRun.ts';
import { UserError } from '../run/userError.ts';
import { DOCUMENTS_VERSION, VERSION_HEADER } from './documents/documents.ts';
import { firstDocuments } from './documents/first.ts';
import type { Documents } from './documents/resources.ts';
import { databaseOf, openRecord } from './laterRecord.ts';
import { EARLY_SCRIPT, hashOf, readPage, withMode } from './pageFiles.ts';

export interface ViewerOptions {
  /** A results root, or the database file itself. */
  readonly results: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 7580; 0 picks a free one. */
  readonly port?: number;
  /** Asked for by everything; without it one is made, and on loopback only changes of a run ask for that one. */
  readonly token?: string;
  readonly signal?: AbortSignal;
  /** How often the database is asked whether it changed, while somebody watches. */
  readonly pollMs?: number;
  /** The built page; default is the one beside this module. */
  readonly pageDir?: string;
}

export interface Viewer {
  /** The address for reading: with the token where reading asks for it. */
  readonly url: string;
  /** The address with the token: its reader can change a run that works. */
  readonly controlUrl: string;
  readonly port: number;
  close(): Promise<void>;
}

const policyOf = (scripts: string): string =>
  `default-src 'none'; script-src ${scripts}; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const HEADERS = {
  'Content-Security-Policy': policyOf("'self'"),
  [VERSION_HEADER]: DOCUMENTS_VERSION,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
  'Cache-Control': 'no-store',
};

export async function startViewer(options: ViewerOptions): Promise<Viewer> {
  const host = options.host ?? '127.0.0.1';
  options.signal?.throwIfAborted();
  const page = readPage(options.pageDir);
  const record = openRecord(options.results);
  try {
    const token = options.token ?? randomBytes(24).toString('base64url');
    const openToRead = options.token === undefined && isLoopback(host);
    const live = liveUpdates(record, options.pollMs ?? 500);
    const rules = { hosts: new Set<string>(), token, openToRead, cookie: 'swebatch-view' };
    const handle = (request: IncomingMessage, response: ServerResponse): ServerResponse => {
      const target = request.url ?? '/';
      // Anything but a plain path (another authority, the form for proxies) is refused (observed: tests/viewer/server.test.ts).
      const url = /^\/(?!\/)/.test(target) ? URL.parse(target, 'http://viewer.invalid') : null;
      if (url === null) return say(response, 404, 'no such page');
      const decision = decide(rules, {
        method: request.method ?? '',
        host: request.headers.host,
        origin: request.headers.origin,
        control: url.pathname === CONTROL_PATH && request.headers[CONTROL_HEADER] === '1',
        fetchSite: single(request.headers['sec-fetch-site']),
        visit: request.headers['sec-fetch-mode'] === 'navigate' && !url.pathname.startsWith('/api/'),
        authorization: request.headers.authorization,
        cookie: request.headers.cookie,
        queryToken: url.searchParams.get('token') ?? undefined,
      });
      if (!decision.allow) return say(response, decision.status, decision.why);
      if (decision.setCookie && !url.pathname.startsWith('/api/')) {
        // Lax, since a link in a chat or a mail leads here too. The token leaves the address bar at once, so that it ends up in no bookmark and no
        // screenshot.
        response.setHeader('Set-Cookie', `${rules.cookie}=${rules.token}; HttpOnly; SameSite=Lax; Path=/`);
        response.setHeader('Location', url.pathname);
        return say(response, 303, 'see the page');
      }
      if (request.method === 'POST') {
        void handleControl(options.results, request).then(({ status, body }) =>
          send(response, status, 'application/json; charset=utf-8', JSON.stringify(body)),
        );
        return response;
      }
      if (url.pathname === '/api/live') return live.follow(request, response);
      if (url.pathname === '/api/first')
        return send(
          response,
          200,
          'text/plain; charset=utf-8',
          firstDocuments(record.documents, url.searchParams.get('at') ?? ''),
        );
      if (url.pathname.startsWith('/api/'))
        return sendDocument(record.documents, url.pathname.slice(5), response);
      const file = page.get(url.pathname === '/' ? 'index.html' : url.pathname.slice(1));
      if (!file) return say(response, 404, 'no such page');
      if (file.name !== 'index.html') return send(response, 200, file.type, file.body);
      const html = withMode(file.body.toString('utf8'), 'served', `<script>${EARLY_SCRIPT}</script>`);
      return send(response, 200, file.type, html, {
        'Content-Security-Policy': policyOf(`'self' ${hashOf(EARLY_SCRIPT)}`),
      });
    };
    const server = createServer((request, response) => {
      try {
        handle(request, response);
      } catch (error) {
        say(response, 500, `the viewer failed: ${errorText(error)}`);
      }
    });
    await new Promise<void>((done, failed) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        failed(listenError(error, host, options.port ?? 7580)),
      );
      server.listen(options.port ?? 7580, host, done);
    });
    // A large record takes a second to add up: it is done while a person opens the address.
    setImmediate(goOn, record.documents.prepareList());
    const { port } = server.address() as AddressInfo;
    for (const name of hostsFor(host, port, ownNames())) rules.hosts.add(name);
    // Cookies do not tell ports apart: two viewers on one host must not overwrite each other's (observed: tests/viewer/access.test.ts).
    rules.cookie = `swebatch-view-${port}`;
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= new Promise<void>((done) => {
        live.close();
        server.close(() => {
          record.close();
          done();
        });
        server.closeAllConnections();
      });
      return closing;
    };
    if (options.signal) addAbortListener(options.signal, () => void close());
    const shown = host === '0.0.0.0' || host === '::' ? hostname() : host;
    const base = `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}/`;
    const controlUrl = `${base}?token=${encodeURIComponent(token)}`;
    return { url: openToRead ? base : controlUrl, controlUrl, port, close };
  } catch (error) {
    record.close();
    throw error;
  }
}

/** One step at a time: requests meanwhile are answered between two of them. */
function goOn(steps: Iterator<unknown>): void {
  try {
    if (steps.next().done !== true) setImmediate(goOn, steps);
  } catch {
    // A request for the list gets the error.
  }
}

function sendDocument(documents: Documents, path: string, response: ServerResponse): ServerResponse {
  let decoded: string;
  try {
    decoded = path.split('/').map(decodeURIComponent).join('/');
  } catch {
    // An address whose escapes are no UTF-8 (observed: tests/viewer/server.test.ts).
    return send(response, 400, 'application/json', '{"error":"bad address"}');
  }
  const document = documents.read(decoded);
  if (document === undefined)
    return send(response, 404, 'application/json', '{"error":"there is no such document"}');
  return send(response, 200, 'application/json; charset=utf-8', JSON.stringify(document));
}

function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): ServerResponse {
  response.writeHead(status, { ...HEADERS, 'Content-Type': type, ...headers });
  return response.end(response.req.method === 'HEAD' ? undefined : body);
}

const say = (response: ServerResponse, status: number, text: string): ServerResponse =>
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);

/** Server-sent events; the database is polled only while somebody listens. */
function liveUpdates({ version, newestEvent }: ReturnType<typeof openRecord>, pollMs: number) {
  const followers = new Set<ServerResponse>();
  let timer: NodeJS.Timeout | undefined;
  let seen = '';
  let quiet = 0;
  const poll = () => {
    let now: string;
    let newest: number;
    try {
      now = version();
      newest = now === seen ? 0 : newestEvent();
    } catch {
      // A backup or a checkpoint may hold the file for a moment; the next poll sees what this one missed.
      return;
    }
    quiet += pollMs;
    if (now !== seen) {
      seen = now;
      quiet = 0;
      tell(`event: change\ndata: ${JSON.stringify({ seq: newest })}\n\n`);
    } else if (quiet >= 15_000) {
      quiet = 0;
      tell(': still here\n\n');
    }
  };
  const tell = (text: string) => {
    for (const follower of followers) follower.write(text);
  };
  return {
    follow(request: IncomingMessage, response: ServerResponse): ServerResponse {
      // Both may throw: an error can be said only before the head (observed: tests/viewer/emptyRoot.test.ts).
      const newest = newestEvent();
      if (timer === undefined) seen = version();
      response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' });
      response.write(`retry: 2000\nevent: hello\ndata: ${JSON.stringify({ seq: newest })}\n\n`);
      followers.add(response);
      timer ??= setInterval(poll, pollMs);
      request.on('close', () => {
        followers.delete(response);
        if (followers.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      });
      return response;
    },
    close() {
      clearInterval(timer);
      for (const follower of followers) follower.end();
    },
  };
}

function ownNames(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap(
    (list) => list?.map((one) => one.address) ?? [],
  );
  return [...addresses, hostname()];
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new Error(`port ${port} on ${host} is taken; choose another with --port, or 0 for any free one`, {
      cause: error,
    });
  return new Error(`cannot listen on ${host}:${port}: ${error.message}`, { cause: error });
}

const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

export interface AccessRules {
  /** Exact values of the Host header that are ours, lower case (observed: tests/viewer/access.test.ts). */
  readonly hosts: ReadonlySet<string>;
  /** The token of this start. Every user of a machine reaches its loopback, so a change asks for it there too. */
  readonly token: string;
  readonly openToRead: boolean;
  readonly cookie: string;
}

export interface AccessFacts {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  /** A person follows a link to the page itself: harmless from anywhere, since the page alone holds no data. */
  readonly visit: boolean;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The path takes requests to a run that works, and the header is there that only a script of the page can set. */
  readonly control?: boolean;
  /** `token` of the query, for the first visit. */
  readonly queryToken: string | undefined;
}

type Decision =
  | { allow: true; setCookie: boolean }
  | { allow: false; status: 400 | 401 | 403 | 405; why: string };

const refuse = (status: 400 | 401 | 403 | 405, why: string): Decision => ({ allow: false, status, why });

export function decide(rules: AccessRules, request: AccessFacts): Decision {
  const changes = request.method === 'POST' && request.control === true;
  if (!changes && request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(405, 'this viewer only reads');
  const host = request.host?.toLowerCase();
  if (host === undefined || !rules.hosts.has(host))
    return refuse(403, 'this viewer does not answer to that host name; use the address it printed');
  if (request.origin !== undefined && request.origin.toLowerCase() !== `http://${host}`)
    return refuse(403, 'requests from another origin are not answered');
  // Reading may leave the origin out; a change is asked by a page that says it.
  if (changes && request.origin === undefined)
    return refuse(403, 'a request that changes a run has to come from the page of this viewer');
  const site = request.fetchSite;
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !request.visit)
    return refuse(403, 'requests from another site are not answered');
  if (changes && request.visit) return refuse(403, 'a link or a form changes nothing here');
  if (sameSecret(request.queryToken, rules.token)) return { allow: true, setCookie: true };
  if (rules.openToRead && !changes) return { allow: true, setCookie: false };
  const bearer = request.authorization?.match(/^Bearer (.+)$/)?.[1];
  if (sameSecret(bearer, rules.token) || sameSecret(cookieOf(request.cookie, rules.cookie), rules.token))
    return { allow: true, setCookie: false };
  const first = 'open the address that "swebatch view" printed: it carries the token';
  return refuse(401, changes ? `nothing was changed; ${first}` : first);
}

function sameSecret(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
export const isLoopback = (host: string): boolean => LOOPBACK.has(host) || /^127(\.\d{1,3}){3}$/.test(host);

/** Host headers that mean this server: the address it was given, loopback's names, and every interface for a wildcard. */
export function hostsFor(host: string, port: number, interfaces: readonly string[]): Set<string> {
  const names = new Set<string>([host.toLowerCase()]);
  const wildcard = host === '0.0.0.0' || host === '::';
  if (isLoopback(host) || wildcard) for (const name of LOOPBACK) names.add(name);
  if (wildcard) for (const name of interfaces) names.add(name.toLowerCase());
  const found = new Set<string>();
  for (const name of names) {
    const bare = name.includes(':') ? `[${name}]` : name;
    found.add(`${bare}:${port}`);
    if (port === 80) found.add(bare);
  }
  return found;
}

const CONTROL_PATH = '/api/control';
/** A form of another site cannot set it, and a script of one would have to ask first, which is refused (observed: tests/viewer/access.test.ts). */
const CONTROL_HEADER = 'x-swebatch-control';

const requestSchema = z.strictObject({
  run: z.string().min(1).max(500),
  command: z.string().max(100),
  argument: z.string().max(500).nullable(),
});

const LONGEST_BYTES = 10_000;

/** Never rejects. */
async function handleControl(results: string, request: IncomingMessage) {
  try {
    const read = await bodyOf(request);
    const asked = read === null ? null : requestSchema.safeParse(read);
    if (!asked?.success) return { status: 400, body: { error: 'this is no request to a run' } };
    const database = databaseOf(results);
    if (basename(database) !== 'swebatch.db')
      return { status: 409, body: { error: 'this file is a copy of a record; no run works on it' } };
    const by = `${request.socket.remoteAddress ?? '?'} (viewer)`;
    const { done, answer } = await askRun({ ...asked.data, root: dirname(database), by });
    return done ? { status: 200, body: { answer } } : { status: 409, body: { error: answer } };
  } catch (error) {
    const status = error instanceof UserError ? 409 : 500;
    return { status, body: { error: errorText(error) } };
  }
}

/** Null for what is too long or no JSON (observed: tests/viewer/live/controlRequests.test.ts). */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LONGEST_BYTES) return null;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
  } catch {
    return null;
  }
}
