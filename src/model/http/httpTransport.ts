/**
 * The HTTP of every request to a model: our own undici dispatcher, so that undici's hidden 300 s limits do not apply,
 * and four deadlines of ours, each named in its error: connect, first byte, idle between bytes, total.
 */

import type { Readable } from 'node:stream';
import { Agent, type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { codingsOf, unpackedBody } from '../../base/contentCoding.ts';
import { stripChars } from '../../base/python/text.ts';
import { formatDuration } from '../limits/clock.ts';
import type { ProxySettings } from './proxySettings.ts';

/**
 * No answer of a model is this long, streamed or not: images and signatures have many bytes. A server that never stops must not fill the
 * memory (faults.test.ts).
 */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;

/** Idle connections are reused this long unless the server says otherwise; a step's command often takes longer than undici's 4 s. */
const KEEP_ALIVE_MS = 20_000;

/** Exported for its test: undici's own limits must be off, whatever ours are. */
export function dispatcherOptions(deadlines: Deadlines): Agent.Options {
  return {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: deadlines.connectMs },
  };
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
};

function connectFault(error: unknown, host: string, deadlines: Deadlines): TransportError {
  const code = codeOf(error) || codeOf((error as Error).cause);
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new TransportError(
      'connect_timeout',
      `no connection to ${host} in ${formatDuration(deadlines.connectMs)}`,
      error,
    );
  if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET' || code === 'EPIPE')
    return new TransportError('reset', `connection to ${host} lost before it answered`, error);
  const broken = brokenAnswer(error as Error, code);
  if (broken !== null)
    return new TransportError('broken', `${host} answered with what is no HTTP (${broken})`, error);
  const refused = proxyRefusal(error);
  if (refused !== null)
    return new TransportError(
      'connect',
      `the proxy does not connect to ${host} (${refused}): look at HTTPS_PROXY, HTTP_PROXY and NO_PROXY`,
      error,
    );
  return new TransportError(
    'connect',
    `cannot connect to ${host} (${code || (error as Error).message})`,
    error,
  );
}

/** The fault that undici and its parser found in an answer, or one of undici's own checks (brokenHttp.test.ts). Null for all else. */
function brokenAnswer({ name, message }: Error, code: string): string | null {
  if (name === 'HTTPParserError')
    return /^Response does not match the HTTP\/1\.1 protocol \((.*)\)$/s.exec(message)?.[1] ?? message;
  return /^(?:ERR_ASSERTION$|HPE_|UND_ERR_(?:HEADERS_OVERFLOW$|RES))/.test(code) ? code : null;
}

/**
 * A deadline. Timers come before sockets in a turn of the event loop, so an answer that came while this process stood still (another held the
 * record, T-53) is read before the deadline counts. Observed: "an answer that came while it stood still is no timeout", tests/model/faults.test.ts.
 */
const alarm = (ms: number, fire: () => void): Timer =>
  startTimer(ms, () => setImmediate(() => setImmediate(fire)));

/** Timers of one exchange. The first to fire is the failure, and ends the request. */
function watch(exchange: Exchange, deadlines: Deadlines) {
  const aborter = new AbortController();
  const timers = new Map<string, Timer>();
  const fail = (fault: TransportFault, message: string) => {
    exchange.failure ??= new TransportError(fault, message);
    aborter.abort(exchange.failure);
  };
  const arm = (name: string, ms: number, fault: TransportFault, message: () => string) => {
    if (ms > 0)
      timers.set(
        name,
        alarm(ms, () => {
          if (timers.has(name)) fail(fault, message());
        }),
      );
  };
  const disarm = (name: string) => {
    timers.get(name)?.cancel();
    timers.delete(name);
  };
  const onAbort = () => fail('aborted', 'aborted');
  if (exchange.signal?.aborted) onAbort();
  else exchange.signal?.addEventListener('abort', onAbort, { once: true });
  arm(
    'total',
    deadlines.totalMs,
    'total',
    () => `no complete response in ${formatDuration(deadlines.totalMs)}`,
  );
  arm(
    'first',
    deadlines.firstByteMs,
    'first_byte',
    () => `no response byte in ${formatDuration(deadlines.firstByteMs)}`,
  );
  const idleText = () => {
    const span = formatDuration(deadlines.idleMs);
    return exchange.streaming
      ? `stream idle ${span} after ${exchange.chunks} chunks`
      : `body idle ${span} after ${exchange.received} bytes`;
  };
  // One idle timer, which looks when the last chunk came: a new one for each is felt in long streams.
  let lastByte = 0;
  const armIdle = (ms: number) => {
    timers.set(
      'idle',
      alarm(ms, () => {
        const left = lastByte + deadlines.idleMs - performance.now();
        if (!timers.has('idle')) return;
        if (left > 0) armIdle(left);
        else fail('idle', idleText());
      }),
    );
  };
  return {
    signal: aborter.signal,
    gotHeaders() {
      disarm('first');
      lastByte = performance.now();
      if (deadlines.idleMs > 0) armIdle(deadlines.idleMs);
    },
    gotBytes() {
      lastByte = performance.now();
    },
    done() {
      for (const name of timers.keys()) disarm(name);
      exchange.signal?.removeEventListener('abort', onAbort);
    },
  };
}
type Watch = ReturnType<typeof watch>;

/** Some gateways compress whatever was asked for ("packed by a gateway", dialects.test.ts). The limit of a reply counts what comes out. */
async function* decoded(body: Readable, { headers }: Exchange): AsyncGenerator<Buffer> {
  const encoding = headers['content-encoding'];
  const codings = codingsOf(encoding);
  if (codings !== null) yield* unpackedBody(body, codings);
  else {
    body.destroy();
    const said = encoding?.slice(0, 40);
    throw new TransportError(
      'broken',
      `the answer has the content-encoding ${said}, which is not known here`,
    );
  }
}

async function* readBody(
  body: AsyncIterable<Buffer>,
  exchange: Exchange,
  timers: Watch,
): AsyncGenerator<Buffer> {
  try {
    for await (const part of body) {
      timers.gotBytes();
      exchange.received += part.length;
      if (exchange.received > MAX_REPLY_BYTES)
        throw new TransportError('too_large', `reply larger than ${MAX_REPLY_BYTES >> 20} MB`);
      yield part;
    }
  } catch (error) {
    exchange.failure ??=
      error instanceof TransportError
        ? error
        : new TransportError(
            'cut',
            `truncated body: connection lost after ${exchange.received} bytes`,
            error,
          );
    throw exchange.failure;
  } finally {
    timers.done();
  }
}

/** The stream as the SDK reads it. The SDK may stop reading early, and that must stop our timers too. */
function toWebStream(parts: AsyncGenerator<Buffer>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await parts.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}

/** Headers by the object they came in: most requests of a model have the same. */
const flattened = new WeakMap<object, string[]>();

/** Names and values in turns. undici.request does not decompress, so nothing is to come compressed. */
function flatHeaders(given: RequestInit['headers']): string[] {
  const known = given === undefined ? undefined : flattened.get(given);
  if (known) return known;
  const flat = [...new Headers(given)].flat().concat('accept-encoding', 'identity');
  if (given instanceof Headers) flattened.set(given, flat);
  return flat;
}

/** Server-sent events, and Amazon's frames. */
const STREAMS = /text\/event-stream|application\/vnd\.amazon\.eventstream/;

async function exchangeOver(
  dispatcher: Dispatcher,
  deadlines: Deadlines,
  exchange: Exchange,
  url: string,
  init: RequestInit,
): Promise<AnswerBody> {
  const timers = watch(exchange, deadlines);
  let response: Dispatcher.ResponseData;
  try {
    response = await request(url, {
      dispatcher,
      method: (init.method ?? 'POST') as Dispatcher.HttpMethod,
      headers: flatHeaders(init.headers),
      body: (init.body ?? null) as Uint8Array | string | null,
      signal: timers.signal,
    });
  } catch (error) {
    timers.done();
    exchange.failure ??= connectFault(error, new URL(url).host, deadlines);
    throw exchange.failure;
  }
  timers.gotHeaders();
  exchange.status = response.statusCode;
  exchange.headers = flatten(response.headers);
  const parts = readBody(decoded(response.body, exchange), exchange, timers);
  if (STREAMS.test(exchange.headers['content-type'] ?? '') && response.statusCode < 400) {
    exchange.streaming = true;
    return { body: toWebStream(parts) };
  }
  const bytes: Buffer[] = [];
  for await (const part of parts) bytes.push(part);
  exchange.text = Buffer.concat(bytes).toString('utf8');
  return { body: null };
}

/** The stream, which the caller reads. All else, a body that came whole too, is in the exchange. */
export interface AnswerBody {
  readonly body: ReadableStream<Uint8Array> | null;
}

export interface HttpTransport {
  /** Wants `{ exchange }` among its options. */
  readonly fetch: (url: string | URL | Request, init?: RequestInit) => Promise<AnswerBody>;
  close(): Promise<void>;
}

export function createTransport(deadlines: Deadlines, proxy?: ProxySettings): HttpTransport {
  const dispatcher = dispatcherFor(dispatcherOptions(deadlines), proxy);
  return {
    fetch(url, init = {}) {
      const { exchange } = init as { exchange?: Exchange };
      return exchangeOver(dispatcher, deadlines, exchange ?? newExchange(), String(url), init);
    },
    close: () => dispatcher.destroy(),
  };
}

/** One try: its deadlines, its state so far, and its failures. */

export interface Deadlines {
  /** Milliseconds; 0 is off. */
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

export type TransportFault =
  | 'connect_timeout'
  | 'connect'
  | 'broken'
  | 'first_byte'
  | 'idle'
  | 'total'
  | 'cut'
  | 'reset'
  | 'too_large'
  | 'aborted';

export class TransportError extends Error {
  readonly fault: TransportFault;
  constructor(fault: TransportFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TransportError';
    this.fault = fault;
  }
}

/** One try, as far as it has come. The client of the SDK hands it through to `fetch` in its fetch options. */
export interface Exchange {
  readonly signal: AbortSignal | undefined;
  status: number | null;
  headers: Readonly<Record<string, string>>;
  /** The body when it is read whole; streams are read by the caller. */
  text: string;
  streaming: boolean;
  /** Stream events seen, for the text of the idle deadline. */
  chunks: number;
  failure: TransportError | null;
  /** The generation of a cloud's credentials that it was sent with. */
  credentials?: number;
  /** Bytes of the answer, to distinguish a lost answer from no answer. */
  received: number;
}

export const newExchange = (signal?: AbortSignal): Exchange => ({
  signal,
  status: null,
  headers: {},
  text: '',
  streaming: false,
  chunks: 0,
  failure: null,
  received: 0,
});

/** A server on this machine is never asked through a proxy. */
const LOOPBACK = 'localhost,127.0.0.1,[::1]';

function dispatcherFor(options: Agent.Options, proxy: ProxySettings | undefined): Dispatcher {
  if (!proxy) return new Agent(options);
  const { http, https, except } = proxy;
  return new EnvHttpProxyAgent({
    ...options,
    httpProxy: http,
    // undici takes the http proxy for https too when this one is empty, which nobody who left it out means.
    httpsProxy: https,
    noProxy: except.trim() === '*' ? '*' : [except, LOOPBACK].filter(Boolean).join(','),
    // A tunnel also to a server that speaks plain HTTP: a proxy that is asked for the whole answer may change or keep it.
    proxyTunnel: true,
    // `connect` is not read for a proxy: its limit is set here.
    proxyTls: options.connect as { timeout?: number },
  });
}

/** The status with which a proxy refused its tunnel, which undici tells in a text alone. */
function proxyRefusal(error: unknown): number | null {
  const status = /^Proxy response \((\d+)\)/.exec((error as Error | null)?.message ?? '')?.[1];
  return status === undefined ? null : Number(status);
}

/**
 * `path` begins with a slash or is empty, and may have a query too: `https://h/v1?key=k` and `/messages?beta` are
 * `https://h/v1/messages?beta&key=k`.
 */
export function addressUnder(baseUrl: string, path: string): string {
  const at = baseUrl.indexOf('?');
  const base = stripChars(at < 0 ? baseUrl : baseUrl.slice(0, at), '/', 'right');
  const query = at < 0 ? '' : baseUrl.slice(at + 1);
  if (query === '') return `${base}${path}`;
  return `${base}${path}${path.includes('?') ? '&' : '?'}${query}`;
}
