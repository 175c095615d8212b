/** The fetch of the hub client: waits after 429 and server errors as the server asks, and gives up on a silent server. */

import { retry, retryAfterMs, startTimer } from '../../base/async/timer.ts';

export interface HubFetchOptions {
  readonly fetch: typeof fetch;
  readonly sleep: (ms: number) => Promise<void>;
  readonly onWait?: ((message: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly attempts?: number;
  readonly headersTimeoutMs?: number;
}

const TRANSIENT = new Set([408, 429, 500, 502, 503, 504]);
/** A longer wait than this is reported instead. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** An answer that is retried; the caller gets the last one. */
class Busy extends Error {
  readonly response: Response;
  constructor(response: Response) {
    super(`the hub answers ${response.status}`);
    this.response = response;
  }
}

export function hubFetch(options: HubFetchOptions): typeof fetch {
  const { sleep, onWait, signal, attempts = 5, headersTimeoutMs = 30_000 } = options;
  const delayMs = (error: unknown, tried: number): number | undefined => {
    if (tried === attempts) return undefined;
    const usual = 500 * 2 ** (tried - 1);
    if (!(error instanceof Busy)) return signal?.aborted ? undefined : usual;
    const wait = retryAfterMs(error.response.headers.get('retry-after'), Date.now()) ?? usual;
    return wait > LONGEST_WAIT_MS ? undefined : wait;
  };
  const sayWait = (error: unknown, ms: number): void => {
    if (error instanceof Busy) void error.response.body?.cancel();
    const reason = error instanceof Busy ? error.message : `the hub cannot be reached (${causeOf(error)})`;
    onWait?.(`${reason}; trying again in ${Math.ceil(ms / 1000)} s`);
  };
  return async (input, init) => {
    const once = async (): Promise<Response> => {
      const silence = new AbortController();
      const timer = startTimer(headersTimeoutMs, () =>
        silence.abort(new Error(`no answer within ${headersTimeoutMs / 1000} s`)),
      );
      const signals = [silence.signal, signal, init?.signal].filter((s) => s != null);
      try {
        const response = await options.fetch(input, { ...init, signal: AbortSignal.any(signals) });
        if (TRANSIENT.has(response.status)) throw new Busy(response);
        return response;
      } finally {
        timer.cancel();
      }
    };
    try {
      return await retry(once, { delayMs, onWait: sayWait, sleep });
    } catch (error) {
      if (error instanceof Busy) return error.response;
      throw error;
    }
  };
}

/** The body of an answer ends with an error when it is longer than this: a server may send without an end. */
export function boundedFetch(inner: typeof fetch, mostBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, init);
    if (!response.body) return response;
    let left = mostBytes;
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.length;
        if (left >= 0) controller.enqueue(chunk);
        else controller.error(new Error(`the hub sends more than the ${mostBytes} bytes that may come`));
      },
    });
    const { status, statusText, headers, url, redirected } = response;
    const bounded = new Response(response.body.pipeThrough(counted), { status, statusText, headers });
    // What a response that is made here does not know.
    return Object.defineProperties(bounded, { url: { value: url }, redirected: { value: redirected } });
  };
}

/** undici hides the reason ("fetch failed") in `cause`. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
