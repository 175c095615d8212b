/**
 * While a slot captures and removes, the container of the trial that comes next is begun: at most one for each slot that is being
 * emptied, so that a run never holds more than twice its slots. What is begun and not wanted any more is given up at once.
 */
import type { Place } from '../../environment/environment.ts';
import { nextAttemptNumber, type TrialRow } from '../../store/records/trials.ts';
import type { Admission } from '../images/trialImages.ts';
import type { Batch } from '../runAttempt.ts';
import { startRequestOf } from './startRequest.ts';

export interface StartAhead {
  /** The trial waits for a slot, behind all of the same or a higher priority. */
  waits(trial: TrialRow, priority: number, admitted?: Admission): void;
  /** The trial has its slot, or will never have one. */
  taken(trial: TrialRow): void;
  slotEmptying(): void;
  /** Nothing is started for now: what was begun ahead goes. */
  giveUp(): void;
}

interface Waiting {
  readonly trial: TrialRow;
  readonly priority: number;
  /** The engine that has its image, with several engines. */
  readonly place: Place | undefined;
  begun: boolean;
}

export function createStartAhead(batch: Batch): StartAhead {
  const waiting: Waiting[] = [];
  let wanted = new AbortController();

  const begin = ({ trial, place }: Waiting) => {
    try {
      const request = startRequestOf(batch, trial, nextAttemptNumber(batch.store, trial.id));
      const { environmentFactory } = batch.arms.get(trial.arm_id)!;
      environmentFactory.prepare?.({ ...request, ...(place && { place }), signal: wanted.signal });
    } catch {
      // The slot that takes the trial meets the same and ends it with a reason.
    }
  };

  return {
    waits(trial, priority, admitted) {
      // The slot ends it with the reason.
      if (admitted?.failure) return;
      const behind = waiting.findIndex((other) => other.priority < priority);
      waiting.splice(behind < 0 ? waiting.length : behind, 0, {
        trial,
        priority,
        place: admitted?.place,
        begun: false,
      });
    },
    taken(trial) {
      const at = waiting.findIndex((other) => other.trial.id === trial.id);
      if (at >= 0) waiting.splice(at, 1);
    },
    slotEmptying() {
      if (batch.stop.why || batch.budget.exhausted() || batch.disk?.low) return;
      const next = waiting.find((other) => !other.begun);
      if (!next) return;
      next.begun = true;
      begin(next);
    },
    giveUp() {
      wanted.abort(new Error('nothing is started at the moment'));
      wanted = new AbortController();
      for (const other of waiting) other.begun = false;
    },
  };
}
