/** A score with and without the instances whose gold patch does not pass on this machine: there no model can be right. Pure. */
import type { GoldStanding } from '../store/calibration.ts';
import { type EpochEstimate, epochEstimate } from './statistics/epochs.ts';
import { type Proportion, proportion } from './statistics/proportions.ts';

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

export interface ScoredTrial {
  readonly instanceId: string;
  readonly valid: boolean;
  readonly resolved: boolean;
}

/** Null where gold was never graded for any of these instances. */
export function goldScore(
  trials: readonly ScoredTrial[],
  standings: ReadonlyMap<string, GoldStanding>,
  epochs: number,
): GoldScore | null {
  const ids = [...new Set(trials.map((t) => t.instanceId))];
  const those = (standing: GoldStanding | undefined) => ids.filter((id) => standings.get(id) === standing);
  const [fails, flaky, unknown] = [those('fails'), those('flaky'), those(undefined).length];
  if (unknown === ids.length) return null;
  const out = new Set([...fails, ...flaky]);
  const kept = trials.filter((t) => t.valid && !out.has(t.instanceId));
  return {
    passes: those('passes').length,
    fails,
    flaky,
    unknown,
    resolvedWithout: proportion(kept.filter((t) => t.resolved).length, kept.length),
    estimateWithout:
      epochs > 1
        ? epochEstimate(
            [...Map.groupBy(kept, (t) => t.instanceId).values()].map((group) =>
              group.map((t) => (t.resolved ? 1 : 0)),
            ),
          )
        : null,
  };
}
