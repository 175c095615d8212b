/** Too often in a row: malformed replies, empty replies, commands that time out. */
import type { CommandResult } from '../../environment/environment.ts';
import type { AgentConfig } from '../agentConfig.ts';
import type { Behaviour } from '../compat/behaviour.ts';
import {
  CommandTimeoutsExceeded,
  EmptyReply,
  EmptyResponsesExceeded,
  FormatError,
  type NonTerminatingException,
  RepeatedFormatError,
  type TerminatingException,
} from './exceptions.ts';

export interface Streaks {
  /** A command ran: the reply was good. */
  ran(result: Pick<CommandResult, 'timedOut'>): void;
  /** The end, when this was once too often. */
  after(error: NonTerminatingException): TerminatingException | null;
}

export function createStreaks(config: AgentConfig, behaviour: Pick<Behaviour, 'capFormatErrors'>): Streaks {
  let [format, empty, timeouts] = [0, 0, 0];
  const formatCap = behaviour.capFormatErrors ? config.max_consecutive_format_errors : 0;
  const reached = (cap: number, count: number): boolean => 0 < cap && cap <= count;
  return {
    ran(result) {
      format = 0;
      empty = 0;
      timeouts = result.timedOut ? timeouts + 1 : 0;
    },
    after(error) {
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
