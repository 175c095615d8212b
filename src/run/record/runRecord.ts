/** What a batch records about its run as a whole. Every function throws when the record cannot be kept. */
import { assertInPlace, onFullDisk, type Store } from '../../store/open.ts';
import {
  instanceCount,
  type RunRow,
  type RunStatus,
  setRunBudget,
  setRunStatus,
} from '../../store/records/runs.ts';
import { insertEvent } from '../../store/records/steps.ts';
import {
  classCounts,
  heartbeat,
  leaveOutTrial,
  markNotRun,
  nextAttemptNumber,
  trialById,
} from '../../store/records/trials.ts';
import { DURABLE_EVENTS, type RunEvent } from '../events.ts';

export interface RunRecord {
  readonly runName: string;
  /** Checks that the database is still the file that was opened; writes into a deleted one would be lost. */
  assertInPlace(): void;
  /** A sign of life for other processes that read the same results. */
  beat(): void;
  /** Keeps events that later readers need; the others have tables of their own or are only for displays. */
  keep(event: RunEvent): void;
  showStatus(status: RunStatus): void;
  /** The number that the next attempt of a trial will have. */
  nextAttemptNumber(trialId: number): number;
  /** Trials by exit class; the sum is the number of planned trials. */
  counts(): Record<string, number>;
  /** How many instances the run has. */
  instances(): number;
  /** Records for all pending trials why they were not run. */
  markNotRun(reason: string): void;
  /** The trial is not run in this sitting: a person cancelled it. */
  leaveOut(trialId: number): void;
  isSealed(trialId: number): boolean;
  setBudget(limitNano: number | null): void;
  end(status: RunStatus): void;
  /** `relieve` makes room for a write that found none, and returns whether it could. */
  onFullDisk(relieve: () => boolean): void;
}

export interface RunRecordPorts {
  readonly store: Store;
  readonly run: RunRow;
  readonly leaseOwner: string;
  readonly isoNow: () => string;
}

export function createRunRecord({ store, run, leaseOwner, isoNow }: RunRecordPorts): RunRecord {
  return {
    runName: run.name,
    assertInPlace: () => assertInPlace(store),
    beat() {
      assertInPlace(store);
      heartbeat(store, run.id, leaseOwner, Date.now());
    },
    keep(event) {
      if (!DURABLE_EVENTS.has(event.type)) return;
      const { type, ...data } = event;
      insertEvent(store, run.id, isoNow(), type, data);
    },
    showStatus: (status) => setRunStatus(store, run.id, status, null),
    nextAttemptNumber: (trialId) => nextAttemptNumber(store, trialId),
    counts: () => Object.fromEntries(classCounts(store, run.id)),
    instances: () => instanceCount(store, run.id),
    markNotRun: (reason) => void markNotRun(store, run.id, reason),
    leaveOut: (trialId) => void leaveOutTrial(store, trialId, 'cancelled'),
    isSealed: (trialId) => trialById(store, trialId)?.state === 'sealed',
    setBudget: (limitNano) => void setRunBudget(store, run.id, limitNano),
    end: (status) => setRunStatus(store, run.id, status, isoNow()),
    onFullDisk: (relieve) => onFullDisk(store, relieve),
  };
}
