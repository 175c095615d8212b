/** A trial that has a slot, and whose image is ready or not available. */
import type { Admission } from '../places/trialImages.ts';
import type { PlannedTrial } from '../plannedTrial.ts';

export interface Turn {
  readonly trial: PlannedTrial;
  readonly slot: number;
  /** Undefined where no image has to be brought. */
  readonly admission: Admission | undefined;
  /** How long the trial waited for its image and this slot. */
  readonly waitedMs: number;
  /** Called once the agent is done, so that the container of the next trial can start. */
  readonly onAgentDone: () => void;
}
