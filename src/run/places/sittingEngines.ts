/** Leftovers of dead processes on the engine and in other places: removed before a sitting, and by `swebatch clean`. */
import { errorText } from '../../base/text/errorText.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import type { Reaped } from '../../environment/environmentKind.ts';
import { onEngines, reapEnvironments } from '../../environment/environments.ts';
import type { MachineFacts } from '../../environment/owner.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import { readFault } from '../../environment/places/dockerFault.ts';
import {
  discardWork,
  FREED_BY,
  listWorkImages,
  reap,
  reapServiceParts,
  type ServicePart,
  type WorkImage,
} from '../../environment/places/leftovers.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import type { Store } from '../../store/open.ts';
import { worksOf, worksOfContainer } from '../../store/records/evaluations.ts';
import { allArms, armsOf, type RunRow } from '../../store/records/runs.ts';
import type { Caller, Variables } from '../caller.ts';
import { type ArmConfig, plannedArm, recordedEnvironment } from '../plan/planRecord.ts';
import { requireEngine } from './engines.ts';

/** A slow engine is not waited for, and one that hangs on one container may still serve others: the next run removes what is left. */
const REAP_LIMIT_MS = 20_000;

/** The preflight has found that the engine answers; one that hangs on a container since is told. */
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
  if (!environments.some(onEngines)) return;
  try {
    const { docker } = requireEngine(env);
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
    if (daemonGone) throw error;
    tell({
      level: 'warning',
      text: `what dead processes left on the engine is not known: ${text}; the next run looks again`,
    });
  }
}

interface OrphanWork {
  readonly orphans: readonly WorkImage[];
  readonly removed: readonly WorkImage[];
  /** Orphans that the engine would not remove, because a container of theirs is there. */
  readonly failed: readonly WorkImage[];
  /** End states of an owner that lives or cannot be judged from here, of a trial that can still be graded, or of no attempt in the record. */
  readonly kept: readonly WorkImage[];
}

/** Removes what was kept of the attempts of a run that goes. Returns what an engine that does not answer still has. */
export async function discardWorkOf(store: Store, run: Pick<RunRow, 'id'>): Promise<string[]> {
  const images = [...new Set(worksOf(store, run.id).flatMap(imagesOfWork))];
  if (images.length === 0) return [];
  const left = new Set<string>();
  if (armsOf(store, run.id).some((row) => onEngines(plannedArm(row).environment))) {
    const docker = engineClient();
    for (const image of images) await discardWork(docker, image).catch(() => left.add(image));
  }
  return [...left];
}

/** A result may be graded later, from what was kept of it. The leavings of an attempt without a result are made anew with the next one. */
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
    // A name that cannot be read may be its.
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
  // An end state that is still there afterwards has failed, whatever was said of it: an engine may go on with a removal that took too long.
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
  /** The places, each once: containers and end states of the engine, and what other kinds of environments have. */
  readonly places: readonly Reaped[];
  /** The default engine has something of this record, or nothing says that another place has. */
  readonly needsDefault: boolean;
}

/** Leftovers of dead processes on the default engine and in every place that the record names. `store`: as of `cleanWork`. */
export async function cleanPlaces(
  env: Variables,
  store: Store | undefined,
  how: { readonly dryRun: boolean },
): Promise<CleanedPlaces> {
  const recorded = store ? allArms(store).flatMap((arm) => recordedEnvironment(arm) ?? []) : [];
  const environments = recorded.filter(isWhole);
  const places = [...(await cleanEngine(env, store, how)), ...(await reapEnvironments(environments, how))];
  const needsDefault = places.every(({ place }) => place === DEFAULT_PLACE) || environments.some(onEngines);
  return { places, needsDefault };
}

/** An arm that was imported may say nothing of where it ran. */
const isWhole = (environment: Partial<EnvironmentConfig>): environment is EnvironmentConfig =>
  environment.environment_class !== undefined;

async function cleanEngine(
  env: Variables,
  store: Store | undefined,
  how: { readonly dryRun: boolean },
): Promise<Reaped[]> {
  const place = DEFAULT_PLACE;
  try {
    const { docker } = requireEngine(env);
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
