/**
 * A waiting room for shares of something: a rate, a budget, a turn. In order of arrival. Each caller passes `waits`, which is called while the
 * caller waits, so that the record shows a wait and no work.
 */
import { sleep } from './timer.ts';

/** A share, or how long until there may be one; undefined: until something is given back. */
export type Offer<Share> = { readonly share: Share } | { readonly laterMs: number | undefined };

interface Waiter<Ask, Share> {
  readonly ask: Ask;
  readonly waits: () => void;
  readonly turn: PromiseWithResolvers<Share>;
}

export type Room<Ask, Share> = ReturnType<typeof createRoom<Ask, Share>>;

/** `take` gives a share or says later. An error of `take` ends the wait of that asker alone. */
export function createRoom<Ask, Share>(
  take: (ask: Ask) => Offer<Share>,
  rest: (ms: number, signal: AbortSignal) => Promise<void> = sleep,
) {
  const line = new Set<Waiter<Ask, Share>>();
  let alarm: AbortController | undefined;

  /** An alarm that rings too early finds no share and is set again. */
  function lookAgainAfter(ms: number | undefined): void {
    if (ms === undefined) {
      alarm?.abort();
      alarm = undefined;
      return;
    }
    if (alarm) return;
    const mine = new AbortController();
    alarm = mine;
    const ring = () => {
      if (alarm === mine) alarm = undefined;
      if (!mine.signal.aborted) look(true);
    };
    rest(ms, mine.signal).then(ring, ring);
  }

  /** Something was given back, or a limit has changed. `progress`: those who still wait are told that their wait goes on for a reason. */
  function look(progress = false): void {
    let laterMs: number | undefined;
    for (const one of line) {
      try {
        const offer = take(one.ask);
        if (!('share' in offer)) {
          laterMs = offer.laterMs;
          break;
        }
        line.delete(one);
        one.turn.resolve(offer.share);
      } catch (error) {
        line.delete(one);
        one.turn.reject(error);
      }
    }
    lookAgainAfter(laterMs);
    if (progress) for (const one of line) one.waits();
  }

  return {
    /** `waits` is called before it has to wait, and again when the line moves. Rejects with the signal's reason. */
    async enter(ask: Ask, signal: AbortSignal | undefined, waits: () => void): Promise<Share> {
      signal?.throwIfAborted();
      const offer = line.size === 0 ? take(ask) : undefined;
      if (offer && 'share' in offer) return offer.share;
      waits();
      signal?.throwIfAborted();
      const one = { ask, waits, turn: Promise.withResolvers<Share>() };
      const leave = () => {
        line.delete(one);
        one.turn.reject(signal?.reason);
        look();
      };
      signal?.addEventListener('abort', leave, { once: true });
      line.add(one);
      if (offer) lookAgainAfter(offer.laterMs);
      try {
        return await one.turn.promise;
      } finally {
        signal?.removeEventListener('abort', leave);
      }
    },
    look,
    waiting: () => line.size,
  };
}

/** So many pieces of work at one time; `waits` is called by those that wait for their turn. */
export function createTurnstile(most: number) {
  let out = 0;
  const room = createRoom<void, () => void>(() => {
    if (out >= most) return { laterMs: undefined };
    out += 1;
    return {
      share: () => {
        out -= 1;
        room.look(true);
      },
    };
  });
  return async <T>(
    work: () => Promise<T>,
    signal: AbortSignal | undefined,
    waits: () => void,
  ): Promise<T> => {
    const leave = await room.enter(undefined, signal, waits);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
export type Turnstile = ReturnType<typeof createTurnstile>;
