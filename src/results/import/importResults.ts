/** Results of other tools as a run of a results root. */

import { existsSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { recordedAgentConfig } from '../../agent/replay/readRecording.ts';
import { VERSION } from '../../base/files/packageFile.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { recordOf } from '../../base/isRecord.ts';
import { durationOrNull } from '../../base/plausible.ts';
import { sha256 } from '../../base/sha256.ts';
import { contentText } from '../../base/text/contentText.ts';
import { percent, plural } from '../../base/text/numbers.ts';
import { headOf, type LoadedRow, recordedRow } from '../../dataset/dataset.ts';
import {
  counted,
  type ForeignInstance,
  type ForeignOutcome,
  type ForeignRun,
  type ForeignVerdicts,
  type RecordedCall,
  type TrialIdentity,
  trialKey,
  UNKNOWN_MODEL,
} from '../../formats/foreignFormat.ts';
import { readForeignRun, recogniseSource, whatIsKnown } from '../../formats/formats.ts';
import { HALF_CHARACTERS } from '../../formats/predictions.ts';
import { SourceError } from '../../formats/sourceError.ts';
import { COUNTED_CLASSES, exitClassOf, type Outcome } from '../../outcome.ts';
import { scoredTrials } from '../../report/measure/score.ts';
import type { Caller } from '../../run/caller.ts';
import { requireDataset } from '../../run/datasets.ts';
import { choosePatch } from '../../run/exit.ts';
import { exportRun } from '../../run/record/exportRun.ts';
import { OtherSchema } from '../../run/record/recordFile.ts';
import { makeAndOpen, refuseRunName } from '../../run/resultsRoot.ts';
import { reportData } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import { isLong } from '../../store/longText.ts';
import type { Store } from '../../store/open.ts';
import { insert } from '../../store/query.ts';
import { insertMessage } from '../../store/records/attemptBodies.ts';
import { insertEvaluation } from '../../store/records/evaluations.ts';
import type { RunData } from '../../store/records/runData.ts';
import {
  armsOf,
  insertRun,
  instancesOf,
  type RunRow,
  removeRun,
  runByName,
  setRunStatus,
} from '../../store/records/runs.ts';
import {
  attemptById,
  beginAttempt,
  endAttempt,
  leaseTrial,
  trialLines,
  trialsOf,
} from '../../store/records/trials.ts';
import { putRun, RowsError } from '../../store/records/wholeRun.ts';
import { verifyRun } from '../../store/verifyRun.ts';
import { guarded } from '../../store/writing.ts';
import { type OwnRecord, ownRecord } from './ownRecord.ts';

export interface ImportOptions {
  /** A folder or file of another tool, relative to the working directory of the process. */
  readonly source: string;
  /** The results root. */
  readonly results: string;
  /** Name of the run; default: the source's. */
  readonly name?: string | undefined;
  /** The run's dataset, so that it can be graded and reported by repository. */
  readonly dataset?: { readonly subset: string; readonly split?: string | undefined } | undefined;
  readonly dataDir?: string | undefined;
  /** The place of the verdicts, when they are not beside the source. */
  readonly report?: string | undefined;
}

export interface ImportedResults {
  readonly run: string;
  readonly instances: number;
  /** The number of trials, where instances have several. */
  readonly trials?: number;
  /** Verdicts that were found, and those of them that belong to an imported prediction. */
  readonly verdicts: { readonly found: number; readonly judged: number };
}

type Told = Pick<Caller, 'env' | 'tell'>;

/** Throws a UserError when something cannot be read, before anything is written. */
export const importResults = (options: ImportOptions, caller: Told): Promise<ImportedResults> =>
  importInto(options, caller, { files: true });

/** `files`: the run's exported files are written beside the record. */
export async function importInto(
  options: ImportOptions,
  { env, tell }: Told,
  { files }: { readonly files: boolean },
): Promise<ImportedResults> {
  const { source } = options;
  // Verdicts of somebody else are asked for: the files are read, and not the record.
  const own = options.report === undefined ? await ownRecord(source) : null;
  try {
    if (own && options.dataset)
      tell({
        level: 'note',
        text: `${source} brings the rows of its dataset: ${options.dataset.subset} is not read`,
      });
    if (own) return await importOwn(options, own.parts, tell, files);
  } catch (error) {
    if (error instanceof RowsError) throw new UserError(`${source}: ${error.message}`);
    if (error instanceof SourceError) throw sourceProblem(error);
    if (!(error instanceof OtherSchema)) throw error;
    tell({ level: 'warning', text: error.message });
  } finally {
    own?.close();
  }
  return importForeign(options, { env, tell }, files);
}

/** A run of this program: every row of it comes back, and it is as if it had been run here. */
async function importOwn(
  { source, results: root, name = importedName(source) }: ImportOptions,
  parts: OwnRecord['parts'],
  tell: Told['tell'],
  files: boolean,
): Promise<ImportedResults> {
  using store = makeAndOpen(root);
  refuseName(store, name, source, root);
  const run = await putRun(store, name, parts);
  const wrong = verifyRun(store, run).checks.filter(({ ok }) => !ok);
  if (wrong.length > 0)
    tell({
      level: 'warning',
      text: `its record breaks a rule: ${wrong.map((check) => check.name).join('; ')}`,
    });
  const data = reportData(store, run.id)!;
  tell({ level: 'info', text: readLine(data, 'a run of swebatch') });
  if (files) await exportOrTakeBack(store, run, pathInside(root, name));
  const instances = new Set(data.trials.map(({ instanceId }) => instanceId)).size;
  const judged = data.trials.filter(({ outcome }) => outcome !== null).length;
  return {
    run: run.name,
    instances,
    ...(data.trials.length > instances && { trials: data.trials.length }),
    verdicts: { found: judged, judged },
  };
}

async function importForeign(
  options: ImportOptions,
  { env, tell }: Told,
  files: boolean,
): Promise<ImportedResults> {
  const { source, results: root } = options;
  const imported = await readSource(source, options.report);
  const { verdicts } = imported;
  for (const text of imported.warnings) tell({ level: 'warning', text });
  if (imported.problems.length > 0) throw new UserError(imported.problems.join('\n'));
  if (imported.instances.length === 0)
    throw new UserError(`nothing to import in ${source}`, {
      hint: (await recogniseSource(source))
        ? 'it holds neither trajectories, predictions nor reports'
        : whatIsKnown(source),
    });
  const { dataDir } = options;
  const dataset =
    options.dataset &&
    (await requireDataset(options.dataset.subset, { split: options.dataset.split, dataDir, env }));
  using store = makeAndOpen(root);
  const name = options.name ?? importedName(source);
  refuseName(store, name, source, root);
  const dir = pathInside(root, name);
  const { run, judged } = store.transaction(() => {
    const added = importRun(store, {
      name,
      imported,
      rows: new Map(dataset?.rows.map((r) => [headOf(r).instance_id, r]) ?? []),
      dataset: { source: options.dataset?.subset ?? source, revision: dataset?.revision ?? null },
      createdAt: new Date().toISOString(),
    });
    return { run: added, judged: importVerdicts(store, added, verdicts) };
  })();
  tell({
    level: 'info',
    text: readLine(reportData(store, run.id)!, (await recogniseSource(source))?.words),
  });
  if (files) await exportOrTakeBack(store, run, dir);
  return {
    run: run.name,
    instances: new Set(imported.instances.map(({ instanceId }) => instanceId)).size,
    ...(imported.instances.some(({ epoch = 1, arm }) => epoch > 1 || arm !== undefined) && {
      trials: imported.instances.length,
    }),
    verdicts: { found: verdicts.size, judged },
  };
}

/** Throws a UserError for what cannot be read. */
export async function readSource(source: string, report?: string): Promise<ForeignRun> {
  if (!existsSync(source))
    throw new UserError(`there is no file or folder ${source}`, {
      hint: 'name a folder of mini-swe-agent, logs/run_evaluation of the harness, or a run report',
    });
  try {
    return await readForeignRun(source, report);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    const hint = (await recogniseSource(source)) ? error.hint : whatIsKnown(source);
    throw new UserError(error.message, hint === undefined ? {} : { hint });
  }
}

const sourceProblem = ({ message, hint }: SourceError): UserError =>
  new UserError(message, hint === undefined ? {} : { hint });

/**
 * Exports all or nothing, so that the import can be repeated under the same name once the cause is fixed (observed:
 * tests/results/import/allOrNothing.test.ts).
 */
async function exportOrTakeBack(store: Store, run: RunRow, dir: string): Promise<void> {
  const isNew = !existsSync(dir);
  try {
    await exportRun({ store, run, dir, version: VERSION });
  } catch (error) {
    removeRun(store, run.id);
    if (isNew) rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

/** The name of the folder or file, as one component of a path that is short enough for a run. */
export function importedName(source: string): string {
  // `..` is a path with a name, but not a name for a run.
  const name = basename(resolve(source))
    .replace(/\.(?:json|eval|jsonl\.gz)$/, '')
    .replace(/[^A-Za-z0-9_.-]/g, '_')
    .slice(0, 100);
  return /^\.*$/.test(name) ? 'imported' : name;
}

function refuseName(store: Store, name: string, source: string, root: string): void {
  refuseRunName(name);
  if (resolve(source) === join(root, name))
    throw new UserError(`${source} is where the files of run ${name} would be written`, {
      next: { do: 'choose_name' },
    });
  if (runByName(store, name))
    throw new UserError(`run ${name} already exists`, { next: { do: 'choose_name' } });
}

const LOST = { outcome: 'infra', resolved: null } as const;
const OUTCOME: Readonly<Record<ForeignOutcome, { outcome: Outcome; resolved: number | null }>> = {
  resolved: { outcome: 'resolved', resolved: 1 },
  unresolved: { outcome: 'unresolved', resolved: 0 },
  empty_patch: { outcome: 'empty_patch', resolved: null },
  error: LOST,
  // Without a verdict of its own an empty patch would be a failure of a graded run.
  incomplete: LOST,
  pending: LOST,
};

function importVerdicts(store: Store, run: RunRow, verdicts: ForeignVerdicts): number {
  let count = 0;
  for (const line of trialLines(store, run.id)) {
    const found = verdicts.get(trialKey(placeInRecord(line.arm, line.instance_id, line.epoch)));
    const verdict = found && OUTCOME[found.verdict];
    const attempt = line.attempt_id === null ? undefined : attemptById(store, line.attempt_id);
    if (!verdict || !attempt) continue;
    count += 1;
    insertEvaluation(store, {
      run_id: run.id,
      trial_id: line.trial_id,
      attempt_id: attempt.id,
      instance_id: line.instance_id,
      model: line.model,
      patch_sha256: attempt.patch_sha256 ?? '',
      spec_hash: '',
      harness: found.grader,
      ...verdict,
      reward: found.reward ?? null,
      rewards: found.rewards ? JSON.stringify(found.rewards) : null,
      report: found.report,
      infra_reason: found.reason,
      suspicion: '[]',
      source: 'import',
      started_at: new Date().toISOString(),
    });
  }
  return count;
}

const WHY: Readonly<Record<string, string>> = {
  grading_infra: 'lost, or without a verdict',
  infra: 'lost by infrastructure',
  config: 'could not work',
  cancelled: 'cancelled',
  not_run: 'never ran',
  not_graded: 'not graded',
};
const NAMED = 5;

/** "read as a job folder of Harbor: 12 trials …": what a source came to, from the record that was made of it. */
function readLine(data: RunData, words = 'results of another tool'): string {
  const rows = data.arms.flatMap(({ name }) => scoredTrials(data.trials.filter((t) => t.arm === name)));
  const instances = new Set(rows.map((row) => row.instanceId)).size;
  const valid = rows.filter((row) => row.valid);
  const resolved = valid.filter((row) => row.resolved).length;
  const missing = rows.flatMap(({ standing, trial }) =>
    standing.valid ? [] : [{ trial, why: standing.why }],
  );
  const parts = [
    rows.length === instances
      ? plural(instances, 'instance')
      : `${plural(rows.length, 'trial')} of ${plural(instances, 'instance')}`,
    ...(data.arms.length > 1 ? [`${data.arms.length} arms`] : []),
    valid.length > 0
      ? `${resolved} of ${valid.length} resolved = ${percent(resolved / valid.length)}`
      : 'no verdicts',
    ...[...Map.groupBy(missing, ({ why }) => why)].map(([why, group]) => {
      const names = group.map(({ trial }) => trial.instanceId);
      // Where nothing is graded, every instance would stand here.
      const who = why === 'not_graded' && valid.length === 0 ? '' : `: ${counted(names, NAMED)}`;
      return `missing ${group.length} (${WHY[why] ?? why})${who}`;
    }),
  ];
  return `read as ${words}: ${parts.join('; ')}`;
}

// The finished run of another tool in the record, so that it is reported, compared and graded like one of ours.

interface ImportRequest {
  readonly name: string;
  readonly imported: ForeignRun;
  /** Rows by id, where the dataset is at hand: without one an instance can be reported but not graded. */
  readonly rows: ReadonlyMap<string, LoadedRow>;
  readonly dataset: { readonly source: string; readonly revision: string | null };
  readonly createdAt: string;
}

/** The arm of a source with one agent and model, whatever they are. */
const ONLY_ARM = 'imported';

const armOf = ({ arm }: TrialIdentity): string => arm ?? ONLY_ARM;
/** A trial of the record as `verdicts` names it. */
const placeInRecord = (arm: string, instanceId: string, epoch: number): TrialIdentity =>
  arm === ONLY_ARM ? { instanceId, epoch } : { instanceId, epoch, arm };

function importRun(store: Store, request: ImportRequest): RunRow {
  const { imported, name, createdAt, dataset } = request;
  const arms = armsIn(imported.instances);
  const first = arms[0]!.first;
  const places = [...imported.instances, ...(imported.neverRun ?? [])];
  const ids = new Set(places.map((place) => place.instanceId));
  const planned = [...ids].map((id) => rowOf(id, request));
  const has = new Set(places.map((place) => trialKey({ ...place, arm: armOf(place) })));
  const epochs = places.reduce((most, { epoch = 1 }) => Math.max(most, epoch), 1);
  const work = store.transaction(() => {
    const run = insertRun(store, {
      run: {
        name,
        created_at: createdAt,
        config: JSON.stringify({
          run: { epochs },
          grading: {},
          arms: arms.map(({ name, config }) => ({ name, ...config })),
        }),
        config_hash: sha256(JSON.stringify(arms.length === 1 ? arms[0]!.config : arms.map((a) => a.config))),
        manifest: JSON.stringify({
          imported_from: imported.folder,
          format: first.format,
          program: { mini_swe_agent: first.version },
          models: [...new Set(arms.flatMap(({ models }) => models))],
        }),
        dataset_source: dataset.source,
        dataset_revision: dataset.revision,
        dataset_hash: sha256(planned.map((p) => `${p.instance_id} ${p.row_hash}`).join('\n')),
        budget_nano: null,
        emit_empty: 0,
        imported: 1,
      },
      arms: arms.map(({ name, models, config }) => ({
        name,
        model: models.join('+'),
        config: JSON.stringify(config),
      })),
      instances: planned,
      epochs,
      has: (arm, instanceId, epoch) => has.has(trialKey({ instanceId, epoch, arm })),
    });
    fillTrials(store, run, request);
    return run;
  });
  return guarded(store, () => work());
}

interface ImportedArm {
  readonly name: string;
  readonly models: readonly string[];
  readonly config: Sections;
  /** The instance that stands for the arm's settings. */
  readonly first: ForeignInstance;
}

function armsIn(instances: readonly ForeignInstance[]): [ImportedArm, ...ImportedArm[]] {
  const arms = [...Map.groupBy(instances, armOf)].map(([name, own]): ImportedArm => {
    const all = [...new Set(own.map((i) => i.model))];
    // A damaged trajectory does not name its model; the others do.
    const known = all.filter((model) => model !== UNKNOWN_MODEL);
    // The first with a configuration: a damaged trajectory or a lone prediction has none.
    const first = own.find((i) => Object.keys(i.config).length > 0) ?? own[0]!;
    return { name, models: known.length > 0 ? known : all, config: publishedArm(first), first };
  });
  return arms as [ImportedArm, ...ImportedArm[]];
}

function fillTrials(store: Store, run: RunRow, { imported, createdAt }: ImportRequest): void {
  const ids = new Map(instancesOf(store, run.id).map((i) => [i.id, i.instance_id]));
  const arms = new Map(armsOf(store, run.id).map((a) => [a.id, a.name]));
  const trials = new Map(
    trialsOf(store, run.id).map((t) => [
      trialKey({ instanceId: ids.get(t.instance_pk)!, epoch: t.epoch, arm: arms.get(t.arm_id)! }),
      t.id,
    ]),
  );
  for (const instance of imported.instances)
    importInstance(store, trials.get(trialKey({ ...instance, arm: armOf(instance) }))!, instance, createdAt);
  const all =
    !imported.neverRun?.length &&
    imported.instances.every((i) => COUNTED_CLASSES.has(exitClassOf(i.exitReason)));
  setRunStatus(store, run.id, all ? 'complete' : 'incomplete', createdAt);
}

function rowOf(instanceId: string, { rows }: ImportRequest) {
  const row = rows.get(instanceId);
  if (row) return recordedRow(row);
  const bare = { instance_id: instanceId, repo: repoOf(instanceId), problem_statement: '', difficulty: '' };
  return {
    instance_id: instanceId,
    repo: bare.repo,
    difficulty: '',
    image: '',
    row_hash: sha256(instanceId),
    row: JSON.stringify(bare),
    weight: 1,
  };
}

/** "django__django-11099" -> "django/django"; ids of other forms have no repository to tell. */
const repoOf = (id: string): string => /^(.+?)__(.+)-\d+$/.exec(id)?.slice(1, 3).join('/') ?? '';

const isoOf = (seconds: number | null, fallback: string): string =>
  seconds === null ? fallback : new Date(seconds * 1000).toISOString();

/** The content of a message. In the Responses API an output is a field of its own, and a reply's text is inside its items. */
function textOf(message: Readonly<Record<string, unknown>>): unknown {
  if (message.type === 'function_call_output') return message.output;
  if (message.type === 'message') return contentText(message.content);
  if (message.object !== 'response' || !Array.isArray(message.output)) return message.content;
  return message.output.map((item) => contentText(recordOf(item).content)).join('');
}

function importInstance(store: Store, trialId: number, instance: ForeignInstance, fallback: string): void {
  leaseTrial(store, trialId, 'import', 0);
  const startedAt = isoOf(instance.startedAt, fallback);
  const attempt = beginAttempt(store, trialId, {
    startedAt,
    slot: 0,
    config: JSON.stringify(instance.config),
  });
  instance.messages.forEach((message, seq) => {
    const content = textOf(message);
    insertMessage(
      store,
      {
        attempt_id: attempt.id,
        seq,
        role: String(message.role ?? ''),
        content:
          typeof content === 'string'
            ? content
            : content === null || content === undefined
              ? ''
              : JSON.stringify(content),
        data: JSON.stringify(message),
        created_at: startedAt,
      },
      isLong(message.content) ? JSON.stringify({ ...message, content: 0 }) : undefined,
    );
  });
  for (const call of withCosts(instance))
    insert(store, 'model_calls', callRow(attempt.id, call, instance.model, startedAt));
  const { patchBytes } = instance;
  const submission = patchBytes ?? (instance.submission === null ? null : Buffer.from(instance.submission));
  // The prediction is what was published; the submission in the trajectory is the same text where both are there.
  const published = patchBytes ?? (instance.modelPatch ? Buffer.from(instance.modelPatch) : null);
  const patch = choosePatch('submitted', published, null);
  const known = instance.modelPatch !== null;
  const torn = instance.modelPatch?.isWellFormed() === false;
  const exitClass = exitClassOf(instance.exitReason);
  endAttempt(
    store,
    attempt.id,
    {
      ended_at: isoOf(instance.endedAt, startedAt),
      exit_reason: instance.exitReason,
      exit_status: instance.exitStatus,
      error_message: instance.errorMessage,
      submission,
      patch_source: known ? patch.source : null,
      patch_state: known ? (torn ? 'invalid' : patch.state) : null,
      model_patch: known ? patch.modelPatch : null,
      // The attempt's verdict still has to find it.
      patch_sha256: known ? patch.sha256 : '',
      steps: instance.steps,
      elapsed_ms:
        instance.startedAt !== null && instance.endedAt !== null
          ? durationOrNull(Math.round((instance.endedAt - instance.startedAt) * 1000))
          : null,
      notes: JSON.stringify([
        ...patch.notes,
        ...(torn ? [HALF_CHARACTERS] : []),
        ...(instance.file === null ? ['imported from a prediction alone'] : []),
        ...(instance.notes ?? []),
      ]),
    },
    COUNTED_CLASSES.has(exitClass) || exitClass === 'infra' ? 'seal' : 'again',
  );
}

/** Version 1 records the cost of an attempt but not of its calls: the last call gets the whole sum, with a note. */
function withCosts({ calls, costNano }: ForeignInstance): (RecordedCall & { note?: string })[] {
  const last = calls.findLastIndex((call) => call.costNano === null);
  if (last < 0 || costNano === null) return [...calls];
  const known = calls.reduce((sum, call) => sum + (call.costNano ?? 0), 0);
  const note = 'the trajectory states the cost of the attempt only';
  return calls.map((call, i) =>
    call.costNano !== null
      ? call
      : { ...call, costNano: i === last ? Math.max(0, costNano - known) : 0, note },
  );
}

const callRow = (
  attemptId: number,
  call: RecordedCall & { note?: string },
  model: string,
  startedAt: string,
) => ({
  attempt_id: attemptId,
  step: call.step,
  try: 0,
  state: 'ok',
  started_at: isoOf(call.at, startedAt),
  model_asked: model,
  model_answered: call.model,
  response_id: call.responseId,
  finish_reason: call.finishReason,
  usage: call.rawUsage === null || call.rawUsage === undefined ? null : JSON.stringify(call.rawUsage),
  input_tokens: call.inputTokens,
  cache_read_tokens: call.cacheReadTokens,
  cache_write_tokens: call.cacheWriteTokens ?? null,
  output_tokens: call.outputTokens,
  reasoning_tokens: call.reasoningTokens,
  cost_nano: call.costNano,
  notes: JSON.stringify(['imported', ...(call.notes ?? []), ...(call.note ? [call.note] : [])]),
});

type Sections = Readonly<Record<string, unknown>>;

const IN_AGENT = /_template$|^action_regex$/;

/**
 * The configuration of a mini-swe-agent trajectory in the words of our configuration: for comparing, and for running it again.
 * The agent is the one that `replay` plays. The image is left out: it is the one instance's that it was read from.
 */
function publishedArm({
  config,
  version,
  format,
}: Pick<ForeignInstance, 'config' | 'version' | 'format'>): Sections {
  if (Object.keys(recordOf(config.agent)).length === 0) return {};
  const { image: _, ...environment } = recordOf(config.environment);
  const model = Object.entries(recordOf(config.model)).filter(([key]) => !IN_AGENT.test(key));
  try {
    return {
      agent: recordedAgentConfig(
        config,
        version ?? '',
        format === 'mini-swe-agent-1.1' ? format : 'mini-swe-agent-1',
      ),
      environment,
      model: Object.fromEntries(model),
    };
  } catch {
    // A custom agent with settings of its own: kept unchanged.
    return config;
  }
}
