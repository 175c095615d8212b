/**
 * The images of a run's trials: ready before a slot is taken, kept while a trial or its grading needs them, then left to the policy.
 * A trial whose image is not available still takes its slot, so that it ends with an attempt and a reason like every other.
 */

import { comingText } from '../../base/imageReference.ts';
import { errorText } from '../../base/text/errorText.ts';
import { gigabytes } from '../../base/text/units.ts';
import type { RunConfig } from '../../config/configSchema.ts';
import { type EnvironmentError, isLoss } from '../../environment/environment.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { Collected } from '../../environment/places/evictImages.ts';
import { type ImagePlan, tooMuch, toPullOf } from '../../environment/places/imagePlan.ts';
import type { ImageService } from '../../environment/places/imageService.ts';
import { isFinalReason } from '../../outcome.ts';
import type { Store } from '../../store/open.ts';
import type { Gradable } from '../../store/records/evaluations.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { TrialRow } from '../../store/records/trials.ts';
import type { ArmRuntime } from '../arms.ts';
import type { RunEvents } from '../events.ts';
import { imageToBring, type PlannedInstance, type PlannedTrial } from '../plannedTrial.ts';
import { groupBySharedLayers } from '../schedule/schedule.ts';

/** The state of a trial's image when the trial may take a slot. */
export interface ImageAdmission {
  /** The reason why the image is not available; the attempt ends with it. */
  readonly failure: EnvironmentError | undefined;
}

export type TrialImages = ReturnType<typeof createTrialImages>;

interface TrialImage {
  readonly trialId: number;
  /** The images it runs in and is graded in, mostly the same one. */
  readonly images: readonly string[];
}

export function createTrialImages({
  service,
  trials,
  gradings,
  ofRun,
  grading,
  ahead,
  events,
  here,
  engine,
  onError,
}: {
  readonly service: ImageService;
  /** The trials in the order in which they start. */
  readonly trials: readonly TrialImage[];
  /** Trials of earlier sittings that wait for their grading alone. */
  readonly gradings: readonly TrialImage[];
  /** The images of the run, done or not. */
  readonly ofRun: readonly string[];
  readonly grading: boolean;
  readonly ahead: number;
  readonly events: RunEvents;
  /** Images that the engine has already. */
  readonly here: ReadonlySet<string>;
  readonly engine?: Pick<EngineWatch, 'back'> | undefined;
  readonly onError: (message: string) => void;
}) {
  const all = [...trials, ...gradings];
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
        onError(`image bookkeeping: ${errorText(error)}`);
      }
    });
  };
  const needed = () => inOrder.filter((image) => (open.get(image) ?? 0) > 0);
  service.belong(ofRun);
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
    /** Trials that may wait for an image beside those in slots. */
    ahead,
    /** The image was on the engine when the sitting began: nobody waits long for it. */
    isHere: (image: string): boolean => here.has(image),
    /** Ends the sitting: removes what the policy allows, including images that a container just used. */
    finish(): Promise<void> {
      keepBooks(async () => noteRemoved(await service.collect()));
      return bookkeeping;
    },
    /** False when the disk has filled up since, so that the trial has to wait again. Never rejects. */
    async mayStart({ failure }: ImageAdmission): Promise<boolean> {
      // A failure needs no room, and an engine that does not answer is handled by the start.
      return failure !== undefined || (await service.hasRoom().catch(() => true));
    },
    /** Waits, outside of slots, until the image is here and the disk has room. Never rejects. */
    async ready(image: string, signal: AbortSignal): Promise<ImageAdmission> {
      const ask = () => service.ready(image, signal);
      try {
        const warnings = await ask().catch(async (error: unknown) => {
          if (!engine || !isLoss(error)) throw error;
          // An engine that is away is waited for here, before there is an attempt.
          await engine.back(signal);
          return ask();
        });
        for (const text of warnings) events.emit({ type: 'note', text });
        return { failure: undefined };
      } catch (error) {
        // A run that stops is not a failure of the image.
        return { failure: signal.aborted ? undefined : (error as EnvironmentError) };
      }
    },
  };
}

const PATIENCE_MS = 30_000;
const NAMED = 3;

export async function preflightImages(
  images: ImageService,
  names: readonly string[],
  say: (text: string) => void,
) {
  const distinct = [...new Set(names)];
  if (distinct.length === 0) return { here: new Set<string>(), layersOf: () => [] };
  const plan = await images.plan(distinct, { signal: AbortSignal.timeout(PATIENCE_MS) });
  for (const text of sentencesOf(plan, await images.freeBytes(), images)) say(text);
  const layers = new Map(
    plan.images.map(({ image, layers: list }) => [image, list.map(({ digest }) => digest)]),
  );
  // Images that a registry does not have will not run. Where most are unknown, layers are no basis for an order.
  const known = plan.estimated === 0 && plan.unknown.length <= plan.toPull;
  return {
    /** Images that the engine has already. */
    here: new Set(plan.images.flatMap(({ image, state }) => (state === 'here' ? [image] : []))),
    /** Layers of an image that must be pulled, base first; empty when it is here. Undefined where they are not known. */
    layersOf: known ? (image: string): readonly string[] => layers.get(image) ?? [] : undefined,
  };
}

function sentencesOf(
  plan: ImagePlan,
  freeBytes: number | undefined,
  { policy, floorBytes }: ImageService,
): string[] {
  const problems = [...Map.groupBy(plan.unknown, ({ problem }) => problem)].map(([problem, list]) => {
    const named = list.slice(0, NAMED).map(({ image }) => image);
    return `images: ${named.join(', ')}${list.length > NAMED ? ` and ${list.length - NAMED} more` : ''}: ${problem}`;
  });
  if (plan.toPull === 0) return problems;
  const guess = plan.estimated > 0 ? `, estimated from ${plan.toPull - plan.estimated} of them` : '';
  const free = freeBytes === undefined ? '' : `; ${gigabytes(freeBytes)} free`;
  const sizes =
    plan.downloadBytes > 0
      ? `: ${gigabytes(plan.downloadBytes)} to download, about ${gigabytes(plan.diskBytes)} unpacked${guess}${free}`
      : '';
  const problem = tooMuch(plan, { freeBytes, floorBytes, policy });
  return [
    ...problems,
    `images: ${plan.here} here, ${comingText(toPullOf(plan))}${sizes}`,
    ...(problem === undefined ? [] : [`warning: ${problem}`]),
  ];
}

/** Reports what must be pulled. In dataset order, trials that share layers are grouped when a policy will remove images. */
export async function orderForImages(
  {
    store,
    run,
    order,
    images,
    events,
    plan,
  }: {
    readonly store: Store;
    readonly run: RunRow;
    readonly order: RunConfig['order'];
    readonly images: ImageService;
    readonly events: RunEvents;
    readonly plan: (trial: TrialRow) => PlannedTrial;
  },
  scheduled: readonly TrialRow[],
): Promise<{ readonly trials: readonly TrialRow[]; readonly here: ReadonlySet<string> }> {
  const imageOf = (trial: TrialRow) => imageToBring(plan(trial));
  const names = scheduled.map(imageOf).filter((name) => name !== undefined);
  const { layersOf, here } = await preflightImages(images, names, (text) =>
    events.emit({ type: 'note', text }),
  );
  if (order !== 'dataset' || images.policy.kind === 'keep') return { trials: scheduled, here };
  // Docker Hub is not asked about each image; official images share layers by repository and version.
  const likelyLayers = (trial: TrialRow) => {
    const { repo, version } = plan(trial).instance;
    return [repo, version];
  };
  const layers = (trial: TrialRow) => layersOf?.(imageOf(trial) ?? '') ?? likelyLayers(trial);
  return { trials: groupBySharedLayers(store, run, scheduled, layers), here };
}

export function imagesOfTrials(
  {
    arms,
    instances,
    ...shared
  }: Omit<Parameters<typeof createTrialImages>[0], 'trials' | 'gradings' | 'ofRun' | 'ahead'> & {
    readonly arms: ReadonlyMap<number, ArmRuntime>;
    readonly instances: ReadonlyMap<number, PlannedInstance>;
  },
  trials: readonly PlannedTrial[],
  gradings: readonly Gradable[],
): TrialImages {
  const armImages = [...arms.values()].flatMap(({ environment }) => environment.image ?? []);
  return createTrialImages({
    ...shared,
    trials: trials.flatMap((trial) => {
      const image = imageToBring(trial);
      if (image === undefined) return [];
      return [{ trialId: trial.id, images: shared.grading ? [image, trial.gradedIn] : [image] }];
    }),
    gradings: gradings.map(({ trial_id, instance_pk }) => ({
      trialId: trial_id,
      images: [instances.get(instance_pk)!.row.image],
    })),
    ofRun: [...armImages, ...[...instances.values()].map(({ row }) => row.image)],
    // Trials of the arms of one instance are neighbours and share its image.
    ahead: shared.service.ahead * arms.size,
  });
}
