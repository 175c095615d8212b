/** What documents say of rewards; everything is absent where the suite gives none. */
import type { RewardMean } from '../../report/statistics/rewards.ts';

/** Over instances. */
export interface WithMeanReward {
  reward?: RewardMean;
}

/** Between 0 and 1. */
export interface WithReward {
  reward?: number;
}

export interface WithNamedRewards extends WithReward {
  /** All of them, the counted one too. */
  rewards?: [name: string, value: number][];
}
