/**
 * The end of an attempt at a task that its end state judges. A server that an agent left running belongs to that state: tests run beside it,
 * before the container goes. So do tests of what no image of the container can keep: services that end with it, what lies in a VOLUME or in memory,
 * files that are too long with their holes. Every other end state is kept as an image, and tests run later, in a fresh container that nobody can
 * disturb.
 */
import { isAllowList, sameNetwork } from '../../base/allowList.ts';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, type LeftRunning } from '../../environment/environment.ts';
import { finding } from '../../grading/doubts/patchDoubts.ts';
import type { EvaluationResult, PlannedGrading } from '../../grading/gradingFrame.ts';
import { isFinalReason } from '../../outcome.ts';
import type { EndedAttempt, FinishedWork } from '../suite.ts';
import type { HarborTask } from './readTask.ts';

/** Harbor runs such a verifier in the agent's running container. The reach of a container can change only where a list decides it. */
const sharesContainer = ({ verifier, network }: HarborTask): boolean =>
  !verifier.separate &&
  (sameNetwork(verifier.network, network) || (isAllowList(network) && verifier.network !== 'public'));

/** The reason for a judgement in another container than the one that was worked in, as a clause; undefined where that one may do. */
export const judgedApart = (task: HarborTask): string | undefined =>
  task.steps || task.verifier.separate || sharesContainer(task)
    ? undefined
    : 'its verifier has another network than its agent';

export async function finishTask(
  task: HarborTask,
  attempt: EndedAttempt,
  planned: PlannedGrading,
): Promise<FinishedWork> {
  await keepServiceLogs(attempt);
  // A task of several steps had each end state kept when its step ended.
  const left = isFinalReason(attempt.reason) && !task.steps ? await leftForTests(task, attempt) : undefined;
  const running = left?.runs === true;
  const { captured, lost } = await attempt.capture(running);
  const image = task.steps || left?.only ? null : await keptImage(attempt, running);
  if (!left || lost !== null || (image === null && !left.only)) return { captured, work: image, lost };
  const container = attempt.environment.info.containerId ?? '';
  // The name of an end state of which there is no image: once it is judged, nobody looks for less than it was.
  const work = image ?? (left.unkept === undefined ? null : `${WORK_IMAGES}:${container}`);
  const judged = { work: work ?? container, left };
  return { captured, work, lost, judge: (patch) => judge(attempt, planned, { ...judged, patch }) };
}

/** The output of its services, as files of the attempt. Never throws for an engine. */
async function keepServiceLogs(attempt: EndedAttempt): Promise<void> {
  const { environment } = attempt;
  try {
    const logs = await attempt.inTime(environment.serviceLogs());
    if (logs.length === 0) return;
    const files = logs.map(({ service, text }) => ({ name: `${service}.log`, text }));
    attempt.note(`what its services printed is in ${await attempt.keepFiles('services', files)}`);
  } catch (error) {
    attempt.warn('the logs of the services could not be kept', { message: errorText(error) });
  }
}

/** The end state of the container; null where it could not be kept. */
async function keptImage(attempt: EndedAttempt, running: boolean): Promise<string | null> {
  const { environment } = attempt;
  if (attempt.reason === 'env_died') return null;
  if (!environment.capabilities.canKeepWork) {
    attempt.note(
      `an end state is not kept in ${environment.info.kind}, so its patch is graded: what lies outside of ${environment.templateVars().cwd} is not in it`,
    );
    return null;
  }
  try {
    return await attempt.inTime(environment.keepWork({ running }));
  } catch (error) {
    const message = errorText(error);
    attempt.note(`the end state of the container could not be kept, so its patch is graded: ${message}`);
    attempt.warn('the work could not be kept', { message });
    return null;
  }
}

interface LeftForTests extends LeftRunning {
  /** The tests look at it while it runs; otherwise only its files are collected. */
  readonly runs: boolean;
  /** The work is gone afterwards, so this verdict is the only one. */
  readonly only: boolean;
  /** The reason why no image has all of it, as a clause. */
  readonly unkept?: string | undefined;
  /** The work may not be judged here either. */
  readonly refused?: boolean;
}

/** Undefined where nothing is left, and where the tests may not or cannot run beside it. */
async function leftForTests(task: HarborTask, attempt: EndedAttempt): Promise<LeftForTests | undefined> {
  const { environment } = attempt;
  const { worksBeside, canKeepWork } = environment.capabilities;
  if (!worksBeside) return undefined;
  const runs = sharesContainer(task);
  const apart = judgedApart(task);
  const servicesEnd = task.services !== undefined && !canKeepWork;
  try {
    const unkept = await attempt.inTime(environment.unkept());
    if (unkept && apart !== undefined && !unkept.never)
      attempt.note(`${unkept.why}, and ${apart}: its tests do not see it`);
    else if (unkept) attempt.note(`${unkept.why}: its tests run in the container itself`);
    if (unkept?.never && apart !== undefined)
      return { count: 0, names: [], runs: false, only: true, unkept: unkept.why, refused: true };
    const only = servicesEnd || (unkept !== undefined && apart === undefined);
    if (!only && !runs) return undefined;
    const left = runs ? await attempt.inTime(environment.leftRunning()) : undefined;
    const some = left && left.count > 0 ? left : { count: 0, names: [] };
    return only || some.count > 0 ? { ...some, runs, only, unkept: unkept?.why } : undefined;
  } catch (error) {
    // A container that is gone is told by the capture, which comes next.
    attempt.warn('what was left running could not be listed', { message: errorText(error) });
    return undefined;
  }
}

/** Null where the tests say nothing of the work: then its end state is judged, in a fresh container. */
async function judge(
  attempt: EndedAttempt,
  planned: PlannedGrading,
  { patch, work, left }: { readonly work: string; readonly patch: string; readonly left: LeftForTests },
): Promise<EvaluationResult | null> {
  if (!planned.ok) return null;
  const { environment } = attempt;
  attempt.beginPhase('gate');
  const request = await attempt.gradeRequest();
  const { factory } = request;
  // Before its tests change anything themselves.
  const changes = left.only ? await environment.systemChanges() : undefined;
  const grade = (alone: boolean) =>
    attempt.orEnd(
      planned.plan.grade({
        ...request,
        ...{ patch, work, alone },
        factory: {
          ...factory,
          ...(changes && { systemChanges: async () => changes }),
          // A verifier with a container of its own starts that as always.
          start: async (one) => {
            if (one.image !== work) return factory.start(one);
            if (left.refused)
              throw new EnvironmentError('disk_full', left.unkept ?? '', { fromWithin: true });
            return environment.beside(one.putBack, one.container?.network);
          },
        },
      }),
    );
  const first = await grade(false);
  const result = first.repeatAlone && !first.engineLost ? await grade(true) : first;
  if (left.only && result.engineLost)
    throw new EnvironmentError('died', result.errorMessage ?? 'the engine was lost', { sub: 'daemon_lost' });
  if (left.unkept !== undefined && left.count === 0) return result;
  const what =
    left.count === 0
      ? 'the services of the task'
      : `${left.count === 1 ? 'a process' : `${left.count} processes`} of the container (${left.names.join(', ')})`;
  if (!left.only && (result.engineLost || result.outcome === 'infra' || result.outcome === 'ungradable')) {
    attempt.note(
      `its tests were run beside ${what} and left no verdict, so they run once more in a fresh container, where only its files are: ${result.errorMessage}`,
    );
    return null;
  }
  if (!left.runs) return result;
  const ranBeside = {
    ...finding('ran_beside', 'the tests ran beside what was left running', what, false),
    inferred: true,
  };
  return { ...result, suspicion: [...result.suspicion, ranBeside] };
}
