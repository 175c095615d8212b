/** The engines of a sitting: asked whether they answer, written down, and rid of what they kept while they were away. */

import type { Closing } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import type { Reaped } from '../../environment/environmentKind.ts';
import { onEngines, reapEnvironments } from '../../environment/environments.ts';
import { currentOwner, type MachineFacts } from '../../environment/owner.ts';
import { engineClient, engineOptionsOf } from '../../environment/places/chosenEngine.ts';
import { readFault } from '../../environment/places/dockerFault.ts';
import type { RunPool } from '../../environment/places/enginePool.ts';
import {
  discardWork,
  FREED_BY,
  listWorkImages,
  reap,
  reapLeft,
  reapServiceParts,
  type ServicePart,
  type WorkImage,
} from '../../environment/places/leftovers.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import { beginLease, endLease, hasLeftEngine } from '../../store/live/leases.ts';
import type { Store } from '../../store/open.ts';
import { worksOf, worksOfContainer } from '../../store/records/evaluations.ts';
import { allArms, armsOf, type RunRow } from '../../store/records/runs.ts';
import type { Caller, Variables } from '../caller.ts';
import type { RunEvents } from '../events.ts';
import { type ArmConfig, plannedArm, recordedEnvironment } from '../plan/planRecord.ts';
import { requireEngine } from './engines.ts';
import { enginesOf } from './openImages.ts';

const LOOK_MS = 5_000;
/** Long enough for the next trial to take what has just become free. */
const BALANCE_MS = 1_000;

/** A slow engine is not waited for, and one that hangs on one container may still serve others: the next run removes what is left. */
const REAP_LIMIT_MS = 20_000;

interface KeptIn {
  readonly store: Store;
  readonly run: Pick<RunRow, 'id' | 'name' | 'created_at'>;
  readonly isoNow: () => string;
  /** The record cannot be written. */
  readonly onError: (error: unknown) => void;
}

/** `pool`: the places on several engines. */
export function keepEngines(
  pool: RunPool | undefined,
  { events, ...kept }: KeptIn & { readonly events: Pick<RunEvents, 'emit'> },
  closing: Closing,
): void {
  if (!pool) return;
  const { store, run } = kept;
  // One look does not begin before the last has ended.
  let looking = false;
  const look = setInterval(() => {
    if (looking) return;
    looking = true;
    void pool.look().finally(() => {
      looking = false;
    });
  }, LOOK_MS);
  look.unref();
  closing.add(() => clearInterval(look));
  const balancing = setInterval(pool.balance, BALANCE_MS);
  closing.add(() => clearInterval(balancing));
  recordLeases(pool, kept);
  const leased = new Set<string>();
  const key = (host: string, attempt: string) => JSON.stringify([host, attempt]);
  const note = (text: string) => events.emit({ type: 'note', text });
  pool.follow({
    leased: (host, attempt) => void leased.add(key(host, attempt)),
    released: (host, attempt) => void leased.delete(key(host, attempt)),
    async back(host) {
      // Gradings have no lease in the record: what this process does not grade there now has ended.
      const isOver = (attempt: string) =>
        !leased.has(key(host, attempt)) &&
        (attempt.startsWith('grade-') || hasLeftEngine(store, run.id, host, attempt));
      try {
        const docker = engineClient(engineOptionsOf(host));
        const owner = currentOwner(run.name, 'run', run.created_at);
        const removed = await reapLeft({ docker, isOver, limitMs: REAP_LIMIT_MS, owner });
        if (removed.length > 0)
          note(`engine ${host} is back; removed ${removed.length} container(s) of attempts that have ended`);
      } catch (error) {
        note(`engine ${host} is back; what it kept could not be looked at: ${errorText(error)}`);
      }
    },
  });
}

/** Writes down which attempt is on which engine. */
export function recordLeases(pool: RunPool, { store, run: { id: run }, isoNow, onError }: KeptIn): void {
  const write = (work: () => unknown): void => {
    try {
      work();
    } catch (error) {
      onError(error);
    }
  };
  pool.follow({
    leased: (engine, attempt) => write(() => beginLease(store, { run, engine, attempt, at: isoNow() })),
    released: (engine, attempt, how) =>
      write(() => endLease(store, { run, engine, attempt, at: isoNow() }, how)),
  });
}

/** The preflight checks that an engine answers; with several, one may be down and the run goes on without it. */
export async function reapOrphans(arms: readonly ArmConfig[], caller: Caller): Promise<void> {
  const { env, tell } = caller;
  const environments = arms.map(({ environment }) => environment);
  for (const { what, place, removed, failed, silent } of await reapEnvironments(environments)) {
    if (removed.length > 0)
      tell({ level: 'note', text: `removed ${removed.length} ${what}(s) that a dead process had left` });
    for (const { name } of failed)
      tell({ level: 'warning', text: `${what} ${name} could not be removed; the next run tries again` });
    if (silent !== undefined)
      tell({ level: 'warning', text: `what dead processes left in ${place} is not known: ${silent}` });
  }
  for (const host of enginesOf(arms)) {
    try {
      const { docker } = requireEngine(env, host);
      const { removed, failed } = await reap({ docker, limitMs: REAP_LIMIT_MS });
      if (removed.length > 0)
        tell({ level: 'note', text: `removed ${removed.length} container(s) that a dead process had left` });
      for (const { name, unanswered } of failed) {
        const why = unanswered ? `: its engine does not answer for it; ${FREED_BY}` : '';
        tell({
          level: 'warning',
          text: `container ${name} could not be removed${why}; the next run tries again`,
        });
      }
      const parts = await reapServiceParts(docker, { limitMs: REAP_LIMIT_MS });
      for (const { what, name } of parts.failed)
        tell({ level: 'warning', text: `${what} ${name} could not be removed; the next run tries again` });
    } catch (error) {
      const { daemonGone, text } = readFault(error);
      if (daemonGone && host === undefined) throw error;
      if (!daemonGone)
        tell({
          level: 'warning',
          text: `what dead processes left on ${host ?? 'the engine'} is not known: ${text}; the next run looks again`,
        });
    }
  }
}

interface OrphanWork {
  readonly orphans: readonly WorkImage[];
  readonly removed: readonly WorkImage[];
  /** Orphans that the engine would not remove, because a container of theirs is there. */
  readonly failed: readonly WorkImage[];
  /** Of an owner that lives or cannot be judged from here, of a trial that can still be graded, or of no attempt in the record. */
  readonly kept: readonly WorkImage[];
}

/** Removes what was kept of the attempts of a run that goes. Returns what an engine that does not answer still has. */
export async function discardWorkOf(store: Store, run: Pick<RunRow, 'id'>): Promise<string[]> {
  const images = [...new Set(worksOf(store, run.id).flatMap(imagesOfWork))];
  if (images.length === 0) return [];
  const left = new Set<string>();
  for (const host of enginesOf(
    armsOf(store, run.id).map((row) => ({ name: row.name, ...plannedArm(row) })),
  )) {
    const docker = engineClient(host === undefined ? undefined : engineOptionsOf(host));
    for (const image of images) await discardWork(docker, image).catch(() => left.add(image));
  }
  return [...left];
}

/** A result may be graded later, from what was kept of it. Whatever an attempt without a result left is made anew with the next one. */
function isNeedless({ name, container, owner }: WorkImage, store: Store): boolean {
  if (owner !== 'dead' || container === '') return false;
  const attempts = worksOfContainer(store, container);
  try {
    return (
      attempts.length > 0 &&
      attempts.every(
        ({ is_open, work_image }) =>
          is_open === 0 || work_image === null || !imagesOfWork(work_image).includes(name),
      )
    );
  } catch {
    // What cannot be read may name it.
    return false;
  }
}

/** `store`: the record of a results root; undefined where there is none, and then nothing is proven. */
export async function cleanWork(
  docker: Parameters<typeof listWorkImages>[0],
  store: Store | undefined,
  { dryRun, machine }: { readonly dryRun: boolean; readonly machine?: MachineFacts },
): Promise<OrphanWork> {
  const all = await listWorkImages(docker, machine);
  const orphans = all.filter((image) => store !== undefined && isNeedless(image, store));
  const kept = all.filter((image) => !orphans.includes(image));
  if (dryRun) return { orphans, removed: [], failed: [], kept };
  // What is still there afterwards has failed, whatever was said of it: an engine may go on with a removal that took too long.
  for (const { name } of orphans) await discardWork(docker, name).catch(() => undefined);
  const left = new Set((await listWorkImages(docker, machine)).map(({ name }) => name));
  return {
    orphans,
    kept,
    removed: orphans.filter(({ name }) => !left.has(name)),
    failed: orphans.filter(({ name }) => left.has(name)),
  };
}

interface CleanedPlaces {
  /** Each once: containers and end states of engines, and what other kinds of environments have. */
  readonly places: readonly Reaped[];
  /** The default engine has something of this record, or nothing says that another place has. */
  readonly needsDefault: boolean;
}

/** What dead processes left on the default engine and in every place that the record names. `store`: as of `cleanWork`. */
export async function cleanPlaces(
  env: Variables,
  store: Store | undefined,
  how: { readonly dryRun: boolean },
): Promise<CleanedPlaces> {
  const recorded = store ? allArms(store).flatMap((arm) => recordedEnvironment(arm) ?? []) : [];
  const environments = recorded.filter(isWhole);
  const onDocker = environments.filter(onEngines);
  const hosts = new Set(onDocker.flatMap((one) => (one.hosts ?? []).map(({ host }) => host)));
  const places: Reaped[] = [];
  for (const host of [undefined, ...hosts]) places.push(...(await cleanEngine(env, host, store, how)));
  places.push(...(await reapEnvironments(environments, how)));
  const needsDefault =
    places.every(({ place }) => place === DEFAULT_PLACE) ||
    onDocker.some((one) => (one.hosts ?? []).length === 0);
  return { places, needsDefault };
}

/** An arm that was imported may say nothing of where it ran. */
const isWhole = (environment: Partial<EnvironmentConfig>): environment is EnvironmentConfig =>
  environment.environment_class !== undefined;

async function cleanEngine(
  env: Variables,
  host: string | undefined,
  store: Store | undefined,
  how: { readonly dryRun: boolean },
): Promise<Reaped[]> {
  const place = host ?? DEFAULT_PLACE;
  try {
    const { docker } = requireEngine(env, host);
    const limitMs = REAP_LIMIT_MS;
    const containers = await reap({ docker, ...how, limitMs });
    const parts = await reapServiceParts(docker, { ...how, limitMs });
    const work = await cleanWork(docker, store, how);
    const partsOf = (what: ServicePart['what']) => {
      const only = (list: readonly ServicePart[]) => list.filter((part) => part.what === what);
      const { orphans, removed, failed, kept } = parts;
      const found = {
        orphans: only(orphans),
        removed: only(removed),
        failed: only(failed),
        kept: only(kept),
      };
      return found.orphans.length + found.kept.length > 0 ? [{ what, place, ...found }] : [];
    };
    return [
      { what: 'container', place, ...containers },
      ...partsOf('network'),
      ...partsOf('volume'),
      { what: 'end state', place, ...work },
    ];
  } catch (error) {
    const nothing = { orphans: [], removed: [], failed: [], kept: [] };
    return [{ what: 'container', place, ...nothing, silent: errorText(error) }];
  }
}

export const DEFAULT_PLACE = 'default engine';
