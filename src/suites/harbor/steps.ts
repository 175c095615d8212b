/**
 * A task of several steps: the agent works on one after the other in one container, anew each time. After each step its processes are ended
 * and its end state is kept, from which the step is verified elsewhere, so that no test ever enters the container. A step with a least
 * reward is verified before the next begins.
 */

import { z } from 'zod';
import type { AgentResult } from '../../agent/contract.ts';
import type { Network } from '../../base/allowList.ts';
import { keyed } from '../../base/keyed.ts';
import { errorFirst } from '../../base/text/errorFirst.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError } from '../../environment/environment.ts';
import type { EvaluationResult, GradeRequest, GradingEnd } from '../../grading/gradingFrame.ts';
import { JUDGE_LOST } from '../../grading/judge.ts';
import { isFinalReason, OUTCOMES } from '../../outcome.ts';
import type { AgentPart, LedAttempt } from '../suite.ts';
import { placedFiles } from '../taskFiles.ts';
import type { HarborStep, HarborTask } from './readTask.ts';
import { mainOf, reportOf, ungradable, verification, verifierFrame, type Wanted } from './verification.ts';

export interface TaskStep extends AgentPart {
  /** Files that go into the work tree before it begins, by paths below that. Throws when the folder has changed. */
  readonly files: () => readonly { path: string; content: Uint8Array; executable: boolean }[];
  /** The file that is run then. */
  readonly setup?: string;
  /** Hosts that the container reaches before its agent, and while it works; absent where no list of hosts decides that. */
  readonly networks?: { readonly setup: Network; readonly agent: Network };
  /** Must pass before the agent begins. */
  readonly healthcheck?: string | undefined;
  /** undefined: the next step begins after any result of this one. */
  readonly verify?: Verify | undefined;
}

/** `work`: the image of the state that the step left. */
type Verify = (request: GradeRequest & { readonly work: string }) => Promise<StepVerification>;

/** A step that was verified before the next one begins. */
export interface StepVerification {
  readonly goesOn: boolean;
  /** A sentence about it. */
  readonly says: string;
  /** The result of a step that the grading of the whole needs: it goes with the work that is kept. */
  readonly verdict: unknown;
  /** The place where it ran was away or broken, which says nothing about the work (observed: tests/suites/harbor/steps.test.ts). */
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
    if (step.networks) attempt.environment.enterPhase('setup', step.networks.setup);
    await prepare(step, attempt, index);
    if (step.networks) attempt.environment.enterPhase('agent', step.networks.agent);
    // An unfinished step is judged all the same, by the state it was left in.
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

/**
 * Files of the step, its setup, its healthcheck. An agent that broke the container in an earlier step has ended it (observed:
 * tests/suites/harbor/steps.test.ts).
 */
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
    await environment.putFiles(placedFiles(folder, files));
  }
  if (step.setup !== undefined && files.some(({ path }) => path === step.setup)) {
    const done = await environment.execute(`bash ./${step.setup}`, { signal, timeoutS: 0 });
    if (done.exitCode !== 0)
      throw failed(`${step.setup} ended with exit code ${done.exitCode}: ${errorFirst(done.output, 400)}`);
  }
  if (step.healthcheck === undefined) return;
  const healthy = await environment.execute(step.healthcheck, { signal, timeoutS: 0 });
  if (healthy.exitCode !== 0) throw failed(`it is not healthy: ${errorFirst(healthy.output, 400)}`);
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
  // Should the container end now, the record says in which step (observed: tests/suites/harbor/steps.test.ts).
  record({ step: name, image: null }, kept.length);
  if (!environment.capabilities.canKeepWork)
    throw new EnvironmentError('start_failed', 'end states of steps cannot be kept in this environment');
  const unkept = await attempt.orEnd(environment.unkept());
  if (unkept?.never)
    throw new EnvironmentError('disk_full', `step ${name}: ${unkept.why}`, { fromWithin: true });
  if (unkept) attempt.note(`step ${name}: ${unkept.why}, so the tests of its steps do not see it`);
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

// The grading of such a task: each step in the state that the agent left it in, in containers of its own. Where a step decides whether the next
// begins, that happens while the attempt goes on, and its verdict is kept.

interface SteppedTask extends Omit<Wanted, 'testFolders'> {
  readonly steps: readonly HarborStep[];
}

const stepVerdict = z.object({
  outcome: z.enum(OUTCOMES),
  /** null: its verifier gave none. */
  rewards: keyed(z.number()).nullable(),
  message: z.string().nullable(),
  infraReason: z.string().nullable(),
  log: z.string().nullable(),
  exitCode: z.number().nullable(),
  durationMs: z.number(),
  /** Absent in records of older versions. */
  suspicion: z
    .array(
      z.object({
        rule: z.string(),
        says: z.string(),
        evidence: z.string(),
        strict: z.boolean(),
        inferred: z.boolean(),
      }),
    )
    .default([]),
});
type StepVerdict = z.infer<typeof stepVerdict>;

/** Bytes of the log of a step that was verified in between: the rest of it is in no file. */
const LOG_KEPT = 512 * 1024;

const verdictOf = (result: EvaluationResult): StepVerdict => ({
  outcome: result.outcome,
  rewards: result.rewards ?? null,
  message: result.errorMessage,
  infraReason: result.infraReason,
  log: result.log === null ? null : result.log.slice(-LOG_KEPT),
  exitCode: result.exitCode,
  durationMs: result.durationMs,
  suspicion: result.suspicion.map(({ rule, says, evidence, strict, inferred }) => ({
    rule,
    says,
    evidence,
    strict,
    inferred,
  })),
});

/** The tests of the step go over those that all steps have. */
const ofStep = (task: SteppedTask, step: HarborStep, image: string): Wanted => ({
  ...task,
  image,
  task: { ...task.task, artifacts: step.artifacts, verifier: step.verifier } satisfies HarborTask,
  testFolders: ['tests', `steps/${step.name}/tests`],
});

const shown = (rewards: Readonly<Record<string, number>>): string =>
  Object.entries(rewards)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

/** The verification of a step before the next one begins; undefined for one without a least reward. */
export function verifierOfStep(task: SteppedTask, step: HarborStep): Verify | undefined {
  const least = step.min_rewards;
  if (!least) return undefined;
  return async (request) => {
    const run = (alone: boolean) => verification(ofStep(task, step, request.work), { ...request, alone });
    const first = await run(false);
    const result = first.repeatAlone && !first.engineLost ? await run(true) : first;
    const verdict = verdictOf(result);
    const failed = gateFailure(verdict.rewards, least);
    const unjudged = result.infraReason === JUDGE_LOST;
    const lost = result.engineLost || unjudged || (result.outcome === 'infra' && result.log === null);
    return {
      goesOn: failed === undefined,
      says: failed ?? shown(verdict.rewards ?? {}),
      verdict,
      ...(lost && { lost: result.errorMessage ?? 'its verifier could not run' }),
    };
  };
}

interface Verified extends StepVerdict {
  readonly name: string;
  /** Absent for one that was verified before. */
  readonly result?: EvaluationResult;
}

async function verified(task: SteppedTask, kept: KeptStep, request: GradeRequest): Promise<Verified> {
  const { step: name, image } = kept;
  const before = stepVerdict.safeParse(kept.verdict);
  if (before.success) return { name, ...before.data };
  const step = task.steps.find((one) => one.name === name);
  if (image === null || !step) return { name, ...ENDED };
  const result = await verification(ofStep(task, step, image), { ...request, work: image });
  return { name, ...verdictOf(result), log: result.log, result };
}

/** The verdict of an ended container: as missing it would be out of the count, and the agent chose that end. */
const ENDED: StepVerdict = {
  outcome: 'invalid',
  rewards: null,
  infraReason: null,
  log: null,
  exitCode: null,
  durationMs: 0,
  suspicion: [],
  message: 'the container ended before its end state could be kept',
};

const NOT_BEGUN = {
  rule: 'steps_not_begun',
  says: 'a step had less than its least reward, so that the steps after it were not begun',
  strict: true,
  inferred: false,
};

function endingOf({ instance, task, steps }: SteppedTask, ran: readonly Verified[]): GradingEnd {
  const id = instance.instance_id;
  const combined = combinedRewards(
    task.strategy,
    ran.map(({ rewards }) => rewards),
  );
  const broken = ran.find(({ rewards }) => rewards === null);
  if (broken) {
    const told = combined === null ? 'no reward' : shown(combined);
    const failed = broken.outcome === 'invalid';
    return {
      outcome: broken.outcome === 'resolved' || broken.outcome === 'unresolved' ? 'infra' : broken.outcome,
      ...(failed && { resolved: false, resolvedStrict: false }),
      infraReason: broken.infraReason,
      errorMessage: `${id}: step ${broken.name} has no reward: ${broken.message}. Harbor leaves such a step out, and would say: ${told}`,
    };
  }
  const main = mainOf(combined ?? {});
  if (!main.ok) return { outcome: 'infra', infraReason: 'no_reward', errorMessage: `${id}: ${main.message}` };
  const { reward } = main.found;
  const resolved = reward >= 1;
  const left = steps.slice(ran.length).map(({ name }) => name);
  const each = ran.flatMap(({ name, rewards }) =>
    Object.entries(rewards!).map(([key, value]) => [`${name}/${key}`, value] as const),
  );
  return {
    outcome: resolved ? 'resolved' : 'unresolved',
    resolved,
    reward,
    rewards: { ...combined, ...Object.fromEntries(each) },
    // Changes of the agent to the verifier in one step may have made that step's reward.
    resolvedStrict:
      resolved && left.length === 0 && !ran.some(({ suspicion }) => suspicion.some(({ strict }) => strict)),
    // The gate of the last of them held the others back.
    suspicion: left.length > 0 ? [{ ...NOT_BEGUN, evidence: left.join(', ') }] : [],
  };
}

export async function gradeSteps(task: SteppedTask, request: GradeRequest): Promise<EvaluationResult> {
  const { instance } = task;
  const id = instance.instance_id;
  const frame = verifierFrame(task, request);
  if (request.work === undefined)
    return ungradable(
      frame,
      `${id}: a task of several steps is graded by the states that its agent left after each step; a patch alone does not have them`,
    );
  const ran: Verified[] = [];
  for (const kept of keptSteps(request.work)) {
    const one = await verified(task, kept, request);
    // Once more with nothing beside it, or when the engine is back: the other steps then too.
    if (one.result?.repeatAlone && !request.alone) return one.result;
    if (one.result?.engineLost || one.outcome === 'ungradable') return one.result!;
    ran.push(one);
  }
  const ending = endingOf(task, ran);
  const empty = await ungradable(frame, '');
  const results = ran.flatMap(({ result }) => result ?? []);
  const { resolved } = ending;
  const judged = resolved === undefined ? null : reportOf(id, request.patch, resolved ?? false);
  return {
    ...empty,
    errorMessage: null,
    report: judged,
    limits: results[0]?.limits ?? null,
    imageDigest: results[0]?.imageDigest ?? null,
    ...ending,
    suspicion: [...ran.flatMap(({ suspicion }) => suspicion), ...(ending.suspicion ?? [])],
    log: ran.map(({ name, log }) => `=== step ${name} ===\n${log ?? ''}`).join('\n'),
    exitCode: ran.at(-1)?.exitCode ?? null,
    runLog: results.flatMap(({ runLog }) => runLog),
    durationMs: ran.reduce((sum, { durationMs }) => sum + durationMs, 0),
  };
}

// The rewards of several steps as one, and the gate between steps: the rules are Harbor's, to the last bit.

type Rewards = Readonly<Record<string, number>>;

/** The sum as Python adds floats since 3.12: with what rounding lost, by Neumaier. */
function pythonSum(values: readonly number[]): number {
  let sum = 0;
  let lost = 0;
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return lost !== 0 && Number.isFinite(lost) ? sum + lost : sum;
}

/**
 * Of the steps that ran, in their order; null for a step whose verifier gave none. `final` takes the last as it is. `mean` takes the mean of
 * each name over the steps that have rewards; a name that one of them lacks counts as 0 there.
 */
export function combinedRewards(
  strategy: HarborTask['strategy'],
  steps: readonly (Rewards | null)[],
): Rewards | null {
  if (strategy === 'final') return steps.at(-1) ?? null;
  const given = steps.filter((rewards) => rewards !== null);
  const names = new Set(given.flatMap(Object.keys));
  if (names.size === 0) return null;
  // A name may be that of a property which every object has.
  const named = given.map((rewards) => new Map(Object.entries(rewards)));
  const mean = (name: string) => pythonSum(named.map((rewards) => rewards.get(name) ?? 0)) / named.length;
  return Object.fromEntries([...names].map((name) => [name, mean(name)]));
}

/** The reason why the steps that follow are not begun; undefined where they are. A reward that is missing is below every limit. */
export function gateFailure(rewards: Rewards | null, least: Rewards): string | undefined {
  for (const [name, limit] of Object.entries(least)) {
    const reward = rewards !== null && Object.hasOwn(rewards, name) ? rewards[name] : undefined;
    if (reward === undefined) return `it has no reward "${name}", and ${limit} is the least to go on`;
    if (reward < limit) return `its reward "${name}" is ${reward}, and ${limit} is the least to go on`;
  }
  return undefined;
}
