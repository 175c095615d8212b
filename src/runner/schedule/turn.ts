/** A trial whose turn has come: it has a slot, and its image is there or cannot be had. */
import type { Admission } from '../images/trialImages.ts';
import type { PlannedTrial } from '../plannedTrial.ts';

export interface Turn {
  readonly trial: PlannedTrial;
  readonly slot: number;
  /** Undefined where no image has to be brought. */
  readonly admission: Admission | undefined;
  /** How long the trial waited for its image and this slot. */
  readonly waitedMs: number;
  /** To be called once the agent is done: what follows needs no agent, so the next trial's container can be on its way. */
  readonly onAgentDone: () => void;
}
