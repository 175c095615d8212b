/**
 * Shows a run while it works: bars on a terminal, one line per finished trial and a heartbeat elsewhere. Draws on stderr; stdout is for data.
 * Listens to events only, so nothing here can break a run.
 */
import { MultiBar, type SingleBar } from 'cli-progress';
import { formatCost } from '../money.ts';
import type { RunEvent, RunListener, TrialLabel } from '../runner/events.ts';
import { remainingSeconds } from '../runner/order.ts';
import { inert, printData, say } from './context.ts';
import { type Pulls, pullLines } from './pullText.ts';

export interface Progress {
  readonly listener: RunListener;
  stop(): void;
}

interface SlotState {
  label: TrialLabel;
  step: number;
  phase: string;
  phaseSince: number;
  startedAt: number;
  costNano: number | null;
}

interface State {
  planned: number;
  toDo: number;
  done: number;
  startedAt: number;
  spentNano: number;
  budgetNano: number | null;
  reasons: Map<string, number>;
  graded: { resolved: number; total: number };
  durations: number[];
  /** Whether lines must say which arm, and which epoch. */
  arms: number;
  epochs: number;
  /** What earlier runs let expect of trials that have not started yet, in order. */
  expectedS: Map<number, number>;
  /** The same of those that run. */
  runningS: Map<number, number>;
  slots: Map<number, SlotState>;
  pulls: Pulls | undefined;
  lastNote: string;
}

const newState = (): State => ({
  planned: 0,
  toDo: 0,
  done: 0,
  startedAt: Date.now(),
  spentNano: 0,
  budgetNano: null,
  reasons: new Map(),
  graded: { resolved: 0, total: 0 },
  durations: [],
  arms: 1,
  epochs: 1,
  expectedS: new Map(),
  runningS: new Map(),
  slots: new Map(),
  pulls: undefined,
  lastNote: '',
});

function apply(state: State, event: RunEvent): void {
  switch (event.type) {
    case 'run_started':
      Object.assign(state, { planned: event.planned, toDo: event.toDo, spentNano: event.spentNano });
      state.budgetNano = event.budgetNano;
      state.expectedS = new Map(event.expectedS);
      state.arms = event.arms;
      state.epochs = event.epochs;
      break;
    case 'trial_started':
      state.slots.set(event.slot, {
        label: event.trial,
        step: 0,
        phase: 'start',
        phaseSince: Date.now(),
        startedAt: Date.now(),
        costNano: 0,
      });
      moveEstimate(state.expectedS, state.runningS, event.trial.trialId);
      break;
    case 'phase': {
      const slot = state.slots.get(event.slot);
      if (slot) Object.assign(slot, { phase: event.phase, phaseSince: Date.now() });
      break;
    }
    case 'step': {
      const slot = state.slots.get(event.slot);
      if (slot) Object.assign(slot, { step: event.step, costNano: event.costNano });
      break;
    }
    case 'trial_ended':
      state.slots.delete(event.slot);
      // One that runs again waits again.
      if (event.sealed) state.runningS.delete(event.trial.trialId);
      else moveEstimate(state.runningS, state.expectedS, event.trial.trialId);
      state.reasons.set(event.exitReason, (state.reasons.get(event.exitReason) ?? 0) + 1);
      state.durations.push(event.elapsedMs);
      state.spentNano += event.costNano ?? 0;
      if (event.sealed) state.done += 1;
      break;
    case 'graded':
      state.graded.total += 1;
      if (event.resolved) state.graded.resolved += 1;
      break;
    case 'paused':
    case 'resumed':
    case 'breaker':
      state.lastNote = `${event.type}: ${event.reason}`;
      break;
    case 'budget':
      state.lastNote = `${event.percent} % of the budget spent`;
      break;
    case 'stopping':
      state.lastNote = event.reason;
      break;
    case 'note':
      state.lastNote = event.text;
      break;
    case 'pulls':
      state.pulls = event;
      break;
    default:
  }
}

function moveEstimate(from: Map<number, number>, to: Map<number, number>, trialId: number): void {
  const seconds = from.get(trialId);
  if (seconds === undefined) return;
  from.delete(trialId);
  to.set(trialId, seconds);
}

/** With history: every slot takes the next trial when it is free, so the end is never before the longest that runs. */
function forecastMs(state: State, slots: number, now: number): number | undefined {
  if (state.expectedS.size + state.runningS.size === 0) return undefined;
  const running = [...state.slots.values()].map(({ label, startedAt }) => ({
    elapsed: (now - startedAt) / 1000,
    estimate: state.runningS.get(label.trialId) ?? 0,
  }));
  return 1000 * remainingSeconds(running, [...state.expectedS.values()], slots);
}

export const clock = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000));
  const pad = (n: number) => String(n).padStart(2, '0');
  return s >= 3600
    ? `${Math.floor(s / 3600)}:${pad(Math.floor((s % 3600) / 60))}:${pad(s % 60)}`
    : `${Math.floor(s / 60)}:${pad(s % 60)}`;
};

/** Instances take about a third longer or shorter than last time. */
const FORECAST_MARGIN = 1.35;

/** Remaining time from finished durations; a range, because the longest running may last. */
export function eta(
  durations: readonly number[],
  remaining: number,
  slots: number,
  forecast?: number,
): string {
  if (forecast !== undefined && remaining > 0)
    return `${clock(forecast)}-${clock(forecast * FORECAST_MARGIN)}`;
  if (durations.length === 0 || remaining <= 0) return remaining <= 0 ? '0:00' : '?';
  const sorted = [...durations].sort((a, b) => a - b);
  const mean = durations.reduce((a, b) => a + b, 0) / durations.length;
  const p90 = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.9))]!;
  const low = (mean * remaining) / Math.max(1, slots);
  return `${clock(low)}-${clock(low + p90)}`;
}

const reasonsText = (state: State): string =>
  [...state.reasons]
    .sort((a, b) => b[1] - a[1])
    .map(([reason, n]) => `${reason} ${n}`)
    .join(' · ');

const costText = (state: State): string =>
  state.budgetNano === null
    ? formatCost(state.spentNano)
    : `${formatCost(state.spentNano)} of ${formatCost(state.budgetNano)}`;

const clip = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 1))}…`;

/** Ids differ at their ends, so the left is cut, as mini-swe-agent does. */
const fitId = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `…${text.slice(text.length - width + 1)}`;

function overallText(state: State, slots: number): string {
  const graded = state.graded.total > 0 ? ` · resolved ${state.graded.resolved}/${state.graded.total}` : '';
  return `${costText(state)} · ${clock(Date.now() - state.startedAt)} · ETA ${eta(state.durations, state.toDo - state.done, slots, forecastMs(state, slots, Date.now()))}${graded}`;
}

function slotText(slot: SlotState | undefined): string {
  if (!slot) return 'idle';
  const where = `${slot.phase} ${clock(Date.now() - slot.phaseSince)}`;
  return `${fitId(inert(slot.label.instanceId), 32)} step ${String(slot.step).padStart(3)} ${clip(where, 16)} ${formatCost(slot.costNano)}`;
}

const PULL_ROWS = 2;

/** Bars with fixed rows: cli-progress is good at these and only these (reference stack.md 2.7). */
function barProgress(workers: number): Progress {
  const state = newState();
  const shown = Math.min(workers, Math.max(4, (process.stderr.rows ?? 24) - 6 - PULL_ROWS));
  const bars = new MultiBar(
    {
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: false,
      fps: 4,
      forceRedraw: true,
      linewrap: false,
    },
    {} as never,
  );
  const overall = bars.create(1, 0, { text: '' }, { format: '{bar} {value}/{total}  {text}', barsize: 24 });
  const rows = Array.from({ length: shown + 2 + PULL_ROWS }, () =>
    bars.create(1, 0, { text: '' }, { format: '{text}' }),
  );
  const width = () => (process.stderr.columns ?? 100) - 2;
  const set = (bar: SingleBar | undefined, text: string) => bar?.update({ text: clip(text, width()) });
  const draw = () => {
    overall.setTotal(Math.max(1, state.toDo));
    overall.update(Math.min(state.done, state.toDo), { text: overallText(state, workers) });
    set(rows[0], reasonsText(state) || 'no trial has ended yet');
    for (let i = 0; i < shown; i++)
      set(rows[i + 1], `${String(i + 1).padStart(3)} ${slotText(state.slots.get(i + 1))}`);
    const pulls = pullLines(state.pulls, Date.now(), PULL_ROWS);
    for (let i = 0; i < PULL_ROWS; i++) set(rows[shown + 1 + i], inert(pulls[i] ?? ''));
    set(rows[shown + 1 + PULL_ROWS], inert(state.lastNote));
  };
  const timer = setInterval(draw, 250);
  return {
    listener: (event) => apply(state, event),
    stop() {
      clearInterval(timer);
      draw();
      bars.update();
      bars.stop();
    },
  };
}

const HEARTBEAT_MS = 60_000;

function plainProgress(workers: number): Progress {
  const state = newState();
  const summary = () =>
    say(
      `[${clock(Date.now() - state.startedAt)}] ${state.done}/${state.toDo} done · ${state.slots.size} running · ${overallText(state, workers)}${state.reasons.size ? ` · ${reasonsText(state)}` : ''}`,
    );
  const beat = () => {
    summary();
    for (const line of pullLines(state.pulls, Date.now(), PULL_ROWS)) say(`  ${inert(line)}`);
  };
  const timer = setInterval(beat, HEARTBEAT_MS);
  timer.unref();
  return {
    listener: (event) => {
      apply(state, event);
      const line = lineOf(state, event);
      if (line) say(line);
    },
    stop() {
      clearInterval(timer);
      summary();
    },
  };
}

function named({ arms, epochs }: State, trial: TrialLabel): string {
  const arm = arms > 1 ? ` ${inert(trial.arm)}` : '';
  return `${inert(trial.instanceId)}${arm}${epochs > 1 ? ` epoch ${trial.epoch}` : ''}`;
}

function lineOf(state: State, event: RunEvent): string | null {
  const at = `[${clock(Date.now() - state.startedAt)}]`;
  switch (event.type) {
    case 'run_started':
      return `${at} run ${event.run}: ${event.toDo} of ${event.planned} trials to do on ${event.slots} slots`;
    case 'trial_ended': {
      const detail = event.detail && event.exitClass === 'infra' ? ` (${event.detail})` : '';
      const message =
        event.exitClass === 'infra' || event.exitClass === 'config' ? `: ${inert(event.message ?? '')}` : '';
      return `${at} ${named(state, event.trial)} ${event.exitReason}${detail} · ${event.steps} steps · ${formatCost(event.costNano)} · ${clock(event.elapsedMs)} · patch ${event.patchBytes} B${message}`;
    }
    case 'graded':
      return `${at} ${named(state, event.trial)} graded ${event.outcome}`;
    case 'paused':
    case 'resumed':
    case 'breaker':
      return `${at} ${event.type}: ${inert(event.reason)}`;
    case 'budget':
      return `${at} budget: ${event.percent} % spent (${formatCost(event.spentNano)} of ${formatCost(event.budgetNano)})`;
    case 'stopping':
      return `${at} ${event.next}`;
    case 'note':
      return `${at} ${inert(event.text)}`;
    default:
      return null;
  }
}

/** auto: bars on a terminal, lines elsewhere. json: one event a line on stdout, with sequence numbers. */
export const PROGRESS_MODES = ['auto', 'plain', 'json', 'none'] as const;
export type ProgressMode = (typeof PROGRESS_MODES)[number];

function jsonProgress(): Progress {
  let seq = 0;
  return {
    listener: (event) => printData(JSON.stringify({ seq: ++seq, at: new Date().toISOString(), ...event })),
    stop: () => {},
  };
}

export function createProgress(workers: number, mode: ProgressMode): Progress {
  if (mode === 'none') return { listener: () => {}, stop: () => {} };
  if (mode === 'json') return jsonProgress();
  return mode === 'auto' && process.stderr.isTTY ? barProgress(workers) : plainProgress(workers);
}
