/** Names of images of a whole dataset: a builder's, or a pattern of the user's own. */
import { parseReference } from '../base/imageReference.ts';

/** A pattern has `{id}`, or `{id:X}` where the builder wrote X for each "__". Ids are in lower case, as registries ask for it. */
const BUILDERS: Readonly<Record<string, string>> = {
  swebench: 'docker.io/swebench/sweb.eval.x86_64.{id:_1776_}:latest',
  'swebench-arm64': 'docker.io/swebench/sweb.eval.arm64.{id:_1776_}:latest',
  // Keeps the two underscores: https://epoch.ai/blog/swebench-docker
  epoch: 'ghcr.io/epoch-research/swe-bench.eval.x86_64.{id}:latest',
  'epoch-arm64': 'ghcr.io/epoch-research/swe-bench.eval.arm64.{id}:latest',
  'swe-gym': 'docker.io/xingyaoww/sweb.eval.x86_64.{id:_s_}:latest',
};
/** Images are made from the recipe that comes with each task, and not pulled. */
export const BUILT = 'built';
export const IMAGE_BUILDERS = [...Object.keys(BUILDERS), BUILT];

const PLACE = /\{id(?::([a-z0-9_.-]{1,20}))?\}/g;

export const imageNameOf = (images: string, instanceId: string): string =>
  (Object.hasOwn(BUILDERS, images) ? BUILDERS[images]! : images).replace(
    PLACE,
    (_, joint: string | undefined) => {
      const id = instanceId.toLowerCase();
      return joint === undefined ? id : id.replaceAll('__', joint);
    },
  );

/** The reason why a choice names no images; null when it does. */
export function imagesProblem(images: string): string | null {
  if (IMAGE_BUILDERS.includes(images)) return null;
  if (images.search(PLACE) < 0) return `is none of ${IMAGE_BUILDERS.join(', ')}, and has no {id}`;
  const parsed = parseReference(imageNameOf(images, 'a__a-1'));
  return parsed.ok ? null : `makes names that are none: ${parsed.message}`;
}
