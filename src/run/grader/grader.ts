/**
 * Grades predictions as they arrive, in fresh containers, beside the agents' slots and with its own concurrency. A verdict is keyed by
 * patch and spec: what is graded already is not graded again, and nothing is overwritten.
 */
import PQueue from 'p-queue';
import { errorText } from '../../base/text/errorText.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { EnvironmentFactory } from '../../environment/environment.ts';
import type { EngineImageSource } from '../../environment/environmentKind.ts';
import type { EnginePool } from '../../environment/places/enginePool.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { imagesOfWork } from '../../grading/gradingFrame.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import type { Outcome } from '../../outcome.ts';
import { StorageError, type Store } from '../../store/open.ts';
import { type Gradable, gradableTrial, gradableTrials, verdictsOf } from '../../store/records/evaluations.ts';
import type { ArmRow, RunRow } from '../../store/records/runs.ts';
import { planGrading } from '../../suites/suites.ts';
import { crashPoint } from '../control/crash.ts';
import type { StopLadder } from '../control/stop.ts';
import type { RunEvents } from '../events.ts';
import type { PlannedInstance } from '../plannedTrial.ts';
import { writeGradedFiles } from '../record/gradedFiles.ts';
import { type GradingPorts, gradeTrial, gradingFactory, type Verdict } from './gradeTrial.ts';
import { createGradingOutages } from './gradingOutages.ts';
import { recordVerdict } from './recordVerdict.ts';

export interface GraderParts {
  readonly store: Store;
  readonly run: RunRow;
  readonly config: GradingConfig;
  readonly arms: readonly ArmRow[];
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  readonly cwd: string;
  /** DIR/<run> */
  readonly dir: string;
  /** Provides images; default: each grading gets its own. */
  readonly images?: EngineImageSource | undefined;
  /** The engines of the run; default: a pool of its own. */
  readonly pool?: EnginePool | undefined;
  /** Of the engine, or of several together. */
  readonly engine?: EngineWatch | undefined;
}

export interface GradingSummary {
  readonly outcomes: Readonly<Record<string, number>>;
  /** Predictions without a usable verdict. */
  readonly ungraded: number;
}

export interface Grader {
  enqueue(trialId: number): void;
  /** Everything that is sealed and has no verdict for its patch. Returns how many. */
  enqueueMissing(only?: (g: Gradable) => boolean, again?: boolean): number;
  /** The trials that `enqueueMissing` would enqueue now. */
  missing(): readonly Gradable[];
  drain(): Promise<void>;
  summary(only?: (g: Gradable) => boolean): GradingSummary;
  close(): Promise<void>;
}

/** Verdicts without a statement about the patch; the next evaluation tries them again. */
const UNUSABLE: ReadonlySet<Outcome> = new Set(['infra', 'ungradable']);

export async function createGrader(parts: GraderParts): Promise<Grader> {
  const { store, run, config, stop, engine } = parts;
  const ports: GradingPorts = {
    run,
    config,
    instances: parts.instances,
    arms: new Map(parts.arms.map((arm) => [arm.id, arm])),
    parsers: await loadParsers(config.parsers, parts.cwd),
    factory: await gradingFactory(parts),
  };
  const queue = new PQueue({ concurrency: config.workers });
  const repeats: Gradable[] = [];
  const outages = createGradingOutages({
    ...parts,
    engine,
    again: (gradable) => void repeats.push(gradable),
  });
  let broken: unknown = null;
  // Gradings and files are awaited only at the end, so an uncaught rejection would end the process.
  const noteBroken = (error: unknown) => {
    broken ??= error;
  };

  const keeper = createKeeper(parts, noteBroken);

  const work = async (gradable: Gradable, alone: boolean): Promise<void> => {
    if (stop.stage >= 2) return;
    const signal = stop.attempts;
    try {
      const began = engine?.mark();
      const verdict = await gradeTrial(ports, gradable, signal, alone);
      if (await outages.caused(gradable, verdict, began, signal)) return;
      // A timeout or a lack of memory beside other work may be caused by that, so it counts only when it happens alone.
      if (verdict.result.repeatAlone && !alone) repeats.push(gradable);
      else {
        keeper.keep(gradable, verdict);
        await discardWork(parts, ports.factory, gradable, verdict);
      }
    } catch (error) {
      if (!signal.aborted || error instanceof StorageError) throw error;
      // After a full disk it is graded again at the end; after a second interrupt it waits for the next evaluation.
      if (stop.stage < 2) repeats.push(gradable);
    }
  };

  const enqueue = (gradable: Gradable): void => {
    // Starts after the caller knows the count, because an ungradable prediction gets its verdict at once.
    const later = () => Promise.resolve().then(() => work(gradable, false));
    void queue.add(later).catch(noteBroken);
  };

  return {
    missing: () => missing(store, ports),
    enqueue(trialId) {
      const gradable = gradableTrial(store, run.id, trialId);
      if (gradable) enqueue(gradable);
    },
    enqueueMissing(only, again) {
      const found = missing(store, ports, only, again);
      if (again) tellStanding(parts, only);
      for (const gradable of found) enqueue(gradable);
      return found.length;
    },
    async drain() {
      await queue.onIdle();
      for (let next = repeats.shift(); next; next = repeats.shift()) await work(next, true);
      await keeper.written();
      if (broken !== null) throw broken instanceof Error ? broken : new Error(String(broken));
    },
    summary: (only) => summary(store, run, only),
    close: () => ports.factory.close(),
  };
}

/** A verdict that says nothing is tried again, on the same work. */
async function discardWork(
  { events }: GraderParts,
  factory: EnvironmentFactory,
  { work_image: image }: Gradable,
  { result }: Verdict,
): Promise<void> {
  if (image === null || UNUSABLE.has(result.outcome)) return;
  for (const one of imagesOfWork(image))
    await factory
      .discardWork?.(one)
      .catch((error: unknown) =>
        events.emit({ type: 'note', text: `${one} could not be removed: ${errorText(error)}` }),
      );
}

/** Verdicts go to the record at once, and to files one after the other. */
function createKeeper(parts: GraderParts, onError: (error: unknown) => void) {
  const { store, run, dir, redactor } = parts;
  let files: Promise<void> = Promise.resolve();
  return {
    keep(gradable: Gradable, verdict: Verdict): void {
      recordVerdict(parts, gradable, verdict);
      if (!verdict.gradable) return;
      crashPoint('graded');
      const { arm, epoch } = verdict.label;
      const target = { store, run, dir, arm, epoch, model: gradable.model };
      files = files
        .then(() => writeGradedFiles(target, gradable.model_patch, verdict.result, redactor))
        .catch(onError);
    },
    written: () => files,
  };
}

type Choice = (gradable: Gradable) => boolean;
const all: Choice = () => true;

function missing(store: Store, ports: GradingPorts, only: Choice = all, again = false): Gradable[] {
  const { run, config, instances, parsers } = ports;
  const verdicts = verdictsOf(store, run.id);
  const hasVerdict = (gradable: Gradable): boolean => {
    const verdict = verdicts.get(gradable.trial_id);
    if (!verdict || UNUSABLE.has(verdict.outcome) || verdict.dialect !== config.dialect) return false;
    const { instance } = instances.get(gradable.instance_pk)!;
    const planned = planGrading(instance, { dialect: config.dialect, parsers });
    return planned.ok && planned.plan.specHash === verdict.spec_hash;
  };
  return gradableTrials(store, run.id).filter(
    (g) => only(g) && !judgedForGood(g, verdicts) && (again || !hasVerdict(g)),
  );
}

/** The end state that it judged was removed with the verdict: another grading would only lose the verdict. */
function judgedForGood({ work_image, trial_id }: Gradable, verdicts: ReturnType<typeof verdictsOf>): boolean {
  const verdict = verdicts.get(trial_id);
  return work_image !== null && verdict !== undefined && !UNUSABLE.has(verdict.outcome);
}

function tellStanding({ store, run, events }: GraderParts, only: Choice = all): void {
  const verdicts = verdictsOf(store, run.id);
  const stand = gradableTrials(store, run.id).filter((g) => only(g) && judgedForGood(g, verdicts)).length;
  if (stand > 0)
    events.emit({
      type: 'note',
      text: `${stand} verdict${stand === 1 ? ' stands' : 's stand'}: the end state that was judged is removed with the verdict, so only a new attempt can be graded`,
    });
}

function summary(store: Store, run: RunRow, only: Choice = all): GradingSummary {
  const outcomes: Record<string, number> = {};
  const verdicts = verdictsOf(store, run.id);
  let ungraded = 0;
  for (const { trial_id } of gradableTrials(store, run.id).filter(only)) {
    const outcome = verdicts.get(trial_id)?.outcome;
    if (outcome) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (!outcome || UNUSABLE.has(outcome)) ungraded += 1;
  }
  return { outcomes, ungraded };
}
