/**
 * What a run consists of while a process works on it. run.ts opens all of it, in one place, and closes it; the queue, the attempts and their
 * records get the whole.
 */
import type { RunConfig } from '../config/configSchema.ts';
import type { SuspicionRule } from '../grading/suspicion/commands.ts';
import type { ArmRuntime } from './arms.ts';
import type { RunBudget } from './control/budget.ts';
import type { DiskFloor } from './control/diskFloor.ts';
import type { RetryPolicy } from './exit.ts';
import type { Grader } from './grader/grader.ts';
import type { GradedRun, StepGrading } from './grader/gradeTrial.ts';
import type { TrialImages } from './places/trialImages.ts';
import type { PlannedTrial } from './plannedTrial.ts';
import type { Exporter } from './record/exportRun.ts';
import type { Log } from './record/runLog.ts';

/** With the record, the events, the stop ladder, the instances and the engine, which gradings need too. */
export interface Run extends GradedRun {
  readonly config: RunConfig;
  /** host:boot:pid:start of this process, as it stands in trials.lease_owner. */
  readonly leaseOwner: string;

  readonly log: Log;
  readonly budget: RunBudget;
  readonly retry: RetryPolicy;
  /** Monotonic milliseconds. Neither the sleep of this machine nor an outage of the engine counts against a limit. */
  readonly now: () => number;

  readonly arms: ReadonlyMap<number, ArmRuntime>;
  /** What is to be done in this sitting, in the order in which it starts. */
  readonly trials: readonly PlannedTrial[];

  /** Absent where no image has to be brought: every arm is local. */
  readonly images: TrialImages | undefined;
  /** Absent when run.disk_floor is 0. */
  readonly disk: DiskFloor | undefined;

  /** Absent where nothing is graded as it arrives. */
  readonly grader: Grader | null;
  /** Verifications while an attempt goes on. */
  readonly stepGrading: StepGrading;
  readonly exporter: Exporter;
  readonly suspicionRules: readonly SuspicionRule[];
  /** A model has answered, which may not be the requested one. */
  readonly answered: (asked: string, answered: string) => void;
}
