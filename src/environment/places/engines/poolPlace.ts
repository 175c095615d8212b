/** A place of one trial on an engine of a pool. */
import type { Place } from '../../environment.ts';
import type { PoolShell } from './poolShell.ts';
import { hasRoom, takes } from './poolState.ts';

export function openPlace(shell: PoolShell, ticket: number, host: string, beside: boolean): Place {
  let turn: PromiseWithResolvers<void> | undefined;
  const wait = (): Promise<void> => {
    if (turn) return turn.promise;
    turn = Promise.withResolvers<void>();
    const { promise, resolve, reject } = turn;
    // Who gives up waiting does not hear of it.
    promise.catch(() => undefined);
    shell.waiters.set(ticket, { entered: resolve, away: reject });
    shell.apply({ is: 'enter', ticket });
    return promise;
  };
  return {
    host,
    hasRoom() {
      const engine = shell.state().engines.get(host)!;
      return beside ? takes(engine) : hasRoom(shell.state(), engine);
    },
    async enter(signal) {
      signal?.throwIfAborted();
      await orAborted(wait(), signal);
    },
    release() {
      shell.waiters.delete(ticket);
      shell.apply({ is: 'release', ticket });
    },
  };
}

async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return work;
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
