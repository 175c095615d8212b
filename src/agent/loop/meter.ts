/**
 * Counts what an attempt has used, and what went wrong too often in a row (malformed replies, empty replies, commands that time out), and says
 * when a limit is reached. 0 is off, for every limit.
 */
import type { CommandResult } from '../../environment/environment.ts';
import type { CallListener, CallRecord, ModelReply } from '../../model/model.ts';
import { tokensOfCall } from '../../model/prices.ts';
import { type NanoDollars, nanoToDollars } from '../../money.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { Behaviour } from '../compat/behaviour.ts';
import {
  CommandTimeoutsExceeded,
  EmptyReply,
  EmptyResponsesExceeded,
  FormatError,
  type Limit,
  LimitsExceeded,
  type NonTerminatingException,
  RepeatedFormatError,
  type TerminatingException,
} from './exceptions.ts';

export function createMeter() {
  let steps = 0;
  let spent = 0;
  let unknown = false;
  let tokens = 0;
  let reported = false;

  const count = (cost: NanoDollars | null, estimate: NanoDollars | null, used: number): void => {
    spent += cost ?? estimate ?? 0;
    unknown ||= cost === null;
    tokens += used;
  };

  return {
    /** Queries begun. */
    get steps() {
      return steps;
    },
    /** Known cost, with estimates where a call's cost is unknown: what limits are checked against. */
    get spentNano() {
      return spent;
    },
    /** null once the cost of any call is unknown. */
    get costNano(): NanoDollars | null {
      return unknown ? null : spent;
    },
    get tokens() {
      return tokens;
    },
    beginStep(): void {
      steps += 1;
      reported = false;
    },
    /** Wraps the recorder's listener: every try counts, also failed and billed ones. */
    listen(to: CallListener): CallListener {
      const estimates = new Map<number, NanoDollars | null>();
      return {
        ...to,
        began(call) {
          estimates.set(call.try, call.estimateNano);
          return to.began(call);
        },
        ended(call: CallRecord) {
          reported = true;
          const estimate = call.state === 'ok' ? (estimates.get(call.try) ?? null) : 0;
          count(call.costNano, estimate, tokensOfCall(call));
          to.ended(call);
        },
      };
    },
    /** For models that do not report their calls. */
    countReply(reply: ModelReply): void {
      if (!reported) count(reply.costNano, null, tokensOfCall({ ...reply, state: 'ok', requestBytes: 0 }));
    },
    check(config: Pick<AgentConfig, 'step_limit' | 'cost_limit' | 'token_limit'>): void {
      const over = (limit: number, used: number): boolean => 0 < limit && limit <= used;
      if (over(config.step_limit, steps)) throw reached('steps', `${config.step_limit} steps`);
      if (over(config.cost_limit, nanoToDollars(spent))) throw reached('cost', `$${config.cost_limit}`);
      if (over(config.token_limit, tokens)) throw reached('tokens', `${config.token_limit} tokens`);
    },
  };
}

const reached = (limit: Limit, what: string): LimitsExceeded =>
  new LimitsExceeded(limit, `the limit of ${what} was reached`);

export type Streaks = ReturnType<typeof createStreaks>;

export function createStreaks(config: AgentConfig, behaviour: Pick<Behaviour, 'capFormatErrors'>) {
  let [format, empty, timeouts] = [0, 0, 0];
  const formatCap = behaviour.capFormatErrors ? config.max_consecutive_format_errors : 0;
  const reached = (cap: number, count: number): boolean => 0 < cap && cap <= count;
  return {
    /** A command ran: the reply was good. */
    ran(result: Pick<CommandResult, 'timedOut'>): void {
      format = 0;
      empty = 0;
      timeouts = result.timedOut ? timeouts + 1 : 0;
    },
    /** The end, when this was once too often. */
    after(error: NonTerminatingException): TerminatingException | null {
      if (error instanceof EmptyReply) {
        empty += 1;
        if (reached(config.max_consecutive_empty_replies, empty))
          return new EmptyResponsesExceeded(`${empty} empty responses in a row`);
      } else empty = 0;
      if (error instanceof FormatError) {
        format += 1;
        if (reached(formatCap, format))
          return new RepeatedFormatError(`${format} malformed replies in a row`);
      }
      if (reached(config.max_consecutive_timeouts, timeouts))
        return new CommandTimeoutsExceeded(`${timeouts} commands in a row timed out`);
      return null;
    },
  };
}
