/**
 * Calls that wait: for their turn at the provider, for money, for their next try. When the attempt is over nobody pays for them any more;
 * those that are out at the provider are paid, so they are read to their end.
 */
import type { CallListener } from '../../model/model.ts';

/** A call that was not made, because the attempt ended before its turn. */
export class CallNotMade extends Error {
  override readonly name = 'AbortError';
}

interface WaitingCall {
  /** Fires when the call has to stop waiting, and when the session's signal does. */
  readonly signal: AbortSignal;
  /** Around its listener. `mayBeMade` throws where the call must not begin; it is asked before and after the wait for money. */
  listen(to: CallListener, mayBeMade: () => void): CallListener;
  left(): void;
}

export interface WaitingCalls {
  enter(signal: AbortSignal): WaitingCall;
  /** No call that waits is made. */
  end(message: string): void;
}

export function createWaitingCalls(): WaitingCalls {
  const waiting = new Set<AbortController>();
  return {
    enter(signal) {
      const mine = new AbortController();
      waiting.add(mine);
      return {
        signal: AbortSignal.any([signal, mine.signal]),
        left: () => void waiting.delete(mine),
        listen: (to, mayBeMade) => ({
          async wanted(amount, stop) {
            mayBeMade();
            await to.wanted?.(amount, stop);
            mayBeMade();
          },
          began(call) {
            to.began(call);
            waiting.delete(mine);
          },
          ended(call) {
            to.ended(call);
            waiting.add(mine);
          },
          phase: (phase) => to.phase?.(phase),
        }),
      };
    },
    end(message) {
      for (const one of waiting) one.abort(new CallNotMade(message));
    },
  };
}
