/** Exports while a run works: a trajectory as its trial is sealed, the predictions every few trials, and never two at a time. */
import { type ExportTarget, exportPredictions, exportTrajectory } from './exportRun.ts';

export interface Exporter {
  attemptEnded(attemptId: number): void;
  /** Resolves once everything asked for is written; rejects with the first failure. */
  flush(): Promise<void>;
}

/** Rewriting preds.json costs its size each time; a person following a run needs it now and then. */
const PREDICTIONS_EVERY = 20;
/** Of what it holds: so the files of a large run are not written thousands of times. */
const PREDICTIONS_SHARE = 0.05;

export function createExporter(target: ExportTarget): Exporter {
  let chain: Promise<void> = Promise.resolve();
  let failure: unknown = null;
  let ended = 0;
  let next = 1;
  const enqueue = (work: () => Promise<unknown>) => {
    chain = chain.then(work).then(
      () => {},
      (error: unknown) => {
        failure ??= error;
      },
    );
  };
  return {
    attemptEnded(attemptId) {
      enqueue(() => exportTrajectory(target, attemptId));
      ended += 1;
      if (ended < next) return;
      next = ended + Math.max(PREDICTIONS_EVERY, Math.floor(ended * PREDICTIONS_SHARE));
      enqueue(() => exportPredictions(target));
    },
    async flush() {
      await chain;
      if (failure !== null) throw failure instanceof Error ? failure : new Error(String(failure));
    },
  };
}
