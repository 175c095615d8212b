/**
 * The live state of a run as one document: the process that works keeps it from its events, others read it from the record. The bars of a terminal,
 * `swebatch ctl`, `ls --watch` and the page draw it.
 */
import { dirname } from 'node:path';
import { readLiveState } from '../store/live/controls.ts';
import { lastHour, liveCounts, sealedDurations, slotsAtWork } from '../store/live/liveQueries.ts';
import type { Store } from '../store/open.ts';
import { gradingDurations } from '../store/records/evaluations.ts';
import { type RunRow, spentNano, storedConfig } from '../store/records/runs.ts';
import { remainingSeconds } from './schedule/order.ts';
import { statusOf } from './standing.ts';

/** A trial at work. Times are milliseconds since 1970. */
export interface LiveSlot {
  /** Null in a record of another program. */
  readonly slot: number | null;
  readonly trial: number;
  readonly instanceId: string;
  readonly arm: string;
  readonly epoch: number;
  steps: number;
  phase: string | null;
  phaseSince: number | null;
  readonly startedAt: number;
  costNano: number | null;
}

/** Gradings at a time, those that are open, and how long others took. */
export interface OpenGradings {
  readonly workers: number;
  open: number;
  readonly durations: number[];
}

export interface LiveRun {
  /** Work that is left has no known time in a run that is paused, and no meaning in one that stops or has ended. */
  standing: 'working' | 'paused' | 'stopping' | 'ended';
  planned: number;
  decided: number;
  startedAt: number;
  /** Null while it works. */
  readonly endedAt: number | null;
  /** The money spent, with that of running trials. */
  spentNano: number;
  readonly unknownCalls: number;
  budgetNano: number | null;
  graded: { resolved: number; total: number };
  /** Null where nothing is graded. */
  grading: OpenGradings | null;
  readonly durations: number[];
  /** Expected seconds of undecided trials by trial, in the order of starting; empty without earlier runs. */
  expectedS: Map<number, number>;
  /** Slots that the run may use. */
  workers: number;
  slots: LiveSlot[];
  /** With several, slots name their arm or epoch. */
  arms: number;
  epochs: number;
  /** Lengths of the longest names so far, so that columns stay where they are. */
  readonly widest: { id: number; arm: number };
}

/** A slot as the record has it. */
export interface RecordedSlot extends LiveSlot {
  readonly attempt: number;
}

export interface RecordedLiveRun extends LiveRun {
  readonly slots: RecordedSlot[];
  /** Attempts and dollars an hour, in the last hour of work; null before any attempt ended. */
  readonly pace: { readonly perHour: number; readonly nanoPerHour: number } | null;
}

export function readLiveRun(store: Store, run: RunRow): RecordedLiveRun {
  const status = statusOf(dirname(store.name), run);
  const isLive = status === 'running' || status === 'paused';
  const slots = (isLive ? slotsAtWork(store, run.id) : []).map((row): RecordedSlot => {
    const startedAt = Date.parse(row.started_at);
    return {
      slot: row.slot,
      trial: row.trial,
      attempt: row.attempt,
      instanceId: row.instance_id,
      arm: row.arm,
      epoch: row.epoch,
      steps: row.steps,
      phase: row.phase,
      phaseSince: row.phase_offset_ms === null ? null : startedAt + row.phase_offset_ms,
      startedAt,
      costNano: row.cost_nano,
    };
  });
  const counts = liveCounts(store, run.id);
  const money = spentNano(store, run.id);
  const { enabled, workers } = storedConfig(run).grading ?? {};
  const hour = lastHour(store, run);
  return {
    standing: status === 'running' ? 'working' : status === 'paused' ? 'paused' : 'ended',
    planned: counts.planned,
    decided: counts.sealed,
    startedAt: Date.parse(run.created_at),
    // Nobody knows when a process that is gone ended.
    endedAt:
      run.status === 'running' || run.status === 'paused'
        ? null
        : Date.parse(run.finished_at ?? run.created_at),
    spentNano: money.nano,
    unknownCalls: money.unknownCalls,
    budgetNano: run.budget_nano,
    graded: { resolved: counts.resolved, total: counts.graded },
    grading:
      enabled === true
        ? {
            workers: typeof workers === 'number' ? workers : 1,
            open: counts.toGrade,
            durations: gradingDurations(store, run.id),
          }
        : null,
    durations: sealedDurations(store, run.id),
    expectedS: new Map(),
    workers: readLiveState(store, run.id)?.slots ?? slots.length,
    slots,
    arms: counts.arms,
    epochs: counts.epochs,
    widest: { id: counts.idWidth, arm: counts.armWidth },
    pace: hour && {
      perHour: (hour.ended * 3_600_000) / hour.ms,
      nanoPerHour: (hour.nano * 3_600_000) / hour.ms,
    },
  };
}

export interface MsRange {
  readonly low: number;
  readonly high: number;
}

/** Milliseconds until trials and gradings are done, as a range; null where nothing is known. */
export function remainingMs(live: LiveRun, now: number): MsRange | null {
  const { durations, workers, grading } = live;
  const trials = live.planned - live.decided;
  const ofTrials = leftOf(durations, trials, workers, forecastMs(live, now));
  const ofGradings = grading
    ? leftOf(grading.durations, grading.open + trials, grading.workers)
    : { low: 0, high: 0, mean: 0 };
  if (!ofTrials || (trials === 0 && !ofGradings)) return null;
  if (!ofGradings) return ofTrials;
  if (trials === 0) return ofGradings;
  // The last grading begins when the last trial has ended, and those that wait go on beside.
  return {
    low: Math.max(ofTrials.low + ofGradings.mean, ofGradings.low),
    high: Math.max(ofTrials.high + ofGradings.high - ofGradings.low, ofGradings.high),
  };
}

/** Instances take about a third longer or shorter than last time. */
const FORECAST_MARGIN = 1.35;

/** The range for one kind of work, undefined where nothing is known; a range, because the longest running may last. */
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

/** With history: every slot takes the next trial when it is free, so the end is never before the longest that runs. */
function forecastMs({ expectedS, slots, workers }: LiveRun, now: number): number | undefined {
  if (expectedS.size === 0) return undefined;
  const atWork = new Set(slots.map(({ trial }) => trial));
  const running = slots.map(({ trial, startedAt }) => ({
    elapsed: (now - startedAt) / 1000,
    estimate: expectedS.get(trial) ?? 0,
  }));
  const waiting = [...expectedS].flatMap(([trial, seconds]) => (atWork.has(trial) ? [] : [seconds]));
  return 1000 * remainingSeconds(running, waiting, workers);
}
