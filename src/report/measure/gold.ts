/** A score with and without the instances whose gold patch does not pass on this machine: there no model can be right. Pure. */
import type { GoldStanding } from '../../store/records/evaluations.ts';
import type { EpochEstimate } from '../statistics/epochs.ts';
import type { Proportion } from '../statistics/proportions.ts';
import { type Scored, scoreOf } from './score.ts';

export interface GoldScore {
  readonly passes: number;
  readonly fails: readonly string[];
  readonly flaky: readonly string[];
  /** Never calibrated here; they stay in the score. */
  readonly unknown: number;
  /** Resolved of valid over what is left when "fails" and "flaky" are taken out. */
  readonly resolvedWithout: Proportion;
  /** The same over instances, where there are several epochs. */
  readonly estimateWithout: EpochEstimate | null;
}

/** Null where gold was never graded for any of these instances. */
export function goldScore(
  trials: readonly Scored[],
  standings: ReadonlyMap<string, GoldStanding>,
  epochs: number,
): GoldScore | null {
  const ids = [...new Set(trials.map((t) => t.instanceId))];
  const those = (standing: GoldStanding | undefined) => ids.filter((id) => standings.get(id) === standing);
  const [fails, flaky, unknown] = [those('fails'), those('flaky'), those(undefined).length];
  if (unknown === ids.length) return null;
  const out = new Set([...fails, ...flaky]);
  const without = scoreOf(
    trials.filter((t) => !out.has(t.instanceId)),
    epochs,
  );
  return {
    passes: those('passes').length,
    fails,
    flaky,
    unknown,
    resolvedWithout: without.resolved,
    estimateWithout: without.overInstances,
  };
}
