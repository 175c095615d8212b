/** The images of a run on the only engine there is, which has no places. */
import { ensureBy } from './ensureImage.ts';
import type { ImageService } from './imageService.ts';
import { planOf, type RunImages, type RunImagesConfig, runImagesSettings } from './runImages.ts';

export function imagesOfOneEngine(service: ImageService, config: RunImagesConfig): RunImages {
  const ensure = ensureBy(service.stage);
  let among: readonly string[] | undefined;
  return {
    ...runImagesSettings(config, 1),
    async ready(image, signal) {
      await service.disk.pass(signal);
      signal.throwIfAborted();
      const { warnings } = await service.stage.ensure(image, signal);
      return { place: undefined, warnings };
    },
    ensureOn: () => ensure,
    hasRoom: async () => (await service.disk.check()).open,
    has: (_, image) => service.stage.isReady(image),
    need: (images) => service.need(images),
    belong(images) {
      among = images;
    },
    done: (image) => service.done(image, among),
    collect: () => service.collect({ among }),
    plan: async (images, signal) => [await planOf(undefined, service, images, config, signal)],
    engineDir: () => service.layersDir(),
    status: () => [{ host: undefined, status: service.stage.status() }],
    close: () => service.close(),
  };
}
