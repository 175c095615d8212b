/**
 * Grades predictions as they arrive, in fresh containers, beside the agents' slots and with its own concurrency. A verdict is keyed by
 * patch and spec: what is graded already is not graded again, and nothing is overwritten.
 */
import PQueue from 'p-queue';
import { isLoss } from '../../environment/environment.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import type { Outcome } from '../../outcome.ts';
import { StorageError } from '../../store/open.ts';
import { type Gradable, gradableTrial, gradableTrials, verdictsOf } from '../../store/records/evaluations.ts';
import { abandonGradingCalls } from '../../store/records/modelCalls.ts';
import { planGrading } from '../../suites/suites.ts';
import { crashPoint } from '../control/crash.ts';
import { FREE_OUTAGES } from '../exit.ts';
import { tellVerdict, writeGradedFiles, writeVerdict } from '../record/verdicts.ts';
import { createDiscards, type GradedRun, gradeTrial, gradingFactory, type Verdict } from './gradeTrial.ts';

export interface GradingSummary {
  readonly outcomes: Readonly<Record<string, number>>;
  /** Predictions without a usable verdict. */
  readonly ungraded: number;
}

export type Grader = Awaited<ReturnType<typeof createGrader>>;

/** Verdicts without a statement about the patch; the next evaluation tries them again. */
const UNUSABLE: ReadonlySet<Outcome> = new Set(['infra', 'ungradable']);

type Choice = (gradable: Gradable) => boolean;
const all: Choice = () => true;

/** `cwd`: where relative paths of parsers start. */
export async function createGrader(run: GradedRun, cwd: string) {
  const { store, row, grading, instances, events, stop, engine } = run;
  abandonGradingCalls(store, row.id);
  const parsers = await loadParsers(grading.parsers, cwd);
  const factory = await gradingFactory(run);
  const queue = new PQueue({ concurrency: grading.workers });
  const discards = createDiscards(run);
  const repeats: Gradable[] = [];
  const outages = new Map<number, number>();
  // Gradings and files are awaited only at the end, so an uncaught rejection would end the process.
  let broken: unknown = null;
  const noteBroken = (error: unknown) => {
    broken ??= error;
  };
  /** Verdicts go to the record at once, and to files one after the other. */
  let files: Promise<void> = Promise.resolve();

  const work = async (gradable: Gradable, alone: boolean): Promise<void> => {
    if (stop.stage >= 2) return;
    const signal = stop.attempts;
    try {
      const began = engine?.mark();
      const verdict = await gradeTrial(run, parsers, factory, gradable, signal, alone);
      const away = began !== undefined && engine!.awaySince(began);
      if (await wasOutage(gradable, verdict, away, signal)) return;
      // A timeout or a lack of memory beside other work may be caused by that, so it counts only when it happens alone (observed:
      // tests/suites/sweBench/evaluateDocker.test.ts).
      if (verdict.result.repeatAlone && !alone) repeats.push(gradable);
      else await keep(gradable, verdict);
    } catch (error) {
      if (!signal.aborted || error instanceof StorageError) throw error;
      // After a full disk it is graded again at the end; after a second interrupt it waits for the next evaluation (T-33).
      if (stop.stage < 2) repeats.push(gradable);
    }
  };

  /**
   * A grading that the container engine took with it when it went away is no verdict. The grading is made again, or stays open for the next
   * evaluation when the engine does not come back.
   */
  async function wasOutage(
    gradable: Gradable,
    { label, result }: Verdict,
    away: boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    const lost = result.engineLost ?? false;
    if (!lost && !(away && result.repeatAlone)) return false;
    const times = (outages.get(gradable.trial_id) ?? 0) + 1;
    outages.set(gradable.trial_id, times);
    if (times <= FREE_OUTAGES && (await comesBack(run, signal))) {
      repeats.push(gradable);
      return true;
    }
    if (lost)
      events.emit({ type: 'note', text: `${label.instanceId} was not graded: ${result.errorMessage}` });
    return lost;
  }

  async function keep(gradable: Gradable, verdict: Verdict): Promise<void> {
    const { label, result } = verdict;
    writeVerdict(run, gradable, result);
    tellVerdict(run, label, result);
    if (verdict.gradable) {
      crashPoint('graded');
      files = files.then(() => writeGradedFiles(run, gradable, label, result)).catch(noteBroken);
    }
    // A verdict that says nothing is tried again, on the same work.
    if (gradable.work_image === null || UNUSABLE.has(result.outcome)) return;
    discards.begin(factory, gradable.work_image);
  }

  const enqueue = (gradable: Gradable): void => {
    // Starts after the caller knows the count, because an ungradable prediction gets its verdict at once.
    const later = () => Promise.resolve().then(() => work(gradable, false));
    void queue.add(later).catch(noteBroken);
  };

  const missing = (only: Choice = all, again = false): Gradable[] => {
    const verdicts = verdictsOf(store, row.id);
    const hasVerdict = (gradable: Gradable): boolean => {
      const verdict = verdicts.get(gradable.trial_id);
      if (!verdict || UNUSABLE.has(verdict.outcome) || verdict.harness !== grading.harness) return false;
      const { instance } = instances.get(gradable.instance_pk)!;
      const planned = planGrading(instance, { harness: grading.harness, parsers });
      return planned.ok && planned.plan.specHash === verdict.spec_hash;
    };
    return gradableTrials(store, row.id).filter(
      (g) => only(g) && !judgedForGood(g, verdicts) && (again || !hasVerdict(g)),
    );
  };

  return {
    /** The trials that `enqueueMissing` would enqueue now. */
    missing: () => missing(),
    enqueue(trialId: number): void {
      const gradable = gradableTrial(store, row.id, trialId);
      if (gradable) enqueue(gradable);
    },
    /** Everything that is sealed and has no verdict for its patch. Returns how many. */
    enqueueMissing(only?: Choice, again?: boolean): number {
      const found = missing(only, again);
      if (again) tellStanding(run, only);
      for (const gradable of found) enqueue(gradable);
      return found.length;
    },
    async drain(): Promise<void> {
      await queue.onIdle();
      for (let next = repeats.shift(); next; next = repeats.shift()) await work(next, true);
      await files;
      if (broken !== null) throw broken instanceof Error ? broken : new Error(String(broken));
    },
    summary(only: Choice = all): GradingSummary {
      const outcomes: Record<string, number> = {};
      const verdicts = verdictsOf(store, row.id);
      let ungraded = 0;
      for (const { trial_id } of gradableTrials(store, row.id).filter(only)) {
        const outcome = verdicts.get(trial_id)?.outcome;
        if (outcome) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        if (!outcome || UNUSABLE.has(outcome)) ungraded += 1;
      }
      return { outcomes, ungraded };
    },
    async close(): Promise<void> {
      await discards.settled();
      await factory.close();
    },
  };
}

async function comesBack({ engine }: GradedRun, signal: AbortSignal): Promise<boolean> {
  try {
    await engine?.back(signal);
    return true;
  } catch (error) {
    if (isLoss(error)) return false;
    throw error;
  }
}

/** The end state that it judged was removed with the verdict: another grading would only lose the verdict. */
function judgedForGood({ work_image, trial_id }: Gradable, verdicts: ReturnType<typeof verdictsOf>): boolean {
  const verdict = verdicts.get(trial_id);
  return work_image !== null && verdict !== undefined && !UNUSABLE.has(verdict.outcome);
}

function tellStanding({ store, row, events }: GradedRun, only: Choice = all): void {
  const verdicts = verdictsOf(store, row.id);
  const stand = gradableTrials(store, row.id).filter((g) => only(g) && judgedForGood(g, verdicts)).length;
  if (stand > 0)
    events.emit({
      type: 'note',
      text: `${stand} verdict${stand === 1 ? ' stands' : 's stand'}: the end state that was judged is removed with the verdict, so only a new attempt can be graded`,
    });
}
