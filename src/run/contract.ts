/**
 * A run while a process works on it. run.ts opens its parts, in one place, and closes them; the queue, the attempts and their records get the
 * whole.
 */
import type { Redactor } from '../base/text/redact.ts';
import type { RunConfig } from '../config/configSchema.ts';
import type { EngineWatch } from '../environment/places/engineWatch.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import type { SuspicionRule } from '../grading/suspicion/commands.ts';
import type { Store } from '../store/open.ts';
import type { RunRow } from '../store/records/runs.ts';
import type { ArmRuntime } from './arms.ts';
import type { RunBudget } from './control/budget.ts';
import type { DiskFloor } from './control/diskFloor.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvents } from './events.ts';
import type { RetryPolicy } from './exit.ts';
import type { Grader } from './grader/grader.ts';
import type { StepGrading } from './grader/gradeTrial.ts';
import type { OpenSuite } from './grader/judge.ts';
import type { TrialImages } from './places/trialImages.ts';
import type { PlannedInstance, PlannedTrial } from './plannedTrial.ts';
import type { Exporter } from './record/exportRun.ts';
import type { Log } from './record/runLog.ts';

export interface Run {
  /** The record of the results root. */
  readonly store: Store;
  /** The run's own row, as it was when this sitting began. */
  readonly row: RunRow;
  /** DIR/<run>: where its exports go. */
  readonly dir: string;
  readonly config: RunConfig;
  /** host:boot:pid:start of this process, as it stands in trials.lease_owner. */
  readonly leaseOwner: string;

  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly log: Log;
  readonly stop: StopLadder;
  readonly budget: RunBudget;
  readonly retry: RetryPolicy;
  /** Monotonic milliseconds. Neither the sleep of this machine nor an outage of the engine counts against a limit. */
  readonly now: () => number;

  readonly arms: ReadonlyMap<number, ArmRuntime>;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  /** Trials of this sitting, in the order in which they start. */
  readonly trials: readonly PlannedTrial[];

  /** Variables and a judge that tasks may have of this machine. */
  readonly suite: OpenSuite;
  /** Absent where no engine is needed. */
  readonly engine: EngineWatch | undefined;
  /** Absent where no image has to be brought: every arm is local. */
  readonly images: TrialImages | undefined;
  /** Absent when run.disk_floor is 0. */
  readonly disk: DiskFloor | undefined;

  readonly grading: GradingConfig;
  /** Absent where nothing is graded as it arrives. */
  readonly grader: Grader | null;
  /** Verifications while an attempt goes on. */
  readonly stepGrading: StepGrading;
  readonly exporter: Exporter;
  readonly suspicionRules: readonly SuspicionRule[];
  /** Notes that a model has answered, which may not be the requested one. */
  readonly answered: (asked: string, answered: string) => void;
}
