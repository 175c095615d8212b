// What a simulated trial takes, the same for the model, the environment and the bench: numbers follow from the instance alone.

/** Everything lasts this share of what it would on a real night. */
export const SCALE = Number(process.env.SWEBATCH_BENCH_SCALE ?? '0.25');
const MEDIAN_LATENCY_MS = 4_000;
const LATENCY_SPREAD = 0.6;
const MEDIAN_STEPS = 40;
const STEPS_SPREAD = 0.6;
const MOST_STEPS = 250;
/** A command on another machine: one and a third round trips of 20 ms, and what the command itself takes. */
const COMMAND_MS = 26;
const MEDIAN_OWN_MS = 150;
const START_MS = 900;

function randoms(text: string): () => number {
  let state = 2166136261;
  for (const character of text) state = Math.imul(state ^ character.charCodeAt(0), 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const lognormal = (next: () => number, median: number, spread: number): number =>
  median * Math.exp(spread * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()));

export interface SimulatedTrial {
  readonly startMs: number;
  /** For each step the wait for the model and for the command. */
  readonly latencies: readonly number[];
  readonly commands: readonly number[];
  readonly outputBytes: readonly number[];
}

export function simulatedTrial(instanceId: string): SimulatedTrial {
  const next = randoms(instanceId);
  const steps = Math.max(2, Math.min(MOST_STEPS, Math.round(lognormal(next, MEDIAN_STEPS, STEPS_SPREAD))));
  const each = (make: () => number) => Array.from({ length: steps }, make);
  return {
    startMs: START_MS * SCALE,
    latencies: each(() => lognormal(next, MEDIAN_LATENCY_MS, LATENCY_SPREAD) * SCALE),
    commands: each(() => (COMMAND_MS + lognormal(next, MEDIAN_OWN_MS, 1)) * SCALE),
    outputBytes: each(() => Math.min(10_000, Math.round(lognormal(next, 900, 1.2)))),
  };
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
export const trialMs = ({ startMs, latencies, commands }: SimulatedTrial): number =>
  startMs + sum(latencies) + sum(commands);
