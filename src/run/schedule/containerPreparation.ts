/**
 * While a slot captures and removes, the container of the next trial is started: at most one for each slot that is being emptied, so that a
 * run never has more than twice its slots. A container that is no longer wanted is removed at once.
 */
import { nextAttemptNumber } from '../../store/records/trials.ts';
import type { Run } from '../contract.ts';
import type { ImageAdmission } from '../places/trialImages.ts';
import { type PlannedTrial, startRequestOf } from '../plannedTrial.ts';

export type ContainerPreparation = ReturnType<typeof createContainerPreparation>;

interface Waiting {
  readonly trial: PlannedTrial;
  readonly priority: number;
  begun: boolean;
}

export function createContainerPreparation({ store, row, stop, budget, disk, suite }: Run) {
  const waiting: Waiting[] = [];
  let wanted = new AbortController();

  const begin = ({ trial }: Waiting) => {
    try {
      const request = startRequestOf(trial, row.name, nextAttemptNumber(store, trial.id), suite.variables);
      trial.arm.environmentFactory.prepare({ ...request, signal: wanted.signal });
    } catch {
      // The slot that takes the trial gets the same error and ends it with a reason (observed: tests/run/schedule/containerPreparation.test.ts).
    }
  };

  return {
    /** The trial waits for a slot, behind all of the same or a higher priority. */
    waits(trial: PlannedTrial, priority: number, admission?: ImageAdmission) {
      // The slot will end it with the reason (observed: tests/run/schedule/containerPreparation.test.ts).
      if (admission?.failure) return;
      // Trials nearly always come in their order: looked for from the end, or 50,000 of them would take minutes.
      const before = waiting.findLastIndex((other) => other.priority >= priority);
      waiting.splice(before + 1, 0, { trial, priority, begun: false });
    },
    /** The trial has its slot, or will never have one. */
    taken(trial: PlannedTrial) {
      const at = waiting.findIndex((other) => other.trial.id === trial.id);
      if (at >= 0) waiting.splice(at, 1);
    },
    slotEmptying() {
      if (stop.why || budget.exhausted() || disk?.low) return;
      const next = waiting.find((other) => !other.begun);
      if (!next) return;
      next.begun = true;
      begin(next);
    },
    /** Nothing starts for now; prepared containers are removed. */
    giveUp() {
      wanted.abort(new Error('nothing is started at the moment'));
      wanted = new AbortController();
      for (const other of waiting) other.begun = false;
    },
  };
}
