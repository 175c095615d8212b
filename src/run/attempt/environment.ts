/**
 * The environment of an attempt, from its start to its removal: the container comes up, its shell is probed, what is left in it is kept, and it
 * is removed, each within a limit of its own.
 */
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { Instance } from '../../dataset/instance.ts';
import {
  type CapturedPatch,
  type Environment,
  EnvironmentError,
  isLoss,
  LOGIN_SHELL,
  WRONG_ENVIRONMENT,
} from '../../environment/environment.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import { type EvaluationResult, imagesOfWork } from '../../grading/gradingFrame.ts';
import { StorageError } from '../../store/open.ts';
import { abandonedWorks, noteWork } from '../../store/records/evaluations.ts';
import type { FinishedWork } from '../../suites/suite.ts';
import { isJudgedByState, needsOf, probedPackageOf, suiteOf } from '../../suites/suites.ts';
import type { Run } from '../contract.ts';
import { crashPoint } from '../control/crash.ts';
import { orAbort } from '../control/stop.ts';
import { type AgentEnd, patchOfAttempt } from '../exit.ts';
import { type PlannedTrial, startRequestOf } from '../plannedTrial.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';
import type { Turn } from '../schedule/trialQueue.ts';
import { openAttempt } from './suiteAttempt.ts';

/**
 * Starts a fresh environment, and checks it before anything is paid. An environment that starts after the attempt has ended is closed again; an
 * environment that does not pass is removed.
 */
export async function startEnvironment(
  run: Run,
  { trial, admission }: Turn,
  journal: AttemptJournal,
  signal: AbortSignal,
): Promise<Environment> {
  journal.phases.begin('start');
  // A trial whose image is not available ends like every other, with an attempt and a reason.
  if (admission?.failure) throw admission.failure;
  const starting = trial.arm.environmentFactory.start({
    ...startRequestOf(trial, run.row.name, journal.number, run.suite.variables),
    signal,
    onPhase: (phase) => journal.phases.begin(phase),
    onConnection: journal.connected,
  });
  const environment = await orAbort(starting, signal, (late) => late.close());
  try {
    crashPoint('after_container_started');
    journal.environmentStarted(environment.info);
    refuseVolumes(trial.instance, environment);
    await probeEnvironment(trial, environment, journal, signal);
    return environment;
  } catch (error) {
    await removeEnvironment(run, journal, environment);
    throw error;
  }
}

/** Refuses an image with a VOLUME where its verifier gets an image of the end state: that image lacks what lies in the volume. */
function refuseVolumes(instance: Instance, { capabilities, info: { volumes = [] } }: Environment): void {
  const { keepsEndStates, judgedApart } = needsOf(instance);
  const who = keepsEndStates ?? (judgedApart && `${judgedApart}, so its end state`);
  if (!capabilities.canKeepWork || who === undefined || volumes.length === 0) return;
  throw new EnvironmentError(
    'start_failed',
    `${who} would be judged without what lies in ${volumes.join(', ')}: its image says VOLUME, which no image of its container keeps; leave VOLUME out of its Dockerfile, or let its verifier share the container`,
    { evidence: { volumes } },
  );
}

/**
 * Checks before the first step that the shell uses the right Python environment. In a wrong one every command of the agent would run, with
 * wrong results. The check uses the same channel as the agent's commands.
 */
async function probeEnvironment(
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
    // A machine that is too slow, or a shell that was killed, says nothing of the image.
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

/** The work of an attempt, as the record keeps it. */
export interface LeftWork extends Omit<FinishedWork, 'judge'> {
  /** The verdict of tests that ran before the environment went. */
  readonly verdict: EvaluationResult | null;
}

export const NOTHING_LEFT: LeftWork = { captured: null, work: null, lost: null, verdict: null };

/** Keeps what was left in the environment, as the suite of the task says, and removes the environment. `end`: null when the record broke. */
export async function leaveEnvironment(
  run: Run,
  turn: Turn,
  journal: AttemptJournal,
  environment: Environment,
  end: AgentEnd | null,
  signal: AbortSignal,
): Promise<LeftWork> {
  try {
    return end === null ? NOTHING_LEFT : await keepWork(run, turn, journal, environment, end, signal);
  } finally {
    await removeEnvironment(run, journal, environment);
    // From now on an agent that ignores its signal can neither spend money nor write.
    journal.recorder.close();
  }
}

async function keepWork(
  run: Run,
  { trial, onAgentDone }: Turn,
  journal: AttemptJournal,
  environment: Environment,
  end: AgentEnd,
  signal: AbortSignal,
): Promise<LeftWork> {
  onAgentDone();
  crashPoint('before_capture');
  const capture = (running: boolean) => captureWork(run, trial, journal, environment, end, running);
  const { finish } = suiteOf(trial.instance);
  let left = NOTHING_LEFT;
  try {
    const { judge, ...kept }: FinishedWork = finish
      ? await finish(trial.instance, {
          ...openAttempt(run, trial, journal, environment, signal),
          ...{ reason: end.ending.reason, harness: run.grading.harness, capture, warn: journal.warn },
          inTime: (work) => inTime(run, work),
          keepFiles: (folder, files) => keepFiles(run, trial, journal, folder, files),
        })
      : { ...(await capture(false)), work: null };
    left = { ...kept, verdict: null };
    if (!judge) return left;
    const { patch } = patchOfAttempt(run.config.patch, trial.arm, end, kept.captured);
    return { ...left, verdict: await judge(patch.modelPatch) };
  } catch (error) {
    if (error instanceof StorageError) throw error;
    return { ...left, lost: error };
  }
}

/**
 * Captures the work for every exit reason, except when the container is gone. `lost`: the engine went away with the work in it, and the patch was
 * not submitted.
 */
async function captureWork(
  run: Run,
  { arm, instance }: PlannedTrial,
  journal: AttemptJournal,
  environment: Environment,
  { ending, result }: AgentEnd,
  running: boolean,
): Promise<{ readonly captured: CapturedPatch | null; readonly lost: unknown }> {
  if (ending.reason === 'env_died') return { captured: null, lost: null };
  journal.phases.begin('capture');
  try {
    const kept = { running, beside: arm.agent.beside_work ?? [] };
    const captured = await inTime(run, environment.capturePatch(kept));
    // A patch that is not graded keeps no value that was given to the task.
    const hasValues = isJudgedByState(instance) && Object.keys(run.suite.variables).length > 0;
    return {
      captured: hasValues ? { ...captured, patch: run.redactor.bytes(captured.patch) } : captured,
      lost: null,
    };
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const { message } = error as Error;
    journal.note(`the work could not be captured: ${message}`);
    journal.warn('capture failed', { message });
    const isSubmitted =
      result?.exitStatus === 'Submitted' && !arm.leavesPatch && run.config.patch !== 'captured';
    return { captured: null, lost: isLoss(error) && !isSubmitted ? error : null };
  }
}

async function keepFiles(
  { dir, redactor }: Run,
  { id, label }: PlannedTrial,
  { number }: AttemptJournal,
  folder: string,
  files: readonly { name: string; text: string }[],
): Promise<string> {
  const below = `${folder}/${label.instanceId}.${id}.${number}`;
  const path = pathInside(dir, ...below.split('/'));
  makeFolder(path);
  for (const { name, text } of files) await writeAtomically(pathInside(path, name), redactor.text(text));
  return below;
}

/** Within run.stall.capture_s by the clock of the run, which stands still while the engine is away, and within the grace of an interrupt. */
async function inTime<T>({ config: { stall }, stop, now }: Run, work: Promise<T>): Promise<T> {
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

/** T-35: a daemon that does not answer must not hold the slot; the factory's close waits for the removal once more. */
async function removeEnvironment(
  { config: { stall }, stop }: Run,
  journal: AttemptJournal,
  environment: Environment,
): Promise<void> {
  try {
    journal.phases.begin('stop');
  } catch (error) {
    // T-53: the container is removed even when the phase cannot be recorded; another write throws the storage error.
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
