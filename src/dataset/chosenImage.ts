/** The image of an instance where somebody chose other images for its whole dataset. */
import { BUILT, imageNameOf } from './imageNames.ts';
import type { Instance } from './instance.ts';
import { builtImageOf } from './kinds/datasetKinds.ts';

/** As it is, where nobody chose; also where it cannot have what was chosen, which `imageRefusal` tells. */
export function withChosenImage(instance: Instance, images: string | undefined): Instance {
  if (images === undefined) return instance;
  const image = images === BUILT ? builtImageOf(instance) : imageNameOf(images, instance.instance_id);
  return image === undefined ? instance : { ...instance, image };
}

/** Why it cannot run with these images, as a clause; undefined when it can. */
export const imageRefusal = (instance: Instance, images: string | undefined): string | undefined =>
  images === BUILT && builtImageOf(instance) === undefined
    ? 'its image cannot be built, for no Dockerfile comes with it'
    : undefined;
