/** Resolved of valid, for any part of a run. With several epochs the trials of one instance are not an independent sample, so the score is over instances. */
import { percent } from '../../base/text/numbers.ts';
import type { ReportTrial } from '../../store/records/reportQueries.ts';
import { range, rate } from '../render/format.ts';
import { type EpochEstimate, epochEstimate } from '../statistics/epochs.ts';
import { type Proportion, proportion } from '../statistics/proportions.ts';
import { isGraded, type Standing, standingOf } from './verdict.ts';

export interface Score {
  /** Over trials. */
  readonly resolved: Proportion;
  /** Over instances; null for a single epoch, and where nothing is valid. */
  readonly overInstances: EpochEstimate | null;
}

export interface Scored {
  readonly instanceId: string;
  readonly valid: boolean;
  readonly resolved: boolean;
}

export interface ScoredTrial extends Scored {
  readonly trial: ReportTrial;
  readonly standing: Standing;
}

/** Trials of one arm: whether it was graded at all is seen from all of them. */
export function scoredTrials(trials: readonly ReportTrial[]): ScoredTrial[] {
  const graded = isGraded(trials);
  return trials.map((trial) => {
    const standing = standingOf(trial, graded);
    const { valid } = standing;
    return { trial, instanceId: trial.instanceId, standing, valid, resolved: valid && standing.resolved };
  });
}

export function scoreOf(rows: readonly Scored[], epochs: number): Score {
  const valid = rows.filter((r) => r.valid);
  return {
    resolved: proportion(valid.filter((r) => r.resolved).length, valid.length),
    overInstances:
      epochs > 1
        ? epochEstimate(
            [...Map.groupBy(valid, (r) => r.instanceId).values()].map((group) =>
              group.map((r) => (r.resolved ? 1 : 0)),
            ),
          )
        : null,
  };
}

/** "9/12 = 75.0 % [46.8, 91.1]", or with epochs "75.0 % [46.8, 91.1] (n = 12)". */
export const scoreText = ({ resolved, overInstances: over }: Score): string =>
  over ? `${percent(over.mean)} ${range(over.interval)} (n = ${over.n})` : rate(resolved);
