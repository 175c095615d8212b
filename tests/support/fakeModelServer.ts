/**
 * A real HTTP server that speaks the OpenAI wire (chat completions, plain and streamed) and misbehaves on request.
 *
 * A script is a list of directives. Which script answers a request is decided in this order:
 *   1. `select(request)`, when given;
 *   2. a model named `scripted/<key>`;
 *   3. a marker `[[instance:<key>]]` anywhere in the request;
 *   4. the statement (see `statements`) that the request contains;
 *   5. the key `default`.
 * Which directive of the script is used:
 *   - `by: 'request'` (default): the k-th request for that key gets the k-th directive, so a fault takes a place in the list;
 *   - `by: 'history'`: a request that carries k assistant messages gets directive k, so conversations may restart and
 *     overlap; `before` lists faults that are served, once each, ahead of that directive.
 * A finished script repeats its last directive.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { answer, type Directive, type Later, type Script } from './fakeAnswer.ts';
import { historyProblems } from './historyCheck.ts';

interface FakeRequest {
  readonly index: number;
  readonly key: string;
  readonly at: number;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Remote port: requests on one connection share it. */
  readonly port: number;
  readonly bytes: number;
  /** Parsed when read; undefined when bodies are not kept. */
  readonly body: unknown;
  /** The client went away before the answer was complete. */
  aborted: boolean;
}

export interface FakeServerOptions {
  readonly scripts?: Readonly<Record<string, Script>>;
  /** Short for a single script under the key `default`. */
  readonly replies?: Script;
  readonly by?: 'request' | 'history';
  readonly latencyMs?: number | (() => number);
  readonly select?: (request: { model: string; text: string; headers: IncomingMessage['headers'] }) => string;
  readonly statements?: Readonly<Record<string, string>>;
  /** Answer 400 to a history that a provider would reject, see historyCheck.ts. */
  readonly strict?: boolean;
  /** Off for benchmarks: nothing of a request is kept but its size. Default on. */
  readonly keepBodies?: boolean;
  readonly host?: string;
  readonly port?: number;
}

export interface FakeModelServer {
  /** Base URL for clients, with `/v1`. */
  readonly url: string;
  readonly requests: readonly FakeRequest[];
  count(key?: string): number;
  /** Connections accepted so far. */
  connections(): number;
  /** Most requests that were open at one time. */
  peak(): number;
  setScript(key: string, script: Script): void;
  /** Resolves once the server has seen so many requests in total. */
  waitForRequests(total: number): Promise<void>;
  close(): Promise<void>;
}

const MARKER = /\[\[instance:([^\]"\\]+)\]\]/;

function keyOf(text: string, headers: IncomingMessage['headers'], options: FakeServerOptions): string {
  const model = /"model":\s*"([^"]*)"/.exec(text)?.[1] ?? '';
  if (options.select) return options.select({ model, text, headers });
  if (model.startsWith('scripted/')) return model.slice('scripted/'.length);
  const marked = MARKER.exec(text)?.[1];
  if (marked) return marked;
  for (const [key, statement] of Object.entries(options.statements ?? {})) {
    if (text.includes(JSON.stringify(statement).slice(1, -1))) return key;
  }
  return 'default';
}

/** Without parsing: quotes inside a content are escaped, so the pair can only be the role itself. */
function countAssistant(text: string): number {
  let count = 0;
  for (const pair of ['"role":"assistant"', '"role": "assistant"']) {
    for (let at = text.indexOf(pair); at >= 0; at = text.indexOf(pair, at + pair.length)) count += 1;
  }
  return count;
}

const problemsOf = (text: string): string[] =>
  historyProblems((JSON.parse(text) as { messages: [] }).messages);

const asDirective = (entry: Directive | string): Directive =>
  typeof entry === 'string' ? { content: entry } : entry;

/** Which directive answers a request, by the scripts and what was served so far. */
function scriptBook(options: FakeServerOptions) {
  const scripts = new Map<string, Script>(Object.entries(options.scripts ?? {}));
  if (options.replies) scripts.set('default', options.replies);
  const served = new Map<string, number>();
  const next = (counter: string): number => {
    const value = served.get(counter) ?? 0;
    served.set(counter, value + 1);
    return value;
  };
  return {
    choose(key: string, text: string): Directive | undefined {
      const script = scripts.get(key) ?? scripts.get('default');
      if (!script || script.length === 0) return undefined;
      const wanted = options.by === 'history' ? countAssistant(text) : next(key);
      const position = Math.min(wanted, script.length - 1);
      const directive = asDirective(script[position]!);
      const before = directive.before ?? [];
      if (before.length > 0) {
        const turn = next(`${key}#${position}`);
        if (turn < before.length) return asDirective(before[turn]!);
      }
      return directive;
    },
    setScript(key: string, script: Script): void {
      scripts.set(key, script);
      for (const counter of [...served.keys()]) {
        if (counter === key || counter.startsWith(`${key}#`)) served.delete(counter);
      }
    },
  };
}

/** What the server has seen: counts, and the requests themselves unless bodies are not kept. */
function requestLog(keepBodies: boolean) {
  const requests: FakeRequest[] = [];
  const counts = new Map<string, number>();
  const waiting = new Set<{ total: number; resolve: () => void }>();
  let total = 0;
  let open = 0;
  let peak = 0;

  function keep(
    request: IncomingMessage,
    response: ServerResponse,
    text: string,
    key: string,
    bytes: number,
  ) {
    let parsed: unknown;
    const record: FakeRequest = {
      index: requests.length,
      key,
      at: performance.now(),
      path: request.url ?? '',
      headers: request.headers,
      port: request.socket.remotePort ?? 0,
      bytes,
      get body() {
        parsed ??= JSON.parse(text || 'null');
        return parsed;
      },
      aborted: false,
    };
    requests.push(record);
    response.on('close', () => {
      record.aborted = !response.writableFinished;
    });
  }

  return {
    requests,
    add(request: IncomingMessage, response: ServerResponse, text: string, key: string, bytes: number) {
      total += 1;
      open += 1;
      peak = Math.max(peak, open);
      response.on('close', () => {
        open -= 1;
      });
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if (keepBodies) keep(request, response, text, key, bytes);
      for (const waiter of waiting) {
        if (total < waiter.total) continue;
        waiting.delete(waiter);
        waiter.resolve();
      }
    },
    count: (key?: string): number => (key === undefined ? total : (counts.get(key) ?? 0)),
    peak: (): number => peak,
    waitForRequests(wanted: number): Promise<void> {
      if (total >= wanted) return Promise.resolve();
      return new Promise((resolve) => waiting.add({ total: wanted, resolve }));
    },
  };
}

function sendError(response: ServerResponse, status: number, error: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error }));
}

export async function startFakeModelServer(options: FakeServerOptions = {}): Promise<FakeModelServer> {
  const book = scriptBook(options);
  const log = requestLog(options.keepBodies !== false);
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  let accepted = 0;

  const later: Later = (ms, run) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timers.add(timer);
  };

  function handle(request: IncomingMessage, response: ServerResponse, raw: Buffer) {
    const text = raw.toString('utf8');
    const key = keyOf(text, request.headers, options);
    log.add(request, response, text, key, raw.length);
    const problems = options.strict ? problemsOf(text) : [];
    if (problems.length > 0)
      return sendError(response, 400, { message: problems.join('; '), type: 'invalid_request_error' });
    const directive = book.choose(key, text);
    if (!directive) return sendError(response, 500, { message: `fake server has no script for ${key}` });
    const { latencyMs = 0 } = options;
    const delay = directive.delayMs ?? (typeof latencyMs === 'number' ? latencyMs : latencyMs());
    if (delay > 0) later(delay, () => answer(response, directive, text, later));
    else answer(response, directive, text, later);
  }

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => handle(request, response, Buffer.concat(parts)));
  });
  server.on('connection', (socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  server.keepAliveTimeout = 60_000;
  const host = options.host ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://${host}:${port}/v1`,
    requests: log.requests,
    count: log.count,
    connections: () => accepted,
    peak: log.peak,
    setScript: book.setScript,
    waitForRequests: log.waitForRequests,
    async close() {
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
