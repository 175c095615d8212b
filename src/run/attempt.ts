/**
 * One attempt of a trial: start, work, settle. The only catch that swallows is here: every error of one instance becomes its exit reason
 * and does not affect the others. Only a storage error gets through, because a run without a record is worthless.
 */
import { stackOf } from '../base/text/sourceLines.ts';
import type { Environment } from '../environment/environment.ts';
import type { EvaluationResult } from '../grading/gradingFrame.ts';
import { StorageError } from '../store/open.ts';
import type { Settlement } from '../store/records/trials.ts';
import { type LeftWork, leaveEnvironment, NOTHING_LEFT, startEnvironment } from './attempt/environment.ts';
import { runAgent } from './attempt/runAgent.ts';
import type { Run } from './contract.ts';
import {
  type AgentEnd,
  type Ending,
  endingOfError,
  endingOfResult,
  patchOfAttempt,
  settlementOf,
  withEarlierEnds,
} from './exit.ts';
import { openJournal } from './record/attemptJournal.ts';
import type { Turn } from './schedule/trialQueue.ts';

export interface AttemptOutcome {
  readonly attemptId: number;
  readonly ending: Ending;
  readonly settlement: Settlement;
  readonly patch: string;
  /** The image of an end state; null where none is kept. */
  readonly work: string | null;
  /** The verdict of tests that ran in the attempt; the record has it already. */
  readonly verdict: EvaluationResult | null;
}

/** Null when another process took the trial or ended the attempt. `cancelled` fires when a person cancels the trial. */
export async function runAttempt(
  run: Run,
  turn: Turn,
  cancelled: AbortSignal,
): Promise<AttemptOutcome | null> {
  const { trial } = turn;
  // Fires when a phase makes no progress or cannot be recorded.
  const broken = new AbortController();
  const signal = AbortSignal.any([broken.signal, run.stop.attempts, cancelled]);
  const journal = openJournal(run, turn, broken);
  if (!journal) return null;

  let environment: Environment | null = null;
  let end: AgentEnd | null = null;
  let left: LeftWork = NOTHING_LEFT;
  try {
    environment = await startEnvironment(run, turn, journal, signal);
    const result = await runAgent(run, trial, journal, environment, signal);
    end = { ending: endingOfResult(result), result };
  } catch (error) {
    if (error instanceof StorageError) throw error;
    // Whatever ran once the environment was up is the agent's doing.
    end = { ending: endingOfError(error, signal, environment !== null), result: null };
    journal.warn(end.ending.reason, { message: end.ending.message, stack: stackOf(error) });
  } finally {
    if (environment) left = await leaveEnvironment(run, turn, journal, environment, end, signal);
  }
  journal.phases.end();

  const lastEnding = left.lost === null ? end.ending : endingOfError(left.lost, signal, true);
  const ending = withEarlierEnds(lastEnding, journal.endedByAgentBefore());
  const { submitted, patch } = patchOfAttempt(run.config.patch, trial.arm, { ...end, ending }, left.captured);
  const settlement = settlementOf(run.retry, trial.id, ending);
  const steps = end.result?.steps;
  if (!journal.end({ ending, steps, submitted, patch, settlement, left })) return null;
  return {
    ...{ attemptId: journal.attemptId, ending, settlement },
    ...{ patch: patch.modelPatch, work: left.work, verdict: left.verdict },
  };
}
