/** Opens the images of a run on the engines of its arms; their messages become events of the run. */

import { parseSize } from '../../base/text/units.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import type { EngineImageSource } from '../../environment/environmentKind.ts';
import { onEngines } from '../../environment/environments.ts';
import { engineInfo } from '../../environment/places/engineInfo.ts';
import type { RunPool } from '../../environment/places/enginePool.ts';
import { enginePoolOf } from '../../environment/places/hostsFactory.ts';
import type { ImagesConfig } from '../../environment/places/imagesConfig.ts';
import type { StageEvent } from '../../environment/places/pullStage.ts';
import { ownPullBook, type PullBook } from '../../environment/places/pullThrottle.ts';
import type { RunImages, RunImagesConfig } from '../../environment/places/runImages.ts';
import { imagesOfOneEngine, imagesOfSeveralEngines } from '../../environment/places/runImages.ts';
import { takePull } from '../../store/live/rates.ts';
import type { Store } from '../../store/open.ts';
import type { Variables } from '../caller.ts';
import type { RunEvents } from '../events.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { UserError } from '../userError.ts';
import { createAdmission } from './admission.ts';
import { imagesOn, openImages, requireEngine } from './engines.ts';

export interface OpenedImages {
  readonly images: RunImages;
  readonly pool?: RunPool;
}

const armsOnEngines = (arms: readonly ArmConfig[]) =>
  arms.filter(({ environment }) => onEngines(environment));

/** Names of the engines that containers of these arms may be on; undefined is the default one. */
export function enginesOf(arms: readonly ArmConfig[]): (string | undefined)[] {
  const named = armsOnEngines(arms).map(({ environment }) => environment.hosts.map(({ host }) => host));
  return [...new Set(named.flatMap((hosts) => (hosts.length > 0 ? hosts : [undefined])))];
}

/** Undefined when no arm runs on engines. Arms share their engines, and the pull policy of the first. */
export async function openRunImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  events: RunEvents,
  store: Store,
): Promise<OpenedImages | undefined> {
  const first = armsOnEngines(arms)[0]?.environment;
  if (!first) return undefined;
  const pullBook = sharedPulls(store);
  const memoryBytes = Math.max(
    ...armsOnEngines(arms).map(({ environment }) => parseSize(environment.memory)),
  );
  const settings = { ...config, pull: first.pull, memoryBytes };
  if (first.hosts.length > 0) {
    refuseDifferent(armsOnEngines(arms));
    return openSeveral({ env, first, settings, events, pullBook });
  }
  const service = await openImages(env, { ...serviceOptions(first, config, events, undefined), pullBook });
  return { images: shown(imagesOfOneEngine(service, settings), events) };
}

const enginesIn = ({ environment: { hosts } }: ArmConfig) => JSON.stringify(hosts);

function refuseDifferent(arms: readonly ArmConfig[]): void {
  const differs = arms.find((arm) => enginesIn(arm) !== enginesIn(arms[0]!));
  if (differs)
    throw new UserError(`arm ${differs.name} has other engines than the first arm`, {
      hint: 'give all arms the same environment.hosts',
    });
}

/** An engine that hangs must not keep the others waiting. */
const ANSWER_MS = 5000;

interface SeveralParts {
  readonly env: Variables;
  readonly first: EnvironmentConfig;
  readonly settings: ImagesConfig & RunImagesConfig;
  readonly events: RunEvents;
  readonly pullBook: PullBook;
}

function openSeveral({ env, first, settings, events, pullBook }: SeveralParts): OpenedImages {
  const { hosts, platform } = first;
  const note = (text: string) => events.emit({ type: 'note', text });
  const serviceOf = (host: string) =>
    imagesOn(env, { ...serviceOptions(first, settings, events, host), pullBook, elsewhere: true }, host);
  const services = new Map(hosts.map(({ host }) => [host, serviceOf(host)]));
  const pool = enginePoolOf(hosts, note);
  const asked = { platform, emulation: settings.allow_emulation };
  const ask = (host: string) => engineInfo(requireEngine(env, host).docker, ANSWER_MS);
  const admit = createAdmission({ pool, ask, platform: asked, note });
  const images = imagesOfSeveralEngines(services, pool, settings, note, admit);
  return { images: shown(images, events), pool };
}

/** One budget for all engines and processes. A pull is not held back because the record cannot be written: that is told elsewhere. */
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

export interface GradingImages extends EngineImageSource {
  /** Removes what the image policy allows. */
  close(): Promise<void>;
}

/** For grading outside of a run. Connects to engines when the first image is needed, because there may be nothing to grade. */
export function openGradingImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  needed: readonly string[],
  events: RunEvents,
  store: Store,
): GradingImages | undefined {
  if (armsOnEngines(arms).length === 0) return undefined;
  let opening: Promise<RunImages> | undefined;
  let opened: RunImages | undefined;
  const open = async () => {
    opened = (await openRunImages(env, arms, config, events, store))!.images;
    await opened.need(needed);
    return opened;
  };
  return {
    ensureOn: (host) => async (image, more) => {
      opening ??= open();
      return (await opening).ensureOn(host)(image, more);
    },
    has: (host, image) => opened?.has(host, image) ?? false,
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
function shown(images: RunImages, events: RunEvents): RunImages {
  let last = '';
  const show = () => {
    const engines = images.status();
    const pulls = {
      active: engines.flatMap(({ host, status }) =>
        status.active.map(({ image, progress }) => ({
          image,
          host,
          downloadedBytes: progress?.downloadedBytes ?? 0,
          totalBytes: progress?.totalBytes ?? 0,
        })),
      ),
      waiting: engines.reduce((sum, { status }) => sum + status.waiting, 0),
      paused: engines.flatMap(({ host, status }) => (status.paused ? [{ host, ...status.paused }] : [])),
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

function serviceOptions(
  environment: EnvironmentConfig,
  config: ImagesConfig,
  events: RunEvents,
  host: string | undefined,
) {
  const on = host === undefined ? '' : ` on ${host}`;
  const note = (text: string) => events.emit({ type: 'note', text: `${text}${on && ` (${host})`}` });
  return {
    config,
    pull: environment.pull,
    platform: environment.platform,
    stallSeconds: environment.pull_timeout,
    measureDisk: true,
    onWarning: note,
    onEvent: (event: StageEvent) => {
      const text = sentence(event);
      if (text !== undefined) note(text);
      if (event.type === 'ready' && event.ready.pulled) {
        const { image, bytes, pullMs } = event.ready;
        events.emit({ type: 'pulled', image, host, bytes, ms: pullMs });
      }
    },
    onDisk: ({ open, message }: { open: boolean; message: string }) =>
      events.emit(
        open
          ? { type: 'resumed', reason: `the disk${on} has room again` }
          : {
              type: 'paused',
              reason: `${message}${on}: no new instances start${host === undefined ? '' : ' there'} until there is room`,
            },
      ),
  };
}

const seconds = (ms: number) => (ms / 1000).toFixed(ms < 10_000 ? 1 : 0);

/** Only events that are worth a line in the log; displays read progress elsewhere. */
function sentence(event: StageEvent): string | undefined {
  if (event.type === 'started') return `pulling ${event.image}`;
  if (event.type === 'ready' && event.ready.pulled)
    return `pulled ${event.ready.image} in ${seconds(event.ready.pullMs)} s, ${(event.ready.bytes / 1e6).toFixed(0)} MB`;
  if (event.type === 'retry')
    return `${event.image}: ${event.message}; the pull is tried again in ${seconds(event.waitMs)} s`;
  if (event.type === 'paused')
    return `pulls pause until ${new Date(event.until).toISOString()}: ${event.message}; running instances go on`;
  if (event.type === 'failed') return event.error.message;
  return undefined;
}
