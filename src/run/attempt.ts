/**
 * One attempt of a trial: start, work, settle. This has the only catch that swallows: every error of one instance becomes its exit reason
 * and does not affect the others. Only a storage error gets through, because a run without a record is worthless.
 */
import type { AgentConfig } from '../agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult, CreateAgent } from '../agent/contract.ts';
import { getUserFriendlyMessage } from '../agent/errors.ts';
import type { RunConfig } from '../config/runConfig.ts';
import type { Instance } from '../dataset/instance.ts';
import type { CapturedPatch, Environment } from '../environment/environment.ts';
import { StorageError } from '../store/open.ts';
import type { Settlement } from '../store/records/trials.ts';
import { needsOf, suiteOf } from '../suites/suites.ts';
import { choosePatch } from './attempt/choosePatch.ts';
import { captureWork, keepWork, removeEnvironment } from './attempt/leaveEnvironment.ts';
import { ledAttempt } from './attempt/ledAttempt.ts';
import { probeEnvironment } from './attempt/probeEnvironment.ts';
import { crashPoint } from './control/crash.ts';
import { phaseDeadlines } from './control/deadlines.ts';
import { followAbort, orAbort } from './control/orAbort.ts';
import { type RetryPolicy, settlementOf } from './control/retryPolicy.ts';
import type { StopLadder } from './control/stop.ts';
import { type Ending, endingOfError, endingOfResult, withEarlierEnds } from './exit.ts';
import type { StepGates } from './grader/gates.ts';
import type { PlannedTrial } from './plannedTrial.ts';
import { type AttemptJournal, type JournalPorts, openJournal } from './record/attemptJournal.ts';
import { startRequestOf } from './schedule/startRequest.ts';
import type { Turn } from './schedule/turn.ts';

export interface AttemptPorts {
  readonly journal: JournalPorts;
  readonly config: Pick<RunConfig, 'patch' | 'stall'>;
  readonly runName: string;
  readonly stop: Pick<StopLadder, 'attempts' | 'captureEnds' | 'graceEnds'>;
  /** Ends attempts of the trial that a person cancels. */
  readonly cancelled?: (trialId: number) => AbortSignal;
  readonly retry: RetryPolicy;
  /** Verifications while the attempt goes on. */
  readonly gates: Pick<StepGates, 'request'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: (level: 'debug' | 'warn', message: string, data?: Record<string, unknown>) => void;
}

export interface AttemptOutcome {
  readonly attemptId: number;
  readonly ending: Ending;
  readonly settlement: Settlement;
  readonly patchBytes: number;
}

/** Null when another process took the trial or ended the attempt. */
export async function runAttempt(ports: AttemptPorts, turn: Turn): Promise<AttemptOutcome | null> {
  const attempt = start(ports, turn);
  if (!attempt) return null;
  const finished = await work(attempt);
  return settle(attempt, finished);
}

interface Attempt {
  readonly ports: AttemptPorts;
  readonly turn: Turn;
  readonly trial: PlannedTrial;
  readonly journal: AttemptJournal;
  /** Ends the attempt: the run stops, a phase makes no progress, or a phase cannot be recorded. */
  readonly signal: AbortSignal;
  readonly unfollow: () => void;
  readonly warn: (text: string, data?: Record<string, unknown>) => void;
}

interface Finished {
  readonly ending: Ending;
  /** Null when the agent did not end by itself. */
  readonly result: AgentResult | null;
  readonly captured: CapturedPatch | null;
  /** Image of the end state, where the task is graded by it. */
  readonly workImage: string | null;
}

function start(ports: AttemptPorts, turn: Turn): Attempt | null {
  const { trial } = turn;
  const abort = new AbortController();
  const journal = openJournal(ports.journal, turn, {
    abort,
    now: ports.now,
    deadlinesMs: phaseDeadlines(ports.config.stall, trial.arm),
  });
  if (!journal) return null;
  const leave = [followAbort(ports.stop.attempts, abort)];
  if (ports.cancelled) leave.push(followAbort(ports.cancelled(trial.id), abort));
  return {
    ports,
    turn,
    trial,
    journal,
    signal: abort.signal,
    unfollow: () => {
      for (const one of leave) one();
    },
    warn: (text, data) => ports.log('warn', `${trial.label.instanceId}: ${text}`, data),
  };
}

/** An environment that has started is always captured and removed. */
async function work(attempt: Attempt): Promise<Finished> {
  const { journal, ports, signal, trial, turn, warn } = attempt;
  const leaving = { journal, warn, stop: ports.stop, stall: ports.config.stall, now: ports.now };
  let environment: Environment | null = null;
  let result: AgentResult | null = null;
  let captured: CapturedPatch | null = null;
  let workImage: string | null = null;
  let ending: Ending;
  let agentBegan = false;
  try {
    try {
      environment = await startEnvironment(attempt);
      crashPoint('after_container_started');
      journal.environmentStarted(environment.info);
      await probeEnvironment(trial, environment, journal.phases, signal);
      agentBegan = true;
      result = await runTask(attempt, environment);
      ending = endingOfResult(result);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      ending = endingOfError(error, signal, agentBegan);
      warn(ending.reason, { message: ending.message, stack: (error as Error)?.stack });
    }
    turn.onAgentDone();
    crashPoint('before_capture');
    if (environment) {
      const work = await captureWork(leaving, environment, ending);
      captured = work.captured;
      if (needsOf(trial.instance).endState) workImage = await keepWork(leaving, environment, ending);
      // What the engine took with it was the result.
      if (work.lost && !isSubmission(attempt, result)) ending = endingOfError(work.lost, signal, true);
    }
  } finally {
    attempt.unfollow();
    if (environment) await removeEnvironment(leaving, environment);
    journal.closeToAgent();
  }
  journal.phases.end();
  return { ending, result, captured, workImage };
}

/** The patch of the attempt is there already, whatever is captured. */
const isSubmission = ({ ports, trial }: Attempt, result: AgentResult | null): boolean =>
  result?.exitStatus === 'Submitted' && !trial.arm.leavesPatch && ports.config.patch !== 'captured';

/** Starts a fresh environment. One that starts after the attempt has ended is closed again. */
async function startEnvironment({ journal, ports, signal, trial, turn }: Attempt): Promise<Environment> {
  journal.phases.begin('start');
  const { admission } = turn;
  // A trial whose image is not available ends like every other, with an attempt and a reason.
  if (admission?.failure) throw admission.failure;
  const starting = trial.arm.environmentFactory.start({
    ...startRequestOf(trial, ports.runName, journal.number),
    ...(admission?.place && { place: admission.place }),
    signal,
    onPhase: (phase) => journal.phases.begin(phase),
  });
  return orAbort(starting, signal, (late) => late.close());
}

async function runTask(attempt: Attempt, environment: Environment): Promise<AgentResult> {
  const { journal, ports, signal, trial } = attempt;
  const { arm, instance } = trial;
  const create = agentsIn(attempt, environment);
  const run = (task: string, config: AgentConfig, callbacks: AgentCallbacks) =>
    orAbort(create(config, callbacks).run(task, exposedFields(arm.agent, instance)), signal);
  const lead = suiteOf(instance).lead?.(instance);
  if (!lead) return run(instance.problem_statement, withinTaskTime(arm.agent, instance), journal.callbacks);
  return lead(
    ledAttempt({
      ...{ environment, journal, signal, now: ports.now, config: arm.agent, runAgent: run },
      gradeRequest: () => ports.gates.request(trial, journal.number, signal),
    }),
  );
}

/** Agents of one attempt, one after the other: they ask one model, so that its replies go on where they were. */
function agentsIn({ journal, ports, signal, trial, warn }: Attempt, environment: Environment) {
  const { arm, instance } = trial;
  const { instanceId, epoch } = trial.label;
  const model = arm.modelFactory.create({
    instanceId,
    epoch,
    // A replay plays the recorded attempts of a trial in order.
    earlier: journal.infraAttemptsBefore(),
  });
  return (config: AgentConfig, callbacks: AgentCallbacks): ReturnType<CreateAgent> =>
    arm.createAgent({
      ...{ instanceId, model, environment, gateway: arm.gateway, config },
      mcpServers: needsOf(instance).toolServers ?? [],
      callbacks: {
        ...callbacks,
        onError: (_ctx, { error, message, metadata }) =>
          warn(getUserFriendlyMessage(error, metadata), { error, message }),
        onDebug: (message, data) => ports.log('debug', message, { instance: instanceId, ...data }),
      },
      signal,
      now: ports.now,
    });
}

/** A task may give its agent less time than the configuration does, never more. */
function withinTaskTime(config: AgentConfig, instance: Instance): AgentConfig {
  const ofTask = needsOf(instance).agentS;
  if (ofTask === undefined) return config;
  const configured = config.wall_time_limit_seconds;
  return { ...config, wall_time_limit_seconds: configured > 0 ? Math.min(configured, ofTask) : ofTask };
}

/** Templates get only the configured fields, so never the gold patch or the tests by default. */
function exposedFields(config: AgentConfig, instance: Instance): Record<string, unknown> {
  const all: Record<string, unknown> = { ...instance.extra, ...instance };
  return Object.fromEntries(config.expose_fields.filter((f) => f in all).map((f) => [f, all[f]]));
}

/** Chooses the patch, decides whether the trial runs again, and ends the attempt. */
function settle(attempt: Attempt, finished: Finished): AttemptOutcome | null {
  const { journal, ports, trial } = attempt;
  const { result, captured, workImage } = finished;
  const ending = withEarlierEnds(finished.ending, journal.endedByAgentBefore());
  const { leavesPatch } = trial.arm;
  const submits = ending.reason === 'submitted' && !leavesPatch;
  const submitted = submits ? (result?.submissionBytes ?? Buffer.from(result?.submission ?? '')) : null;
  const patch = choosePatch(leavesPatch ? 'captured' : ports.config.patch, submitted, captured);
  const settlement = settlementOf(ports.retry, trial.id, ending);
  const ended = journal.end({
    ...{ ending, steps: result?.steps, submitted, captured, patch, settlement },
    workImage,
  });
  if (!ended) return null;
  return {
    attemptId: journal.attemptId,
    ending,
    settlement,
    patchBytes: Buffer.byteLength(patch.modelPatch),
  };
}
