/** The images of one sitting: the order of trials that they suggest, and which images are needed until when. */
import type { RunConfig } from '../../config/runConfig.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { RunImages } from '../../environment/places/runImages.ts';
import type { Store } from '../../store/open.ts';
import type { Gradable } from '../../store/records/evaluations.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { TrialRow } from '../../store/records/trials.ts';
import type { ArmRuntime } from '../arms.ts';
import type { RunEvents } from '../events.ts';
import { imageToBring, type PlannedInstance, type PlannedTrial } from '../plannedTrial.ts';
import { groupBySharedLayers } from '../schedule/schedule.ts';
import { preflightImages } from './imagePreflight.ts';
import { createTrialImages, type TrialImages } from './trialImages.ts';

export interface ImageOrderPorts {
  readonly store: Store;
  readonly run: RunRow;
  readonly order: RunConfig['order'];
  readonly images: RunImages;
  readonly events: RunEvents;
  readonly plan: (trial: TrialRow) => PlannedTrial;
}

export interface ImageOrder {
  readonly trials: readonly TrialRow[];
  /** Images that every engine has already. */
  readonly here: ReadonlySet<string>;
}

/** Reports what must be pulled. In dataset order, trials that share layers are grouped when a policy will remove images. */
export async function orderForImages(
  { store, run, order, images, events, plan }: ImageOrderPorts,
  scheduled: readonly TrialRow[],
): Promise<ImageOrder> {
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

export interface SessionImagesPorts {
  readonly service: RunImages;
  readonly engine: EngineWatch | undefined;
  readonly here: ReadonlySet<string>;
  readonly arms: ReadonlyMap<number, ArmRuntime>;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  readonly grading: boolean;
  readonly events: RunEvents;
  readonly onError: (message: string) => void;
}

export function createSessionImages(
  { service, engine, here, arms, instances, grading, events, onError }: SessionImagesPorts,
  trials: readonly PlannedTrial[],
  gradings: readonly Gradable[],
): TrialImages {
  const armImages = [...arms.values()].flatMap(({ environment }) => environment.image ?? []);
  return createTrialImages({
    service,
    trials: trials.flatMap((trial) => {
      const image = imageToBring(trial);
      if (image === undefined) return [];
      return [{ trialId: trial.id, images: grading ? [image, trial.gradedIn] : [image] }];
    }),
    gradings: gradings.map(({ trial_id, instance_pk }) => ({
      trialId: trial_id,
      images: [instances.get(instance_pk)!.row.image],
    })),
    ofRun: [...armImages, ...[...instances.values()].map(({ row }) => row.image)],
    // Trials of the arms of one instance are neighbours and share its image.
    ahead: service.ahead * arms.size,
    events,
    grading,
    engine,
    here,
    onError,
  });
}
