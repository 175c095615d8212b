/** Waiting for work that may ignore its signal. */
import { StopReason } from '../exit.ts';

/** Waits for `work` or the abort, whichever is first; a late result goes to `late`. */
export function orAbort<T>(
  work: Promise<T>,
  signal: AbortSignal,
  late?: (value: T) => Promise<void>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let settled = false;
    const onAbort = () => {
      if (settled) return;
      settled = true;
      reject(signal.reason instanceof Error ? signal.reason : new StopReason('cancelled', 'cancelled'));
    };
    if (signal.aborted) queueMicrotask(onAbort);
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        if (settled) void late?.(value).catch(() => {});
        else {
          settled = true;
          resolve(value);
        }
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        if (settled) return;
        settled = true;
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}

/** Aborts `controller` with the reason of `signal`, until the returned function is called. */
export function followAbort(signal: AbortSignal, controller: AbortController): () => void {
  const follow = () => controller.abort(signal.reason);
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return () => signal.removeEventListener('abort', follow);
}
