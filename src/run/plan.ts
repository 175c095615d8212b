/** Plans a run from its options: configuration, dataset and selection. Reports every mistake before anything is started or paid. */
import { plural } from '../base/text/numbers.ts';
import { parseSize } from '../base/text/units.ts';
import { type DatasetConfig, datasetConfigSchema } from '../config/configSchema.ts';
import { type Dataset, datasetHash } from '../dataset/dataset.ts';
import { selectInstances } from '../dataset/select.ts';
import { parseShard, SHARD_FORM, shardOfRows } from '../dataset/shard.ts';
import { shownAddress } from '../model/describe.ts';
import { storedConfig } from '../store/records/runs.ts';
import { trialLines } from '../store/records/trials.ts';
import type { Caller, Tell } from './caller.ts';
import { requireDataset } from './datasets.ts';
import { isNamed, namedTrials } from './namedTrials.ts';
import type { ArmConfig, RunRequest } from './plan/planRecord.ts';
import { taskFacts, withoutRefused } from './plan/refusedTasks.ts';
import { type ResolvedConfig, type RunOptions, resolveConfig } from './plan/resolveConfig.ts';
import { withSuitePrompts } from './plan/suitePrompts.ts';
import { openForReading, refuseRunName, refuseSmallDisk, refuseUnwritable } from './resultsRoot.ts';
import { UserError } from './userError.ts';

/** The plan of a run, as data: `--dry-run` prints it, begin.ts makes a run of the record of it. */
export interface Plan {
  readonly options: RunOptions;
  /** The configuration with where each part of it came from. */
  readonly resolved: ResolvedConfig;
  /** The run itself: its arms, its settings and its instances. */
  readonly request: RunRequest;
}

export async function plan(options: RunOptions, caller: Caller): Promise<Plan> {
  refuseUnwritable(options.results);
  if (options.name !== undefined) refuseRunName(options.name);
  const configured = resolveConfig(options, caller);
  refuseSmallDisk(options.results, parseSize(configured.run.disk_floor));
  for (const text of configured.warnings) caller.tell({ level: 'warning', text });
  for (const [arm, variable] of Object.entries(configured.addressFrom)) {
    const { base_url: url = '' } = configured.arms.find(({ name }) => name === arm)!.model;
    caller.tell({ level: 'note', text: `arm ${arm} asks ${shownAddress(url)}, the address in $${variable}` });
  }
  const failed = failedOf(options);
  const { rows_sha256: expected, ...configuredRows } = configured.dataset;
  const wanted = configuredRows.subset ? configuredRows : { ...configuredRows, ...failed?.dataset };
  const { subset, split, revision } = wanted;
  if (!subset)
    throw new UserError('no dataset is named', {
      next: { do: 'name_dataset' },
      hint: 'a file (data.jsonl, data.parquet), a folder, or verified, lite, full, multilingual, multimodal',
    });
  const { dataDir } = options;
  const dataset = await requireDataset(subset, { split, revision, dataDir, env: caller.env }, (text) =>
    caller.tell({ level: 'note', text }),
  );
  const resolved = await withSuitePrompts(configured, dataset.rows);
  const ids = idsFor(failed, wanted.instances);
  for (const text of dataset.warnings ?? []) caller.tell({ level: 'warning', text });
  const chosen = select(dataset.rows, { ...wanted, instances: ids }, caller.tell);
  const { strata } = chosen;
  const { rows, shard } =
    wanted.shard === undefined ? { rows: chosen.selected } : ownShard(chosen.selected, wanted.shard);
  const facts = await taskFacts(rows, resolved, caller);
  const how = { skip: wanted.skip_unsupported ?? false, tell: caller.tell };
  const { supported: selected, unsupported } = await withoutRefused(rows, facts, how);
  // An exported configuration has the hash of its rows; other rows would be another run.
  if (expected !== undefined && datasetHash(selected) !== expected)
    throw new UserError(
      `the dataset is not the one that the configuration was exported with: its ${selected.length} selected rows (revision ${dataset.revision ?? 'not known'}) differ from dataset.rows_sha256`,
      { hint: 'name the dataset with its revision, or remove dataset.rows_sha256 to run on these rows' },
    );
  const request = {
    name: options.name ?? defaultRunName(),
    createdAt: new Date().toISOString(),
    arms: await Promise.all(resolved.arms.map((arm) => recordedArm(arm, options.results))),
    run: resolved.run,
    grading: resolved.grading,
    images: resolved.images,
    suite: resolved.suite,
    configHash: resolved.hash,
    dataset: {
      source: dataset.source,
      split: dataset.split,
      revision: dataset.revision,
      fileHash: dataset.fileHash,
      count: dataset.rows.length,
      // With the ids that `failedIn` selected, because another database does not have that run.
      wanted: { ...wanted, ...(ids && { instances: ids }) },
      ...(unsupported.length > 0 && { unsupported }),
    },
    selected,
    strata,
    shard,
    manifest: {},
  };
  return { options, resolved, request };
}

/** The reader of recordings is loaded where one is played. */
const recordedArm = async (arm: ArmConfig, root: string): Promise<ArmConfig> =>
  arm.model.model_name?.startsWith('replay:')
    ? (await import('./record/recordedReplies.ts')).asRecorded(arm, root)
    : arm;

function select(rows: Dataset['rows'], wanted: DatasetConfig, tell: Tell) {
  const selection = selectInstances(rows, {
    shuffle: wanted.shuffle ?? false,
    filter: wanted.filter,
    slice: wanted.slice,
    ids: wanted.instances,
    limit: wanted.limit,
    sample: wanted.sample,
    stratify: wanted.stratify
      ?.split(',')
      .map((c) => c.trim())
      .filter(Boolean),
    seed: wanted.seed,
  });
  if (selection.kind === 'invalid') throw new UserError(selection.problems.join('\n'));
  if (selection.kind === 'empty') throw new UserError(selection.message);
  for (const text of selection.warnings) tell({ level: 'warning', text });
  const selected = selection.rows.map(({ row, weight }) => (weight === 1 ? row : { ...row, weight }));
  return { selected, strata: selection.strata };
}

/** Drawn before anything is left out: a task that cannot run here may run on the machine of another shard. */
function ownShard<R extends Dataset['rows'][number]>(selected: readonly R[], text: string) {
  const shard = parseShard(text);
  if (!shard) throw new UserError(`"${text}" ${SHARD_FORM}`);
  const own = shardOfRows(selected, shard);
  if (own.rows.length > 0) return own;
  throw new UserError(`shard ${text} is empty: ${plural(selected.length, 'instance')} selected`, {
    hint: `divide them into ${selected.length} shards at most`,
  });
}

interface Failed {
  readonly ids: ReadonlySet<string>;
  /** The dataset of that run, as it was read then. */
  readonly dataset: Pick<DatasetConfig, 'subset' | 'split' | 'revision'>;
}

function failedOf({ failedIn, results }: RunOptions): Failed | undefined {
  if (!failedIn) return undefined;
  using store = openForReading(results);
  const { run, ...which } = namedTrials(store, failedIn);
  const lines = trialLines(store, run.id).filter(isNamed(which));
  if (!lines.some((l) => l.outcome !== null))
    throw new UserError(`${failedIn === run.name ? 'run ' : ''}${failedIn} has no verdicts`, {
      next: { do: 'grade_run', results, run: run.name },
    });
  const { subset = run.dataset_source, split } = datasetConfigSchema
    .catch({})
    .parse(storedConfig(run).dataset ?? {});
  return {
    ids: new Set(lines.filter((l) => l.resolved !== 1).map((l) => l.instance_id)),
    dataset: { subset, split, revision: run.dataset_revision ?? undefined },
  };
}

const idsFor = (failed: Failed | undefined, named: readonly string[] | undefined): string[] | undefined =>
  failed ? (named?.filter((id) => failed.ids.has(id)) ?? [...failed.ids]) : named && [...named];

/** Sorts by time, and is valid in paths and labels. */
function defaultRunName(): string {
  const stamp = new Date().toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `run-${stamp}-${Math.random().toString(36).slice(2, 6)}`;
}
