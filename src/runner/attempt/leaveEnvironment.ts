/** The end of an attempt in its container: the work is captured and the container goes, each within a limit of its own. */

import type { CapturedPatch, Environment } from '../../environment/environment.ts';
import { StorageError } from '../../store/open.ts';
import { orAbort } from '../control/orAbort.ts';
import type { PhaseTracker } from '../control/phases.ts';
import type { TrialLabel } from '../events.ts';
import type { Ending } from '../exit.ts';
import type { Batch } from '../runAttempt.ts';

/** Takes the work home whatever the exit reason; only a container that is gone has nothing to give. */
export async function capture(
  environment: Environment,
  ending: Ending,
  phases: PhaseTracker,
  batch: Batch,
  label: TrialLabel,
  notes: string[],
): Promise<CapturedPatch | null> {
  if (ending.reason === 'env_died') return null;
  phases.begin('capture');
  const limit = AbortSignal.timeout(Math.max(1, batch.config.stall.capture_s || 3600) * 1000);
  try {
    return await orAbort(orAbort(environment.capturePatch(), limit), batch.stop.captureEnds);
  } catch (error) {
    if (error instanceof StorageError) throw error;
    notes.push(`the work could not be captured: ${(error as Error).message}`);
    batch.log('warn', `${label.instanceId}: capture failed`, { message: (error as Error).message });
    return null;
  }
}

/** A daemon that does not answer must not hold the slot: the factory's own close waits for the removal once more. */
export async function closeInTime(
  environment: Environment,
  batch: Batch,
  label: TrialLabel,
  notes: string[],
): Promise<void> {
  const limitS = batch.config.stall.stop_s || 3600;
  const { graceEnds } = batch.stop;
  try {
    await orAbort(orAbort(environment.close(), AbortSignal.timeout(limitS * 1000)), graceEnds);
  } catch {
    notes.push(
      graceEnds.aborted
        ? 'the container was not gone when the grace of the interrupt was over; "swebatch clean" removes it'
        : `the container was not gone after ${limitS} s (run.stall.stop_s); "swebatch clean" removes it`,
    );
    batch.log('warn', `${label.instanceId}: the container could not be removed in time`);
  }
}
