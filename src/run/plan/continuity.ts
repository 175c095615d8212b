/** A continued run must be the same run: a change is refused with a readable difference, or recorded as a boundary. */
import { recordOf } from '../../base/isRecord.ts';
import { FIELD_CLASSES } from '../../config/configSchema.ts';
import { datasetHash, headOf, readInstance, readRowHash } from '../../dataset/dataset.ts';
import { instanceSchema } from '../../dataset/instance.ts';
import { locateDataset } from '../../dataset/read/locate.ts';
import { gradingHashOf } from '../../dataset/read/row.ts';
import type { ImageContent } from '../../environment/places/imageService.ts';
import { shownAddress } from '../../model/describe.ts';
import { namedModel, PROVIDERS } from '../../model/names.ts';
import { settleModel } from '../../model/settleModel.ts';
import { dollarsToNano } from '../../money.ts';
import type { Store } from '../../store/open.ts';
import { insertEvent } from '../../store/records/attemptBodies.ts';
import {
  imagesOfRun,
  instancesOf,
  type RunRow,
  setArmConfig,
  setRunBudget,
  setRunConfig,
  shardName,
  shardOf,
  storedManifest,
  wholeConfig,
} from '../../store/records/runs.ts';
import type { Caller, Tell, Variables } from '../caller.ts';
import { contentsHere } from '../places/openImages.ts';
import { UserError } from '../userError.ts';
import { type ArmConfig, armText, type Difference, type RunRequest } from './planRecord.ts';

const short = (text: string | null): string =>
  text === null ? '(absent)' : text.length > 60 ? `${text.slice(0, 57)}...` : text;

const differencesText = (list: readonly Difference[]): string =>
  list.map((d) => `  ${d.key}: was ${short(d.was)}, now ${short(d.is)}`).join('\n');

type Comparable = {
  arms: readonly { name: string }[];
  run?: unknown;
  grading?: unknown;
  suite?: unknown;
};

/** Keyed by arm name, so that a difference names the arm and not a position. A single arm needs no name. */
const comparable = ({ run, grading, suite, arms }: Comparable, single: boolean) => ({
  run,
  grading,
  suite,
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
const SECTIONS = new Set(['agent', 'environment', 'model', 'gateway']);

/** A resumed run keeps its recorded rows; this tells when the dataset has a newer revision. */
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
  refuseOtherShard(run, request);
  const stored = { arms: [], ...wholeConfig(run) };
  const { run: runConfig, grading, images, suite, arms: askedArms } = request;
  const config = { run: runConfig, grading, images, suite, arms: askedArms };
  const single = stored.arms.length === 1 && config.arms.length === 1;
  const [was, is] = [comparable(stored, single), comparable(config, single)];
  const changed = differences(was, is, isIdentity);
  const rows = changedRows(store, run, request, tell);
  const other = changed.length + rows.length > 0;
  if (other && !allow)
    throw new UserError(`run ${run.name} cannot go on: ${changesText(changed, rows)}`, {
      next: { do: 'allow_change' },
    });
  const arms = stored.arms.map((a) => a.name).join(', ');
  const asked = request.arms.map((a) => a.name).join(', ');
  if (arms !== asked)
    throw new UserError(`run ${run.name} has the arms ${arms}, not ${asked}; a new arm needs a new run`, {
      next: { do: 'choose_name' },
    });
  if (other) insertEvent(store, run.id, new Date().toISOString(), 'config_changed', { changed, rows });
  const settings = differences(was, is, (key) => !isIdentity(key));
  if (settings.length > 0)
    insertEvent(store, run.id, new Date().toISOString(), 'limit_changed', { changed: settings });
  // The recorded selection stays: a run may be continued with a part of its instances.
  const kept = { ...config, ...(stored.dataset === undefined ? {} : { dataset: stored.dataset }) };
  for (const arm of request.arms) setArmConfig(store, run.id, arm.name, armText(arm));
  setRunConfig(store, run.id, JSON.stringify(kept), request.configHash);
  // The budget may change: more money lets a stopped run continue.
  setRunBudget(store, run.id, request.run.cost_limit > 0 ? dollarsToNano(request.run.cost_limit) : null);
}

/** Settings in which two runs of the record are not the same experiment, a line each; '' where none differ. */
export function settingsChanged(a: RunRow, b: RunRow): string {
  const [was, is] = [a, b].map((run) => ({ arms: [], ...wholeConfig(run) }));
  const single = was!.arms.length === 1 && is!.arms.length === 1;
  return differencesText(differences(comparable(was!, single), comparable(is!, single), isIdentity));
}

/** A run keeps its part of the selection: others of its instances belong to the shards of other machines. */
function refuseOtherShard(run: RunRow, { shard }: RunRequest): void {
  const own = shardOf(run);
  const nameOf = (part: Parameters<typeof shardName>[0] | null | undefined) =>
    part ? `shard ${shardName(part)}` : 'no shard';
  const [was, is] = [nameOf(own), nameOf(shard)];
  if (was !== is)
    throw new UserError(`run ${run.name} is ${was} of its selection, and ${is} was asked for`, {
      hint: 'each shard has a results root of its own: name another one, or another run',
    });
}

/** Another configuration may differ in every value. With the name of the run before and the next step behind, five lines are shown. */
const CHANGES_SHOWN = 3;

function changesText(changed: readonly Difference[], rows: readonly string[]): string {
  const what = [
    ...(changed.length > 0 ? ['the configuration changed'] : []),
    ...(rows.length > 0 ? ['the dataset changed'] : []),
  ];
  const lines = [...changed.map((one) => differencesText([one])), ...rows.map((row) => `  ${row}`)];
  // A change of each kind is shown.
  if (changed.length > 0 && rows.length > 0) lines.splice(1, 0, ...lines.splice(changed.length, 1));
  const all = lines.length <= CHANGES_SHOWN;
  const shown = all ? lines : lines.slice(0, CHANGES_SHOWN - 1);
  return [
    `${what.join(' and ')}:`,
    ...shown,
    ...(all ? [] : [`  and ${lines.length - shown.length} more`]),
  ].join('\n');
}

/**
 * An image with new content under the same name is another environment, so results from both are not one experiment. Images that
 * are not here are pulled later; each attempt records the digest it used.
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
    const now = here.get(name);
    if (!now || seen.length === 0 || seen.some((digest) => isContent(digest, now))) return [];
    return [{ key: `image ${name}`, was: seen[0]!, is: now.digests[0] ?? now.id }];
  });
  if (changed.length === 0) return;
  if (!allow)
    throw new UserError(`run ${run.name} cannot go on: images changed:\n${differencesText(changed)}`, {
      next: { do: 'allow_change' },
    });
  insertEvent(store, run.id, new Date().toISOString(), 'config_changed', { changed, rows: [] });
}

/** The same content has a digest for each repository it was pulled from; only the part after "@" is compared. */
const isContent = (digest: string, now: ImageContent): boolean =>
  digest === now.id || now.digests.some((one) => one.split('@').at(-1) === digest.split('@').at(-1));

/** The selected rows must be unchanged rows of the run. */
function changedRows(store: Store, run: RunRow, request: RunRequest, tell: Tell): string[] {
  const moved = revisionChange(run.dataset_revision, request.dataset.revision);
  if (datasetHash(request.selected) === run.dataset_hash) {
    if (moved) tell({ level: 'note', text: `the dataset's ${moved}; the selected rows are the same` });
    return [];
  }
  const planned = new Map(instancesOf(store, run.id).map((i) => [i.instance_id, i]));
  const changed = request.selected.flatMap((row) => {
    const { instance_id } = headOf(row);
    const was = planned.get(instance_id);
    if (was === undefined) return [`${instance_id} was not planned in this run`];
    if (was.row_hash === readRowHash(row)) return [];
    // Revisions of the official datasets differ in tests and scripts, which is what a verdict rests on.
    const verdict =
      gradingHashOf(instanceSchema.parse(JSON.parse(was.row))) !== gradingHashOf(readInstance(row));
    const what = verdict ? 'its tests or eval script differ, so verdicts may too' : 'its text differs';
    return [`${instance_id}: the row has changed (${what})`];
  });
  return changed.length > 0 && moved ? [moved, ...changed] : changed;
}

const revisionChange = (was: string | null, is: string | null): string | undefined =>
  was === is
    ? undefined
    : `revision was ${was?.slice(0, 12) ?? 'not known'}, is ${is?.slice(0, 12) ?? 'not known'}`;

const ADDRESSES: ReadonlySet<string> = new Set(PROVIDERS.flatMap(({ baseUrls }) => baseUrls));

/** Keys stay, addresses go: a recorded arm without one asks its maker. */
export const withoutAddresses = (env: Variables): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !ADDRESSES.has(name)));

export function tellOtherAddress(
  run: RunRow,
  arms: readonly Pick<ArmConfig, 'name' | 'model' | 'agent'>[],
  { env, tell }: Caller,
): void {
  const facts = recordOf(storedManifest(run).models);
  for (const { name, model, agent } of arms) {
    const { base_url: recorded, ...open } = model;
    // A configuration counts more than a variable, then as now.
    if (recorded !== undefined && recordOf(facts[name]).endpoint_from === undefined) continue;
    const now = settleModel(open, { env, litellm: agent.compat !== null });
    if (!now.ok || now.addressFrom === undefined || now.model.base_url === recorded) continue;
    const [is, named] = [namedModel(model).address ?? '', now.model.base_url ?? ''].map(shownAddress);
    tell({
      level: 'note',
      text: `arm ${name} goes on with ${is}, the address that the run recorded; $${now.addressFrom} names ${named} now, which only a new run would ask`,
    });
  }
}

/** "a.b.c" -> value, for every leaf. */
function flatten(value: unknown, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[path, JSON.stringify(value) ?? 'undefined']]);
  return new Map(
    Object.entries(value).flatMap(([key, inner]) => [...flatten(inner, path ? `${path}.${key}` : key)]),
  );
}

/** Leaves that differ, for keys where `matters` says yes. */
function differences(was: unknown, is: unknown, matters: (key: string) => boolean): Difference[] {
  const before = flatten(was);
  const after = flatten(is);
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort();
  return keys
    .filter((key) => matters(key) && before.get(key) !== after.get(key))
    .map((key) => ({ key, was: before.get(key) ?? null, is: after.get(key) ?? null }));
}
