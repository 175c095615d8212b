/**
 * One attempt of a trial: start, work, settle. This has the only catch that swallows: every error of one instance becomes its exit reason
 * and does not affect the others. Only a storage error gets through, because a run without a record is worthless.
 */

import type { AgentConfig } from '../agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult, Solution } from '../agent/contract.ts';
import { placeEquipment } from '../agent/equipment.ts';
import type { VariableValues } from '../base/hostVariables.ts';
import { WORK_IMAGES } from '../base/imageReference.ts';
import { stackOf } from '../base/text/sourceLines.ts';
import type { Instance } from '../dataset/instance.ts';
import type { CapturedPatch, Environment } from '../environment/environment.ts';
import type { EvaluationResult } from '../grading/gradingFrame.ts';
import { isFinalReason } from '../outcome.ts';
import { StorageError } from '../store/open.ts';
import type { Settlement } from '../store/records/trials.ts';
import { isJudgedByState, needsOf, solutionOf, suiteOf } from '../suites/suites.ts';
import { withSkillsOfTask } from './agents/equipment.ts';
import {
  captureWork,
  enterEnvironment,
  keepServiceLogs,
  leaveWork,
  probeEnvironment,
  removeEnvironment,
} from './attempt/environment.ts';
import { judgedBeside, keepJudged, leftForTests, refuseUnkept } from './attempt/judgedBeside.ts';
import { ledAttempt } from './attempt/ledAttempt.ts';
import type { Run } from './contract.ts';
import { crashPoint } from './control/crash.ts';
import { orAbort } from './control/stop.ts';
import { choosePatch, type Ending, endingOfError, endingOfResult, settlementOf } from './exit.ts';
import { type AttemptJournal, openJournal } from './record/attemptJournal.ts';
import type { Turn } from './schedule/trialQueue.ts';

export interface AttemptOutcome {
  readonly attemptId: number;
  readonly ending: Ending;
  readonly settlement: Settlement;
  readonly patchBytes: number;
  /** Its verdict is in the record already. */
  readonly judged: boolean;
}

/** Null when another process took the trial or ended the attempt. `cancelled` fires when a person cancels the trial. */
export async function runAttempt(
  run: Run,
  turn: Turn,
  cancelled: AbortSignal,
): Promise<AttemptOutcome | null> {
  const { trial } = turn;
  // Ends the attempt: the run stops, a phase makes no progress, or a phase cannot be recorded.
  const abort = new AbortController();
  const { signal } = abort;
  const journal = openJournal(run, turn, abort);
  if (!journal) return null;
  const unfollow = [followAbort(run.stop.attempts, abort), followAbort(cancelled, abort)];

  let environment: Environment | null = null;
  /** Null when the agent did not end by itself. */
  let result: AgentResult | null = null;
  let captured: CapturedPatch | null = null;
  /** Image of the end state, where the task is graded by it. */
  let workImage: string | null = null;
  /** Of tests that ran beside what the agent left running. */
  let verdict: EvaluationResult | null = null;
  let ending: Ending;
  let agentBegan = false;
  const patchOf = ({ reason }: Ending) => {
    const { leavesPatch } = trial.arm;
    const submits = reason === 'submitted' && (!leavesPatch || result?.submissionBytes !== undefined);
    const submitted = submits ? (result?.submissionBytes ?? Buffer.from(result?.submission ?? '')) : null;
    const left = submits ? 'submitted' : 'captured';
    return {
      submitted,
      patch: choosePatch(leavesPatch ? left : run.config.patch, submitted, captured),
    };
  };
  try {
    try {
      environment = await enterEnvironment(run, turn, journal, signal);
      crashPoint('after_container_started');
      journal.environmentStarted(environment.info);
      refuseUnkept(trial, environment);
      await probeEnvironment(trial, environment, journal, signal);
      agentBegan = true;
      result = await runAgent(run, turn, journal, environment, signal);
      ending = endingOfResult(result);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      ending = endingOfError(error, signal, agentBegan);
      journal.warn(ending.reason, { message: ending.message, stack: stackOf(error) });
    }
    turn.onAgentDone();
    crashPoint('before_capture');
    if (environment) {
      await keepServiceLogs(run, trial, journal, environment);
      const left = isFinalReason(ending.reason)
        ? await leftForTests(run, journal, trial, environment)
        : undefined;
      const kept = { running: left?.runs === true, beside: trial.arm.agent.beside_work ?? [] };
      const capture = await captureWork(run, journal, environment, ending, kept);
      captured = capture.captured && withoutValues(run, trial.instance, capture.captured);
      if (needsOf(trial.instance).endState && !left?.only)
        workImage = await leaveWork(run, journal, environment, ending, kept);
      // What the engine took with it was the result, unless the patch was submitted.
      const isSubmission =
        result?.exitStatus === 'Submitted' && !trial.arm.leavesPatch && run.config.patch !== 'captured';
      if (capture.lost && !isSubmission) ending = endingOfError(capture.lost, signal, true);
      else if (left && (workImage !== null || left.only))
        try {
          const place = environment.info.containerId ?? '';
          // The name of an end state of which there is no image: once it is judged, nobody looks for less than it was.
          if (left.unkept !== undefined) workImage ??= `${WORK_IMAGES}:${place}`;
          const work = workImage ?? place;
          const of = { left, work, patch: patchOf(ending).patch.modelPatch };
          verdict = await judgedBeside(run, journal, trial, environment, of, signal);
        } catch (error) {
          if (error instanceof StorageError) throw error;
          // What ran is gone with the container, and without it the work would be judged for less than it was.
          ending = endingOfError(error, signal, true);
        }
    }
  } finally {
    // An environment that has started is always removed.
    for (const leave of unfollow) leave();
    if (environment) await removeEnvironment(run, journal, environment);
    // From now on an agent that ignores its signal can neither spend money nor write.
    journal.recorder.close();
  }
  journal.phases.end();

  ending = withEarlierEnds(ending, journal.endedByAgentBefore());
  const { submitted, patch } = patchOf(ending);
  const settlement = settlementOf(run.retry, trial.id, ending);
  const ended = journal.end({
    ending,
    steps: result?.steps,
    submitted,
    captured,
    patch,
    settlement,
    workImage,
    verdict,
  });
  if (!ended) return null;
  if (verdict !== null) await keepJudged(run, trial, patch.modelPatch, workImage, verdict);
  const patchBytes = Buffer.byteLength(patch.modelPatch);
  return { attemptId: journal.attemptId, ending, settlement, patchBytes, judged: verdict !== null };
}

async function runAgent(
  run: Run,
  { trial }: Turn,
  journal: AttemptJournal,
  environment: Environment,
  signal: AbortSignal,
): Promise<AgentResult> {
  const { arm, instance } = trial;
  const { instanceId, epoch } = trial.label;
  const { now } = run;
  // Agents of one attempt, one after the other, ask one model, so that its replies go on where they were.
  const model = arm.modelFactory.create({
    instanceId,
    epoch,
    // A replay plays the recorded attempts of a trial in order.
    earlier: journal.infraAttemptsBefore(),
  });
  const { toolServers: ofTask = [], skillsFolder } = needsOf(instance);
  // A task's own server keeps its name.
  const ofArm = (arm.agent.mcp_servers ?? []).filter((one) => ofTask.every(({ name }) => name !== one.name));
  const mcpServers = [...ofTask, ...ofArm];
  const given = await withSkillsOfTask(arm.equipment, environment, skillsFolder);
  const placement = given && (await placeEquipment(environment, given));
  const equipment = placement?.placed;
  const runOne = (task: string, config: AgentConfig, callbacks: AgentCallbacks, part?: string) => {
    const { gateway } = arm;
    const agent = arm.createAgent({
      instanceId,
      model,
      environment,
      gateway,
      config,
      mcpServers,
      equipment,
      callbacks,
      signal,
      now,
      ...(arm.solves && { solution: solutionWith(run.suite.variables, instance, part) }),
    });
    return orAbort(agent.run(task, exposedFields(arm.agent, instance)), signal);
  };
  const lead = suiteOf(instance).lead?.(instance);
  try {
    if (!lead)
      return await runOne(
        instance.problem_statement,
        withinTaskTime(arm.agent, instance),
        journal.recorder.callbacks,
      );
    return await lead(
      ledAttempt({
        environment,
        journal,
        signal,
        now,
        config: arm.agent,
        runAgent: runOne,
        gradeRequest: () => run.stepGrading.request(trial, journal, signal),
      }),
    );
  } finally {
    await placement?.remove();
  }
}

/** Where no patch is graded, one keeps no value that was given to the task. */
function withoutValues({ suite, redactor }: Run, instance: Instance, captured: CapturedPatch): CapturedPatch {
  if (Object.keys(suite.variables).length === 0 || !isJudgedByState(instance)) return captured;
  return { ...captured, patch: redactor.bytes(captured.patch) };
}

function solutionWith(
  variables: VariableValues,
  instance: Instance,
  part: string | undefined,
): Solution | undefined {
  const solution = solutionOf(instance, part);
  return solution && { apply: (environment, at) => solution.apply(environment, { ...at, variables }) };
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

/**
 * Once may be an accident, and a fresh container is worth a try. Who does it again, in a fresh container, has failed: otherwise an agent
 * could take an instance out of the count by ending its container.
 */
function withEarlierEnds(ending: Ending, endedByAgentBefore: number): Ending {
  if (!ending.byAgent || endedByAgentBefore === 0) return ending;
  return {
    ...ending,
    reason: 'env_ended_by_agent',
    detail: ending.detail ?? ending.reason,
    message: `the agent ended its environment, as in an attempt before: ${ending.message}`,
  };
}

/** Aborts `controller` with the reason of `signal`, until the returned function is called. */
function followAbort(signal: AbortSignal, controller: AbortController): () => void {
  const follow = () => controller.abort(signal.reason);
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return () => signal.removeEventListener('abort', follow);
}
