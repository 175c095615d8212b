/** Opens the images of a run on its engine; their messages become events of the run. */
import { isMadeHere } from '../../base/imageReference.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { onEngines } from '../../environment/environments.ts';
import type { EnsureImage, ImageEvent } from '../../environment/places/imageJobs.ts';
import {
  type ImageContent,
  type ImageService,
  imageContents,
} from '../../environment/places/imageService.ts';
import type { ImagesConfig } from '../../environment/places/imagesConfig.ts';
import { ownPullBook, type PullBook } from '../../environment/places/pullImage.ts';
import { takePull } from '../../store/live/rates.ts';
import type { Store } from '../../store/open.ts';
import type { Variables } from '../caller.ts';
import type { RunEvents } from '../events.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { openImages, requireEngine, stateDir } from './engines.ts';

const armsOnEngine = (arms: readonly ArmConfig[]) => arms.filter(({ environment }) => onEngines(environment));

/** Undefined when no arm runs on an engine. Arms share the pull policy of the first. */
export async function openRunImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  events: RunEvents,
  store: Store,
): Promise<ImageService | undefined> {
  const first = armsOnEngine(arms)[0]?.environment;
  if (!first) return undefined;
  const options = { ...serviceOptions(first, config, events), pullBook: sharedPulls(store) };
  return shown(await openImages(env, options), events);
}

/** One budget for all processes. A pull is not held back because the record cannot be written: that is told elsewhere. */
function sharedPulls(store: Store): PullBook {
  const own = ownPullBook();
  return {
    take(ask) {
      try {
        return takePull(store, ask);
      } catch {
        return own.take(ask);
      }
    },
  };
}

/** Images of a grading outside of a run. Connects to the engine when the first image is needed, because there may be nothing to grade. */
export function openGradingImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  needed: readonly string[],
  events: RunEvents,
  store: Store,
): { readonly ensure: EnsureImage; close(): Promise<void> } | undefined {
  if (armsOnEngine(arms).length === 0) return undefined;
  let opening: Promise<ImageService> | undefined;
  let opened: ImageService | undefined;
  const open = async () => {
    opened = (await openRunImages(env, arms, config, events, store))!;
    await opened.need(needed);
    return opened;
  };
  return {
    async ensure(image, asks) {
      opening ??= open();
      return (await opening).ensure(image, asks);
    },
    /** Removes what the image policy allows. */
    async close() {
      if (!opened) return;
      await opened.need([]);
      if (config.policy !== 'keep') await opened.collect();
      await opened.close();
    },
  };
}

const SHOW_EVERY_MS = 500;

/** Emits the progress of pulls until the images are closed. */
function shown(images: ImageService, events: RunEvents): ImageService {
  let last = '';
  const show = () => {
    const { active, waiting, paused } = images.status();
    const pulls = {
      active: active.map(({ image, progress }) => ({
        image,
        downloadedBytes: progress?.downloadedBytes ?? 0,
        totalBytes: progress?.totalBytes ?? 0,
      })),
      waiting,
      paused: paused ? [paused] : [],
    };
    const text = JSON.stringify(pulls);
    if (text === (last || JSON.stringify({ active: [], waiting: 0, paused: [] }))) return;
    last = text;
    events.emit({ type: 'pulls', ...pulls });
  };
  const timer = setInterval(show, SHOW_EVERY_MS);
  return {
    ...images,
    async close() {
      clearInterval(timer);
      await images.close();
      show();
    },
  };
}

function serviceOptions(environment: EnvironmentConfig, config: ImagesConfig, events: RunEvents) {
  const note = (text: string) => events.emit({ type: 'note', text });
  return {
    config,
    pull: environment.pull,
    platform: environment.platform,
    stallSeconds: environment.pull_timeout,
    measureDisk: true,
    onWarning: note,
    onEvent: (event: ImageEvent) => {
      const text = sentence(event);
      if (text !== undefined) note(text);
      if (event.type === 'ready' && event.ready.pulled) {
        const { image, bytes, pullMs } = event.ready;
        events.emit({ type: 'pulled', image, bytes, ms: pullMs });
      }
    },
    onDisk: ({ open, message }: { open: boolean; message: string }) =>
      events.emit(
        open
          ? { type: 'resumed', reason: 'the disk has room again' }
          : { type: 'paused', reason: `${message}: no new instances start until there is room` },
      ),
  };
}

const seconds = (ms: number) => (ms / 1000).toFixed(ms < 10_000 ? 1 : 0);

/** Only events that are worth a line in the log; displays read progress elsewhere. */
function sentence(event: ImageEvent): string | undefined {
  if (event.type === 'started') return `${isMadeHere(event.image) ? 'building' : 'pulling'} ${event.image}`;
  if (event.type === 'ready' && event.ready.pulled)
    return `${isMadeHere(event.ready.image) ? 'built' : 'pulled'} ${event.ready.image} in ${seconds(event.ready.pullMs)} s, ${(event.ready.bytes / 1e6).toFixed(0)} MB`;
  if (event.type === 'retry')
    return `${event.image}: ${event.message}; the pull is tried again in ${seconds(event.waitMs)} s`;
  if (event.type === 'paused')
    return `pulls pause until ${new Date(event.until).toISOString()}: ${event.message}; running instances go on`;
  if (event.type === 'failed') return event.error.message;
  return undefined;
}

/** The content of each name that the engine has; nothing where no arm needs the engine, or it does not answer. */
export async function contentsHere(
  env: Variables,
  arms: readonly ArmConfig[],
  names: readonly string[],
): Promise<ReadonlyMap<string, ImageContent>> {
  if (armsOnEngine(arms).length === 0) return new Map();
  const { docker } = requireEngine(env);
  return imageContents(docker, stateDir(env), names).catch(() => new Map<string, ImageContent>());
}
