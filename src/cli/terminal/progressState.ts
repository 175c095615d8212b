/** The state that a display keeps of a run, how events change it, and the texts made from it. */

import { formatCost } from '../../money.ts';
import { type ExitReason, SEALED_CLASSES } from '../../outcome.ts';
import { budgetIn } from '../../run/control/controlRequest.ts';
import type { RunEvent, RunListener, TrialLabel } from '../../run/events.ts';
import { remainingSeconds } from '../../run/schedule/order.ts';
import type { Pulls } from './pullText.ts';
import { clock, etaWithGradings, type OpenGradings } from './timeLeft.ts';

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

export interface State {
  planned: number;
  toDo: number;
  done: number;
  /** What earlier sittings decided: a run that is resumed goes on where it was. */
  sealed: number;
  startedAt: number;
  spentNano: number;
  budgetNano: number | null;
  reasons: Map<ExitReason, number>;
  graded: { resolved: number; total: number };
  /** Null where nothing is graded. */
  grading: { workers: number; open: number; durations: number[] } | null;
  durations: number[];
  /** With several, lines name the arm or the epoch. */
  arms: number;
  epochs: number;
  /** Expected seconds of trials that have not started, from earlier runs, in order. */
  expectedS: Map<number, number>;
  /** The same for running trials. */
  runningS: Map<number, number>;
  slots: Map<number, SlotState>;
  /** What "ctl RUN workers N" asked for last; null before. */
  workers: number | null;
  /** Lengths of the longest names so far, so that columns stay where they are. */
  widest: { id: number; arm: number };
  pulls: Pulls | undefined;
  /** Nothing new starts until somebody, or the disk, lets it. */
  paused: boolean;
  /** Nothing new starts. */
  stopping: boolean;
  lastNote: string;
  /** How the newest attempt that failed ended; a display tells it at once. */
  lastFailure: string;
}

export const newState = (): State => ({
  planned: 0,
  toDo: 0,
  done: 0,
  sealed: 0,
  startedAt: Date.now(),
  spentNano: 0,
  budgetNano: null,
  reasons: new Map(),
  graded: { resolved: 0, total: 0 },
  grading: null,
  durations: [],
  arms: 1,
  epochs: 1,
  expectedS: new Map(),
  runningS: new Map(),
  slots: new Map(),
  workers: null,
  widest: { id: 0, arm: 0 },
  pulls: undefined,
  paused: false,
  stopping: false,
  lastNote: '',
  lastFailure: '',
});

type Appliers = {
  readonly [Type in RunEvent['type']]?: (state: State, event: Extract<RunEvent, { type: Type }>) => void;
};

const noteReason = (state: State, event: { type: string; reason: string }): void => {
  state.lastNote = `${event.type}: ${event.reason}`;
};

const APPLY: Appliers = {
  run_started(state, event) {
    Object.assign(state, { planned: event.planned, toDo: event.toDo, spentNano: event.spentNano });
    state.budgetNano = event.budgetNano;
    state.sealed = event.sealed ?? 0;
    state.expectedS = new Map(event.expectedS);
    state.arms = event.arms;
    state.epochs = event.epochs;
    state.grading = event.grading ? { ...event.grading, durations: [] } : null;
    if (event.graded) state.graded = { ...event.graded };
  },
  trial_started(state, event) {
    const now = Date.now();
    const label = event.trial;
    state.slots.set(event.slot, {
      label,
      step: 0,
      phase: 'start',
      phaseSince: now,
      startedAt: now,
      costNano: 0,
    });
    const { widest } = state;
    widest.id = Math.max(widest.id, label.instanceId.length);
    widest.arm = Math.max(widest.arm, label.arm.length);
    moveEstimate(state.expectedS, state.runningS, event.trial.trialId);
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
    if (event.unusedBytes)
      state.lastNote = `${event.trial.instanceId} submitted nothing, and its work tree has changes of ${event.unusedBytes} B`;
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

/** With what the running ones have spent so far. */
function costText(state: State): string {
  const running = [...state.slots.values()].reduce((sum, slot) => sum + (slot.costNano ?? 0), 0);
  const spent = formatCost(state.spentNano + running);
  return state.budgetNano === null ? spent : `${spent} of ${formatCost(state.budgetNano)}`;
}

export const clip = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 1))}…`;

const NOTHING_TO_GRADE: OpenGradings = { workers: 1, open: 0, durations: [0] };

const openText = (grading: State['grading']): string =>
  grading && grading.open > 0 ? ` · ${grading.open} to grade` : '';

/** No remaining time of a run that is stopping, whose other trials will not run, or that waits for nobody knows how long. */
const leftText = ({ stopping, paused }: State, left: string): string =>
  stopping ? '' : paused ? ' · paused' : ` · ETA ${left}`;

/** "graded infra: why". A message begins with the instance and may end with output of tests: its first line without the instance is enough. */
export function gradedText({ trial, outcome, message }: Extract<RunEvent, { type: 'graded' }>): string {
  if (!message) return `graded ${outcome}`;
  const begin = `${trial.instanceId}: `;
  const why = message.startsWith(begin) ? message.slice(begin.length) : message;
  return `graded ${outcome}: ${why.split('\n')[0]!.slice(0, 300)}`;
}

export function overallText(state: State, slots: number): string {
  const graded = state.graded.total > 0 ? ` · resolved ${state.graded.resolved}/${state.graded.total}` : '';
  const forecast = forecastMs(state, slots, Date.now());
  const trials = { durations: state.durations, remaining: state.toDo - state.done, slots, forecast };
  const left = etaWithGradings(trials, state.grading ?? NOTHING_TO_GRADE);
  return `${costText(state)} · ${clock(Date.now() - state.startedAt)}${leftText(state, left)}${graded}${openText(state.grading)}`;
}
