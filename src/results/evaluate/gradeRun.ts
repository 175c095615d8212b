/** Grades the predictions of a run that have no verdict yet, and writes the harness's reports. */

import { existsSync } from 'node:fs';
import { createClosing } from '../../base/async/timer.ts';
import { VERSION } from '../../base/files/packageFile.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { recordOf } from '../../base/isRecord.ts';
import { inert } from '../../base/text/inert.ts';
import { runConfigSchema } from '../../config/configSchema.ts';
import type { Dataset } from '../../dataset/dataset.ts';
import { type Instance, instanceSchema } from '../../dataset/instance.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { environmentConfigSchema } from '../../environment/environments.ts';
import { type EngineWatch, watchEngine } from '../../environment/places/engineWatch.ts';
import { imagesConfigSchema } from '../../environment/places/imagesConfig.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import type { StoredReport } from '../../grading/storedReports.ts';
import { exportSummary } from '../../report/exportSummary.ts';
import { type Attendant, attended, type Caller, type Variables, type Work } from '../../run/caller.ts';
import { budgetOf } from '../../run/control/budget.ts';
import { withRunLock } from '../../run/control/lock.ts';
import { requireDataset } from '../../run/datasets.ts';
import { cleanedBy, createEvents, type RunEvents } from '../../run/events.ts';
import { createGrader, type Grader } from '../../run/grader/grader.ts';
import { openSuite } from '../../run/grader/judge.ts';
import { requireInstances } from '../../run/namedTrials.ts';
import { openGradingImages } from '../../run/places/openImages.ts';
import { plannedArm, plannedSuite } from '../../run/plan/planRecord.ts';
import { gradedTaskFacts, withoutRefused } from '../../run/plan/refusedTasks.ts';
import type { PlannedInstance } from '../../run/plannedTrial.ts';
import { exportRecord } from '../../run/record/exportRun.ts';
import { exportRunReports, type GradedWhole } from '../../run/record/runReports.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { databasePath, openForWriting, requireRun } from '../../run/resultsRoot.ts';
import { redactorOfArms } from '../../run/secrets.ts';
import { reportData } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { type Gradable, goldStandings, gradableTrials, verdictsOf } from '../../store/records/evaluations.ts';
import {
  armsOf,
  type InstanceRow,
  instancesOf,
  kindsOf,
  type RunRow,
  wholeConfig,
} from '../../store/records/runs.ts';
import { loadSuites } from '../../suites/suites.ts';

interface GradingTask {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly config: GradingConfig;
  readonly only?: ReadonlySet<string> | undefined;
  readonly again: boolean;
  /** The instances that the official report counts; default: those of the run. */
  readonly whole?: GradedWhole;
  /** Evaluations of each, one after another. */
  readonly repeat?: number;
}

/** One report of the harness for each arm and epoch. */
export interface GradedPart extends StoredReport {
  /** The place of the written report. */
  readonly path: string;
  /** The score where the gold patch passes on this machine; null where that is not known. */
  readonly gold: GoldFailures | null;
}

export interface Evaluation {
  readonly run: string;
  readonly root: string;
  readonly harness: GradingConfig['harness'];
  readonly network: GradingConfig['network'];
  /** Empty when it was interrupted. */
  readonly reports: readonly GradedPart[];
  /** Messages of gradings that failed. */
  readonly faults: readonly string[];
  /** Predictions without a usable verdict. */
  readonly ungraded: number;
  readonly interruptedBy: string | null;
}

const GRACE_S = 30;

/** The caller holds the run's lock. */
export async function gradeRun(task: GradingTask, caller: Caller): Promise<Evaluation> {
  const { store, root, run, config } = task;
  const instances = await gradableInstances(task);
  const suite = plannedSuite(run);
  const unset = suite?.env.filter((name) => caller.env[name] === undefined) ?? [];
  if (unset.length > 0)
    throw new UserError(
      `the tests of ${run.name} want $${unset.join(', $')}, which suite.env allows and which is not set`,
      { hint: `export ${unset[0]}=...` },
    );
  const arms = armsOf(store, run.id);
  const asked = (g: Gradable) => !task.only || task.only.has(instances.get(g.instance_pk)!.row.instance_id);
  const fits = await fittingHere(task, instances, asked, caller);
  const redactor = redactorOfArms(caller.env, run, arms);
  const events = createEvents(undefined, cleanedBy(redactor));
  const work = { run: run.name, root, workers: config.workers, events };
  const { stop, attendant } = attended(caller, work, { onInterrupt: 'capture', graceS: GRACE_S });
  const closing = createClosing();
  closing.add(() => attendant.end?.());
  let ungraded: number;
  try {
    const images = gradingImages(task, work, caller);
    const engine = images ? watchOf(task, events) : undefined;
    closing.add(() => engine?.close());
    closing.add(() => images?.close());
    const note = (text: string) => events.emit({ type: 'note', text });
    const budget = budgetOf(store, run, events);
    const opened = await openSuite(suite, { store, env: caller.env, redactor, budget, note }, closing);
    const grader = await createGrader(
      {
        ...{ store, row: run, grading: config, dir: pathInside(root, run.name), redactor, events, stop },
        ...{ suite: opened, instances, engine, ensureGraded: images?.ensure },
        arms: new Map(arms.map((row) => [row.id, { row }])),
      },
      caller.cwd,
    );
    closing.add(() => grader.close());
    closing.add(() => attendant.over?.());
    await gradeAll(task, grader, (g) => asked(g) && fits.has(g.instance_pk), attendant);
    ungraded = grader.summary(asked).ungraded;
  } finally {
    await closing.closeAll();
  }
  return evaluationOf(task, ungraded, stop.interruptedBy);
}

/** The instances whose containers the engine can give what their tasks ask for; the others are told, and stay without a verdict. */
async function fittingHere(
  { store, run }: GradingTask,
  instances: ReadonlyMap<number, PlannedInstance>,
  asked: (g: Gradable) => boolean,
  { tell }: Caller,
): Promise<ReadonlySet<number>> {
  const pks = new Set(
    gradableTrials(store, run.id)
      .filter(asked)
      .map((g) => g.instance_pk),
  );
  const tasks = [...pks].map((pk) => ({ pk, instance: instances.get(pk)!.instance }));
  const arms = armsOf(store, run.id).map((arm) => ({
    environment: environmentOf(plannedArm(arm).environment),
  }));
  const { supported } = await withoutRefused(tasks, await gradedTaskFacts(tasks, arms), { skip: true, tell });
  return new Set(supported.map(({ pk }) => pk));
}

/** The gradings with their reports, which are written. */
export const evaluationOf = async (
  task: Omit<GradingTask, 'again' | 'repeat'>,
  ungraded: number,
  interruptedBy: string | null,
): Promise<Evaluation> => ({
  run: task.run.name,
  root: task.root,
  harness: task.config.harness,
  network: task.config.network,
  ungraded,
  interruptedBy,
  ...(interruptedBy === null ? await exported(task) : { reports: [], faults: [] }),
});

function watchOf({ run }: GradingTask, events: RunEvents): EngineWatch {
  const stored = runConfigSchema.safeParse(wholeConfig(run).run ?? {});
  const { stall } = stored.success ? stored.data : runConfigSchema.parse({});
  const engine = watchEngine(stall.engine_s);
  engine.follow({
    away: (reason) =>
      events.emit({
        type: 'paused',
        reason: `the container engine does not answer (${reason}); gradings wait for it`,
      }),
    back: (ms) =>
      events.emit({
        type: 'resumed',
        reason: `the container engine answers again after ${Math.round(ms / 1000)} s`,
      }),
    lost: (reason) => events.emit({ type: 'note', text: reason }),
  });
  return engine;
}

async function gradeAll(
  { again, repeat = 1 }: GradingTask,
  grader: Grader,
  asked: (g: Gradable) => boolean,
  attendant: Attendant,
): Promise<void> {
  for (let time = 0; time < repeat; time++) {
    const count = grader.enqueueMissing(asked, again || time > 0);
    attendant.toGrade?.(count);
    await grader.drain();
  }
}

async function gradableInstances({
  store,
  run,
  only,
}: GradingTask): Promise<ReadonlyMap<number, PlannedInstance>> {
  const planned = instancesOf(store, run.id);
  const unknown = [...(only ?? [])].filter((id) => !planned.some((row) => row.instance_id === id));
  if (unknown.length > 0) throw new UserError(`run ${run.name} has no instance ${unknown.join(', ')}`);
  if (run.imported === 1 && gradableTrials(store, run.id).length === 0)
    throw new UserError(
      `there is nothing to grade in ${run.name}: it was imported from verdicts alone, without patches`,
      { hint: 'import the predictions and their report together' },
    );
  await loadSuites(kindsOf(store, run.id));
  return new Map(planned.map((row) => [row.id, { row, instance: instanceOf(row, run) }]));
}

/** An import accepts any id, even one that cannot be the name of a container. */
function instanceOf(row: InstanceRow, run: RunRow): Instance {
  const read = instanceSchema.safeParse(JSON.parse(row.row));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UserError(
    `${inert(row.instance_id)} of run ${run.name} cannot be graded: ${issue!.path.join('.')}: ${issue!.message}`,
  );
}

/**
 * The configuration of an import is another tool's. Where it is not an environment of ours, the defaults apply. Verdicts of a run that earlier
 * versions spread over several engines are made on this one.
 */
function environmentOf(stored: unknown): EnvironmentConfig {
  const { hosts: _, ...environment } = recordOf(stored);
  const found = environmentConfigSchema.safeParse(environment);
  return found.success ? found.data : environmentConfigSchema.parse({});
}

const gradingImages = ({ store, run }: GradingTask, { events }: Pick<Work, 'events'>, { env }: Caller) =>
  openGradingImages(
    env,
    armsOf(store, run.id).map((arm) => {
      const planned = plannedArm(arm);
      return { name: arm.name, ...planned, environment: environmentOf(planned.environment) };
    }),
    imagesConfigSchema.parse(wholeConfig(run).images ?? {}),
    instancesOf(store, run.id).map(({ image }) => image),
    events,
    store,
  );

async function exported({ store, root, run, config, whole, only }: Omit<GradingTask, 'again' | 'repeat'>) {
  const dir = pathInside(root, run.name);
  const reports = await exportRunReports({ store, run, dir }, config.harness, whole);
  // Exports written when the run ended knew no verdicts.
  await exportSummary(reportData(store, run.id)!, dir, pricesOfRun);
  await exportRecord({ store, run, dir, version: VERSION });
  const faults = [...verdictsOf(store, run.id).values()].flatMap(({ instance_id, error_message }) =>
    error_message !== null && (!only || only.has(instance_id)) ? [error_message] : [],
  );
  return { reports: reports.map((part) => ({ ...part, gold: withoutGoldFailures(store, part) })), faults };
}

interface GoldFailures {
  readonly fails: readonly string[];
  readonly flaky: readonly string[];
  readonly resolved: number;
  readonly submitted: number;
}

/** Null when no instance of the report was calibrated. */
function withoutGoldFailures(store: Store, part: StoredReport): GoldFailures | null {
  const standings = goldStandings(store);
  const bad = new Set(
    [...standings.values()].filter((row) => row.standing !== 'passes').map((row) => row.instance_id),
  );
  const submitted = part.report.submitted_ids;
  if (!submitted.some((id) => standings.has(id))) return null;
  const kept = submitted.filter((id) => !bad.has(id));
  const resolved = part.report.resolved_ids.filter((id) => !bad.has(id)).length;
  return {
    fails: submitted.filter((id) => standings.get(id)?.standing === 'fails'),
    flaky: submitted.filter((id) => standings.get(id)?.standing === 'flaky'),
    resolved,
    submitted: kept.length,
  };
}

export interface EvaluateOptions {
  /** Results root. */
  readonly results: string;
  /** Over what the run was planned with. */
  readonly grading?: Partial<GradingConfig> | undefined;
  /** The ids that count, and no others. */
  readonly instances?: readonly string[] | undefined;
  /** Grade instances again that have a verdict. */
  readonly again?: boolean | undefined;
}

export interface EvaluateRunOptions extends EvaluateOptions {
  /** Name, unique prefix, or "last". */
  readonly run: string;
}

export async function evaluateRun(options: EvaluateRunOptions, caller: Caller): Promise<Evaluation> {
  const { results: root } = options;
  if (!existsSync(databasePath(root)))
    throw new UserError(`there are no results in ${root}, so no run "${options.run}"`, {
      hint: 'a predictions file must end in .json or .jsonl',
      next: { do: 'name_results' },
    });
  using store = openForWriting(root);
  const run = requireRun(store, options.run);
  const config = gradingConfig(options.grading, wholeConfig(run).grading);
  await requireParsers(config, caller.cwd);
  const { instances: words = [] } = options;
  const only = words.length > 0 ? new Set(requireInstances(store, run, words)) : undefined;
  return await withRunLock({ store, root, runName: run.name, tell: caller.tell }, () =>
    gradeRun({ store, root, run, config, only, again: options.again ?? false }, caller),
  );
}

export const wantedIds = ({ instances }: EvaluateOptions): ReadonlySet<string> | undefined =>
  instances && instances.length > 0 ? new Set(instances) : undefined;

export interface DatasetChoice {
  /** A file, a folder, a known name or a hub id. */
  readonly subset: string;
  readonly split?: string | undefined;
  /** Folder with local copies of the named datasets. */
  readonly dataDir?: string | undefined;
}

export const requireSubset = ({ subset, ...where }: DatasetChoice, env: Variables): Promise<Dataset> =>
  requireDataset(subset, { ...where, env });

/** `stored` holds the settings that a run was planned with; given ones win. */
export function gradingConfig(given: Partial<GradingConfig> = {}, stored: unknown = {}): GradingConfig {
  const base = gradingConfigSchema.parse(stored);
  return { ...base, ...given, enabled: true, parsers: { ...base.parsers, ...given.parsers } };
}

/** The user's parsers beside the official ones; read before anything is made or started. */
export const requireParsers = (config: GradingConfig, cwd: string): Promise<ParserRegistry> =>
  loadParsers(config.parsers, cwd).catch((error: Error) => {
    throw new UserError(error.message, {
      hint: 'relative paths of parsers start in the working directory',
    });
  });
