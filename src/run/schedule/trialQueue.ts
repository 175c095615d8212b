/**
 * Brings trials into slots. A trial first waits for its image, outside of the slots, then for a slot. Images that are pulled become ready in
 * any order; among trials whose image is ready, the one with the highest priority takes the next slot. A trial whose image is here already
 * is not overtaken.
 */

import PQueue from 'p-queue';
import { startTimer } from '../../base/async/timer.ts';
import type { Run } from '../contract.ts';
import type { ImageAdmission } from '../places/trialImages.ts';
import { imageToBring, type PlannedTrial } from '../plannedTrial.ts';
import type { ContainerPreparation } from './containerPreparation.ts';

/** A trial that has a slot, and whose image is ready or not available. */
export interface Turn {
  readonly trial: PlannedTrial;
  readonly slot: number;
  /** Undefined where no image has to be brought. */
  readonly admission: ImageAdmission | undefined;
  /** The time that the trial waited for its image and this slot. */
  readonly waitedMs: number;
  /** Called once the agent is done, so that the container of the next trial can start. */
  readonly onAgentDone: () => void;
}

export type TrialQueue = ReturnType<typeof createTrialQueue>;

interface Waiting {
  readonly trial: PlannedTrial;
  readonly priority: number;
  readonly since: number;
}

export function createTrialQueue<Outcome>(
  { config, stop, images, now }: Run,
  work: {
    readonly preparation: ContainerPreparation;
    readonly delays: Delays;
    /** A trial that a person took out of this sitting. */
    readonly isCancelled: (trialId: number) => boolean;
    readonly attempt: (turn: Turn) => Promise<Outcome | null>;
    /** The slot is free again. */
    readonly attempted: (trial: PlannedTrial, outcome: Outcome) => void;
    readonly onError: (error: unknown) => void;
  },
) {
  const { preparation, delays } = work;
  let { workers } = config;
  let limit = Number.POSITIVE_INFINITY;
  /** The number of trials that may wait for their images or have a slot. */
  const mayEnter = () => (images ? workers + images.ahead : Number.POSITIVE_INFINITY);
  /** Before a slot: as many trials as may wait for their images beside those in slots. */
  const entrance = new PQueue({ concurrency: mayEnter() });
  const slots = new PQueue({ concurrency: workers });
  const openSlots = () => {
    slots.concurrency = Math.min(limit, workers);
  };
  /** Slots have the numbers 1 to this. */
  let numbered = workers;
  /** The slot that was free last is taken first. */
  const freeSlots = Array.from({ length: workers }, (_, i) => workers - i);
  const imagesWanted = new AbortController();
  /** Trials whose image is here and which do not wait for a slot yet. */
  const line = new Set<{ readonly priority: number; readonly passed: Promise<void> }>();
  /** Trials look one after the other whether they may start, so that they start in their order. */
  const starting = new PQueue({ concurrency: 1 });
  /** Trials that have entered and not left. */
  let inside = 0;
  const allLeft = Promise.withResolvers<void>();
  let behindAll = 0;

  function enter(trial: PlannedTrial, priority: number): void {
    const waiting = { trial, priority, since: now() };
    void entrance
      .add(() => waitForSlot(waiting), { priority })
      .catch(work.onError)
      .finally(() => {
        inside -= 1;
        if (inside === 0) allLeft.resolve();
      });
  }

  async function waitForSlot(waiting: Waiting): Promise<void> {
    const { trial, priority } = waiting;
    const image = imageToBring(trial);
    const pass = standInLine(image, priority);
    try {
      const admission = image === undefined ? undefined : await images?.ready(image, imagesWanted.signal);
      await Promise.all([...line].flatMap((one) => (one.priority > priority ? [one.passed] : [])));
      preparation.waits(trial, priority, admission);
      const slot = slots.add(() => inSlot(waiting, admission), { priority });
      pass();
      await slot;
    } finally {
      pass();
    }
  }

  /** Returns what lets those pass that are behind it. */
  function standInLine(image: string | undefined, priority: number): () => void {
    if (image === undefined || !images?.isHere(image)) return () => undefined;
    const { promise: passed, resolve } = Promise.withResolvers<void>();
    const one = { priority, passed };
    line.add(one);
    return () => {
      line.delete(one);
      resolve();
    };
  }

  async function inSlot(
    { trial, priority, since }: Waiting,
    admission: ImageAdmission | undefined,
  ): Promise<void> {
    preparation.taken(trial);
    if (work.isCancelled(trial.id)) {
      // A container may have been started for it.
      preparation.giveUp();
      return;
    }
    if (stop.why) return;
    if (admission && !(await starting.add(() => images!.mayStart(admission)))) {
      // The disk filled up while the trial waited, so it leaves the slot and waits for room (T-33).
      preparation.giveUp();
      inside += 1;
      enter(trial, priority);
      return;
    }
    if (stop.why) return;
    const slot = freeSlots.pop() ?? ++numbered;
    let outcome: Outcome | null;
    try {
      const waitedMs = now() - since;
      const onAgentDone = () => preparation.slotEmptying();
      outcome = await work.attempt({ trial, slot, admission, waitedMs, onAgentDone });
    } finally {
      freeSlots.push(slot);
    }
    if (outcome) work.attempted(trial, outcome);
  }

  return {
    /** Works through the trials in order. Resolves when all are done, including those that came back. */
    async workThrough(trials: readonly PlannedTrial[]): Promise<void> {
      behindAll = -trials.length;
      for (const [place, trial] of trials.entries()) {
        inside += 1;
        enter(trial, -place);
      }
      if (inside > 0) await allLeft.promise;
    },
    /** Enters the trial again after a delay, behind all others. */
    comeBack(trial: PlannedTrial, afterMs: number): void {
      // The trial counts as inside during the delay, so that the queue does not count as empty.
      inside += 1;
      delays.after(afterMs, () => enter(trial, behindAll));
    },
    /** No trial takes a slot until `resume`, and no container is started for one. */
    pause(): void {
      slots.pause();
      preparation.giveUp();
    },
    resume: () => void slots.start(),
    /** Limits how many slots may be used, until `allSlots`. */
    limitSlots(count: number): void {
      limit = count;
      openSlots();
    },
    allSlots(): void {
      limit = Number.POSITIVE_INFINITY;
      openSlots();
    },
    workers: () => workers,
    /** More or fewer slots from now on; a trial that has one keeps it to its end. */
    setWorkers(count: number): void {
      workers = count;
      entrance.concurrency = mayEnter();
      openSlots();
    },
    /** The run stops: no trial waits any longer, and none that gets a slot starts. */
    emptyOut(): void {
      imagesWanted.abort();
      preparation.giveUp();
      limit = Number.POSITIVE_INFINITY;
      openSlots();
      slots.start();
    },
  };
}

export type Delays = ReturnType<typeof createDelays>;

/** Delayed work. When the run stops, all of it is done at once. */
export function createDelays() {
  const pending = new Set<() => void>();
  return {
    after(ms: number, work: () => void): void {
      const fire = () => {
        if (!pending.delete(fire)) return;
        timer.cancel();
        work();
      };
      const timer = startTimer(Math.max(1, ms), fire);
      pending.add(fire);
    },
    endAll(): void {
      for (const fire of [...pending]) fire();
    },
  };
}
