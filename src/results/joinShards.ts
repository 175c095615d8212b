/**
 * `joinShards`: the shards of a run, each from the results root of its machine, become one run of one record. Every row comes over with a new
 * id; places in the selection are counted through, so that lists and figures are those of a run in one piece.
 */
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { cp, lstat, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomically } from '../base/files/atomicWrite.ts';
import { VERSION } from '../base/files/packageFile.ts';
import { pathInside } from '../base/files/pathInside.ts';
import { recordOf } from '../base/isRecord.ts';
import { sha256 } from '../base/sha256.ts';
import { plural } from '../base/text/numbers.ts';
import { rowsHash } from '../dataset/dataset.ts';
import { DEFAULT_SEED } from '../dataset/select.ts';
import { isInShard } from '../dataset/shard.ts';
import type { Caller, Tell } from '../run/caller.ts';
import { withRunLock, workerOn } from '../run/control/lock.ts';
import { settingsChanged } from '../run/plan/continuity.ts';
import { plannedConfig } from '../run/plan/planRecord.ts';
import { exportRun } from '../run/record/exportRun.ts';
import { gradingLogs } from '../run/record/partFolder.ts';
import { exportRunReports } from '../run/record/runReports.ts';
import { databasePath, makeAndOpen, openForReading, refuseRunName } from '../run/resultsRoot.ts';
import { orderTrials } from '../run/schedule/order.ts';
import { UserError } from '../run/userError.ts';
import type { Store } from '../store/open.ts';
import { verdictsOf } from '../store/records/evaluations.ts';
import {
  armsOf,
  type InstanceFacts,
  instanceFacts,
  listRuns,
  type RecordedShard,
  type RunRow,
  type RunStatus,
  removeRun,
  runByName,
  type StoredManifest,
  shardName,
  shardOf,
  storedManifest,
  wholeConfig,
} from '../store/records/runs.ts';
import { type TrialRow, trialsOf } from '../store/records/trials.ts';
import { eventsOfRun, putRun, type RecordedRow, RowsError, rowsOfRun } from '../store/records/wholeRun.ts';
import { verifyRun } from '../store/verifyRun.ts';

export interface JoinOptions {
  /** Results roots, or folders that hold them. */
  readonly dirs: readonly string[];
  /** The results root that the joined run goes to. */
  readonly results: string;
  /** The run, where the folders hold shards of several. */
  readonly name?: string | undefined;
}

export interface JoinedRun {
  readonly run: string;
  readonly root: string;
  /** The same shards were joined there before, and nothing was written. */
  readonly already: boolean;
  readonly status: RunStatus;
  readonly instances: number;
  readonly trials: number;
  /** The shards in their order. */
  readonly shards: readonly {
    readonly shard: string;
    readonly root: string;
    readonly createdAt: string;
    readonly status: RunStatus;
    readonly trials: number;
    /** Trials that have no result yet: the joined run can be resumed. */
    readonly open: number;
  }[];
}

/** A shard as it lies in its results root. */
interface Part {
  readonly root: string;
  readonly store: Store;
  readonly run: RunRow;
  readonly shard: RecordedShard;
  /** "shard 2/4 in DIR" */
  readonly label: string;
}

/** Throws a UserError that names everything that is missing, doubled or different, before anything is written. */
export async function joinShards(
  { dirs, results: root, name }: JoinOptions,
  { tell }: Pick<Caller, 'tell'>,
): Promise<JoinedRun> {
  const roots = new Set(dirs.flatMap(rootsIn));
  const stores = [...roots].map((path) => ({ root: path, store: openForReading(path) }));
  try {
    const parts = partsNamed(stores, name);
    refuseUnfit(parts);
    const shards = parts.map(loaded);
    refuseOtherPlans(shards);
    tellDifferences(shards, tell);
    return await written(root, shards, tell);
  } finally {
    for (const { store } of stores) store.close();
  }
}

/** The depth of a CI's downloads: an artifact each, with a path inside. */
const DEEPEST = 4;

function rootsIn(dir: string): string[] {
  const found = rootsBelow(dir, DEEPEST);
  if (found.length > 0) return found;
  throw new UserError(
    existsSync(dir)
      ? `${dir} is no results root, and holds none: there is no swebatch.db`
      : `there is no folder ${dir}`,
  );
}

function rootsBelow(dir: string, depth: number): string[] {
  if (existsSync(databasePath(dir))) return [realpathSync(dir)];
  if (depth === 0 || !existsSync(dir)) return [];
  const inner = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return inner.flatMap((entry) => rootsBelow(join(dir, entry.name), depth - 1));
}

function partsNamed(
  stores: readonly { readonly root: string; readonly store: Store }[],
  name: string | undefined,
): Part[] {
  const all = stores.flatMap(({ root, store }) =>
    listRuns(store).flatMap((run): Part[] => {
      const shard = shardOf(run);
      return shard ? [{ root, store, run, shard, label: `shard ${shardName(shard)} in ${root}` }] : [];
    }),
  );
  const wanted = all.filter(({ run }) => name === undefined || run.name === name);
  const names = [...new Set(wanted.map(({ run }) => run.name))];
  if (names.length > 1)
    throw new UserError(`there are shards of several runs: ${names.join(', ')}`, {
      hint: 'name one with --run-id',
    });
  const without = stores.filter(({ root }) => !wanted.some((part) => part.root === root));
  const [only = name] = names;
  if (without.length > 0)
    throw new UserError(without.map(({ root, store }) => whyNone(root, store, only)).join('\n'));
  return wanted.sort((a, b) => a.shard.number - b.shard.number);
}

function whyNone(root: string, store: Store, name: string | undefined): string {
  const whole = name !== undefined && runByName(store, name);
  if (whole && !shardOf(whole)) return `${root}: its run ${name} is whole, and no shard`;
  return `${root} holds no shard of ${name ?? 'a run'}`;
}

/** Obstacles to a join whatever the shards hold: they are doubled, missing or at work (observed: tests/results/join.test.ts). */
function refuseUnfit(parts: readonly Part[]): void {
  const { of } = parts[0]!.shard;
  const numbers = Map.groupBy(parts, ({ shard }) => shard.number);
  const other = parts.find(({ shard }) => shard.of !== of);
  const missing = Array.from({ length: of }, (_, i) => i + 1).filter((number) => !numbers.has(number));
  const problems = [
    ...(other ? [`${parts[0]!.label} and ${other.label} divide the run differently`] : []),
    ...[...numbers.values()].flatMap((same) =>
      same.length > 1
        ? [
            `shard ${shardName(same[0]!.shard)} is there ${same.length} times: ${same.map(({ root }) => root).join(', ')}`,
          ]
        : [],
    ),
    ...(other || missing.length === 0
      ? []
      : [`missing: ${missing.map((number) => `shard ${number}/${of}`).join(', ')}`]),
    ...parts.flatMap(whyAtWork),
  ];
  if (problems.length > 0)
    throw new UserError(`${parts[0]!.run.name} cannot be joined:\n${indented(problems)}`);
}

const indented = (lines: readonly string[]): string => lines.map((line) => `  ${line}`).join('\n');

function whyAtWork({ root, store, run, label }: Part): string[] {
  const worker = workerOn(root, run.name);
  if (worker) return [`${label} is still at work (pid ${worker.pid} on ${worker.host})`];
  const isOpen =
    ['running', 'paused'].includes(run.status) ||
    trialsOf(store, run.id).some(({ state }) => state === 'running' || state === 'leased');
  return isOpen ? [`${label} was killed: resume it there first (swebatch resume ${run.name})`] : [];
}

interface LoadedPart extends Part {
  readonly instances: readonly InstanceFacts[];
  readonly trials: readonly TrialRow[];
  readonly manifest: StoredManifest;
}

/** Throws a UserError where the record of a shard is not what a run leaves (observed: tests/results/join.test.ts). */
function loaded(part: Part): LoadedPart {
  const { store, run, shard, label } = part;
  const broken = verifyRun(store, run).checks.filter(({ ok }) => !ok);
  if (broken.length > 0)
    throw new UserError(
      `the record of ${label} breaks a rule: ${broken.map((check) => check.name).join('; ')}`,
    );
  const instances = instanceFacts(store, run.id);
  const manifest = storedManifest(run);
  const planned = Math.ceil((shard.instances - shard.number + 1) / shard.of);
  if (
    instances.length + unsupportedIn(manifest).length !== planned ||
    instances.some(({ position }) => !isInShard(position, shard)) ||
    rowsHash(instances) !== run.dataset_hash
  )
    throw new UserError(`the record of ${label} does not hold the rows that it was planned with`);
  return { ...part, instances, trials: trialsOf(store, run.id), manifest };
}

function unsupportedIn({ dataset }: StoredManifest): readonly unknown[] {
  const { unsupported } = recordOf(dataset);
  return Array.isArray(unsupported) ? unsupported : [];
}

function refuseOtherPlans(parts: readonly LoadedPart[]): void {
  const [first, ...others] = parts as [LoadedPart, ...LoadedPart[]];
  const problems = others.flatMap((part) => {
    const { run, shard } = part;
    const rows =
      shard.rows_sha256 === first.shard.rows_sha256 && shard.instances === first.shard.instances
        ? []
        : [
            `${first.label} and ${part.label} are of other rows (${first.shard.instances} and ${shard.instances} selected)`,
          ];
    const settings = settingsChanged(first.run, run);
    return [...rows, ...(settings === '' ? [] : [`${first.label} and ${part.label} differ:\n${settings}`])];
  });
  const all = inOrder(parts.flatMap(({ instances }) => instances));
  const isComplete = parts.some(({ manifest }) => unsupportedIn(manifest).length > 0);
  if (problems.length === 0 && !isComplete && rowsHash(all) !== first.shard.rows_sha256)
    problems.push('the shards together do not hold the rows that the run was planned with');
  if (problems.length > 0) throw new UserError(`${first.run.name} cannot be joined:\n${indented(problems)}`);
}

const inOrder = <T extends { readonly position: number }>(rows: readonly T[]): T[] =>
  rows.toSorted((a, b) => a.position - b.position);

/** Differences that machines may have, and a reader of the figures should know. */
function tellDifferences(parts: readonly LoadedPart[], tell: Tell): void {
  const versions = new Set(parts.map(({ manifest }) => String(manifest.program?.version)));
  if (versions.size > 1)
    tell({ level: 'warning', text: `the shards were run by swebatch ${[...versions].join(' and ')}` });
  const digests = Map.groupBy(
    parts.flatMap(({ manifest }) => Object.entries(manifest.images ?? {})),
    ([image]) => image,
  );
  const changed = [...digests].flatMap(([image, entries]) => {
    const contents = entries.flatMap(([, digest]) => digest?.split('@').at(-1) ?? []);
    return new Set(contents).size > 1 ? [image] : [];
  });
  if (changed.length > 0)
    tell({ level: 'warning', text: `images were not the same on all machines: ${changed.join(', ')}` });
  for (const part of parts) {
    const open = openIn(part);
    if (open > 0)
      tell({
        level: 'warning',
        text: `${part.label} is ${part.run.status}: ${plural(open, 'trial')} did not run`,
      });
  }
}

const openIn = ({ trials }: LoadedPart): number => trials.filter(({ state }) => state !== 'sealed').length;

async function written(root: string, parts: readonly LoadedPart[], tell: Tell): Promise<JoinedRun> {
  const { name } = parts[0]!.run;
  refuseRunName(name);
  using store = makeAndOpen(root);
  return await withRunLock({ store, root, runName: name, tell }, () => put(store, root, parts));
}

async function put(store: Store, root: string, parts: readonly LoadedPart[]): Promise<JoinedRun> {
  const { name } = parts[0]!.run;
  const dir = pathInside(root, name);
  const there = runByName(store, name);
  if (there && JSON.stringify(storedManifest(there).joined) === JSON.stringify(joinedFacts(parts))) {
    // A process that was killed may have left the record without them.
    await writeFiles(store, there, dir, parts);
    return joinedOf(root, there, parts, true);
  }
  if (there || existsSync(dir))
    throw new UserError(
      there && shardOf(there)
        ? `${root} has shard ${shardName(shardOf(there)!)} under the name ${name}: join into another results root`
        : `${root} has ${there ? `a run ${name}` : `a folder ${name}`} already`,
      { hint: 'name another results root with --output, or delete it first' },
    );
  try {
    const run = await putRun(store, name, joinedRows(parts));
    try {
      await writeFiles(store, run, dir, parts);
    } catch (error) {
      removeRun(store, run.id);
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
    return joinedOf(root, run, parts, false);
  } catch (error) {
    throw error instanceof RowsError ? new UserError(`${name} cannot be joined: ${error.message}`) : error;
  }
}

const joinedOf = (root: string, run: RunRow, parts: readonly LoadedPart[], already: boolean): JoinedRun => ({
  run: run.name,
  root,
  already,
  status: run.status,
  instances: parts.reduce((sum, { instances }) => sum + instances.length, 0),
  trials: parts.reduce((sum, { trials }) => sum + trials.length, 0),
  shards: parts.map((part) => ({
    shard: shardName(part.shard),
    root: part.root,
    createdAt: part.run.created_at,
    status: part.run.status,
    trials: part.trials.length,
    open: openIn(part),
  })),
});

/**
 * The rows of each shard as rows of the whole: one row of the run, one of each arm, places counted through, and all events in the order of their
 * time.
 */
function joinedRows(parts: readonly LoadedPart[]): Iterable<RecordedRow>[] {
  const first = parts[0]!;
  const { id: _, ...run } = joinedRun(parts);
  const places = new Map(
    inOrder(parts.flatMap(({ instances }) => instances)).map(({ instance_id }, place) => [
      instance_id,
      place,
    ]),
  );
  const positions = positionsOf(parts);
  const arms = new Map(armsOf(first.store, first.run.id).map((arm) => [arm.name, arm]));
  const events = parts
    .flatMap((part) => eventsOfRun(part.store, part.run.id))
    .map(([table, row]): RecordedRow => [table, { ...row, run_id: first.run.id }])
    .sort(([, a], [, b]) => (String(a.at) < String(b.at) ? -1 : 1));
  return parts.map((part) => ({
    *[Symbol.iterator]() {
      for (const [table, row] of rowsOfRun(part.store, part.run.id)) {
        if (table === 'events') continue;
        if (table === 'runs') yield [table, { ...row, ...run }];
        else if (table === 'arms') yield [table, { ...row, config: arms.get(String(row.name))!.config }];
        else if (table === 'instances')
          yield [table, { ...row, position: places.get(String(row.instance_id))! }];
        else if (table === 'trials')
          yield [table, { ...row, position: positions.get(part)!.get(Number(row.id))! }];
        else yield [table, row];
      }
      // Only here is none taken for one that stands in several parts.
      if (part === first) yield* events;
    },
  }));
}

/** The place among all trials, by shard and trial: as one machine would have started them. */
function positionsOf(parts: readonly LoadedPart[]): ReadonlyMap<LoadedPart, ReadonlyMap<number, number>> {
  const all = parts.flatMap((part) => {
    const instances = new Map(part.instances.map((row) => [row.id, row]));
    const arms = new Map(armsOf(part.store, part.run.id).map((arm) => [arm.id, arm]));
    return part.trials.map((trial) => {
      const { instance_id, repo, position: place } = instances.get(trial.instance_pk)!;
      const { model, position: arm } = arms.get(trial.arm_id)!;
      return { part, trial, instanceId: instance_id, repo, model, place, arm };
    });
  });
  // Drawn by a seed, the order of the whole is known; by past durations each machine had its own.
  const isDrawn = plannedConfig(parts[0]!.run).run.order === 'shuffle';
  const ordered = isDrawn
    ? orderTrials(
        all.toSorted((a, b) => a.trial.epoch - b.trial.epoch || a.place - b.place || a.arm - b.arm),
        'shuffle',
        [],
        DEFAULT_SEED,
      )
    : all.toSorted(
        (a, b) => a.trial.position - b.trial.position || a.part.shard.number - b.part.shard.number,
      );
  const positions = new Map(parts.map((part) => [part, new Map<number, number>()]));
  for (const [position, { part, trial }] of ordered.entries()) positions.get(part)!.set(trial.id, position);
  return positions;
}

/** The first of these that a shard has is the state of the whole. */
const WORST: readonly RunStatus[] = ['failed', 'interrupted', 'budget', 'incomplete'];

function joinedRun(parts: readonly LoadedPart[]): RunRow {
  const { run } = parts[0]!;
  const statuses = parts.map((part) => part.run.status);
  const config = wholeConfig(run);
  const { shard: _, ...dataset } = recordOf(config.dataset);
  const budgets = parts.map((part) => part.run.budget_nano);
  const budget = budgets.includes(null) ? null : budgets.reduce((sum: number, one) => sum + one!, 0);
  const limit = { cost_limit: budget === null ? 0 : budget / 1e9 };
  const manifest = joinedManifest(parts);
  const stated = recordOf(manifest.config);
  return {
    ...run,
    status: WORST.find((status) => statuses.includes(status)) ?? 'complete',
    created_at: parts.map((part) => part.run.created_at).sort()[0]!,
    finished_at: parts.some((part) => part.run.finished_at === null)
      ? null
      : parts
          .map((part) => part.run.finished_at!)
          .sort()
          .at(-1)!,
    config: JSON.stringify({ ...config, run: { ...config.run, ...limit }, dataset }),
    manifest: JSON.stringify({
      ...manifest,
      ...(manifest.config !== undefined && {
        config: { ...stated, run: { ...recordOf(stated.run), ...limit } },
      }),
    }),
    dataset_hash: rowsHash(inOrder(parts.flatMap(({ instances }) => instances))),
    budget_nano: budget,
  };
}

/** The manifest of the first shard, with the rows of all, and with each machine's facts. */
function joinedManifest(parts: readonly LoadedPart[]): StoredManifest {
  const { manifest, run } = parts[0]!;
  const rows = inOrder(parts.flatMap(({ instances }) => instances));
  const ids = rows.map(({ instance_id }) => instance_id);
  const unsupported = parts.flatMap((part) => unsupportedIn(part.manifest));
  const facts = recordOf(manifest.dataset);
  const changed: Readonly<Record<string, unknown>> = {
    created_at: parts.map((part) => part.run.created_at).sort()[0] ?? run.created_at,
    command: [],
    dataset: {
      ...facts,
      count: ids.length,
      instance_ids: ids,
      ids_sha256: sha256(ids.join('\n')),
      row_hashes: Object.fromEntries(rows.map((row) => [row.instance_id, row.row_hash])),
      weights: facts.weights && Object.fromEntries(rows.map((row) => [row.instance_id, row.weight])),
      ...(unsupported.length > 0 && { unsupported }),
    },
    images: Object.assign({}, ...parts.map((part) => part.manifest.images ?? {})) as StoredManifest['images'],
  };
  return Object.fromEntries(
    Object.entries(manifest).map(([key, value]) =>
      key === 'shard'
        ? ['joined', joinedFacts(parts)]
        : [key, Object.hasOwn(changed, key) ? changed[key] : value],
    ),
  );
}

const joinedFacts = (parts: readonly LoadedPart[]) => ({
  of: parts.length,
  shards: parts.map(({ shard, manifest: own, run: { created_at, finished_at, status } }) => ({
    shard: shardName(shard),
    ...{ created_at, finished_at, status },
    ...{ command: own.command, program: own.program, machine: own.machine, docker: own.docker },
  })),
});

/** Logs of gradings are in files alone, and are copied; files of the record are written anew. Files there already stay: the run may have gone on. */
async function writeFiles(
  store: Store,
  run: RunRow,
  dir: string,
  parts: readonly LoadedPart[],
): Promise<void> {
  const { run: runs, grading } = plannedConfig(run);
  const epochs = Array.from({ length: runs.epochs }, (_, i) => i + 1);
  const folders = armsOf(store, run.id).flatMap(({ name }) =>
    epochs.map((epoch) => gradingLogs(store, run, name, epoch)),
  );
  const dirs = parts.map((part) => pathInside(part.root, run.name));
  for (const from of dirs)
    for (const folder of folders.filter((one) => existsSync(join(from, one))))
      await cp(join(from, folder), join(dir, folder), { recursive: true, force: false, filter: isOurs });
  const log = pathInside(dir, 'run.log');
  if (!existsSync(log))
    await writeAtomically(log, await joinedLog(dirs.map((from) => join(from, 'run.log'))));
  const target = { store, run, dir, version: VERSION };
  await exportRun(target);
  const graded = [...verdictsOf(store, run.id).values()].at(-1);
  if (graded) await exportRunReports(target, graded.harness === 'v4.1' ? 'v4.1' : grading.harness);
}

/** A link in an artifact leads anywhere (observed: tests/results/join.test.ts). */
async function isOurs(path: string): Promise<boolean> {
  const stat = await lstat(path);
  return stat.isFile() || stat.isDirectory();
}

const LOGGED_AT = /"time":"([^"]+)"/;

/** The lines of all logs, by their time. */
async function joinedLog(paths: readonly string[]): Promise<string> {
  const texts = await Promise.all(
    paths.filter((path) => existsSync(path)).map((path) => readFile(path, 'utf8')),
  );
  const lines = texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
  // A line that was cut by a kill stays behind the one before it.
  let at = '';
  const timed = lines.map((line) => {
    at = LOGGED_AT.exec(line)?.[1] ?? at;
    return { line, at };
  });
  return timed
    .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map(({ line }) => `${line}\n`)
    .join('');
}
