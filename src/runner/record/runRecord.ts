/** What a batch writes about its run as a whole. Each of these throws when the record cannot be kept. */
import { assertInPlace, onFullDisk, type Store } from '../../store/open.ts';
import { insertEvent } from '../../store/records/eventLog.ts';
import { type RunRow, type RunStatus, setRunStatus } from '../../store/records/runs.ts';
import { classCounts, heartbeat, markNotRun, nextAttemptNumber } from '../../store/records/trials.ts';
import { DURABLE_EVENTS, type RunEvent } from '../events.ts';

export interface RunRecord {
  readonly runName: string;
  /** The database must still be the file that was opened: what is written into a deleted one is lost. */
  assertInPlace(): void;
  /** A sign of life, for other processes that look at the same results. */
  beat(): void;
  /** Keeps what a later reader asks for; the other events have tables of their own or are for the eye alone. */
  keep(event: RunEvent): void;
  showStatus(status: RunStatus): void;
  /** The number that the next attempt of a trial will have. */
  nextAttemptNumber(trialId: number): number;
  /** Trials by the class of what stands for them; the sum is what was planned. */
  counts(): Record<string, number>;
  /** Says of everything that is still pending why it was not run. */
  markNotRun(reason: string): void;
  end(status: RunStatus): void;
  /** `relieve` makes room when a write finds none, and says whether there is some now. */
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
    markNotRun: (reason) => void markNotRun(store, run.id, reason),
    end: (status) => setRunStatus(store, run.id, status, isoNow()),
    onFullDisk: (relieve) => onFullDisk(store, relieve),
  };
}
