/** The images part of a dry run: which are here, which must be pulled, how large they are, and whether they fit. Pulls and removes nothing. */

import { onEngines } from '../../environment/environments.ts';
import { type DiskRoom, type ImagePlan, tooMuch, toPullOf } from '../../environment/places/imagePlan.ts';
import { imagesConfigSchema, parsePolicy } from '../../environment/places/imagesConfig.ts';
import type { Variables } from '../caller.ts';
import { openImages } from '../places/engines.ts';
import { UserError } from '../userError.ts';
import { imagesOf } from './engineChecks.ts';
import type { RunRequest } from './planRecord.ts';

export interface DiskPlan {
  readonly here: number;
  readonly toPull: readonly string[];
  readonly unknown: readonly { readonly image: string; readonly problem: string }[];
  /** Layers that images share counted once. */
  readonly downloadBytes: number;
  readonly diskBytes: number;
  /** Images to pull whose part of the bytes is estimated from the others. */
  readonly estimated: number;
  /** Null where the engine's disk cannot be seen from here. */
  readonly freeBytes: number | null;
  readonly fits: boolean;
  /** The reason why the images do not fit. */
  readonly tooMuch: string | null;
  /** The least time that the budget of pulls allows; null without a budget, or within it. */
  readonly pullSeconds: number | null;
}

export type DiskAnswer = DiskPlan | { readonly problem: string };

/** Null when no arm runs on an engine. An engine that does not answer is reported; it is not a failure, because a plan starts nothing. */
export async function planDisk(request: RunRequest, env: Variables): Promise<DiskAnswer | null> {
  const first = request.arms.map(({ environment }) => environment).find(onEngines);
  if (!first) return null;
  const config = request.images ?? imagesConfigSchema.parse({});
  try {
    const service = await openImages(env, {
      // "keep": looking at the disk must not make room on it.
      config: { ...config, policy: 'keep' },
      pull: first.pull,
      platform: first.platform,
      stallSeconds: first.pull_timeout,
    });
    try {
      const plan = await service.plan(imagesOf(request));
      const { floorBytes } = service;
      const room = { freeBytes: await service.freeBytes(), floorBytes, policy: parsePolicy(config.policy) };
      return diskPlanOf(plan, room, { pulls: config.pulls_per_window, seconds: config.window_seconds });
    } finally {
      await service.close();
    }
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { problem: error.message };
  }
}

export function diskPlanOf(
  plan: ImagePlan,
  room: DiskRoom,
  budget: { pulls: number; seconds: number } = { pulls: 0, seconds: 0 },
): DiskPlan {
  const problem = tooMuch(plan, room) ?? null;
  const windows = budget.pulls > 0 ? Math.ceil(plan.toPull / budget.pulls) - 1 : 0;
  return {
    here: plan.here,
    toPull: toPullOf(plan),
    unknown: plan.unknown,
    downloadBytes: plan.downloadBytes,
    diskBytes: plan.diskBytes,
    estimated: plan.estimated,
    freeBytes: room.freeBytes ?? null,
    fits: problem === null,
    tooMuch: problem,
    pullSeconds: windows > 0 ? windows * budget.seconds : null,
  };
}
