/** What a dry run says about images: which are here, which have to come, how many bytes, and whether they fit. Nothing is pulled or removed. */
import { imageOf } from '../dataset/instance.ts';
import type { ImagePlan } from '../environment/images/plan.ts';
import type { RunRequest } from '../runner/plan.ts';
import { CliError } from './context.ts';
import { openImages } from './imageEngine.ts';

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
}

export type DiskAnswer = DiskPlan | { readonly problem: string };

/** Null when no arm uses Docker. An engine that does not answer is said and is no failure: a plan starts nothing. */
export async function planDisk(request: RunRequest): Promise<DiskAnswer | null> {
  const docker = request.arms.filter((arm) => arm.environment.environment_class === 'docker');
  const first = docker[0]?.environment;
  if (!first) return null;
  const images = [...new Set(request.selected.map(({ instance }) => imageOf(instance)))];
  try {
    const service = await openImages(
      {
        // "keep": looking at the disk must not make room on it.
        config: { ...request.images!, policy: 'keep' },
        pull: first.pull,
        platform: first.platform,
        stallSeconds: first.pull_timeout,
      },
      first.hosts[0]?.host,
    );
    try {
      const plan = await service.plan(images, { ask: first.pull !== 'never' });
      const { freeBytes } = await service.disk.check();
      return diskPlanOf(plan, freeBytes);
    } finally {
      await service.close();
    }
  } catch (error) {
    if (error instanceof CliError) return { problem: error.message };
    throw error;
  }
}

export function diskPlanOf(plan: ImagePlan, freeBytes: number | undefined): DiskPlan {
  return {
    here: plan.here,
    toPull: plan.images.filter((i) => i.state === 'to_pull').map((i) => i.image),
    unknown: plan.unknown,
    downloadBytes: plan.downloadBytes,
    diskBytes: plan.diskBytes,
    estimated: plan.estimated,
    freeBytes: freeBytes ?? null,
    fits: freeBytes === undefined || plan.diskBytes <= freeBytes,
  };
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e9 ? 2 : 1)} GB`;

export function diskRows(total: number, answer: DiskAnswer | null): [string, string][] {
  if (answer === null) return [['images', 'none needed: no arm runs in Docker']];
  if ('problem' in answer) return [['images', `${total}; ${answer.problem}`]];
  const { here, toPull, unknown, downloadBytes, diskBytes, estimated, freeBytes, fits } = answer;
  const problems = Map.groupBy(unknown, (u) => u.problem);
  const free = freeBytes === null ? '' : `; ${gigabytes(freeBytes)} free`;
  const guess = estimated > 0 ? `, estimated from ${toPull.length - estimated} images` : '';
  const partly = `${guess}${unknown.length ? ', without those not known' : ''}`;
  return [
    [
      'images',
      `${total}: ${here} here, ${toPull.length} to pull${unknown.length ? `, ${unknown.length} not known` : ''}`,
    ],
    ...[...problems].map(([problem, list]): [string, string] => [
      '',
      `${problem}: ${list[0]!.image}${list.length > 1 ? ` and ${list.length - 1} more` : ''}`,
    ]),
    [
      'disk',
      downloadBytes === 0
        ? `${unknown.length ? 'not known' : 'nothing to download'}${free}`
        : `${gigabytes(downloadBytes)} to download, about ${gigabytes(diskBytes)} unpacked${partly}${free}`,
    ],
    ...(fits
      ? []
      : [
          ['', 'that does not fit: take fewer, or images.policy remove-after or lru:<GB>'] as [
            string,
            string,
          ],
        ]),
  ];
}

/** "here", "pull" or "?" of each image, for the list of instances. */
export function imageStates(answer: DiskAnswer | null): (image: string) => string {
  if (answer === null || 'problem' in answer) return () => '?';
  const coming = new Set(answer.toPull);
  const unknown = new Set(answer.unknown.map((u) => u.image));
  return (image) => (unknown.has(image) ? '?' : coming.has(image) ? 'pull' : 'here');
}
