/** Before a run: what it will probably cost and take, drawn from the database's own history, and what it will not be able to show. */
import { quantile, sum } from './statistics/means.ts';
import { detectableDifference } from './statistics/power.ts';
import { seeded } from './statistics/resampling.ts';

export interface PastAttempt {
  readonly model: string;
  readonly instanceId: string;
  readonly repo: string;
  /** Null where unknown. */
  readonly costNano: number | null;
  readonly elapsedMs: number | null;
}

export interface PlannedTrial {
  readonly model: string;
  readonly instanceId: string;
  readonly repo: string;
}

export interface Range {
  readonly low: number;
  readonly middle: number;
  readonly high: number;
}

export interface Forecast {
  /** 90 % intervals; null when some trial's model has no history: another model's cost would be a guess. */
  readonly costNano: Range | null;
  readonly timeMs: Range | null;
  /** Trials by where their history came from. */
  readonly basis: {
    readonly instance: number;
    readonly repo: number;
    readonly any: number;
    readonly none: number;
    readonly attempts: number;
  };
  readonly seed: number;
}

export interface ForecastOptions {
  readonly slots: number;
  readonly seed: number;
  readonly draws?: number;
}

/** Each planned trial draws a past attempt of its model: of the instance, else of its repository, else any; sums and schedules of the draws are the forecast. */
export function forecast(
  history: readonly PastAttempt[],
  planned: readonly PlannedTrial[],
  { slots, seed, draws = 1000 }: ForecastOptions,
): Forecast {
  const basis = { instance: 0, repo: 0, any: 0, none: 0, attempts: history.length };
  const past = poolsOf(history);
  for (const trial of planned) basis[past(trial).from]++;
  if (basis.none > 0 || planned.length === 0) return { costNano: null, timeMs: null, basis, seed };
  // An attempt whose cost nobody knows says nothing about cost, but may say something about time.
  const draw = (of: (a: PastAttempt) => number | null, total: (values: readonly number[]) => number) => {
    const known = poolsOf(history.filter((a) => of(a) !== null));
    const pools = planned.map((trial) => known(trial).pool.map((a) => of(a)!));
    if (pools.some((pool) => pool.length === 0)) return null;
    const random = seeded(seed);
    const pick = (pool: readonly number[]) => pool[Math.floor(random() * pool.length)]!;
    return rangeOf(Array.from({ length: draws }, () => total(pools.map(pick))));
  };
  return {
    costNano: draw((a) => a.costNano, sum),
    timeMs: draw(
      (a) => a.elapsedMs,
      (times) => makespan(times, slots),
    ),
    basis,
    seed,
  };
}

/** Past attempts of the instance itself, else of its repository, else of the model. */
function poolsOf(history: readonly PastAttempt[]) {
  const byInstance = Map.groupBy(history, (h) => `${h.model}\0${h.instanceId}`);
  const byRepo = Map.groupBy(history, (h) => `${h.model}\0${h.repo}`);
  const byModel = Map.groupBy(history, (h) => h.model);
  return (trial: PlannedTrial) => {
    const own = byInstance.get(`${trial.model}\0${trial.instanceId}`);
    if (own) return { from: 'instance', pool: own } as const;
    const near = trial.repo === '' ? undefined : byRepo.get(`${trial.model}\0${trial.repo}`);
    if (near) return { from: 'repo', pool: near } as const;
    const any = byModel.get(trial.model);
    return any ? ({ from: 'any', pool: any } as const) : ({ from: 'none', pool: [] } as const);
  };
}

const rangeOf = (xs: readonly number[]): Range => ({
  low: quantile(xs, 0.05)!,
  middle: quantile(xs, 0.5)!,
  high: quantile(xs, 0.95)!,
});

/** When the last slot is free, each trial taking the slot that is free first. */
export function makespan(durations: readonly number[], slots: number): number {
  const free = new Array<number>(Math.max(1, slots)).fill(0);
  for (const duration of durations) {
    let first = 0;
    for (let i = 1; i < free.length; i++) if (free[i]! < free[first]!) first = i;
    free[first]! += duration;
  }
  return Math.max(...free);
}

/** Share of instances that usually differ between two runs, where no history says better (reference statistics 6.5). */
export const USUAL_DISCORDANCE = 0.2;

/** Smallest difference to another run that this selection will find with 80 % power. */
export const undetectable = (instances: number, discordance = USUAL_DISCORDANCE): number | null =>
  instances < 2 ? null : detectableDifference(discordance, instances);
