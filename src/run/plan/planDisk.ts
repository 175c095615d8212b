/** The images part of a dry run: which are here, which must be pulled, how large they are, and whether they fit. Pulls and removes nothing. */

import { parseSize } from '../../base/text/units.ts';
import { onEngines } from '../../environment/environments.ts';
import { type DiskRoom, type ImagePlan, tooMuch, toPullOf } from '../../environment/places/imagePlan.ts';
import { imagesConfigSchema, parsePolicy } from '../../environment/places/imagesConfig.ts';
import type { Variables } from '../caller.ts';
import { openImages } from '../places/engines.ts';
import { enginesOf } from '../places/openImages.ts';
import { UserError } from '../userError.ts';
import { imagesOf } from './localCopies.ts';
import type { RunRequest } from './planRecord.ts';

export interface DiskPlan {
  /** Undefined with one engine. */
  readonly host?: string | undefined;
  readonly here: number;
  readonly toPull: readonly string[];
  readonly unknown: readonly { readonly image: string; readonly problem: string }[];
  /** Layers that images share counted once. Several engines share the images: each has its part. */
  readonly downloadBytes: number;
  readonly diskBytes: number;
  /** Images to pull whose part of the bytes is estimated from the others. */
  readonly estimated: number;
  /** Null where the engine's disk cannot be seen from here. */
  readonly freeBytes: number | null;
  readonly fits: boolean;
  /** Why it does not. */
  readonly tooMuch: string | null;
  /** The least time that the budget of pulls allows; null without a budget, or within it. */
  readonly pullSeconds: number | null;
}

export type DiskAnswer = DiskPlan | { readonly engines: readonly DiskPlan[] } | { readonly problem: string };

/** Null when no arm runs on engines. An engine that does not answer is reported; it is not a failure, because a plan starts nothing. */
export async function planDisk(request: RunRequest, env: Variables): Promise<DiskAnswer | null> {
  const first = request.arms.map(({ environment }) => environment).find(onEngines);
  if (!first) return null;
  const images = imagesOf(request);
  const config = request.images ?? imagesConfigSchema.parse({});
  const hosts = enginesOf(request.arms);
  const plans: DiskPlan[] = [];
  const problems: string[] = [];
  for (const host of hosts) {
    try {
      const service = await openImages(
        env,
        {
          // "keep": looking at the disk must not make room on it.
          config: { ...config, policy: 'keep' },
          pull: first.pull,
          platform: first.platform,
          stallSeconds: first.pull_timeout,
        },
        host,
      );
      try {
        const plan = await service.plan(images, { ask: first.pull !== 'never' });
        const room = {
          freeBytes: await service.freeBytes(),
          floorBytes: parseSize(config.disk_low),
          policy: parsePolicy(config.policy),
          engines: hosts.length,
        };
        const budget = { pulls: config.pulls_per_window, seconds: config.window_seconds };
        plans.push({ ...(hosts.length > 1 && { host }), ...diskPlanOf(plan, room, budget) });
      } finally {
        await service.close();
      }
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push(error.message);
    }
  }
  if (plans.length === 0) return { problem: problems.join('; ') };
  return hosts.length === 1 ? plans[0]! : { engines: plans };
}

export const plansOf = (answer: Exclude<DiskAnswer, { readonly problem: string }>): readonly DiskPlan[] =>
  'engines' in answer ? answer.engines : [answer];

export function diskPlanOf(
  plan: ImagePlan,
  room: DiskRoom,
  budget: { pulls: number; seconds: number } = { pulls: 0, seconds: 0 },
): DiskPlan {
  const problem = tooMuch(plan, room) ?? null;
  const pulls = Math.ceil(plan.toPull / room.engines);
  const windows = budget.pulls > 0 ? Math.ceil(pulls / budget.pulls) - 1 : 0;
  return {
    here: plan.here,
    toPull: toPullOf(plan),
    unknown: plan.unknown,
    downloadBytes: plan.downloadBytes / room.engines,
    diskBytes: plan.diskBytes / room.engines,
    estimated: plan.estimated,
    freeBytes: room.freeBytes ?? null,
    fits: problem === null,
    tooMuch: problem,
    pullSeconds: windows > 0 ? windows * budget.seconds : null,
  };
}
