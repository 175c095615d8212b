/** Opens the images of a run on the engines of its arms; their messages become events of the run. */

import { join } from 'node:path';
import { imageKey, isMadeHere } from '../../base/imageReference.ts';
import { parseSize } from '../../base/text/units.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import type { EngineImageSource } from '../../environment/environmentKind.ts';
import { onEngines } from '../../environment/environments.ts';
import { type EngineInfo, engineInfo } from '../../environment/places/engineInfo.ts';
import type { EnginePool, RunPool } from '../../environment/places/enginePool.ts';
import { dockerImageEngine, type ImageEngine } from '../../environment/places/imageEngine.ts';
import { openImageLedger } from '../../environment/places/imageLedger.ts';
import type { ImagesConfig } from '../../environment/places/imagesConfig.ts';
import { enginePoolOf, imagesOfEngines, type RunImages } from '../../environment/places/places.ts';
import { ownPullBook, type PullBook } from '../../environment/places/pullImage.ts';
import type { StageEvent } from '../../environment/places/pullStage.ts';
import { takePull } from '../../store/live/rates.ts';
import type { Store } from '../../store/open.ts';
import type { Variables } from '../caller.ts';
import type { RunEvents } from '../events.ts';
import { engineFindings, type PlatformAsked } from '../plan/engineFit.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { UserError } from '../userError.ts';
import { imagesOn, openImages, requireEngine, stateDir } from './engines.ts';

/** An engine that hangs must not keep the others waiting; one that is only slow is judged before it gets trials. */
const ANSWER_MS = 15_000;

const armsOnEngines = (arms: readonly ArmConfig[]) =>
  arms.filter(({ environment }) => onEngines(environment));

/** Names of the engines that containers of these arms may be on; undefined is the default one. */
export function enginesOf(arms: readonly ArmConfig[]): (string | undefined)[] {
  const named = armsOnEngines(arms).map(({ environment }) => environment.hosts.map(({ host }) => host));
  return [...new Set(named.flatMap((hosts) => (hosts.length > 0 ? hosts : [undefined])))];
}

/** Undefined when no arm runs on engines. Arms share their engines, and the pull policy of the first. `pool`: the places on several engines. */
export async function openRunImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  events: RunEvents,
  store: Store,
): Promise<{ images: RunImages; pool?: RunPool } | undefined> {
  const there = armsOnEngines(arms);
  const first = there[0]?.environment;
  if (!first) return undefined;
  const { hosts, platform, pull } = first;
  const pullBook = sharedPulls(store);
  const memoryBytes = Math.max(...there.map(({ environment }) => parseSize(environment.memory)));
  const settings = { ...config, pull, memoryBytes };
  if (hosts.length === 0) {
    const service = await openImages(env, { ...serviceOptions(first, config, events, undefined), pullBook });
    return { images: shown(imagesOfEngines(new Map([[undefined, service]]), settings), events) };
  }
  const differs = there.find(
    ({ environment }) => JSON.stringify(environment.hosts) !== JSON.stringify(hosts),
  );
  if (differs)
    throw new UserError(`arm ${differs.name} has other engines than the first arm`, {
      hint: 'give all arms the same environment.hosts',
    });
  const note = (text: string) => events.emit({ type: 'note', text });
  const services = new Map(
    hosts.map(({ host }) => {
      const options = { ...serviceOptions(first, settings, events, host), pullBook, elsewhere: true };
      return [host, imagesOn(env, options, host)];
    }),
  );
  const pool = enginePoolOf(hosts, note);
  const admit = createAdmission({
    pool,
    ask: (host) => engineInfo(requireEngine(env, host).docker, { answerMs: ANSWER_MS, again: true }),
    platform: { platform, emulation: settings.allow_emulation },
    note,
  });
  return { images: shown(imagesOfEngines(services, settings, pool, note, admit), events), pool };
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

/** For grading outside of a run. Connects to engines when the first image is needed, because there may be nothing to grade. */
export function openGradingImages(
  env: Variables,
  arms: readonly ArmConfig[],
  config: ImagesConfig,
  needed: readonly string[],
  events: RunEvents,
  store: Store,
): (EngineImageSource & { close(): Promise<void> }) | undefined {
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

/** Enough to know the processor of the others. */
const COMPARED = 3;

/** Refuses an engine that does not fit. One that does not answer is asked again for the next trial. */
export function createAdmission({
  pool,
  ask,
  platform,
  note,
}: {
  readonly pool: EnginePool;
  readonly ask: (host: string) => Promise<EngineInfo>;
  readonly platform: PlatformAsked;
  readonly note: (text: string) => void;
}): (host: string) => Promise<void> {
  const told = new Map<string, Promise<EngineInfo>>();
  const checked = new Map<string, Promise<void>>();
  const admitted = new Set<string>();
  const infoOf = async (host: string) => {
    const known = told.get(host) ?? ask(host);
    told.set(host, known);
    const info = await known;
    if (!info.ok) told.delete(host);
    return info;
  };
  const check = async (host: string) => {
    const own = await infoOf(host);
    if (!own.ok) return void checked.delete(host);
    // The first are compared with each other, in one order, so that all come to the same answer.
    const others = admitted.size > 0 ? [...admitted].slice(0, COMPARED) : pool.alive();
    const asked = await Promise.all(
      [...new Set([...others, host])].map(async (what) => ({ what, engine: await infoOf(what) })),
    );
    const problems = engineFindings(asked, platform).filter(({ what }) => what === host);
    if (problems.length === 0) return void admitted.add(host);
    pool.refuse(host);
    const text = problems.map(({ detail, fix }) => `${detail}; ${fix}`).join('; ');
    note(`engine ${host} is refused, and gets no trials: ${text}`);
  };
  return (host) => {
    const known = checked.get(host) ?? check(host);
    checked.set(host, known);
    return known;
  };
}

export interface ImageContent {
  readonly id: string;
  /** Digests in registries; empty for an image that was built here. */
  readonly digests: readonly string[];
}

/** For each name the content on every engine that has it; engines that do not answer are skipped. */
export async function contentsHere(
  env: Variables,
  arms: readonly ArmConfig[],
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly ImageContent[]>> {
  const ledger = openImageLedger(join(stateDir(env), 'images.jsonl'));
  const engines = await Promise.all(
    enginesOf(arms).map((host) => {
      const { docker } = requireEngine(env, host);
      return contentsOn(dockerImageEngine(docker)).catch(() => new Map<string, ImageContent>());
    }),
  );
  return new Map(names.map((name) => [name, engines.flatMap((found) => found.get(name) ?? [])]));

  async function contentsOn(engine: ImageEngine): Promise<Map<string, ImageContent>> {
    const own = await ledger.own((await engine.info()).id);
    const found = new Map<string, ImageContent>();
    for (const name of new Set(names)) {
      const local = await engine.inspect(name);
      if (!local) continue;
      // The engine forgets the digest of what came from a mirror when the mirror's name goes.
      const pulled = own.filter((o) => imageKey(o.image) === imageKey(name) && o.id === local.id);
      found.set(name, {
        id: local.id,
        digests: [...local.digests, ...pulled.flatMap((o) => o.digest ?? [])],
      });
    }
    return found;
  }
}
