/** What an attempt has used at the gateway, against its limits. 0 is off, for every limit. */
import type { CallListener, CallRecord, Usage } from '../model/model.ts';
import { type NanoDollars, nanoToDollars } from '../money.ts';
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
  /** Around the ledger's listener of one call. */
  listen(to: CallListener): CallListener;
  /** The limit that forbids a further call; a call without tools is no step where others have them. */
  reached(isStep: boolean): LimitEnd | null;
  /** The limit of money or tokens that was reached. */
  usedUp(): LimitEnd | null;
}

const tokensOf = (usage: Usage | null): number =>
  usage ? usage.input + usage.cacheRead + usage.cacheWrite + usage.output : 0;

export function createSessionMeter(limits: SessionSpec['limits']): SessionMeter {
  let steps = 0;
  let withoutTools = 0;
  let spent = 0;
  let unknown = false;
  let tokens = 0;
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
    listen(to) {
      let estimate: NanoDollars | null = null;
      return {
        wanted: async (amount, signal) => to.wanted?.(amount, signal),
        began(call) {
          estimate = call.estimateNano;
          to.began(call);
        },
        ended(call) {
          count(call, estimate);
          to.ended(call);
        },
        phase: (phase) => to.phase?.(phase),
      };
    },
    reached(isStep) {
      const used = isStep ? steps : steps > 0 ? 0 : withoutTools;
      return over(limits.steps, used) ? end('steps', `${limits.steps} steps`) : usedUp();
    },
    usedUp,
  };
}
