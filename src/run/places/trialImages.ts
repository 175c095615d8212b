/**
 * The images of a run's trials: ready before a slot is taken, kept while a trial or its grading needs them, then left to the policy.
 * A trial whose image is not available still takes its slot, so that it ends with an attempt and a reason like every other.
 */

import { errorText } from '../../base/text/errorText.ts';
import { type EnvironmentError, isLoss, type Place } from '../../environment/environment.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { Collected } from '../../environment/places/imageLedger.ts';
import type { ReadyPlace, RunImages } from '../../environment/places/runImages.ts';
import { isFinalReason } from '../../outcome.ts';
import type { RunEvents } from '../events.ts';

/** The state of a trial's image when the trial may take a slot. */
export interface ImageAdmission {
  /** Why the image is not available; the attempt ends with it. */
  readonly failure: EnvironmentError | undefined;
  /** On which of several engines the image is ready. */
  readonly place: Place | undefined;
}

export interface TrialImages {
  /** Trials that may wait for an image beside those in slots. */
  readonly ahead: number;
  /** It was on every engine when the sitting began: nobody waits long for it. */
  isHere(image: string): boolean;
  /** Waits, outside of slots, until the image is here and the disk has room. `onImage`: only a slot of its engine is waited for. Never rejects. */
  ready(image: string, signal: AbortSignal, onImage?: () => void): Promise<ImageAdmission>;
  /** False when the disk has filled up since, so that the trial has to wait again. Never rejects. */
  mayStart(admission: ImageAdmission): Promise<boolean>;
  /** Ends the sitting: removes what the policy allows, including images that a container just used. */
  finish(): Promise<void>;
}

interface TrialImage {
  readonly trialId: number;
  /** The images it runs in and is graded in, mostly the same one. */
  readonly images: readonly string[];
}

export interface TrialImagesParts {
  readonly service: RunImages;
  /** In the order in which trials start. */
  readonly trials: readonly TrialImage[];
  /** Trials of earlier sittings that wait for their grading alone. */
  readonly gradings: readonly TrialImage[];
  /** All images of the run, done or not. */
  readonly ofRun: readonly string[];
  readonly grading: boolean;
  readonly ahead: number;
  readonly events: RunEvents;
  /** Images that every engine has already. */
  readonly here: ReadonlySet<string>;
  readonly engine?: Pick<EngineWatch, 'back'> | undefined;
  readonly onError: (message: string) => void;
}

export function createTrialImages(parts: TrialImagesParts): TrialImages {
  const { service, events, grading } = parts;
  const all = [...parts.trials, ...parts.gradings];
  const imagesOf = new Map(all.map(({ trialId, images }) => [trialId, [...new Set(images)]]));
  const open = new Map<string, number>();
  for (const image of [...imagesOf.values()].flat()) open.set(image, (open.get(image) ?? 0) + 1);
  const inOrder = [...open.keys()];
  // Errors of bookkeeping must not stop a run. Steps run in order, so that "needed" is written before "done" reads it.
  let bookkeeping: Promise<void> = Promise.resolve();
  const keepBooks = (work: () => Promise<unknown>) => {
    bookkeeping = bookkeeping.then(async () => {
      try {
        await work();
      } catch (error) {
        parts.onError(`image bookkeeping: ${errorText(error)}`);
      }
    });
  };
  const needed = () => inOrder.filter((image) => (open.get(image) ?? 0) > 0);
  service.belong(parts.ofRun);
  keepBooks(() => service.need(needed()));

  const noteRemoved = ({ removed }: Collected) => {
    for (const { image } of removed)
      events.emit({ type: 'note', text: `image ${image} removed by the image policy` });
  };

  function release(trialId: number): void {
    const images = imagesOf.get(trialId) ?? [];
    imagesOf.delete(trialId);
    for (const image of images) {
      const left = open.get(image)! - 1;
      open.set(image, left);
      if (left > 0) continue;
      keepBooks(async () => {
        await service.need(needed());
        noteRemoved(await service.done(image));
      });
    }
  }

  events.on((event) => {
    if (event.type === 'graded') release(event.trial.trialId);
    // A trial that will be graded keeps its image until `graded`, which an empty patch emits too.
    else if (event.type === 'trial_ended' && event.sealed && !(grading && isFinalReason(event.exitReason)))
      release(event.trial.trialId);
  });

  return {
    ahead: parts.ahead,
    isHere: (image) => parts.here.has(image),
    finish() {
      keepBooks(async () => noteRemoved(await service.collect()));
      return bookkeeping;
    },
    async mayStart({ failure, place }) {
      // A failure needs no room, and an engine that does not answer is handled by the start.
      return failure !== undefined || (await service.hasRoom(place?.host).catch(() => true));
    },
    async ready(image, signal, onImage) {
      try {
        const { place, warnings } = await readyOnEngine(parts, image, signal, onImage);
        for (const text of warnings) events.emit({ type: 'note', text });
        return { failure: undefined, place };
      } catch (error) {
        // A run that stops is not a failure of the image.
        return { failure: signal.aborted ? undefined : (error as EnvironmentError), place: undefined };
      }
    },
  };
}

/** An engine that is away is waited for here, before there is an attempt. */
async function readyOnEngine(
  { service, engine }: TrialImagesParts,
  image: string,
  signal: AbortSignal,
  onImage?: () => void,
): Promise<ReadyPlace> {
  try {
    return await service.ready(image, signal, onImage);
  } catch (error) {
    if (!engine || !isLoss(error)) throw error;
    await engine.back(signal);
    return service.ready(image, signal, onImage);
  }
}
