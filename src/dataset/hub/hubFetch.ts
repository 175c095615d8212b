/** The fetch that the hub client uses: waits out 429 and brief server trouble as the server asks, and gives up on what stays silent. */

export interface HubFetchOptions {
  readonly fetch: typeof fetch;
  readonly sleep: (ms: number) => Promise<void>;
  readonly onWait?: ((message: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly attempts?: number;
  readonly headersTimeoutMs?: number;
}

const TRANSIENT = new Set([408, 429, 500, 502, 503, 504]);
/** A server that asks for more patience than this is reported instead of waited for. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** Seconds, or an HTTP date. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  if (header === null || header.trim() === '') return undefined;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - now;
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

export function hubFetch(options: HubFetchOptions): typeof fetch {
  const { sleep, onWait, signal, attempts = 5, headersTimeoutMs = 30_000 } = options;
  return async (input, init) => {
    for (let attempt = 1; ; attempt++) {
      const headersDeadline = new AbortController();
      const timer = setTimeout(
        () => headersDeadline.abort(new Error(`no answer within ${headersTimeoutMs / 1000} s`)),
        headersTimeoutMs,
      );
      const signals = [headersDeadline.signal, signal, init?.signal].filter((s) => s != null);
      let wait = 500 * 2 ** (attempt - 1);
      let reason: string;
      try {
        const response = await options.fetch(input, { ...init, signal: AbortSignal.any(signals) });
        if (!TRANSIENT.has(response.status) || attempt === attempts) return response;
        wait = retryAfterMs(response.headers.get('retry-after'), Date.now()) ?? wait;
        if (wait > LONGEST_WAIT_MS) return response;
        reason = `the hub answers ${response.status}`;
        await response.body?.cancel();
      } catch (error) {
        if (signal?.aborted || attempt === attempts) throw error;
        reason = `the hub cannot be reached (${causeOf(error)})`;
      } finally {
        clearTimeout(timer);
      }
      onWait?.(`${reason}; trying again in ${Math.ceil(wait / 1000)} s`);
      await sleep(wait);
    }
  };
}

/** undici hides the reason ("fetch failed") in `cause`. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
