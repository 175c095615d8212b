/** Times as a person reads them, and what is left of a run: a range, because the longest running may last. */

export const clock = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000));
  const pad = (n: number) => String(n).padStart(2, '0');
  return s >= 3600
    ? `${Math.floor(s / 3600)}:${pad(Math.floor((s % 3600) / 60))}:${pad(s % 60)}`
    : `${Math.floor(s / 60)}:${pad(s % 60)}`;
};

/** Instances take about a third longer or shorter than last time. */
const FORECAST_MARGIN = 1.35;

interface Left {
  readonly low: number;
  readonly high: number;
  /** Of one of them. */
  readonly mean: number;
}

/** Undefined where nothing is known; a range, because the longest running may last. */
function leftOf(
  durations: readonly number[],
  remaining: number,
  slots: number,
  forecast?: number,
): Left | undefined {
  if (remaining <= 0) return { low: 0, high: 0, mean: 0 };
  if (forecast !== undefined) return { low: forecast, high: forecast * FORECAST_MARGIN, mean: 0 };
  if (durations.length === 0) return undefined;
  const sorted = [...durations].sort((a, b) => a - b);
  const mean = durations.reduce((a, b) => a + b, 0) / durations.length;
  const p90 = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.9))]!;
  const low = (mean * remaining) / Math.max(1, slots);
  return { low, high: low + p90, mean };
}

const leftText = (left: Left | undefined): string => {
  if (!left) return '?';
  return left.high === 0 ? '0:00' : `${clock(left.low)}-${clock(left.high)}`;
};

/** Remaining time of trials from finished durations. */
export const eta = (
  durations: readonly number[],
  remaining: number,
  slots: number,
  forecast?: number,
): string => leftText(leftOf(durations, remaining, slots, forecast));

export interface OpenGradings {
  readonly workers: number;
  readonly open: number;
  readonly durations: readonly number[];
}

/** Trials and gradings: the last grading begins when the last trial has ended, and those that wait go on beside. */
export function etaWithGradings(
  trials: {
    readonly durations: readonly number[];
    readonly remaining: number;
    readonly slots: number;
    readonly forecast?: number | undefined;
  },
  { workers, open, durations }: OpenGradings,
): string {
  const ofTrials = leftOf(trials.durations, trials.remaining, trials.slots, trials.forecast);
  const ofGradings = leftOf(durations, open + trials.remaining, workers);
  if (!ofTrials || trials.remaining === 0) return leftText(ofGradings && ofTrials && ofGradings);
  if (!ofGradings) return leftText(ofTrials);
  const last = ofGradings.high - ofGradings.low;
  return leftText({
    low: Math.max(ofTrials.low + ofGradings.mean, ofGradings.low),
    high: Math.max(ofTrials.high + last, ofGradings.high),
    mean: 0,
  });
}
