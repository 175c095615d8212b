/** A run that goes on must be the same run: what changed since it began is refused with a readable difference, or recorded as a boundary. */
import { FIELD_CLASSES } from '../../config/identity.ts';
import { instanceSchema } from '../../dataset/instance.ts';
import { locateDataset } from '../../dataset/read/locate.ts';
import { gradingHashOf } from '../../dataset/read/row.ts';
import { datasetHash } from '../../dataset/record.ts';
import { dollarsToNano } from '../../money.ts';
import {
  type ArmConfig,
  differences,
  differencesText,
  type RunRequest,
} from '../../runner/schedule/planRun.ts';
import type { Store } from '../../store/open.ts';
import { insertEvent } from '../../store/records/eventLog.ts';
import {
  imagesOfRun,
  instancesOf,
  type RunRow,
  setArmConfig,
  setRunBudget,
  setRunConfig,
} from '../../store/records/runs.ts';
import { storedConfig, storedManifest } from '../../store/records/storedConfig.ts';
import type { Caller, Tell, Variables } from '../caller.ts';
import { contentsHere, type ImageContent } from '../images/imageContents.ts';
import { UserError } from '../userError.ts';

type Comparable = { arms: readonly { name: string }[]; run?: unknown; grading?: unknown };

/** Arms by name, so that the difference names the arm and not a position; a single one needs no name, and takes that of its model. */
const comparable = ({ run, grading, arms }: Comparable, single: boolean) => ({
  run,
  grading,
  ...(single
    ? Object.fromEntries(Object.entries(arms[0]!).filter(([key]) => key !== 'name'))
    : { arms: Object.fromEntries(arms.map(({ name, ...rest }) => [name, rest])) }),
});

/** "arms.NAME.environment.env.PAGER" belongs to the field environment.env. */
function isIdentity(key: string): boolean {
  const path = key.split('.');
  const field = path[0] === 'arms' ? path.slice(path.findIndex((k) => SECTIONS.has(k))) : path;
  for (let n = field.length; n > 0; n--) {
    const known = FIELD_CLASSES[field.slice(0, n).join('.')];
    if (known) return known === 'identity';
  }
  return true;
}
const SECTIONS = new Set(['agent', 'environment', 'model']);

/** A run that is resumed keeps the rows it recorded; that the dataset has moved on meanwhile is said. */
export function tellOtherRevision(run: RunRow, { env, tell }: Caller): void {
  const { dataset_source: source, dataset_revision: recorded } = run;
  if (recorded === null) return;
  const location = locateDataset(source, { env });
  const here = location.ok ? location.found.revision : null;
  if (here !== null && here !== recorded)
    tell({
      level: 'note',
      text: `${source} is at revision ${here.slice(0, 12)} here; run ${run.name} goes on with the rows of ${recorded.slice(0, 12)} that it recorded`,
    });
}

export function checkSameRun(
  store: Store,
  run: RunRow,
  request: RunRequest,
  { allow, tell }: { readonly allow: boolean; readonly tell: Tell },
): void {
  const stored = { arms: [], ...storedConfig(run) };
  const { run: runConfig, grading, images, arms: askedArms } = request;
  const config = { run: runConfig, grading, images, arms: askedArms };
  const single = stored.arms.length === 1 && config.arms.length === 1;
  const [was, is] = [comparable(stored, single), comparable(config, single)];
  const changed = differences(was, is, isIdentity);
  const rows = changedRows(store, run, request, tell);
  const problems = [
    ...(changed.length > 0 ? [`the configuration changed:\n${differencesText(changed)}`] : []),
    ...(rows.length > 0 ? [`the dataset changed:\n${rows.map((r) => `  ${r}`).join('\n')}`] : []),
  ];
  if (problems.length > 0 && !allow)
    throw new UserError(`run ${run.name} cannot go on: ${problems.join('\n')}`, {
      hint: 'choose another --run-id, restore what changed, or go on with --allow-config-change (recorded as a boundary)',
    });
  const arms = stored.arms.map((a) => a.name).join(', ');
  const asked = request.arms.map((a) => a.name).join(', ');
  if (arms !== asked)
    throw new UserError(`run ${run.name} has the arms ${arms}, not ${asked}; a new arm needs a new --run-id`);
  if (problems.length > 0)
    insertEvent(store, run.id, new Date().toISOString(), 'config_changed', { changed, rows });
  const settings = differences(was, is, (key) => !isIdentity(key));
  if (settings.length > 0)
    insertEvent(store, run.id, new Date().toISOString(), 'limit_changed', { changed: settings });
  // The selection stays what it was: a run that goes on may be asked for a part of itself.
  const kept = { ...config, ...(stored.dataset === undefined ? {} : { dataset: stored.dataset }) };
  for (const { name, agent, environment, model } of request.arms)
    setArmConfig(store, run.id, name, JSON.stringify({ agent, environment, model }));
  setRunConfig(store, run.id, JSON.stringify(kept), request.configHash);
  // The budget is a runtime matter: more money lets a stopped run go on.
  setRunBudget(store, run.id, request.run.cost_limit > 0 ? dollarsToNano(request.run.cost_limit) : null);
}

/**
 * An image that has another content under the same name is another environment: what ran in the old one and what would run in the
 * new one are not one experiment. Images that are not here are pulled later; their digests are recorded with each attempt.
 */
export async function checkSameImages(
  store: Store,
  run: RunRow,
  arms: readonly ArmConfig[],
  { allow, env }: { readonly allow: boolean; readonly env: Variables },
): Promise<void> {
  const began = storedManifest(run).images ?? {};
  const ran = imagesOfRun(store, run.id);
  const names = [...ran.keys()];
  const here = await contentsHere(env, arms, names);
  const changed = names.flatMap((name) => {
    const seen = [...ran.get(name)!, ...(began[name] ? [began[name]] : [])];
    const other = here.get(name)!.find((now) => !seen.some((digest) => isContent(digest, now)));
    if (!other || seen.length === 0) return [];
    return [{ key: `image ${name}`, was: seen[0]!, is: other.digests[0] ?? other.id }];
  });
  if (changed.length === 0) return;
  if (!allow)
    throw new UserError(`run ${run.name} cannot go on: images changed:\n${differencesText(changed)}`, {
      hint: 'choose another --run-id, restore what changed, or go on with --allow-config-change (recorded as a boundary)',
    });
  insertEvent(store, run.id, new Date().toISOString(), 'config_changed', { changed, rows: [] });
}

/** One content has a digest for each repository that it was pulled from: what counts stands behind the "@". */
const isContent = (digest: string, now: ImageContent): boolean =>
  digest === now.id || now.digests.some((one) => one.split('@').at(-1) === digest.split('@').at(-1));

/** What is selected now must be rows that the run was planned with, unchanged. */
function changedRows(store: Store, run: RunRow, request: RunRequest, tell: Tell): string[] {
  const moved = revisionChange(run.dataset_revision, request.dataset.revision);
  if (datasetHash(request.selected) === run.dataset_hash) {
    if (moved) tell({ level: 'note', text: `the dataset's ${moved}; the selected rows are the same` });
    return [];
  }
  const planned = new Map(instancesOf(store, run.id).map((i) => [i.instance_id, i]));
  const changed = request.selected.flatMap(({ instance, rowHash }) => {
    const was = planned.get(instance.instance_id);
    if (was === undefined) return [`${instance.instance_id} was not planned in this run`];
    if (was.row_hash === rowHash) return [];
    // Revisions of the official datasets differ in tests and scripts, which is what a verdict rests on.
    const verdict = gradingHashOf(instanceSchema.parse(JSON.parse(was.row))) !== gradingHashOf(instance);
    const what = verdict ? 'its tests or eval script differ, so verdicts may too' : 'its text differs';
    return [`${instance.instance_id}: the row is another one (${what})`];
  });
  return changed.length > 0 && moved ? [moved, ...changed] : changed;
}

const revisionChange = (was: string | null, is: string | null): string | undefined =>
  was === is
    ? undefined
    : `revision was ${was?.slice(0, 12) ?? 'not known'}, is ${is?.slice(0, 12) ?? 'not known'}`;
