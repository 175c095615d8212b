/**
 * The order in which trials start, and when the run will be done. Longest first avoids a long instance at the end, when all other slots
 * are empty; earlier runs say which ones are long. Pure.
 */
import { pythonShuffle } from '../../base/python/random.ts';
import type { PastDuration } from '../../store/records/trials.ts';

interface Orderable {
  readonly instanceId: string;
  readonly model: string;
  readonly repo: string;
}

type EstimateSource = 'instance and model' | 'instance' | 'repository' | 'all' | 'none';
interface Estimate {
  readonly seconds: number;
  readonly from: EstimateSource;
}

/** The 75th percentile: an estimate that is a little too long costs less than a long trial that starts last. */
const QUANTILE = 0.75;
/** The estimate without history. The value does not affect the order; it only shows in the forecast. */
const UNKNOWN: Estimate = { seconds: 600, from: 'none' };

export function expectedQuantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)]!;
  const above = sorted[Math.ceil(at)]!;
  return below + (above - below) * (at - Math.floor(at));
}

const keyOf = (...parts: string[]) => parts.join('\0');

/** Estimates the time of a trial: by instance and model, else by instance, else by repository, else by all history. */
export function estimator(history: readonly PastDuration[]): (trial: Orderable) => Estimate {
  const seconds = new Map<string, number>();
  const collect = (keyOfPast: (past: PastDuration) => string) => {
    for (const [key, past] of Map.groupBy(history, keyOfPast))
      seconds.set(
        key,
        expectedQuantile(
          past.map((p) => p.seconds),
          QUANTILE,
        ),
      );
  };
  collect((p) => keyOf('im', p.instanceId, p.model));
  collect((p) => keyOf('i', p.instanceId));
  collect((p) => keyOf('r', p.repo));
  collect(() => 'all');
  return ({ instanceId, model, repo }) => {
    const tries: [string, EstimateSource][] = [
      [keyOf('im', instanceId, model), 'instance and model'],
      [keyOf('i', instanceId), 'instance'],
      [keyOf('r', repo), 'repository'],
      ['all', 'all'],
    ];
    const found = tries.find(([key]) => seconds.has(key));
    return found ? { seconds: seconds.get(found[0])!, from: found[1] } : UNKNOWN;
  };
}

export type OrderMode = 'dataset' | 'shuffle' | 'longest';

/** Trials of one instance stay together under shuffle, so that arms remain interleaved and share an image. */
export function orderTrials<T extends Orderable>(
  trials: readonly T[],
  mode: OrderMode,
  history: readonly PastDuration[],
  seed: number,
): T[] {
  if (mode === 'dataset') return [...trials];
  if (mode === 'shuffle') {
    const byInstance = Map.groupBy(trials, (trial) => trial.instanceId);
    return pythonShuffle([...byInstance.keys()].sort(), seed).flatMap((id) => byInstance.get(id)!);
  }
  const estimate = estimator(history);
  return trials
    .map((trial, place) => ({ trial, place, seconds: estimate(trial).seconds }))
    .sort((a, b) => b.seconds - a.seconds || a.place - b.place)
    .map(({ trial }) => trial);
}

/** With longest first, a run that stops early has run the hard trials only. */
export const biasWarning = (mode: OrderMode, sealed: number, planned: number): string | undefined =>
  mode === 'longest' && sealed > 0 && sealed < planned
    ? `${sealed} of ${planned} trials are decided, longest first: a biased sample (long ones tend to be hard); use --order shuffle for results that can be read early`
    : undefined;

interface RunningTrial {
  readonly elapsed: number;
  readonly estimate: number;
}

/**
 * Seconds until everything is done: waiting trials go, in order, to the slot that is free first. A trial over its estimate is expected to
 * need another tenth of its time so far. Never less than the longest running trial.
 */
export function remainingSeconds(
  running: readonly RunningTrial[],
  waiting: readonly number[],
  slots: number,
): number {
  const free = Array.from({ length: Math.max(1, slots) }, (_, i) => {
    const trial = running[i];
    return trial ? Math.max(trial.estimate - trial.elapsed, trial.elapsed * 0.1) : 0;
  }).sort((a, b) => a - b);
  for (const seconds of waiting) {
    const end = free.shift()! + seconds;
    const place = free.findIndex((other) => other > end);
    free.splice(place < 0 ? free.length : place, 0, end);
  }
  return free.at(-1)!;
}
