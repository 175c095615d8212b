/**
 * The environment of an attempt, from its start to its removal: the container comes up, its shell is probed, its work is captured, and it is
 * removed, each within a limit of its own.
 */
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { errorText } from '../../base/text/errorText.ts';
import {
  type CapturedPatch,
  type Environment,
  EnvironmentError,
  isLoss,
  type Kept,
} from '../../environment/environment.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import { StorageError } from '../../store/open.ts';
import { abandonedWorks, noteWork } from '../../store/records/evaluations.ts';
import { probedPackageOf } from '../../suites/suites.ts';
import type { Run } from '../contract.ts';
import { orAbort } from '../control/stop.ts';
import { type Ending, LOGIN_SHELL, WRONG_ENVIRONMENT } from '../exit.ts';
import { type PlannedTrial, startRequestOf } from '../plannedTrial.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';
import type { Turn } from '../schedule/trialQueue.ts';

/** Starts a fresh environment. One that starts after the attempt has ended is closed again. */
export async function enterEnvironment(
  { row, suite }: Run,
  { trial, admission }: Turn,
  { phases, number, connected }: AttemptJournal,
  signal: AbortSignal,
): Promise<Environment> {
  phases.begin('start');
  // A trial whose image is not available ends like every other, with an attempt and a reason.
  if (admission?.failure) throw admission.failure;
  const starting = trial.arm.environmentFactory.start({
    ...startRequestOf(trial, row.name, number, suite.variables),
    signal,
    onPhase: (phase) => phases.begin(phase),
    onConnection: connected,
  });
  return orAbort(starting, signal, (late) => late.close());
}

/**
 * Checks before the first step that the shell uses the right Python environment. In a wrong one every command of the agent would run, with
 * wrong results. The check uses the same channel as the agent's commands.
 */
export async function probeEnvironment(
  trial: PlannedTrial,
  environment: Environment,
  { phases }: AttemptJournal,
  signal: AbortSignal,
): Promise<void> {
  const { arm, image } = trial;
  const { probe, interpreter } = arm.environment;
  if (probe === 'off') return;
  const known = () =>
    environmentKindOf(arm.environment).inImages ? probedPackageOf(trial.instance) : undefined;
  const name = probe === 'auto' ? known() : probe;
  if (name === undefined) return;
  phases.begin('probe');
  // From the root folder, because any Python finds a package in its own checkout.
  const run = async (command: string) => {
    const done = await environment.execute(command, { cwd: '/', signal });
    // Of a machine that is too slow, or a shell that was killed: nothing is known of the image.
    if (done.exitCode < 0)
      throw new EnvironmentError(
        'start_failed',
        `whether python package "${name}" of ${image} can be imported is not known: ${done.exceptionInfo}`,
        { evidence: { package: name, image } },
      );
    return done;
  };
  const script = `import importlib.util, sys; sys.exit(importlib.util.find_spec("${name}") is None)`;
  const command = `python -c '${script}'`;
  const { exitCode, output } = await run(command);
  if (exitCode === 0) return;
  // The environment of the image is the one that its login shells have.
  if ((await run(`bash -lc '${command.replaceAll("'", `'\\''`)}'`)).exitCode === 0)
    throw new EnvironmentError(
      'start_failed',
      `python package "${name}" of ${image} is there in a login shell only, and commands run by "${interpreter.join(' ')}": set environment.interpreter to [bash, -lc]; for a configuration of mini-swe-agent agent.compat (mini-swe-agent-1 or mini-swe-agent-2) does that`,
      { sub: LOGIN_SHELL, evidence: { package: name, image, interpreter } },
    );
  const tail = output.trim().slice(-200);
  throw new EnvironmentError(
    'start_failed',
    `python package "${name}" not importable in ${image}${tail ? ` (${tail})` : ''}: its shell uses another environment; set environment.env.BASH_ENV to the file that activates it, or environment.probe to off`,
    { sub: WRONG_ENVIRONMENT, evidence: { package: name, image, exitCode, output: tail } },
  );
}

/** A limit of 0 means none; an hour is longer than any capture or removal takes. */
const WITHOUT_LIMIT_S = 3600;

/** Captures the work for every exit reason, except when the container is gone. `lost`: the engine went away with the work in it. */
export async function captureWork(
  run: Run,
  journal: AttemptJournal,
  environment: Environment,
  ending: Ending,
  kept: Kept,
): Promise<{ readonly captured: CapturedPatch | null; readonly lost: unknown }> {
  if (ending.reason === 'env_died') return { captured: null, lost: null };
  journal.phases.begin('capture');
  try {
    return { captured: await inTime(run, environment.capturePatch(kept)), lost: null };
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const { message } = error as Error;
    journal.note(`the work could not be captured: ${message}`);
    journal.warn('capture failed', { message });
    return { captured: null, lost: isLoss(error) ? error : null };
  }
}

/** The end state of the container as an image, for tasks that are graded by it; null where it could not be kept. */
export async function leaveWork(
  run: Run,
  journal: AttemptJournal,
  environment: Environment,
  ending: Ending,
  kept: Kept,
): Promise<string | null> {
  if (ending.reason === 'env_died') return null;
  if (!environment.capabilities.canKeepWork) {
    journal.note(
      `an end state is not kept in ${environment.info.kind}, so its patch is graded: what lies outside of ${environment.templateVars().cwd} is not in it`,
    );
    return null;
  }
  try {
    return await inTime(run, environment.keepWork(kept));
  } catch (error) {
    const { message } = error as Error;
    journal.note(`the end state of the container could not be kept, so its patch is graded: ${message}`);
    journal.warn('the work could not be kept', { message });
    return null;
  }
}

/** Of one attempt, below the run's folder. */
const SERVICES = 'services';

/** What the services beside the container printed, as files of the attempt; a secret in them is replaced. Never throws for an engine. */
export async function keepServiceLogs(
  run: Run,
  { id, label }: Pick<PlannedTrial, 'id' | 'label'>,
  journal: AttemptJournal,
  environment: Environment,
): Promise<void> {
  try {
    const logs = await inTime(run, environment.serviceLogs());
    if (logs.length === 0) return;
    const below = `${SERVICES}/${label.instanceId}.${id}.${journal.number}`;
    const folder = pathInside(run.dir, ...below.split('/'));
    makeFolder(folder);
    for (const { service, text } of logs)
      await writeAtomically(pathInside(folder, `${service}.log`), run.redactor.text(text));
    journal.note(`what its services printed is in ${below}`);
  } catch (error) {
    journal.warn('the logs of the services could not be kept', { message: errorText(error) });
  }
}

/** Within run.stall.capture_s by the clock of the run, which stands still while the engine is away, and within the grace of an interrupt. */
export async function inTime<T>({ config: { stall }, stop, now }: Run, work: Promise<T>): Promise<T> {
  const seconds = Math.max(1, stall.capture_s || WITHOUT_LIMIT_S);
  const over = new AbortController();
  const began = now();
  let timer: Timer;
  const look = (ms: number): void => {
    timer = startTimer(ms, () => {
      const left = seconds * 1000 - (now() - began);
      if (left >= 1) look(left);
      else over.abort(new Error(`not done within ${seconds} s`));
    });
  };
  look(seconds * 1000);
  try {
    return await orAbort(orAbort(work, over.signal), stop.captureEnds);
  } finally {
    timer!.cancel();
  }
}

/** A daemon that does not answer must not hold the slot; the factory's close waits for the removal once more. */
export async function removeEnvironment(
  { config: { stall }, stop }: Run,
  journal: AttemptJournal,
  environment: Environment,
): Promise<void> {
  try {
    journal.phases.begin('stop');
  } catch (error) {
    // The container is removed even when the phase cannot be recorded; another write throws the storage error.
    if (!(error instanceof StorageError)) throw error;
  }
  const limitS = stall.stop_s || WITHOUT_LIMIT_S;
  try {
    await orAbort(orAbort(environment.close(), AbortSignal.timeout(limitS * 1000)), stop.graceEnds);
  } catch {
    journal.note(
      stop.graceEnds.aborted
        ? 'the container was still there when the grace period of the interrupt ended; "swebatch clean" removes it'
        : `the container was still there after ${limitS} s (run.stall.stop_s); "swebatch clean" removes it`,
    );
    journal.warn('the container could not be removed in time');
  }
}

/**
 * Removes end states that were kept of attempts whose results do not count: of a process that died, or of a step before the engine was away.
 * Never throws for an engine: what could not be removed is tried again in the next sitting.
 */
export async function discardAbandonedWork({ store, row, arms, log }: Run): Promise<void> {
  for (const { id, work_image } of abandonedWorks(store, row.id))
    try {
      for (const image of imagesOfWork(work_image))
        for (const { environmentFactory } of arms.values()) await environmentFactory.discardWork(image);
      noteWork(store, id, null);
    } catch (error) {
      log('warn', `an end state that nobody needs could not be removed: ${errorText(error)}`);
    }
}
