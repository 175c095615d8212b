/**
 * Agents that measure the runner and not a model: the oracle applies the solution that its task brings, nop does nothing. A task that the
 * oracle does not solve cannot be solved here; one that nop solves says nothing about anybody.
 */
import { EnvironmentError } from '../environment/environment.ts';
import type { AgentKind, AgentParts, AgentResult, SolutionEnd } from './contract.ts';

/** The oracle takes no step, and costs nothing. */
const DONE: AgentResult = { exitStatus: 'Submitted', submission: '', messages: [], steps: 0, costNano: 0 };

function resultOf({ timedOut, submission }: SolutionEnd): AgentResult {
  if (timedOut) return { ...DONE, exitStatus: 'TimeExceeded', limit: 'wall_time' };
  return submission === undefined
    ? DONE
    : { ...DONE, submission, submissionBytes: new TextEncoder().encode(submission) };
}

async function applySolution(parts: AgentParts): Promise<AgentResult> {
  const { instanceId, solution, environment, config, callbacks, signal } = parts;
  if (!solution) throw new EnvironmentError('setup_failed', `${instanceId} brings no solution`);
  // A phase of its own: only the time of the task limits it.
  callbacks?.onPhase?.({ instanceId, step: 0 }, 'solution');
  const end = await solution.apply(environment, { timeoutS: config.wall_time_limit_seconds, signal });
  callbacks?.onNote?.(end.says);
  return resultOf(end);
}

export const oracle: AgentKind = {
  solves: true,
  leavesPatch: true,
  asksItself: true,
  create: (parts) => ({ run: () => applySolution(parts) }),
};

export const nop: AgentKind = {
  leavesPatch: true,
  asksItself: true,
  create: () => ({ run: async () => DONE }),
};
