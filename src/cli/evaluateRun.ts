/** `evaluate RUN`: grades what a run has predicted and nobody graded yet, writes the harness's reports, and says what came out. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { inert } from '../base/text/inert.ts';
import { type Instance, instanceSchema } from '../dataset/instance.ts';
import { type EnvironmentConfig, environmentConfigSchema } from '../environment/environmentConfig.ts';
import { imagesConfigSchema } from '../environment/images/imagesConfig.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import type { StoredReport } from '../grading/storedReports.ts';
import type { Block } from '../report/render/document.ts';
import { exportSummary } from '../report/render/exportSummary.ts';
import { rate } from '../report/render/format.ts';
import { renderTerminal } from '../report/render/renderTerminal.ts';
import { proportion } from '../report/statistics/proportions.ts';
import { createStopLadder } from '../runner/control/stop.ts';
import { cleanedBy, createEvents } from '../runner/events.ts';
import { createGrader } from '../runner/grader/grader.ts';
import type { PlannedInstance } from '../runner/plannedTrial.ts';
import { exportRunReports, type GradedWhole } from '../runner/record/runReports.ts';
import { pricesOfRun } from '../runner/record/tokenPrices.ts';
import { plannedArm } from '../runner/schedule/plannedConfig.ts';
import { openGradingImages } from '../service/images/openImages.ts';
import { commandOn, databasePath, requireRun, resultsRoot } from '../service/resultsRoot.ts';
import { redactorOf } from '../service/secrets.ts';
import { withRunLock } from '../service/start/lock.ts';
import { UserError } from '../service/userError.ts';
import { openStore, type Store } from '../store/open.ts';
import { goldStandings } from '../store/records/calibration.ts';
import { type Gradable, gradableTrials, verdictsOf } from '../store/records/evaluations.ts';
import { armsOf, type InstanceRow, instancesOf, type RunRow } from '../store/records/runs.ts';
import { storedConfig } from '../store/records/storedConfig.ts';
import type { EvaluateArgs } from './flags/evaluateFlags.ts';
import { gradingOf, parsersOf, wantedIds } from './flags/gradingSettings.ts';
import { EXIT, printData, printJson, say, sayNotice } from './terminal/context.ts';
import { listenForSignals, signalExitCode } from './terminal/signals.ts';

export interface GradingTask {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly config: GradingConfig;
  readonly only?: ReadonlySet<string> | undefined;
  readonly again: boolean;
  readonly json: boolean;
  /** What the official report counts as the whole; default the run's instances. */
  readonly whole?: GradedWhole;
  /** Evaluations of each, one after another. */
  readonly repeat?: number;
}

export async function evaluateRun(args: EvaluateArgs, selector: string): Promise<number> {
  const root = resultsRoot(args.output);
  if (!existsSync(databasePath(root)))
    throw new UserError(`there are no results in ${root}, so no run "${selector}"`, {
      hint: 'name another results root with -o; a predictions file must end in .json or .jsonl',
    });
  const store = openStore(databasePath(root));
  try {
    const run = requireRun(store, selector);
    const config = gradingOf(args, storedConfig(run).grading);
    await parsersOf(config);
    const only = wantedIds(args);
    return await withRunLock({ store, root, runName: run.name, tell: sayNotice }, () =>
      gradeRun({ store, root, run, config, only, again: args.again, json: args.json }),
    );
  } finally {
    store.close();
  }
}

/** An import takes ids as they are, also those that no container may be named for. */
function instanceOf(row: InstanceRow, run: RunRow): Instance {
  const read = instanceSchema.safeParse(JSON.parse(row.row));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UserError(
    `${inert(row.instance_id)} of run ${run.name} cannot be graded: ${issue!.path.join('.')}: ${issue!.message}`,
  );
}

/** What another tool recorded, or did not, is no environment of ours: then images come as they do by default. */
function environmentOf(stored: unknown): EnvironmentConfig {
  const found = environmentConfigSchema.safeParse(stored ?? {});
  return found.success ? found.data : environmentConfigSchema.parse({});
}

/** The caller holds the run's lock. */
export async function gradeRun(task: GradingTask): Promise<number> {
  const { store, root, run, config } = task;
  const dir = join(root, run.name);
  const planned = instancesOf(store, run.id);
  const unknown = [...(task.only ?? [])].filter((id) => !planned.some((row) => row.instance_id === id));
  if (unknown.length > 0) throw new UserError(`run ${run.name} has no instance ${unknown.join(', ')}`);
  if (run.imported === 1 && gradableTrials(store, run.id).length === 0)
    throw new UserError(
      `there is nothing to grade in ${run.name}: it was imported from verdicts alone, and no patch of it is known`,
      { hint: 'import its predictions with --report, or with the report beside them' },
    );
  const instances = new Map<number, PlannedInstance>(
    planned.map((row) => [row.id, { row, instance: instanceOf(row, run) }]),
  );
  const redactor = redactorOf(process.env);
  const events = createEvents(undefined, cleanedBy(redactor));
  const stop = createStopLadder({
    onInterrupt: 'capture',
    graceS: 30,
    exitNow: () => process.exit(signalExitCode('SIGINT')),
  });
  let done = 0;
  let total = 0;
  events.on((event) => {
    if (event.type === 'graded')
      say(
        `[${++done}/${total}] ${event.trial.instanceId}  ${event.outcome}  ${(event.durationMs / 1000).toFixed(1)} s`,
      );
    if (event.type === 'stopping') say(event.reason);
    if (event.type === 'note') say(inert(event.text));
  });
  const silence = listenForSignals(stop, events);
  const arms = armsOf(store, run.id);
  const images = openGradingImages(
    process.env,
    arms.map((arm) => {
      const planned = plannedArm(arm);
      return { name: arm.name, ...planned, environment: environmentOf(planned.environment) };
    }),
    imagesConfigSchema.parse(storedConfig(run).images ?? {}),
    planned.map(({ image }) => image),
    events,
  );
  const grader = await createGrader({
    store,
    run,
    config,
    arms,
    images,
    instances,
    redactor,
    events,
    stop,
    cwd: process.cwd(),
    dir,
  });
  const asked = (g: Gradable) => !task.only || task.only.has(instances.get(g.instance_pk)!.row.instance_id);
  try {
    for (let time = 0; time < (task.repeat ?? 1); time++) {
      done = 0;
      total = grader.enqueueMissing(asked, task.again || time > 0);
      await grader.drain();
    }
  } finally {
    silence();
    await grader.close();
    await images?.close();
  }
  if (stop.interruptedBy !== null) {
    say(`interrupted; go on with ${commandOn(root, `evaluate ${run.name}`)}`);
    return signalExitCode(stop.interruptedBy);
  }
  return await conclude(task, dir, grader.summary(asked).ungraded);
}

async function conclude(task: GradingTask, dir: string, ungraded: number): Promise<number> {
  const { store, root, run, config } = task;
  const reports = await exportRunReports({ store, run, dir }, config.dialect, task.whole);
  // The summary written when the run ended knew no verdicts.
  await exportSummary(store, run.id, dir, pricesOfRun);
  const faults = [...verdictsOf(store, run.id).values()].filter(
    (row) => row.error_message !== null && (!task.only || task.only.has(row.instance_id)),
  );
  if (task.json)
    printJson(
      reports.map((part) => ({
        run: run.name,
        arm: part.arm,
        epoch: part.epoch,
        model: part.model,
        dialect: config.dialect,
        network: config.network,
        report_path: part.path,
        report: {
          ...part.report,
          ...(part.report.failure_reasons && {
            failure_reasons: Object.fromEntries(part.report.failure_reasons),
          }),
        },
        gold: withoutGoldFailures(store, part),
      })),
    );
  else printData(scoreText(store, reports));
  for (const row of faults) say(`note: ${inert((row.error_message ?? '').slice(0, 500))}`);
  for (const { path } of reports) say(`report: ${path}`);
  if (ungraded === 0) return EXIT.done;
  say(
    `incomplete: ${ungraded} prediction(s) have no verdict; ${commandOn(root, `evaluate ${run.name}`)} tries them again`,
  );
  return EXIT.incomplete;
}

/** The score over the instances whose gold patch passes here, when a calibration found some that do not. */
export function withoutGoldFailures(store: Store, part: StoredReport) {
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

function scoreText(store: Store, reports: readonly StoredReport[]): string {
  const several = reports.some((part) => part.epoch > 1);
  const blocks = reports.flatMap((part): Block[] => {
    const { report } = part;
    const gold = withoutGoldFailures(store, part);
    const resolved = proportion(report.resolved_instances, report.submitted_instances);
    return [
      { kind: 'heading', level: 3, text: several ? `${part.arm}, epoch ${part.epoch}` : part.arm },
      {
        kind: 'facts',
        rows: [
          ['resolved', `${rate(resolved)} of submitted (Wilson 95 %)`],
          ['where gold passes', gold ? rate(proportion(gold.resolved, gold.submitted)) : 'not calibrated'],
          [
            'others',
            `unresolved ${report.unresolved_instances}, empty ${report.empty_patch_instances}, error ${report.error_instances}`,
          ],
        ],
      },
    ];
  });
  return renderTerminal(blocks);
}
