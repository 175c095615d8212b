/**
 * A task of several steps: the agent works on one after the other in one container, anew each time. After each step its processes are ended
 * and its end state is kept, from which the step is verified elsewhere, so that no test ever enters the container. A step with a least
 * reward is verified before the next begins.
 */

import { z } from 'zod';
import type { AgentResult } from '../../agent/contract.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError } from '../../environment/environment.ts';
import type { GradeRequest } from '../../grading/gradingFrame.ts';
import { isFinalReason } from '../../outcome.ts';
import type { AgentPart, LedAttempt } from '../suite.ts';
import { placedFiles } from './taskFolder.ts';

export interface TaskStep extends AgentPart {
  /** What goes into the work tree before it begins, by paths below that. Throws when the folder is no longer what it was. */
  readonly files: () => readonly { path: string; content: Uint8Array; executable: boolean }[];
  /** One of these files, which is run then. */
  readonly setup?: string;
  /** Must pass before the agent begins. */
  readonly healthcheck?: string | undefined;
  /** undefined: the next step begins whatever came of this one. */
  readonly verify?: Verify | undefined;
}

/** `work`: the image of the state that the step left. */
export type Verify = (request: GradeRequest & { readonly work: string }) => Promise<StepVerification>;

/** A step that was verified before the next one begins. */
export interface StepVerification {
  readonly goesOn: boolean;
  /** A sentence about it. */
  readonly says: string;
  /** What the grading of the whole needs of it: it goes with the work that is kept. */
  readonly verdict: unknown;
  /** The place where it ran was away or broken, which says nothing about the work. */
  readonly lost?: string;
}

const keptStep = z.object({
  step: z.string(),
  /** null: the container ended in this step. */
  image: z.string().nullable(),
  verdict: z.unknown().optional(),
});
export type KeptStep = z.infer<typeof keptStep>;

/** Throws where the record is not one of steps. */
export const keptSteps = (work: string): KeptStep[] => z.array(keptStep).parse(JSON.parse(work));

/** The last step's result, with the steps and the cost of all. */
export async function workThroughSteps(
  steps: readonly TaskStep[],
  attempt: LedAttempt,
): Promise<AgentResult> {
  const kept: KeptStep[] = [];
  for (const [index, step] of steps.entries()) {
    await prepare(step, attempt, index);
    // What is left undone is judged all the same, as the state that it was left in.
    const { result, reason, message } = await attempt.runAgent(step);
    attempt.note(
      `step ${index + 1} of ${steps.length}, ${step.name}: ${reason}${message ? `: ${message}` : ''}`,
    );
    if (!isFinalReason(reason)) return result;
    const verified = await keep(step, attempt, kept);
    if (index === steps.length - 1) return result;
    if (verified && !verified.goesOn) {
      const left = steps.slice(index + 1).map(({ name }) => name);
      attempt.note(`step ${step.name} ends the attempt: ${verified.says}. Not begun: ${left.join(', ')}`);
      return result;
    }
  }
  throw new Error('a task of several steps has none');
}

/** Files of the step, its setup, its healthcheck. Whoever broke the container in an earlier step has ended it. */
async function prepare(step: TaskStep, attempt: LedAttempt, index: number): Promise<void> {
  const { environment, signal } = attempt;
  const failed = (what: string) =>
    new EnvironmentError('setup_failed', `step ${step.name}: ${what}`, { fromWithin: index > 0 });
  attempt.beginPhase('setup');
  let files: ReturnType<TaskStep['files']>;
  try {
    files = step.files();
  } catch (error) {
    throw new EnvironmentError('setup_failed', errorText(error));
  }
  if (files.length > 0) {
    const { output } = await environment.execute('pwd', { signal });
    const folder = output.trim();
    const placed = placedFiles(folder, files);
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
  { name, verify }: TaskStep,
  attempt: LedAttempt,
  kept: KeptStep[],
): Promise<StepVerification | undefined> {
  const { environment } = attempt;
  const record = (step: KeptStep, at = kept.length - 1) => {
    kept[at] = step;
    attempt.recordWork(JSON.stringify(kept));
  };
  attempt.beginPhase('capture');
  // Should the container end now, the record says in which step.
  record({ step: name, image: null }, kept.length);
  if (!environment.keepWork)
    throw new EnvironmentError('start_failed', 'end states of steps cannot be kept in this environment');
  const image = await attempt.orEnd(environment.keepWork());
  record({ step: name, image });
  if (!verify) return undefined;
  attempt.beginPhase('gate');
  const request = { ...(await attempt.gradeRequest()), patch: null, work: image };
  const verified = await attempt.orEnd(verify(request));
  if (verified.lost !== undefined)
    throw new EnvironmentError('start_failed', `step ${name} could not be verified: ${verified.lost}`);
  record({ step: name, image, verdict: verified.verdict });
  attempt.note(`step ${name} was verified: ${verified.says}`);
  return verified;
}
