/** What an attempt has used at the gateway, against its limits. 0 is off, for every limit. */
import type { CallListener, CallRecord, Usage } from '../../model/model.ts';
import { type NanoDollars, nanoToDollars } from '../../money.ts';
import type { GatewayEnd, SessionSpec } from './gateway.ts';

type LimitEnd = Extract<GatewayEnd, { kind: 'limit' }>;

export interface SessionMeter {
  /** Calls with tools. */
  readonly steps: number;
  /** The same, or calls without tools where there were no others: some programs ask for commands in plain text. */
  readonly turns: number;
  readonly costNano: NanoDollars | null;
  readonly spentNano: NanoDollars;
  readonly tokens: number;
  begin(isStep: boolean): void;
  /** The provider broke the call off: what its program asks again is the same step. */
  takeBack(isStep: boolean): void;
  /** Around the ledger's listener of one call, which may use so many tokens. `left` is told when the call is over, made or not. */
  listen(to: CallListener, tokens: number): { readonly listener: CallListener; left(): void };
  /** The limit that forbids a further call; a call without tools is no step where others have them. */
  reached(isStep: boolean): LimitEnd | null;
  /** The limit of money or tokens that was reached. */
  usedUp(): LimitEnd | null;
}

const tokensOf = (usage: Usage | null): number =>
  usage ? usage.input + usage.cacheRead + usage.cacheWrite + usage.output : 0;

/** What a call may use, as far as that can be said before it. */
interface Amount {
  readonly nano: NanoDollars;
  readonly tokens: number;
}

/**
 * Calls that are out together could pass a limit together, so one goes out only where its estimate fits beside what is used and what is out.
 * One alone always may: the limit itself is checked elsewhere.
 */
function createRoom(limits: SessionSpec['limits'], used: () => Amount) {
  const out = new Set<Amount>();
  const waiting = new Set<() => void>();
  const within = (limit: number, part: (amount: Amount) => number, amount: Amount): boolean =>
    limit <= 0 || [used(), ...out, amount].reduce((sum, one) => sum + part(one), 0) <= limit;
  const fits = (amount: Amount): boolean =>
    out.size === 0 ||
    (within(limits.costDollars, ({ nano }) => nanoToDollars(nano), amount) &&
      within(limits.tokens, ({ tokens }) => tokens, amount));
  return {
    /** Waits for its turn; rejects with the signal's reason. The result gives the room back. */
    async take(amount: Amount, signal: AbortSignal | undefined, onWait: () => void): Promise<() => void> {
      while (!fits(amount)) {
        signal?.throwIfAborted();
        onWait();
        const turn = Promise.withResolvers<void>();
        const leave = (): void => turn.reject(signal?.reason);
        signal?.addEventListener('abort', leave, { once: true });
        waiting.add(turn.resolve);
        try {
          await turn.promise;
        } finally {
          waiting.delete(turn.resolve);
          signal?.removeEventListener('abort', leave);
        }
      }
      out.add(amount);
      return () => {
        if (!out.delete(amount)) return;
        for (const wake of waiting) wake();
      };
    },
  };
}

/** A call's listener, which takes room before the call and gives it back after it. */
function listening(
  to: CallListener,
  mayUse: number,
  room: ReturnType<typeof createRoom>,
  count: (call: CallRecord, estimate: NanoDollars | null) => void,
): { listener: CallListener; left(): void } {
  let estimate: NanoDollars | null = null;
  let left = (): void => {};
  const listener: CallListener = {
    async wanted(amount, signal) {
      const asked = { nano: amount ?? 0, tokens: mayUse };
      left = await room.take(asked, signal, () => to.phase?.('rate_wait'));
      await to.wanted?.(amount, signal);
    },
    began(call) {
      estimate = call.estimateNano;
      return to.began(call);
    },
    ended(call) {
      count(call, estimate);
      left();
      to.ended(call);
    },
    phase: (phase) => to.phase?.(phase),
  };
  return { listener, left: () => left() };
}

export function createSessionMeter(limits: SessionSpec['limits']): SessionMeter {
  let steps = 0;
  let withoutTools = 0;
  let spent = 0;
  let unknown = false;
  let tokens = 0;
  const room = createRoom(limits, () => ({ nano: spent, tokens }));
  const count = ({ costNano, state, usage }: CallRecord, estimate: NanoDollars | null): void => {
    spent += costNano ?? (state === 'ok' ? (estimate ?? 0) : 0);
    unknown ||= costNano === null;
    tokens += tokensOf(usage);
  };
  const end = (limit: LimitEnd['limit'], what: string): LimitEnd => ({
    kind: 'limit',
    limit,
    message: `the limit of ${what} was reached`,
  });
  const over = (limit: number, used: number): boolean => 0 < limit && limit <= used;
  const usedUp = (): LimitEnd | null => {
    if (over(limits.costDollars, nanoToDollars(spent))) return end('cost', `$${limits.costDollars}`);
    return over(limits.tokens, tokens) ? end('tokens', `${limits.tokens} tokens`) : null;
  };
  return {
    get steps() {
      return steps;
    },
    get costNano() {
      return unknown ? null : spent;
    },
    get spentNano() {
      return spent;
    },
    get tokens() {
      return tokens;
    },
    get turns() {
      return steps > 0 ? steps : withoutTools;
    },
    begin(isStep) {
      if (isStep) steps += 1;
      else withoutTools += 1;
    },
    takeBack(isStep) {
      if (isStep) steps -= 1;
      else withoutTools -= 1;
    },
    listen: (to, mayUse) => listening(to, mayUse, room, count),
    reached(isStep) {
      const used = isStep ? steps : steps > 0 ? 0 : withoutTools;
      return over(limits.steps, used) ? end('steps', `${limits.steps} steps`) : usedUp();
    },
    usedUp,
  };
}
