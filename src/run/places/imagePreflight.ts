/**
 * Reports before the first trial which images must be pulled, how large they are, and whether they fit. A registry that does not answer in
 * time does not delay the run.
 */
import { gigabytes } from '../../base/text/units.ts';
import { tooMuch } from '../../environment/places/imagePlan.ts';
import type { EnginePlan, RunImages } from '../../environment/places/runImages.ts';

const PATIENCE_MS = 30_000;
const NAMED = 3;

export interface ImagePreflight {
  /** Layers of an image that must be pulled, base first; empty when it is here. Undefined where they are not known. */
  readonly layersOf: ((image: string) => readonly string[]) | undefined;
  /** Images that every engine has already. */
  readonly here: ReadonlySet<string>;
}

export async function preflightImages(
  images: RunImages,
  names: readonly string[],
  say: (text: string) => void,
  patienceMs: number = PATIENCE_MS,
): Promise<ImagePreflight> {
  const distinct = [...new Set(names)];
  const plans = distinct.length > 0 ? await images.plan(distinct, AbortSignal.timeout(patienceMs)) : [];
  for (const plan of plans) for (const text of sentencesOf(plan, images, plans.length)) say(text);
  const layers = new Map<string, readonly string[]>();
  for (const { plan } of plans)
    for (const { image, layers: list } of plan.images)
      if (list.length > 0)
        layers.set(
          image,
          list.map((layer) => layer.digest),
        );
  // Images that a registry does not have will not run. Where most are unknown, layers are no basis for an order.
  const known = plans.every(({ plan }) => plan.estimated === 0 && plan.unknown.length <= plan.toPull);
  const missing = new Set(
    plans.flatMap(({ plan }) => plan.images.flatMap(({ image, state }) => (state === 'here' ? [] : [image]))),
  );
  const here = new Set(plans.length > 0 ? distinct.filter((image) => !missing.has(image)) : []);
  return { here, layersOf: known ? (image) => layers.get(image) ?? [] : undefined };
}

function sentencesOf(
  { host, plan, freeBytes }: EnginePlan,
  { policy, floorBytes }: RunImages,
  engines: number,
): string[] {
  const on = host === undefined ? '' : ` (${host})`;
  const problems = [...Map.groupBy(plan.unknown, ({ problem }) => problem)].map(([problem, list]) => {
    const named = list.slice(0, NAMED).map(({ image }) => image);
    return `images${on}: ${named.join(', ')}${list.length > NAMED ? ` and ${list.length - NAMED} more` : ''}: ${problem}`;
  });
  if (plan.toPull === 0) return problems;
  // Several engines share the trials, and so the images: each has its part of the bytes.
  const guess = plan.estimated > 0 ? `, estimated from ${plan.toPull - plan.estimated} of them` : '';
  const part = engines > 1 ? `, a share of 1 in ${engines}` : '';
  const free = freeBytes === undefined ? '' : `; ${gigabytes(freeBytes)} free`;
  const sizes =
    plan.downloadBytes > 0
      ? `: ${gigabytes(plan.downloadBytes / engines)} to download, about ${gigabytes(plan.diskBytes / engines)} unpacked${part}${guess}${free}`
      : '';
  const problem = tooMuch(plan, { freeBytes, floorBytes, policy, engines });
  return [
    ...problems,
    `images${on}: ${plan.here} here, ${plan.toPull} to pull${sizes}`,
    ...(problem === undefined ? [] : [`warning${on}: ${problem}`]),
  ];
}
