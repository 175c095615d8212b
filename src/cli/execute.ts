/**
 * What `run` and `resume` share once it is settled which run and which trials: lock, recovery of what a dead process left, signals,
 * progress, the session, and the exit code.
 */
import { join } from 'node:path';
import type { RunConfig } from '../config/run.ts';
import { reap } from '../environment/docker/reaper.ts';
import { type ImagesConfig, imagesConfigSchema } from '../environment/images/config.ts';
import { currentOwner, isOwnerAlive, ownerLabels } from '../environment/owner.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import { formatCost } from '../money.ts';
import { SEALED_CLASSES } from '../outcome.ts';
import { takeLock } from '../runner/control/lock.ts';
import { recoverRun, refuseLostRecords } from '../runner/control/recover.ts';
import { createStopLadder } from '../runner/control/stop.ts';
import { cleanedBy, createEvents } from '../runner/events.ts';
import { runSession, type SessionResult } from '../runner/runSession.ts';
import type { ArmConfig } from '../runner/schedule/planRun.ts';
import { requireEngine } from '../service/images/engines.ts';
import { enginesOf, type OpenedImages, openRunImages } from '../service/images/openImages.ts';
import { commandOn } from '../service/resultsRoot.ts';
import { redactorOf } from '../service/secrets.ts';
import { createNotifier } from '../service/start/notify.ts';
import { openReplay } from '../service/start/replayModel.ts';
import { openLog } from '../service/start/runLog.ts';
import { UserError } from '../service/userError.ts';
import { VERSION } from '../service/version.ts';
import { guarded, type Store } from '../store/open.ts';
import { type RunRow, spentNano } from '../store/records/runs.ts';
import { type TrialRow, trialsOf } from '../store/records/trials.ts';
import { EXIT, env, printJson, say } from './terminal/context.ts';
import { failureLines } from './terminal/failures.ts';
import { createProgress, type ProgressMode } from './terminal/progress.ts';
import { keepFromTerminal } from './terminal/secrets.ts';
import { listenForSignals, signalExitCode } from './terminal/signals.ts';

export interface ExecuteRequest {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly config: RunConfig;
  readonly grading: GradingConfig;
  /** Default: as an empty `images:` section means it. */
  readonly images?: ImagesConfig | undefined;
  readonly arms: readonly ArmConfig[];
  readonly json: boolean;
  readonly progress: ProgressMode;
  /** Chooses among all trials, once what a dead process left is pending again. */
  readonly choose?: (trials: readonly TrialRow[]) => readonly TrialRow[];
}

/** Takes the lock of a run for the time of `work`. The database of the results root keeps takers apart. */
export async function withRunLock<T>(
  store: Store,
  root: string,
  runName: string,
  work: () => Promise<T>,
): Promise<T> {
  const owner = currentOwner(runName, 'run');
  const lock = takeLock(
    join(root, runName, 'run.lock'),
    {
      pid: owner.pid,
      pidStart: owner.pidStart,
      ...(owner.pidNamespace !== undefined && { pidNamespace: owner.pidNamespace }),
      bootId: owner.bootId,
      host: owner.host,
      since: new Date().toISOString(),
    },
    ({ pidNamespace, ...holder }) =>
      isOwnerAlive(
        ownerLabels(
          { ...holder, ...(pidNamespace !== undefined && { pidNamespace }), run: runName, attempt: 'run' },
          '',
          new Date(0),
        ),
      ) !== 'dead',
    (taking) => guarded(store, () => store.transaction(taking).immediate()),
  );
  if (!lock.ok) throw new UserError(lock.message);
  if (lock.tookOver)
    say(`note: took over the lock of pid ${lock.tookOver.pid} on ${lock.tookOver.host}, which is gone`);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** The caller holds the lock. */
export async function executeRun(request: ExecuteRequest): Promise<number> {
  const { store, root, run, config } = request;
  const redactor = redactorOf(
    process.env,
    request.arms.map((a) => a.model.api_key_env),
  );
  keepFromTerminal(redactor);
  refuseLostRecords(store, run, join(root, run.name));
  const recovered = recoverRun(store, run.id, new Date().toISOString());
  if (recovered.trials > 0)
    say(
      `note: ${recovered.trials} trial(s) were running when the last process ended; they are pending again` +
        (recovered.possiblyBilled > 0
          ? `, and ${recovered.possiblyBilled} model call(s) were possibly billed without a record`
          : ''),
    );
  await reapOrphans(request.arms);
  const all = trialsOf(store, run.id);
  const toDo = (request.choose ?? ((t) => t))(all).filter((t) => t.state === 'pending');
  const owner = currentOwner(run.name, 'run');
  const log = openLog(join(root, run.name, 'run.log'), redactor);
  const events = createEvents(
    (error) => log.write('warn', 'a listener failed', { error: String(error) }),
    cleanedBy(redactor),
  );
  const stop = createStopLadder({
    onInterrupt: config.on_interrupt,
    graceS: config.stop_grace_s,
    exitNow: () => {
      progress.stop();
      say(`exiting at once; what ran is resumable with ${commandOn(root, `resume ${run.name}`)}`);
      process.exit(signalExitCode(stop.interruptedBy ?? 'SIGINT'));
    },
  });
  const progress = createProgress(config.workers, request.progress);
  events.on(progress.listener);
  const notifier = createNotifier(config, progress.say);
  events.on(notifier.listener);
  const silence = listenForSignals(stop, events);
  let result: SessionResult;
  let opened: OpenedImages | undefined;
  try {
    opened = await openRunImages(
      process.env,
      request.arms,
      request.images ?? imagesConfigSchema.parse({}),
      events,
    );
    const engineDir = await opened?.images.engineDir();
    result = await runSession({
      store,
      root,
      run,
      config,
      grading: request.grading,
      toDo,
      ...opened,
      ...(engineDir !== undefined && { engineDir }),
      secret: env,
      redactor,
      events,
      stop,
      leaseOwner: `${owner.host}:${owner.bootId}:${owner.pid}:${owner.pidStart}`,
      version: VERSION,
      cwd: process.cwd(),
      log: (level, message, data) => log.write(level, message, data),
      fetchReplay: async (name, arm) => openReplay(name, () => store, arm).source,
    });
  } finally {
    await opened?.images.close();
    silence();
    await notifier.settle();
    progress.stop();
  }
  return conclude(request, result, stop.interruptedBy);
}

/** A daemon that has locked up over one container serves all others; the run begins, and says what is left over. */
const REAP_LIMIT_MS = 20_000;

/** Containers of dead processes go before new ones come; a daemon that does not answer is the preflight's matter. */
async function reapOrphans(arms: readonly ArmConfig[]): Promise<void> {
  for (const host of enginesOf(arms)) {
    try {
      const { removed, failed } = await reap({
        ...(host !== undefined && { docker: requireEngine(process.env, host).docker }),
        limitMs: REAP_LIMIT_MS,
      });
      if (removed.length > 0)
        say(`note: removed ${removed.length} container(s) that a dead process had left`);
      for (const { name } of failed)
        say(`warning: container ${name} could not be removed; try "swebatch clean"`);
    } catch (error) {
      // One of several may be down; the run goes on without it and says so.
      if (host === undefined) throw error;
    }
  }
}

function conclude(request: ExecuteRequest, result: SessionResult, interruptedBy: string | null): number {
  const { store, run } = request;
  const money = spentNano(store, run.id);
  const counts = Object.entries(result.counts)
    .map(([name, n]) => `${name} ${n}`)
    .join(' · ');
  const cost = `${money.unknownCalls > 0 ? '≥ ' : ''}${formatCost(money.nano)}`;
  if (request.json)
    printJson({
      run: run.name,
      status: result.status,
      counts: result.counts,
      cost_nano: money.nano,
      unknown_cost_calls: money.unknownCalls,
      predictions: result.predictions,
      graded: result.graded,
    });
  say(`run ${run.name}: ${result.status} · ${counts} · ${cost}`);
  if (result.graded)
    say(
      `graded: ${Object.entries(result.graded.outcomes)
        .map(([o, n]) => `${o} ${n}`)
        .join(' · ')}`,
    );
  for (const path of result.predictions) say(`predictions: ${path}`);
  return exitCodeOf(request, result, interruptedBy);
}

function exitCodeOf(request: ExecuteRequest, result: SessionResult, interruptedBy: string | null): number {
  const { store, root, run } = request;
  const decided = [...SEALED_CLASSES].reduce((n, c) => n + (result.counts[c] ?? 0), 0);
  const notRun = result.counts.not_run ?? 0;
  switch (result.status) {
    case 'interrupted':
      say(`interrupted; go on with ${commandOn(root, `resume ${run.name}`)}`);
      return signalExitCode(interruptedBy ?? 'SIGINT');
    case 'failed':
      say(`error: ${result.fatal ?? 'the configuration cannot work'}; ${notRun} trial(s) not run`);
      return EXIT.usage;
    case 'budget':
      say(
        `run budget ${formatCost(run.budget_nano)} reached: ${decided} finished, ${notRun} not run; go on with ${commandOn(root, `resume ${run.name} --cost-limit N`)}`,
      );
      return EXIT.budget;
    case 'complete':
      if (result.graded && result.graded.ungraded > 0) {
        say(
          `incomplete: ${result.graded.ungraded} prediction(s) could not be graded; try ${commandOn(root, `evaluate ${run.name}`)}`,
        );
        return EXIT.incomplete;
      }
      return EXIT.done;
    default:
      say(
        `incomplete: ${result.counts.infra ?? 0} trial(s) ended for reasons that are not the model's; run them again with ${commandOn(root, `resume ${run.name} --retry infra`)}`,
      );
      for (const line of failureLines(store, run.id)) say(line);
      return EXIT.incomplete;
  }
}
