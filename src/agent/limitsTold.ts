/**
 * The limits of an attempt: which of them is reached, and what an agent may know of them (`agent.tell_limits`, `{{deadline}}`): people lost whole
 * runs to agents that did not. 0 is off, for every limit. Pure.
 */
import { type NanoDollars, nanoToDollars } from '../money.ts';
import type { AgentConfig } from './agentConfig.ts';

type Limits = Pick<AgentConfig, 'step_limit' | 'cost_limit' | 'wall_time_limit_seconds'>;

export interface CallLimits {
  readonly steps: number;
  readonly costDollars: number;
  readonly tokens: number;
}

export interface ReachedLimit {
  readonly limit: 'steps' | 'cost' | 'tokens';
  readonly message: string;
}

/** The limit that forbids a further call; null where none does. */
export function limitReached(
  limits: CallLimits,
  used: { readonly steps: number; readonly spentNano: NanoDollars; readonly tokens: number },
): ReachedLimit | null {
  const over = (limit: number, amount: number): boolean => 0 < limit && limit <= amount;
  const end = (limit: ReachedLimit['limit'], what: string): ReachedLimit => ({
    limit,
    message: `the limit of ${what} was reached`,
  });
  if (over(limits.steps, used.steps)) return end('steps', `${limits.steps} steps`);
  if (over(limits.costDollars, nanoToDollars(used.spentNano))) return end('cost', `$${limits.costDollars}`);
  return over(limits.tokens, used.tokens) ? end('tokens', `${limits.tokens} tokens`) : null;
}

interface Used {
  readonly steps: number;
  readonly dollars: number;
  readonly seconds: number;
}

const dollarText = (amount: number): string => `$${amount.toFixed(2)}`;

/** A line below an observation; '' where nothing is limited. */
export function usedOfLimits(limits: Limits, used: Used): string {
  const { step_limit: steps, cost_limit: cost, wall_time_limit_seconds: seconds } = limits;
  const parts = [
    ...(steps > 0 ? [`step ${used.steps} of ${steps}`] : []),
    ...(cost > 0 ? [`${dollarText(used.dollars)} of ${dollarText(cost)}`] : []),
    ...(seconds > 0 ? [`${Math.floor(used.seconds)} of ${seconds} seconds`] : []),
  ];
  return parts.length === 0 ? '' : `\n[used: ${parts.join(', ')}]`;
}

/** A paragraph below a program's task; '' where nothing is limited. */
export function limitsAhead(limits: Limits, deadline: string): string {
  const { step_limit: steps, cost_limit: cost, wall_time_limit_seconds: seconds } = limits;
  const parts = [
    ...(steps > 0 ? [`${steps} calls of your model`] : []),
    ...(cost > 0 ? [dollarText(cost)] : []),
    ...(seconds > 0 ? [`${seconds} seconds, until ${deadline}`] : []),
  ];
  if (parts.length === 0) return '';
  return `\n\nYou have at most ${new Intl.ListFormat('en-GB').format(parts)}. What is in the work tree then is your answer.`;
}

/** '' without a limit. */
export const stepsLeft = ({ step_limit: steps }: Limits, used: number): number | '' =>
  steps > 0 ? Math.max(0, steps - used) : '';

/** The time at which the limit is over if no provider keeps the agent waiting; '' without one. */
export const deadlineOf = ({ wall_time_limit_seconds: seconds }: Limits, nowMs: number): string =>
  seconds > 0 ? new Date(nowMs + seconds * 1000).toISOString() : '';
