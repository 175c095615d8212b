/** A live run kept from the events of this process, and the lines that are drawn of a live run: spend, time left, slots, pulls. */

import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import { COUNTED_CLASSES, type ExitReason } from '../../outcome.ts';
import { budgetIn } from '../../run/control/controlRequest.ts';
import type { RunEvent, RunListener } from '../../run/events.ts';
import { type LiveRun, type LiveSlot, remainingMs } from '../../run/liveRun.ts';
import { spentText } from './table.ts';

export interface Progress {
  readonly listener: RunListener;
  /** A line for the person that does not disturb what is drawn. */
  say(text: string): void;
  stop(): void;
}

/** Work that no prediction has. */
export const unusedText = ({
  exitReason,
  unusedBytes,
}: Pick<Extract<RunEvent, { type: 'trial_ended' }>, 'exitReason' | 'unusedBytes'>): string =>
  exitReason === 'submitted'
    ? `it submitted nothing; its work tree has changes of ${unusedBytes} B`
    : `${unusedBytes} B of its work were captured, not submitted`;

export interface State extends LiveRun {
  /** The spend of attempts that have ended. */
  endedNano: number;
  readonly reasons: Map<ExitReason, number>;
  pulls: Pulls | undefined;
  lastNote: string;
  /** The end of the newest attempt that failed; a display tells it at once. */
  lastFailure: string;
}

export const newState = (workers = 1): State => ({
  standing: 'working',
  planned: 0,
  decided: 0,
  startedAt: Date.now(),
  endedAt: null,
  spentNano: 0,
  endedNano: 0,
  unknownCalls: 0,
  budgetNano: null,
  graded: { resolved: 0, total: 0 },
  grading: null,
  durations: [],
  expectedS: new Map(),
  workers,
  slots: [],
  arms: 1,
  epochs: 1,
  widest: { id: 0, arm: 0 },
  reasons: new Map(),
  pulls: undefined,
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
    const { toDo, sealed = 0, spentNano, budgetNano, arms, epochs, grading, graded } = event;
    // A run that is resumed goes on where earlier sittings left it.
    Object.assign(state, { planned: sealed + toDo, decided: sealed, budgetNano, arms, epochs });
    state.endedNano = spentNano;
    state.expectedS = new Map(event.expectedS);
    state.grading = grading ? { ...grading, durations: [] } : null;
    if (graded) state.graded = { ...graded };
  },
  trial_started(state, { slot, trial }) {
    const { trialId, ...label } = trial;
    const now = Date.now();
    const begin = { steps: 0, phase: 'start', phaseSince: now, startedAt: now, costNano: 0 };
    state.slots.push({ slot, trial: trialId, ...label, ...begin });
    state.widest.id = Math.max(state.widest.id, label.instanceId.length);
    state.widest.arm = Math.max(state.widest.arm, label.arm.length);
  },
  phase(state, { slot, phase }) {
    const one = state.slots.find((other) => other.slot === slot);
    if (one) Object.assign(one, { phase, phaseSince: Date.now() });
  },
  step(state, { slot, step, costNano }) {
    const one = state.slots.find((other) => other.slot === slot);
    if (one) Object.assign(one, { steps: step, costNano });
  },
  trial_ended(state, event) {
    state.slots = state.slots.filter(({ slot }) => slot !== event.slot);
    if (event.sealed) state.expectedS.delete(event.trial.trialId);
    state.reasons.set(event.exitReason, (state.reasons.get(event.exitReason) ?? 0) + 1);
    state.durations.push(event.elapsedMs);
    state.endedNano += event.costNano ?? 0;
    if (event.sealed) state.decided += 1;
    if (event.sealed && COUNTED_CLASSES.has(event.exitClass) && state.grading) state.grading.open += 1;
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
    // A grading that did not run says nothing about how long the others take.
    if (event.durationMs > 0) state.grading.durations.push(event.durationMs);
  },
  paused(state, event) {
    if (state.standing === 'working') state.standing = 'paused';
    noteReason(state, event);
  },
  resumed(state, event) {
    if (state.standing === 'paused') state.standing = 'working';
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
    state.standing = 'stopping';
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
  state.spentNano = state.slots.reduce((sum, { costNano }) => sum + (costNano ?? 0), state.endedNano);
}

/** Decided trials of all: "4/14". */
export const doneText = ({ decided, planned }: LiveRun): string => `${decided}/${planned}`;

export const reasonsText = (state: State): string =>
  [...state.reasons]
    .sort((a, b) => b[1] - a[1])
    .map(([reason, n]) => `${reason} ${n}`)
    .join(' · ');

export const clip = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 1))}…`;

/** The parts of a line that fit, each whole: half a word says something else. */
export function fitParts(text: string, width: number): string {
  const parts = text.split(' · ');
  while (parts.length > 1 && parts.join(' · ').length > width) parts.pop();
  return clip(parts.join(' · '), width);
}

/** The length of the bar: a trial is half done when its prediction waits for its grading. */
export const workDone = ({ decided, grading }: LiveRun): number =>
  2 * decided - Math.max(0, grading?.open ?? 0);

/** "graded infra: why". A message begins with the instance and may end with output of tests: its first line without the instance is enough. */
export function gradedText({ trial, outcome, message }: Extract<RunEvent, { type: 'graded' }>): string {
  if (!message) return `graded ${outcome}`;
  const begin = `${trial.instanceId}: `;
  const why = message.startsWith(begin) ? message.slice(begin.length) : message;
  return `graded ${outcome}: ${why.split('\n')[0]!.slice(0, 300)}`;
}

/** "$1.25 of $5.00 · 0:10 · ETA 1:30-3:00 · resolved 1/2 · 1 to grade" */
export function overallText(live: LiveRun, now: number, perHour?: number): string {
  const { standing, graded, grading, budgetNano } = live;
  const spent = spentText({ nano: live.spentNano, unknownCalls: live.unknownCalls });
  return [
    budgetNano === null ? spent : `${spent} of ${formatCost(budgetNano)}`,
    ...(perHour === undefined ? [] : [`${formatCost(Math.round(perHour))}/h`]),
    clock(Math.max(1, (live.endedAt ?? now) - live.startedAt)),
    ...(standing === 'working' ? [`ETA ${etaText(live, now)}`] : standing === 'paused' ? ['paused'] : []),
    ...(graded.total > 0 ? [`resolved ${graded.resolved}/${graded.total}`] : []),
    ...(grading && grading.open > 0 ? [`${grading.open} to grade`] : []),
  ].join(' · ');
}

export function etaText(live: LiveRun, now: number): string {
  const left = remainingMs(live, now);
  if (!left) return '?';
  return left.high === 0 ? '0:00' : `${clock(left.low)}-${clock(left.high)}`;
}

/** A time as a person reads it. */
export const clock = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000));
  const pad = (n: number) => String(n).padStart(2, '0');
  return s >= 3600
    ? `${Math.floor(s / 3600)}:${pad(Math.floor((s % 3600) / 60))}:${pad(s % 60)}`
    : `${Math.floor(s / 60)}:${pad(s % 60)}`;
};

/** Widths of what names a trial; 0 leaves it out. */
interface Names {
  readonly id: number;
  readonly arm: number;
  readonly epoch: number;
}

const ID = 32;
const PLAIN: Names = { id: ID, arm: 0, epoch: 0 };
/** Number, step, phase and cost of a slot. */
const BESIDE = 4 + 10 + 17 + 8;
const SHORTEST = 12;

/** Ids differ at their ends, so the left is cut, as mini-swe-agent does. */
const fitId = (text: string, width: number): string =>
  text.length <= width ? text.padEnd(width) : `…${text.slice(text.length - width + 1)}`;

/** The id takes what the terminal has left. */
function namesIn({ arms, epochs, widest }: LiveRun, width: number): Names {
  const room = Math.max(SHORTEST, width - BESIDE);
  const epoch = epochs > 1 ? String(epochs).length + 4 : 0;
  const arm = arms > 1 ? Math.min(widest.arm, Math.floor(room / 3)) + 1 : 0;
  return { id: Math.max(SHORTEST, Math.min(room - arm - epoch, Math.max(ID, widest.id))), arm, epoch };
}

function slotText(slot: LiveSlot | undefined, now: number, names: Names = PLAIN): string {
  if (!slot) return 'idle';
  const arm = names.arm > 0 ? ` ${clip(inert(slot.arm), names.arm - 1)}` : '';
  const epoch = names.epoch > 0 ? ` ep ${slot.epoch}`.padEnd(names.epoch) : '';
  const where = `${slot.phase ?? '-'} ${clock(now - (slot.phaseSince ?? now))}`;
  return `${fitId(inert(slot.instanceId), names.id)}${arm}${epoch} step ${String(slot.steps).padStart(3)} ${clip(where, 16)} ${formatCost(slot.costNano)}`;
}

/** Up to `rows` lines, those at work and `idle` ones. Where they do not all fit, those at work come first. */
export function slotRows(
  live: LiveRun,
  { now, idle, rows, width }: { now: number; idle: boolean; rows: number; width: number },
): string[] {
  const working = live.slots.toSorted((a, b) => (a.slot ?? 0) - (b.slot ?? 0));
  const taken = new Set(working.map(({ slot }) => slot));
  // After "ctl RUN workers N" a slot with a number above N may still be at work.
  const free = Array.from({ length: idle ? live.workers : 0 }, (_, i) => i + 1)
    .filter((slot) => !taken.has(slot))
    .slice(0, Math.max(0, live.workers - working.length));
  const all = working.length + free.length;
  const room = all > rows ? rows - 1 : all;
  const names = namesIn(live, width);
  const lines = [...working, ...free.map((slot) => ({ slot, isFree: true as const }))]
    .slice(0, room)
    .sort((a, b) => (a.slot ?? 0) - (b.slot ?? 0))
    .map(
      (one) =>
        `${String(one.slot ?? '?').padStart(3)} ${slotText('isFree' in one ? undefined : one, now, names)}`,
    );
  if (room === all) return lines;
  const more = all - room;
  return [
    ...lines,
    idle
      ? `    ${more} more slots, ${Math.max(0, working.length - room)} of them at work`
      : `    ${more} more slots at work`,
  ];
}

export type Pulls = Extract<RunEvent, { type: 'pulls' }>;

const BAR = 16;

/**
 * The pulls of a run: one line each with a bar, and when a registry allows more. At most `most` lines; empty when nothing is pulled and nothing
 * waits.
 */
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
