/** What an attempt has used at the gateway, against its limits. 0 is off, for every limit. */
import type { CallListener, CallRecord, Usage } from '../model/model.ts';
import { type NanoDollars, nanoToDollars } from '../money.ts';
import type { GatewayEnd, SessionSpec } from './gateway.ts';

type LimitEnd = Extract<GatewayEnd, { kind: 'limit' }>;

export interface SessionMeter {
  readonly steps: number;
  readonly costNano: NanoDollars | null;
  readonly spentNano: NanoDollars;
  readonly tokens: number;
  beginStep(): void;
  /** Around the ledger's listener of one call. */
  listen(to: CallListener): CallListener;
  /** The limit that forbids a further call; a call without tools is no step. */
  reached(isStep: boolean): LimitEnd | null;
}

const tokensOf = (usage: Usage | null): number =>
  usage ? usage.input + usage.cacheRead + usage.cacheWrite + usage.output : 0;

export function createSessionMeter(limits: SessionSpec['limits']): SessionMeter {
  let steps = 0;
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
    beginStep() {
      steps += 1;
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
      const over = (limit: number, used: number): boolean => 0 < limit && limit <= used;
      if (isStep && over(limits.steps, steps)) return end('steps', `${limits.steps} steps`);
      if (over(limits.costDollars, nanoToDollars(spent))) return end('cost', `$${limits.costDollars}`);
      return over(limits.tokens, tokens) ? end('tokens', `${limits.tokens} tokens`) : null;
    },
  };
}
