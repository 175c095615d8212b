/** The state that a display keeps of a run, how events change it, and the texts made from it: spend, time left, pulls. */

import { formatCost } from '../../money.ts';
import { type ExitReason, SEALED_CLASSES } from '../../outcome.ts';
import { budgetIn } from '../../run/control/controlRequest.ts';
import type { RunEvent, RunListener, TrialLabel } from '../../run/events.ts';
import { remainingSeconds } from '../../run/schedule/order.ts';

export interface Progress {
  readonly listener: RunListener;
  /** A line for the person that does not disturb what is drawn. */
  say(text: string): void;
  stop(): void;
}

export interface SlotState {
  label: TrialLabel;
  step: number;
  phase: string;
  phaseSince: number;
  startedAt: number;
  costNano: number | null;
}

/** Work that no prediction has. */
export const unusedText = ({
  exitReason,
  unusedBytes,
}: Pick<Extract<RunEvent, { type: 'trial_ended' }>, 'exitReason' | 'unusedBytes'>): string =>
  exitReason === 'submitted'
    ? `it submitted nothing; its work tree has changes of ${unusedBytes} B`
    : `${unusedBytes} B of its work were captured, not submitted`;

export type State = ReturnType<typeof newState>;

export const newState = () => ({
  planned: 0,
  toDo: 0,
  done: 0,
  /** What earlier sittings decided: a run that is resumed goes on where it was. */
  sealed: 0,
  startedAt: Date.now(),
  spentNano: 0,
  budgetNano: null as number | null,
  reasons: new Map<ExitReason, number>(),
  graded: { resolved: 0, total: 0 },
  /** Null where nothing is graded. */
  grading: null as { workers: number; open: number; durations: number[] } | null,
  durations: [] as number[],
  /** With several, lines name the arm or the epoch. */
  arms: 1,
  epochs: 1,
  /** Expected seconds of trials that have not started, from earlier runs, in order. */
  expectedS: new Map<number, number>(),
  /** The same for running trials. */
  runningS: new Map<number, number>(),
  slots: new Map<number, SlotState>(),
  /** What "ctl RUN workers N" asked for last; null before. */
  workers: null as number | null,
  /** Lengths of the longest names so far, so that columns stay where they are. */
  widest: { id: 0, arm: 0 },
  pulls: undefined as Pulls | undefined,
  /** Nothing new starts until somebody, or the disk, lets it. */
  paused: false,
  /** Nothing new starts. */
  stopping: false,
  lastNote: '',
  /** How the newest attempt that failed ended; a display tells it at once. */
  lastFailure: '',
});

type Appliers = {
  readonly [Type in RunEvent['type']]?: (state: State, event: Extract<RunEvent, { type: Type }>) => void;
};

const noteReason = (state: State, event: { type: string; reason: string }): void => {
  state.lastNote = `${event.type}: ${event.reason}`;
};

const APPLY: Appliers = {
  run_started(
    state,
    { planned, toDo, spentNano, budgetNano, sealed, expectedS, arms, epochs, grading, graded },
  ) {
    Object.assign(state, { planned, toDo, spentNano, budgetNano, sealed: sealed ?? 0, arms, epochs });
    state.expectedS = new Map(expectedS);
    state.grading = grading ? { ...grading, durations: [] } : null;
    if (graded) state.graded = { ...graded };
  },
  trial_started(state, { slot, trial: label }) {
    const now = Date.now();
    state.slots.set(slot, { label, step: 0, phase: 'start', phaseSince: now, startedAt: now, costNano: 0 });
    state.widest.id = Math.max(state.widest.id, label.instanceId.length);
    state.widest.arm = Math.max(state.widest.arm, label.arm.length);
    moveEstimate(state.expectedS, state.runningS, label.trialId);
  },
  phase(state, event) {
    const slot = state.slots.get(event.slot);
    if (slot) Object.assign(slot, { phase: event.phase, phaseSince: Date.now() });
  },
  step(state, event) {
    const slot = state.slots.get(event.slot);
    if (slot) Object.assign(slot, { step: event.step, costNano: event.costNano });
  },
  trial_ended(state, event) {
    state.slots.delete(event.slot);
    // A trial that will run again is waiting again.
    if (event.sealed) state.runningS.delete(event.trial.trialId);
    else moveEstimate(state.runningS, state.expectedS, event.trial.trialId);
    state.reasons.set(event.exitReason, (state.reasons.get(event.exitReason) ?? 0) + 1);
    state.durations.push(event.elapsedMs);
    state.spentNano += event.costNano ?? 0;
    if (event.sealed) state.done += 1;
    if (event.sealed && SEALED_CLASSES.has(event.exitClass) && state.grading) state.grading.open += 1;
    if (event.unusedBytes) state.lastNote = `${event.trial.instanceId}: ${unusedText(event)}`;
    if (event.message && (event.exitClass === 'infra' || event.exitClass === 'config'))
      state.lastNote = state.lastFailure = `${event.trial.instanceId} ${event.exitReason}: ${event.message}`;
  },
  graded(state, event) {
    state.graded.total += 1;
    if (event.message) state.lastNote = `${event.trial.instanceId} ${gradedText(event)}`;
    if (event.resolved) state.graded.resolved += 1;
    if (!state.grading) return;
    state.grading.open -= 1;
    // What was not run says nothing about how long the others take.
    if (event.durationMs > 0) state.grading.durations.push(event.durationMs);
  },
  paused(state, event) {
    state.paused = true;
    noteReason(state, event);
  },
  resumed(state, event) {
    state.paused = false;
    noteReason(state, event);
  },
  breaker: noteReason,
  control(state, event) {
    state.lastNote = `${event.by} asked: ${event.command}; ${event.answer}`;
    if (!event.done) return;
    if (event.command === 'budget') state.budgetNano = budgetIn(event.argument);
    if (event.command === 'workers') state.workers = Number(event.argument);
  },
  budget(state, event) {
    state.lastNote = `${event.percent} % of the budget spent`;
  },
  stopping(state, event) {
    state.stopping = true;
    state.lastNote = event.next;
  },
  note(state, event) {
    state.lastNote = event.text;
  },
  pulls(state, event) {
    state.pulls = event;
  },
};

export function apply(state: State, event: RunEvent): void {
  const one = APPLY[event.type] as ((state: State, event: RunEvent) => void) | undefined;
  one?.(state, event);
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

/** Decided trials of all: "4/14". */
export const doneText = ({ sealed, done, toDo }: State): string => `${sealed + done}/${sealed + toDo}`;

export const reasonsText = (state: State): string =>
  [...state.reasons]
    .sort((a, b) => b[1] - a[1])
    .map(([reason, n]) => `${reason} ${n}`)
    .join(' · ');

export const clip = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 1))}…`;

/** As many parts of a line as fit, each whole: half a word says something else. */
export function fitParts(text: string, width: number): string {
  const parts = text.split(' · ');
  while (parts.length > 1 && parts.join(' · ').length > width) parts.pop();
  return clip(parts.join(' · '), width);
}

/** Of a bar: a trial is half done when its prediction waits for its grading. */
export const workDone = ({ sealed, done, grading }: State): number =>
  2 * (sealed + done) - Math.max(0, grading?.open ?? 0);

const NOTHING_TO_GRADE: OpenGradings = { workers: 1, open: 0, durations: [0] };

/** "graded infra: why". A message begins with the instance and may end with output of tests: its first line without the instance is enough. */
export function gradedText({ trial, outcome, message }: Extract<RunEvent, { type: 'graded' }>): string {
  if (!message) return `graded ${outcome}`;
  const begin = `${trial.instanceId}: `;
  const why = message.startsWith(begin) ? message.slice(begin.length) : message;
  return `graded ${outcome}: ${why.split('\n')[0]!.slice(0, 300)}`;
}

export function overallText(state: State, slots: number): string {
  const { graded, grading, budgetNano, stopping, paused, durations, startedAt } = state;
  // With what the running ones have spent so far.
  const running = [...state.slots.values()].reduce((sum, slot) => sum + (slot.costNano ?? 0), 0);
  const spent = formatCost(state.spentNano + running);
  const trials = { durations, remaining: state.toDo - state.done, slots };
  const forecast = forecastMs(state, slots, Date.now());
  // No remaining time of a run that is stopping, whose other trials will not run, or that waits for nobody knows how long.
  const left = stopping
    ? ''
    : paused
      ? ' · paused'
      : ` · ETA ${etaWithGradings({ ...trials, forecast }, grading ?? NOTHING_TO_GRADE)}`;
  return [
    budgetNano === null ? spent : `${spent} of ${formatCost(budgetNano)}`,
    ` · ${clock(Date.now() - startedAt)}${left}`,
    graded.total > 0 ? ` · resolved ${graded.resolved}/${graded.total}` : '',
    grading && grading.open > 0 ? ` · ${grading.open} to grade` : '',
  ].join('');
}

/** A time as a person reads it. */
export const clock = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000));
  const pad = (n: number) => String(n).padStart(2, '0');
  return s >= 3600
    ? `${Math.floor(s / 3600)}:${pad(Math.floor((s % 3600) / 60))}:${pad(s % 60)}`
    : `${Math.floor(s / 60)}:${pad(s % 60)}`;
};

/** Instances take about a third longer or shorter than last time. */
const FORECAST_MARGIN = 1.35;

export interface OpenGradings {
  readonly workers: number;
  readonly open: number;
  readonly durations: readonly number[];
}

/** What is left of one kind of work; undefined where nothing is known; a range, because the longest running may last. */
function leftOf(durations: readonly number[], remaining: number, slots: number, forecast?: number) {
  if (remaining <= 0) return { low: 0, high: 0, mean: 0 };
  if (forecast !== undefined) return { low: forecast, high: forecast * FORECAST_MARGIN, mean: 0 };
  if (durations.length === 0) return undefined;
  const sorted = durations.toSorted((a, b) => a - b);
  const mean = durations.reduce((a, b) => a + b, 0) / durations.length;
  const p90 = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.9))]!;
  const low = (mean * remaining) / Math.max(1, slots);
  return { low, high: low + p90, mean };
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
  const range = (low: number, high: number) => (high === 0 ? '0:00' : `${clock(low)}-${clock(high)}`);
  const ofTrials = leftOf(trials.durations, trials.remaining, trials.slots, trials.forecast);
  const ofGradings = leftOf(durations, open + trials.remaining, workers);
  if (!ofTrials || (trials.remaining === 0 && !ofGradings)) return '?';
  if (!ofGradings) return range(ofTrials.low, ofTrials.high);
  if (trials.remaining === 0) return range(ofGradings.low, ofGradings.high);
  return range(
    Math.max(ofTrials.low + ofGradings.mean, ofGradings.low),
    Math.max(ofTrials.high + ofGradings.high - ofGradings.low, ofGradings.high),
  );
}

export type Pulls = Extract<RunEvent, { type: 'pulls' }>;

const BAR = 16;

/** The pulls of a run: one line each with a bar, and when a registry allows more. At most `most` lines; empty when nothing is pulled and nothing waits. */
export function pullLines(pulls: Pulls | undefined, now: number, most: number): string[] {
  if (!pulls) return [];
  const paused = pulls.paused.map(({ reason, until }) => {
    const why =
      reason === 'rate_limited' ? 'the registry refuses more' : 'the budget of the window is used up';
    const time = new Date(until).toISOString().slice(11, 19);
    return `pulls pause, ${why}: until ${time}Z, in ${inWords(until - now)}`;
  });
  const mb = (bytes: number) => (bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0);
  const active = pulls.active.map(({ image, downloadedBytes, totalBytes }) => {
    const full = totalBytes > 0 ? Math.min(BAR, Math.floor((BAR * downloadedBytes) / totalBytes)) : 0;
    const size = totalBytes > 0 ? `${mb(downloadedBytes)} of ${mb(totalBytes)} MB` : 'asking';
    // Names differ at their ends; the registry matters least.
    const name = image.split('/').slice(-2).join('/');
    return `pull ${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${size} ${name}`;
  });
  const lines = [...paused, ...active];
  if (lines.length === 0) return pulls.waiting > 0 ? [`pulls: ${pulls.waiting} waiting`] : [];
  const shown = lines.slice(0, most);
  const more = lines.length - shown.length;
  shown[shown.length - 1] +=
    `${more > 0 ? ` · ${more} more` : ''}${pulls.waiting > 0 ? ` · ${pulls.waiting} waiting` : ''}`;
  return shown;
}

/** "4 min 12 s" */
function inWords(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s} s`;
}
