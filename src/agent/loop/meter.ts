/**
 * Steps, money and tokens of an attempt of the loop, against its limits; and faults that come too often in a row: malformed replies, empty replies,
 * commands that time out.
 */
import type { CommandResult } from '../../environment/environment.ts';
import { createTally, meteredCall, UNLIMITED } from '../../model/meteredCall.ts';
import type { CallListener, ModelReply } from '../../model/model.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { Behaviour } from '../compat/behaviour.ts';
import { limitReached } from '../limitsTold.ts';
import {
  CommandTimeoutsExceeded,
  EmptyReply,
  EmptyResponsesExceeded,
  FormatError,
  LimitsExceeded,
  type NonTerminatingException,
  RepeatedFormatError,
  type TerminatingException,
} from './exceptions.ts';

export function createMeter() {
  const tally = createTally();
  let steps = 0;
  let reported = false;
  return {
    /** Queries begun. */
    get steps() {
      return steps;
    },
    get spentNano() {
      return tally.spentNano;
    },
    get costNano() {
      return tally.costNano;
    },
    get tokens() {
      return tally.tokens;
    },
    beginStep(): void {
      steps += 1;
      reported = false;
    },
    /** A listener around the recorder's: every try counts, also failed and billed ones. */
    listen(to: CallListener): CallListener {
      const call = meteredCall({ funds: UNLIMITED, to, tally });
      return {
        ...call,
        ended(record) {
          reported = true;
          call.ended(record);
        },
      };
    },
    /** Counts replies of models that do not report their calls. */
    countReply(reply: ModelReply): void {
      if (!reported) tally.count({ ...reply, state: 'ok', requestBytes: 0 }, null);
    },
    check({ step_limit, cost_limit, token_limit }: Limits): void {
      const limits = { steps: step_limit, costDollars: cost_limit, tokens: token_limit };
      const { spentNano, tokens } = tally;
      const end = limitReached(limits, { steps, spentNano, tokens });
      if (end) throw new LimitsExceeded(end.limit, end.message);
    },
  };
}

type Limits = Pick<AgentConfig, 'step_limit' | 'cost_limit' | 'token_limit'>;

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
