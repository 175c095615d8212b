/** The end of an attempt in its environment: its work is captured, then the environment is removed, each within a limit of its own. */
import type { RunConfig } from '../../config/runConfig.ts';
import type { CapturedPatch, Environment } from '../../environment/environment.ts';
import { StorageError } from '../../store/open.ts';
import { orAbort } from '../control/orAbort.ts';
import type { PhaseTracker } from '../control/phases.ts';
import type { StopLadder } from '../control/stop.ts';
import type { Ending } from '../exit.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';

export interface LeavePorts {
  readonly journal: Pick<AttemptJournal, 'phases' | 'note'>;
  readonly stall: Pick<RunConfig['stall'], 'capture_s' | 'stop_s'>;
  readonly stop: Pick<StopLadder, 'captureEnds' | 'graceEnds'>;
  readonly warn: (text: string, data?: Record<string, unknown>) => void;
}

/** Also these ends wait for something: an hour is longer than any of them takes. */
const WITHOUT_LIMIT_S = 3600;

/** Whatever the exit reason, the work is captured; only a container that is gone has nothing to give. */
export async function captureWork(
  { journal, stall, stop, warn }: LeavePorts,
  environment: Environment,
  ending: Ending,
): Promise<CapturedPatch | null> {
  if (ending.reason === 'env_died') return null;
  journal.phases.begin('capture');
  const limit = AbortSignal.timeout(Math.max(1, stall.capture_s || WITHOUT_LIMIT_S) * 1000);
  try {
    return await orAbort(orAbort(environment.capturePatch(), limit), stop.captureEnds);
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const { message } = error as Error;
    journal.note(`the work could not be captured: ${message}`);
    warn('capture failed', { message });
    return null;
  }
}

/** A daemon that does not answer must not hold the slot: the factory's own close waits for the removal once more. */
export async function removeEnvironment(
  { journal, stall, stop, warn }: LeavePorts,
  environment: Environment,
): Promise<void> {
  beginStop(journal.phases);
  const limitS = stall.stop_s || WITHOUT_LIMIT_S;
  try {
    await orAbort(orAbort(environment.close(), AbortSignal.timeout(limitS * 1000)), stop.graceEnds);
  } catch {
    journal.note(
      stop.graceEnds.aborted
        ? 'the container was not gone when the grace of the interrupt was over; "swebatch clean" removes it'
        : `the container was not gone after ${limitS} s (run.stall.stop_s); "swebatch clean" removes it`,
    );
    warn('the container could not be removed in time');
  }
}

/** A phase that cannot be written down keeps no container alive. What broke the record has been thrown already, or will be soon. */
function beginStop(phases: PhaseTracker): void {
  try {
    phases.begin('stop');
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
}
