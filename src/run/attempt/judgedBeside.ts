/**
 * What an agent left running (a server, a database) belongs to what the tests of some suites look at: they run beside it, before the container
 * goes. Where nothing was left they run later, in a fresh container of the end state, which nobody can disturb. What no image can keep is such a thing
 * too: services that end with the container, what lies in a VOLUME or in memory, files that are too long with their holes.
 */
import { errorText } from '../../base/text/errorText.ts';
import { type Environment, EnvironmentError, type LeftRunning } from '../../environment/environment.ts';
import { finding } from '../../grading/doubts/patchDoubts.ts';
import type { EvaluationResult } from '../../grading/gradingFrame.ts';
import { needsOf, planGrading } from '../../suites/suites.ts';
import type { Run } from '../contract.ts';
import { orAbort } from '../control/stop.ts';
import { writeGradedFiles } from '../grader/grader.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';
import { inTime } from './environment.ts';

export interface LeftForTests extends LeftRunning {
  /** The tests look at it while it runs; otherwise only its files are collected. */
  readonly runs: boolean;
  /** What is judged is gone afterwards, so this verdict is the only one. */
  readonly only: boolean;
  /** Why no image has all of it, as a clause. */
  readonly unkept?: string | undefined;
  /** Nor may it be judged here. */
  readonly refused?: boolean;
}

/** Ends a start from which no end state would come that its verifier can be given, before anything is paid. */
export function refuseUnkept({ instance }: PlannedTrial, { capabilities, info }: Environment): void {
  const { volumes = [] } = info;
  const { keepsEndStates, judgedApart } = needsOf(instance);
  const who =
    keepsEndStates === undefined ? judgedApart && `${judgedApart}, so its end state` : keepsEndStates;
  if (!capabilities.canKeepWork || who === undefined || volumes.length === 0) return;
  throw new EnvironmentError(
    'start_failed',
    `${who} would be judged without what lies in ${volumes.join(', ')}: its image says VOLUME, which no image of its container keeps; leave VOLUME out of its Dockerfile, or let its verifier share the container`,
    { evidence: { volumes } },
  );
}

/** Undefined where nothing is left, and where the tests may not or cannot run beside it. */
export async function leftForTests(
  run: Run,
  journal: AttemptJournal,
  { instance }: PlannedTrial,
  environment: Environment,
): Promise<LeftForTests | undefined> {
  const { judgedBeside: runs = false, judgedApart, endState = false, container } = needsOf(instance);
  const { worksBeside, canKeepWork } = environment.capabilities;
  if (!worksBeside) return undefined;
  const ends = container?.services !== undefined && !canKeepWork;
  try {
    const unkept = endState ? await inTime(run, environment.unkept()) : undefined;
    if (unkept && judgedApart !== undefined && !unkept.never)
      journal.note(`${unkept.why}, and ${judgedApart}: its tests do not see it`);
    else if (unkept) journal.note(`${unkept.why}: its tests run in the container itself`);
    if (unkept?.never && judgedApart !== undefined)
      return { count: 0, names: [], runs: false, only: true, unkept: unkept.why, refused: true };
    const only = ends || (unkept !== undefined && judgedApart === undefined);
    if (!only && !runs) return undefined;
    const left = runs && (await inTime(run, environment.leftRunning()));
    const some = left && left.count > 0 ? left : { count: 0, names: [] };
    return only || some.count > 0 ? { ...some, runs, only, unkept: unkept?.why } : undefined;
  } catch (error) {
    // A container that is gone is told by the capture, which comes next.
    journal.warn('what was left running could not be listed', { message: errorText(error) });
    return undefined;
  }
}

/** Null where they say nothing of the work: then its end state is judged, in a fresh container. */
export async function judgedBeside(
  run: Run,
  journal: AttemptJournal,
  trial: PlannedTrial,
  environment: Environment,
  of: { readonly work: string; readonly patch: string; readonly left: LeftForTests },
  signal: AbortSignal,
): Promise<EvaluationResult | null> {
  const { patch, work, left } = of;
  const planned = planGrading(trial.instance, { harness: run.grading.harness });
  if (!planned.ok) return null;
  journal.phases.begin('gate');
  const request = await run.stepGrading.request(trial, journal, signal);
  const { factory } = request;
  // Before its tests change anything themselves.
  const changes = left.only ? await environment.systemChanges() : undefined;
  const grade = (alone: boolean) =>
    orAbort(
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
      signal,
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
    journal.note(
      `its tests were run beside ${what} and left no verdict, so they run once more in a fresh container, where only its files are: ${result.errorMessage}`,
    );
    return null;
  }
  if (!left.runs) return result;
  const ranBeside = {
    ...finding('ran_beside', 'the tests ran beside what was left running', what, false),
    inferred: true,
  };
  return {
    ...result,
    suspicion: [...result.suspicion, ranBeside],
  };
}

/** After the record has it: the folder that the harness would write, and no image that nobody asks for any more. */
export async function keepJudged(
  run: Run,
  { arm, label }: PlannedTrial,
  patch: string,
  work: string | null,
  verdict: EvaluationResult,
): Promise<void> {
  if (work !== null) run.stepGrading.discard(arm.environmentFactory, work);
  try {
    await writeGradedFiles(run, { model: arm.row.model, model_patch: patch }, label, verdict);
  } catch (error) {
    run.log(
      'warn',
      `${label.instanceId}: what its verdict leaves could not be put in order: ${errorText(error)}`,
    );
  }
}
