/** Before a run: what it will probably cost and take, drawn from the database's own history, and what it will not be able to show. */
import { quantile, sum } from '../statistics/means.ts';
import { detectableDifference } from '../statistics/paired.ts';
import { seeded } from '../statistics/resampling.ts';

export interface PastAttempt {
  readonly model: string;
  readonly instanceId: string;
  readonly repo: string;
  /** Null where unknown. */
  readonly costNano: number | null;
  readonly elapsedMs: number | null;
  /** Null where it was not graded here. */
  readonly gradeMs?: number | null;
}

export interface ForecastTrial {
  readonly model: string;
  readonly instanceId: string;
  readonly repo: string;
  readonly image?: string;
}

export interface Range {
  readonly low: number;
  readonly middle: number;
  readonly high: number;
}

interface ForecastOptions {
  readonly slots: number;
  readonly seed: number;
  readonly draws?: number;
  /** Gradings at a time; absent where nothing is graded. */
  readonly graders?: number;
  readonly pulls?: {
    readonly images: readonly string[];
    readonly parallel: number;
    readonly past: readonly { readonly image: string; readonly ms: number }[];
  };
}

/** A sum over very many trials hardly varies: fewer draws tell its interval as well, and each costs as much as the trials. */
const drawsFor = (trials: number): number =>
  Math.max(20, Math.min(1000, Math.floor(5_000_000 / Math.max(1, trials))));

export type Forecast = ReturnType<typeof forecast>;

/**
 * Each planned trial draws a past attempt of its model: of the instance, else of its repository, else any; sums and schedules of the draws are the
 * forecast: 90 % intervals, and null when some trial's model has no history, because another model's cost would be a guess. `basis`: trials by
 * where their history came from.
 */
export function forecast(
  history: readonly PastAttempt[],
  planned: readonly ForecastTrial[],
  options: ForecastOptions,
) {
  const { seed, draws = drawsFor(planned.length) } = options;
  const basis = { instance: 0, repo: 0, any: 0, none: 0, attempts: history.length };
  const past = poolsOf(history);
  for (const trial of planned) basis[past(trial).from]++;
  const { graders, pulls } = options;
  /** Whether the time includes grading and pulls: false where they will happen but have no history, null where they will not happen. */
  const timeHolds = {
    grading: graders === undefined ? null : history.some((a) => a.gradeMs != null),
    pulls: pulls === undefined || pulls.images.length === 0 ? null : pulls.past.length > 0,
  };
  if (basis.none > 0 || planned.length === 0) return { costNano: null, timeMs: null, basis, timeHolds, seed };
  // An attempt whose cost nobody knows says nothing about cost, but may say something about time.
  const draw = (knows: (a: PastAttempt) => boolean, total: (drawn: readonly PastAttempt[]) => number) => {
    const known = poolsOf(history.filter(knows));
    const pools = planned.map((trial) => known(trial).pool);
    if (pools.some((pool) => pool.length === 0)) return null;
    const random = seeded(seed);
    const pick = <T>(pool: readonly T[]): T => pool[Math.floor(random() * pool.length)]!;
    const kinds = [...new Set(pools)];
    // The past is a sample too: each draw first draws another past that could as well have been recorded.
    const night = () => {
      const pasts = new Map(kinds.map((pool) => [pool, pool.map(() => pick(pool))]));
      return total(pools.map((pool) => pick(pasts.get(pool)!)));
    };
    return rangeOf(Array.from({ length: draws }, night));
  };
  const pullTimes = timeHolds.pulls ? pullsOf(pulls!, seed) : () => new Map<string, number>();
  return {
    costNano: draw(
      (a) => a.costNano !== null,
      (drawn) => sum(drawn.map((a) => a.costNano!)),
    ),
    timeMs: draw(
      (a) => a.elapsedMs !== null && (!timeHolds.grading || a.gradeMs != null),
      (drawn) =>
        nightMs(
          drawn.map((a, i) => ({
            image: planned[i]!.image,
            agentMs: a.elapsedMs!,
            gradeMs: timeHolds.grading ? a.gradeMs! : 0,
          })),
          { slots: options.slots, graders: graders ?? 1 },
          pullTimes(),
        ),
    ),
    basis,
    timeHolds,
    seed,
  };
}

/** Draws for every image to come how long it takes, from its own past or any; gives when each is here, several coming at a time. */
function pullsOf({ images, parallel, past }: NonNullable<ForecastOptions['pulls']>, seed: number) {
  const byImage = Map.groupBy(past, (p) => p.image);
  const random = seeded(seed + 1);
  return (): Map<string, number> => {
    const free = new Array<number>(Math.max(1, parallel)).fill(0);
    return new Map(
      images.map((image) => {
        const pool = byImage.get(image) ?? past;
        return [image, take(free, 0, pool[Math.floor(random() * pool.length)]!.ms)];
      }),
    );
  };
}

/** The time from the first start to the last verdict: a trial waits for its image and for a slot, its grading for a grader. */
export function nightMs(
  trials: readonly {
    readonly image?: string | undefined;
    readonly agentMs: number;
    readonly gradeMs: number;
  }[],
  { slots, graders }: { readonly slots: number; readonly graders: number },
  imageReady: ReadonlyMap<string, number> = new Map(),
): number {
  const readyOf = (t: { readonly image?: string | undefined }) =>
    t.image === undefined ? 0 : (imageReady.get(t.image) ?? 0);
  const agents = new Array<number>(Math.max(1, slots)).fill(0);
  // A trial whose image is here starts before one that has to wait for its own.
  const ended = trials
    .toSorted((a, b) => readyOf(a) - readyOf(b))
    .map((t) => ({ at: take(agents, readyOf(t), t.agentMs), gradeMs: t.gradeMs }));
  const grading = new Array<number>(Math.max(1, graders)).fill(0);
  let last = 0;
  for (const { at, gradeMs } of ended.sort((a, b) => a.at - b.at))
    last = Math.max(last, take(grading, at, gradeMs));
  return last;
}

/** Gives work to the worker that is free first, not before `from`; the time of its end. */
function take(free: number[], from: number, duration: number): number {
  let first = 0;
  for (let i = 1; i < free.length; i++) if (free[i]! < free[first]!) first = i;
  free[first] = Math.max(free[first]!, from) + duration;
  return free[first]!;
}

/** Past attempts of the instance itself, else of its repository, else of the model. */
function poolsOf(history: readonly PastAttempt[]) {
  const byInstance = Map.groupBy(history, (h) => `${h.model}\0${h.instanceId}`);
  const byRepo = Map.groupBy(history, (h) => `${h.model}\0${h.repo}`);
  const byModel = Map.groupBy(history, (h) => h.model);
  return (trial: ForecastTrial) => {
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
  for (const duration of durations) take(free, 0, duration);
  return Math.max(...free);
}

/** Share of instances that usually differ between two runs, where no history says better. */
export const USUAL_DISCORDANCE = 0.2;

/** Smallest difference to another run that this selection will find with 80 % power. */
export const undetectable = (instances: number): number | null =>
  instances < 2 ? null : detectableDifference(USUAL_DISCORDANCE, instances);
