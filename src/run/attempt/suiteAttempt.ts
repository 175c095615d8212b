/** Attempts as the suite of their task sees them. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult } from '../../agent/contract.ts';
import type { Environment } from '../../environment/environment.ts';
import { nanoToDollars } from '../../money.ts';
import type { AgentPart, LedAttempt, OpenAttempt } from '../../suites/suite.ts';
import type { Run } from '../contract.ts';
import { orAbort } from '../control/stop.ts';
import { endingOfResult } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { AttemptJournal, Recorder } from '../record/attemptJournal.ts';

export const openAttempt = (
  run: Pick<Run, 'stepGrading'>,
  trial: PlannedTrial,
  journal: Pick<AttemptJournal, 'attemptId' | 'number' | 'connected' | 'phases' | 'note'>,
  environment: Environment,
  signal: AbortSignal,
): OpenAttempt => ({
  environment,
  beginPhase: (name) => journal.phases.begin(name),
  note: journal.note,
  gradeRequest: () => run.stepGrading.request(trial, journal, signal),
  orEnd: (work) => orAbort(work, signal),
});

/**
 * An attempt whose suite leads the agent through the task, in several runs of it. The runs are one attempt in the record: each counts from where
 * the one before ended. The limits are those of the attempt: the use of earlier runs counts.
 */
export function ledAttempt(
  open: OpenAttempt,
  parts: {
    readonly config: AgentConfig;
    readonly recorder: Recorder;
    readonly recordWork: (work: string) => void;
    readonly signal: AbortSignal;
    /** Monotonic milliseconds. */
    readonly now: () => number;
    /** One run of the agent, from its beginning to its end. */
    readonly runAgent: (
      instruction: string,
      config: AgentConfig,
      callbacks: AgentCallbacks,
      part: string,
    ) => Promise<AgentResult>;
  },
): LedAttempt {
  const { recorder, recordWork, signal, now } = parts;
  /** Time of the wall-clock limit that the runs used: waiting, and the gradings between them, are none of it. */
  let workedMs = 0;
  let steps = 0;
  let cost: number | null = 0;
  return {
    ...open,
    signal,
    recordWork,
    async runAgent(part) {
      const config = configFor(parts.config, recorder, steps, workedMs / 1000, part);
      const began = now();
      const result =
        'limit' in config
          ? usedUp(config.limit)
          : await parts.runAgent(
              part.instruction,
              config,
              recorder.callbacksFor(part.name, steps),
              part.name,
            );
      workedMs += result.workedMs ?? now() - began;
      steps += result.steps;
      cost = cost === null || result.costNano === null ? null : cost + result.costNano;
      const { reason, message } = endingOfResult(result);
      return { result: { ...result, steps, costNano: cost }, reason, message };
    },
  };
}

const usedUp = (limit: string): AgentResult => ({
  exitStatus: 'LimitsExceeded',
  limit,
  submission: '',
  messages: [],
  steps: 0,
  costNano: 0,
});

/** The rest of the attempt's limits. The time that the task gives is that of the part. */
function configFor(
  config: AgentConfig,
  recorder: Recorder,
  steps: number,
  elapsedS: number,
  { agentS: ownS = 0 }: AgentPart,
): AgentConfig | { readonly limit: string } {
  const used = {
    step_limit: ['steps', steps],
    cost_limit: ['cost', nanoToDollars(recorder.tally.spentNano)],
    token_limit: ['tokens', recorder.tally.tokens],
    wall_time_limit_seconds: ['wall_time', elapsedS],
  } as const;
  const left: Record<string, number> = {};
  for (const [key, [limit, amount]] of Object.entries(used)) {
    const most = config[key as keyof typeof used];
    if (most <= 0) continue;
    if (amount >= most) return { limit };
    left[key] = most - amount;
  }
  const leftS = left.wall_time_limit_seconds ?? 0;
  const limitS = ownS > 0 && leftS > 0 ? Math.min(ownS, leftS) : Math.max(ownS, leftS);
  return { ...config, ...left, wall_time_limit_seconds: limitS };
}
