/**
 * The life of a call that costs money, of any caller: the loop, a program behind the gateway, a judge. For example $0.40 of a budget of $1:
 *
 *   estimate  the model says what the call may cost: $0.40
 *   reserve   a share of the funds; where none is left the call waits, and says so
 *   begin     its row is on the disk before the request leaves, state in_flight
 *   end       the row gets usage and cost ($0.31), the tally counts them, the rest of the share is given back
 *   lose      its attempt ended first: the row says that it may have been billed, and the estimate counts as spent
 *
 * Each try of the call lives so; a failed try may have been billed too.
 */
import type { NanoDollars } from '../money.ts';
import type { CallListener, CallRecord } from './model.ts';
import { estimatedTokens } from './prices.ts';

/** Ends a reservation with what the call cost; null is unknown, and counts as the reservation. */
export type Settle = (costNano: NanoDollars | null) => void;

/** Money that a call takes its share of: the budget of a run, the limits of an attempt. */
export interface Funds {
  /** Calls `waits` whenever it has to wait. Rejects where the call cannot be paid any more, and with the signal's reason. */
  reserve(
    estimateNano: NanoDollars | null,
    signal: AbortSignal | undefined,
    waits: () => void,
  ): Promise<Settle>;
  /** Reserves for a model that does not ask before its calls. Throws where nothing is left. */
  reserveNow(estimateNano: NanoDollars | null): Settle;
}

const nothingToSettle: Settle = () => {};
export const UNLIMITED: Funds = { reserve: async () => nothingToSettle, reserveNow: () => nothingToSettle };

/** The sum of calls. */
export interface Tally {
  /** Known cost, with the estimate of an answered call whose cost is unknown: what limits are checked against. */
  readonly spentNano: NanoDollars;
  /** null once the cost of any call is unknown. */
  readonly costNano: NanoDollars | null;
  readonly tokens: number;
  count(
    call: Pick<CallRecord, 'costNano' | 'state' | 'usage' | 'requestBytes'>,
    estimateNano: NanoDollars | null,
  ): void;
}

export function createTally(): Tally {
  let spent = 0;
  let unknown = false;
  let tokens = 0;
  return {
    get spentNano() {
      return spent;
    },
    get costNano() {
      return unknown ? null : spent;
    },
    get tokens() {
      return tokens;
    },
    count(call, estimateNano) {
      spent += call.costNano ?? (call.state === 'ok' ? (estimateNano ?? 0) : 0);
      unknown ||= call.costNano === null;
      tokens += tokensOf(call);
    },
  };
}

/** Tokens as stated, else as many as the call may have used. A request that was never sent (a script, a recording) used none. */
function tokensOf({ usage, state, requestBytes }: Pick<CallRecord, 'usage' | 'state' | 'requestBytes'>) {
  if (usage) return usage.input + usage.cacheRead + usage.cacheWrite + usage.output;
  return state === 'ok' && requestBytes > 0 ? estimatedTokens(requestBytes, null) : 0;
}

export interface MeteredCall extends CallListener {
  wanted: NonNullable<CallListener['wanted']>;
  /** A request has left, and its answer is not here. */
  isOut(): boolean;
  /** No try is in flight, reserved or waiting: the next event belongs to a new call. */
  isOver(): boolean;
  /** The attempt has ended. An answer that still comes was paid for too, and gets into its row. */
  lose(): void;
}

/** `to` has the rows, or is the next listener on the way to them; `lost` hears of each try that was out when its attempt ended. */
export function meteredCall({
  funds,
  to,
  tally = createTally(),
  lost = () => {},
}: {
  readonly funds: Funds;
  readonly to: CallListener;
  readonly tally?: Tally;
  readonly lost?: (tried: number) => void;
}): MeteredCall {
  let waiting = false;
  let reserved: Settle | undefined;
  let ended = false;
  const out = new Map<number, { readonly settle: Settle; readonly estimateNano: NanoDollars | null }>();
  return {
    ...to,
    async wanted(estimateNano, signal, waits) {
      waiting = true;
      giveBack();
      try {
        reserved = await funds.reserve(estimateNano, signal, waits);
        if (ended) giveBack();
        await to.wanted?.(estimateNano, signal, waits);
      } finally {
        waiting = false;
      }
    },
    began(call) {
      const settle = reserved ?? funds.reserveNow(call.estimateNano);
      reserved = undefined;
      const onDisk = to.began(call);
      out.set(call.try, { settle, estimateNano: call.estimateNano });
      return onDisk;
    },
    ended(call) {
      const begun = out.get(call.try);
      if (!begun) throw new Error(`model call ${call.try} ended without having begun`);
      out.delete(call.try);
      to.ended(call);
      if (!ended) tally.count(call, begun.estimateNano);
      begun.settle(call.costNano);
    },
    isOut: () => out.size > 0,
    isOver: () => !waiting && reserved === undefined && out.size === 0,
    lose() {
      ended = true;
      giveBack();
      for (const [tried, { settle }] of out) {
        lost(tried);
        settle(null);
      }
    },
  };

  function giveBack(): void {
    reserved?.(0);
    reserved = undefined;
  }
}
