/**
 * Brings trials into slots. A trial first waits for its image, outside of the slots, then for a slot. Images that are pulled become ready in
 * any order; among trials whose image is ready, the one with the highest priority takes the next slot. A trial whose image is here already
 * is not overtaken.
 */
import PQueue from 'p-queue';
import type { StopLadder } from '../control/stop.ts';
import type { Admission, TrialImages } from '../places/trialImages.ts';
import { imageToBring, type PlannedTrial } from '../plannedTrial.ts';
import type { ContainerPreparation } from './containerPreparation.ts';
import type { Delays } from './delays.ts';
import type { Turn } from './turn.ts';

export interface TrialQueue {
  /** Works through the trials in order. Resolves when all are done, including those that came back. */
  workThrough(trials: readonly PlannedTrial[]): Promise<void>;
  /** Enters the trial again after a delay, behind all others. */
  comeBack(trial: PlannedTrial, afterMs: number): void;
  /** No trial takes a slot until `resume`, and no container is started for one. */
  pause(): void;
  resume(): void;
  /** Limits how many slots may be used, until `allSlots`. */
  limitSlots(count: number): void;
  allSlots(): void;
  workers(): number;
  /** More or fewer slots from now on; a trial that has one keeps it to its end. */
  setWorkers(count: number): void;
  /** The run stops: no trial waits any longer, and none that gets a slot starts. */
  emptyOut(): void;
}

export interface TrialQueuePorts<Outcome> {
  readonly workers: number;
  readonly stop: Pick<StopLadder, 'why'>;
  readonly images?: TrialImages | undefined;
  readonly preparation: ContainerPreparation;
  /** A trial that a person took out of this sitting. */
  readonly isCancelled?: (trialId: number) => boolean;
  readonly delays: Delays;
  readonly now: () => number;
  readonly attempt: (turn: Turn) => Promise<Outcome | null>;
  /** The slot is free again. */
  readonly attempted: (trial: PlannedTrial, outcome: Outcome) => void;
  readonly onError: (error: unknown) => void;
}

interface Queue<Outcome> extends TrialQueuePorts<Outcome> {
  /** Before a slot: as many trials as may wait for their images beside those in slots. */
  readonly admission: PQueue;
  readonly slots: PQueue;
  /** The slot that was free last is taken first. */
  readonly freeSlots: number[];
  /** Slots have the numbers 1 to this. */
  numbered: number;
  readonly imagesWanted: AbortController;
  /** Trials whose image is here and which do not wait for a slot yet. */
  readonly line: Set<{ readonly priority: number; readonly passed: Promise<void> }>;
  /** One after the other looks whether it may start, so that they start in their order. */
  readonly starting: PQueue;
  readonly allLeft: PromiseWithResolvers<void>;
  /** Trials that have entered and not left. */
  inside: number;
}

interface Waiting {
  readonly trial: PlannedTrial;
  readonly priority: number;
  readonly since: number;
}

export function createTrialQueue<Outcome>(ports: TrialQueuePorts<Outcome>): TrialQueue {
  const { images, preparation, delays } = ports;
  let { workers } = ports;
  let limit = Number.POSITIVE_INFINITY;
  const slots = new PQueue({ concurrency: workers });
  const queue: Queue<Outcome> = {
    ...ports,
    admission: new PQueue({ concurrency: admitted(workers, images) }),
    slots,
    freeSlots: Array.from({ length: workers }, (_, i) => workers - i),
    numbered: workers,
    imagesWanted: new AbortController(),
    line: new Set(),
    starting: new PQueue({ concurrency: 1 }),
    allLeft: Promise.withResolvers<void>(),
    inside: 0,
  };
  let behindAll = 0;
  const openSlots = () => {
    slots.concurrency = Math.min(limit, workers);
  };
  return {
    async workThrough(trials) {
      behindAll = -trials.length;
      for (const [place, trial] of trials.entries()) {
        queue.inside += 1;
        enter(queue, trial, -place);
      }
      if (queue.inside > 0) await queue.allLeft.promise;
    },
    comeBack(trial, afterMs) {
      // It counts as inside during the delay, so that the queue does not count as empty.
      queue.inside += 1;
      delays.after(afterMs, () => enter(queue, trial, behindAll));
    },
    pause() {
      slots.pause();
      preparation.giveUp();
    },
    resume: () => void slots.start(),
    limitSlots(count) {
      limit = count;
      openSlots();
    },
    allSlots() {
      limit = Number.POSITIVE_INFINITY;
      openSlots();
    },
    workers: () => workers,
    setWorkers(count) {
      workers = count;
      queue.admission.concurrency = admitted(count, images);
      openSlots();
    },
    emptyOut() {
      queue.imagesWanted.abort();
      preparation.giveUp();
      limit = Number.POSITIVE_INFINITY;
      openSlots();
      slots.start();
    },
  };
}

/** How many trials may wait for their images or have a slot. */
const admitted = (workers: number, images: TrialImages | undefined): number =>
  images ? workers + images.ahead : Number.POSITIVE_INFINITY;

function enter<Outcome>(queue: Queue<Outcome>, trial: PlannedTrial, priority: number): void {
  const waiting = { trial, priority, since: queue.now() };
  void queue.admission
    .add(() => waitForSlot(queue, waiting), { priority })
    .catch(queue.onError)
    .finally(() => {
      queue.inside -= 1;
      if (queue.inside === 0) queue.allLeft.resolve();
    });
}

async function waitForSlot<Outcome>(queue: Queue<Outcome>, waiting: Waiting): Promise<void> {
  const { trial, priority } = waiting;
  const image = imageToBring(trial);
  const pass = standInLine(queue, image, priority);
  // Who waits for a slot of its engine holds up nobody: those behind it may have the slots of all other engines, and it could need one of these.
  const admission =
    image === undefined ? undefined : await queue.images?.ready(image, queue.imagesWanted.signal, pass);
  try {
    await Promise.all([...queue.line].flatMap((one) => (one.priority > priority ? [one.passed] : [])));
    queue.preparation.waits(trial, priority, admission);
    const slot = queue.slots.add(() => inSlot(queue, waiting, admission), { priority });
    pass();
    await slot;
  } finally {
    pass();
    admission?.place?.release();
  }
}

/** Returns what lets those pass that are behind it. */
function standInLine<Outcome>(
  { line, images }: Queue<Outcome>,
  image: string | undefined,
  priority: number,
): () => void {
  if (image === undefined || !images?.isHere(image)) return () => undefined;
  const { promise: passed, resolve } = Promise.withResolvers<void>();
  const one = { priority, passed };
  line.add(one);
  return () => {
    line.delete(one);
    resolve();
  };
}

async function inSlot<Outcome>(
  queue: Queue<Outcome>,
  { trial, priority, since }: Waiting,
  admission: Admission | undefined,
): Promise<void> {
  const { stop, preparation, freeSlots } = queue;
  preparation.taken(trial);
  if (queue.isCancelled?.(trial.id)) {
    // A container may have been started for it.
    preparation.giveUp();
    return;
  }
  if (stop.why) return;
  if (admission && !(await queue.starting.add(() => queue.images!.mayStart(admission)))) {
    // The disk filled up while the trial waited, so it leaves the slot and waits for room.
    preparation.giveUp();
    queue.inside += 1;
    enter(queue, trial, priority);
    return;
  }
  if (stop.why) return;
  const slot = freeSlots.pop() ?? ++queue.numbered;
  let outcome: Outcome | null;
  try {
    const waitedMs = queue.now() - since;
    const onAgentDone = () => preparation.slotEmptying();
    outcome = await queue.attempt({ trial, slot, admission, waitedMs, onAgentDone });
  } finally {
    freeSlots.push(slot);
  }
  if (outcome) queue.attempted(trial, outcome);
}
