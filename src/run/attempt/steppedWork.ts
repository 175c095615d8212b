/**
 * A task of several steps: the agent works on one after the other in one container, anew each time. After each step its processes are ended
 * and its end state is kept, from which the step is verified elsewhere, so that no test ever enters the container. A step with a least
 * reward is verified before the next begins.
 */
import { posix } from 'node:path';
import type { AgentConfig } from '../../agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult } from '../../agent/contract.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { TaskStep } from '../../dataset/kinds/datasetKind.ts';
import { type Environment, EnvironmentError } from '../../environment/environment.ts';
import type { Gate, GateVerdict } from '../../grading/kinds/gradingKind.ts';
import type { KeptStep } from '../../grading/kinds/keptWork.ts';
import { nanoToDollars } from '../../money.ts';
import { isFinalReason } from '../../outcome.ts';
import { orAbort } from '../control/orAbort.ts';
import { endingOfResult } from '../exit.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';
import { recordSteps, type StepRecord } from './stepCallbacks.ts';

export interface SteppedWork {
  readonly environment: Environment;
  readonly steps: readonly TaskStep[];
  readonly config: AgentConfig;
  readonly journal: Pick<AttemptJournal, 'phases' | 'callbacks' | 'note' | 'keptWork'>;
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** One run of the agent, from its beginning to its end. */
  readonly runAgent: (
    instruction: string,
    config: AgentConfig,
    callbacks: AgentCallbacks,
  ) => Promise<AgentResult>;
  /** By the name of a step; undefined where the next step begins in any case. */
  readonly gate: (step: string) => ((image: string) => ReturnType<Gate>) | undefined;
}

/** The last step's result, with the steps and the cost of all. */
export async function workThroughSteps(work: SteppedWork): Promise<AgentResult> {
  const { steps, journal, now } = work;
  const record = recordSteps(journal.callbacks);
  const kept: KeptStep[] = [];
  const began = now();
  let cost: number | null = 0;
  for (const [index, step] of steps.entries()) {
    await prepare(work, step, index);
    const config = configFor(work.config, record, (now() - began) / 1000, step);
    // What is left undone is judged all the same, as the state that it was left in.
    const result =
      'limit' in config
        ? usedUp(config.limit)
        : await work.runAgent(step.instruction, config, record.callbacks(step.name));
    record.ran(result.steps);
    cost = cost === null || result.costNano === null ? null : cost + result.costNano;
    const whole = { ...result, steps: record.steps, costNano: cost };
    const { reason, message } = endingOfResult(result);
    journal.note(
      `step ${index + 1} of ${steps.length}, ${step.name}: ${reason}${message ? `: ${message}` : ''}`,
    );
    if (!isFinalReason(reason)) return whole;
    const verdict = await keep(work, step, kept);
    if (index === steps.length - 1) return whole;
    if (verdict && !verdict.goesOn) {
      const left = steps.slice(index + 1).map(({ name }) => name);
      journal.note(`step ${step.name} ends the attempt: ${verdict.says}. Not begun: ${left.join(', ')}`);
      return whole;
    }
  }
  throw new Error('a task of several steps has none');
}

const usedUp = (limit: string): AgentResult => ({
  ...{ exitStatus: 'LimitsExceeded', limit, submission: '', messages: [], steps: 0, costNano: 0 },
});

/** The limits are those of the attempt: what earlier steps used is gone. The time that the task gives is that of the step. */
function configFor(
  config: AgentConfig,
  { steps, spentNano, tokens }: StepRecord,
  elapsedS: number,
  { agentTimeoutS }: TaskStep,
): AgentConfig | { readonly limit: string } {
  const used = {
    step_limit: ['steps', steps],
    cost_limit: ['cost', nanoToDollars(spentNano)],
    token_limit: ['tokens', tokens],
    wall_time_limit_seconds: ['wall_time', elapsedS],
  } as const;
  const left: Record<string, number> = {};
  for (const [key, [limit, amount]] of Object.entries(used)) {
    const most = config[key as keyof typeof used];
    if (most <= 0) continue;
    if (amount >= most) return { limit };
    left[key] = most - amount;
  }
  const ownS = agentTimeoutS ?? 0;
  const leftS = left.wall_time_limit_seconds ?? 0;
  const limitS = ownS > 0 && leftS > 0 ? Math.min(ownS, leftS) : Math.max(ownS, leftS);
  return { ...config, ...left, wall_time_limit_seconds: limitS };
}

/** Files of the step, its setup, its healthcheck. Whoever broke the container in an earlier step has ended it. */
async function prepare(
  { environment, journal, signal }: SteppedWork,
  step: TaskStep,
  index: number,
): Promise<void> {
  const failed = (what: string) =>
    new EnvironmentError('setup_failed', `step ${step.name}: ${what}`, { fromWithin: index > 0 });
  journal.phases.begin('setup');
  let files: ReturnType<TaskStep['files']>;
  try {
    files = step.files();
  } catch (error) {
    throw new EnvironmentError('setup_failed', errorText(error));
  }
  if (files.length > 0) {
    const { output } = await environment.execute('pwd', { signal });
    const folder = output.trim();
    const placed = files.map(({ path, content, executable }) => ({
      ...{ path: posix.join(folder, path), content, mode: executable ? 0o755 : 0o644 },
    }));
    for (const { path, content, mode } of placed)
      if (!environment.putFiles) await environment.putFile(path, content, mode);
    await environment.putFiles?.(placed);
  }
  if (step.setup !== undefined && files.some(({ path }) => path === step.setup)) {
    const done = await environment.execute(`bash ./${step.setup}`, { signal, timeoutS: 0 });
    if (done.exitCode !== 0)
      throw failed(`${step.setup} ended with exit code ${done.exitCode}: ${done.output.slice(-400).trim()}`);
  }
  if (step.healthcheck === undefined) return;
  const healthy = await environment.execute(step.healthcheck, { signal, timeoutS: 0 });
  if (healthy.exitCode !== 0) throw failed(`it is not healthy: ${healthy.output.slice(-400).trim()}`);
}

/** Nothing of the agent runs any more when the end state is kept. */
async function keep(
  { environment, journal, signal, gate }: SteppedWork,
  { name }: TaskStep,
  kept: KeptStep[],
): Promise<GateVerdict | undefined> {
  journal.phases.begin('capture');
  // Should the container end now, the record says in which step.
  kept.push({ step: name, image: null });
  journal.keptWork(kept);
  if (!environment.keepWork)
    throw new EnvironmentError('start_failed', 'end states of steps cannot be kept in this environment');
  const image = await orAbort(environment.keepWork(), signal);
  kept[kept.length - 1] = { step: name, image };
  journal.keptWork(kept);
  const verify = gate(name);
  if (!verify) return undefined;
  journal.phases.begin('gate');
  const verdict = await orAbort(verify(image), signal);
  if (verdict.lost !== undefined)
    throw new EnvironmentError('start_failed', `step ${name} could not be verified: ${verdict.lost}`);
  kept[kept.length - 1] = { step: name, image, verdict: verdict.verdict };
  journal.keptWork(kept);
  journal.note(`step ${name} was verified: ${verdict.says}`);
  return verdict;
}
