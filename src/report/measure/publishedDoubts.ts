/** A second and a third denominator for suites in which others found instances to be wrong: the score without those. Pure. */
import type { EpochEstimate } from '../statistics/epochs.ts';
import type { Proportion } from '../statistics/proportions.ts';
import doubts from './publishedDoubts.json' with { type: 'json' };
import { type Scored, scoreOf } from './score.ts';

export interface DoubtedScore {
  /** "whose gold patch fails its own grader (scaleapi/SWE-bench_Pro-os#108)". */
  readonly label: string;
  /** Those of the run. */
  readonly ids: readonly string[];
  readonly resolvedWithout: Proportion;
  /** The same over instances, where there are several epochs. */
  readonly estimateWithout: EpochEstimate | null;
}

function scoreWithout(
  trials: readonly Scored[],
  epochs: number,
  label: string,
  ids: readonly string[],
): DoubtedScore {
  const out = new Set(ids);
  const { resolved, overInstances } = scoreOf(
    trials.filter(({ instanceId }) => !out.has(instanceId)),
    epochs,
  );
  return { label, ids, resolvedWithout: resolved, estimateWithout: overInstances };
}

/** One score for each list that has instances of the run, and one without all of them where there are several. */
export function doubtedScores(trials: readonly Scored[], epochs: number): DoubtedScore[] {
  const here = new Set(trials.map(({ instanceId }) => instanceId));
  const lists = doubts
    .map(({ says, source, ids }) => ({ label: `${says} (${source})`, ids: ids.filter((id) => here.has(id)) }))
    .filter(({ ids }) => ids.length > 0);
  const scores = lists.map(({ label, ids }) => scoreWithout(trials, epochs, label, ids));
  if (lists.length < 2) return scores;
  const all = [...new Set(lists.flatMap(({ ids }) => ids))];
  return [...scores, scoreWithout(trials, epochs, 'of either list', all)];
}
