/** The events of a run. Listeners are for display and notification; one that throws never breaks the work. */

import type { Redactor } from '../base/text/redact.ts';
import type { ExitClass, ExitReason, Outcome } from '../outcome.ts';

export interface TrialLabel {
  readonly trialId: number;
  readonly instanceId: string;
  readonly arm: string;
  readonly epoch: number;
}

export type RunEvent =
  | {
      type: 'run_started';
      run: string;
      planned: number;
      toDo: number;
      /** Trials that earlier sittings decided. */
      sealed?: number;
      slots: number;
      arms: number;
      epochs: number;
      budgetNano: number | null;
      spentNano: number;
      /** Gradings at a time, and those that an earlier sitting left open; absent where nothing is graded. */
      grading?: { readonly workers: number; readonly open: number };
      /** Verdicts of earlier sittings. */
      graded?: { readonly resolved: number; readonly total: number };
      /** Expected seconds by trial, from earlier runs, in the order of starting; absent without history. */
      expectedS?: readonly (readonly [trialId: number, seconds: number])[];
    }
  | { type: 'trial_started'; trial: TrialLabel; slot: number; attempt: number }
  | { type: 'phase'; trial: TrialLabel; slot: number; phase: string }
  | { type: 'step'; trial: TrialLabel; slot: number; step: number; costNano: number | null }
  | {
      type: 'trial_ended';
      trial: TrialLabel;
      slot: number;
      attempt: number;
      exitReason: ExitReason;
      exitClass: ExitClass;
      detail: string | null;
      message: string | null;
      sealed: boolean;
      steps: number;
      costNano: number | null;
      elapsedMs: number;
      patchBytes: number;
      /** The trial's container is judged, and no patch; else absent. */
      noPatch?: boolean;
      /** The size of the work that was captured and is kept beside an empty prediction; else absent. */
      unusedBytes?: number;
    }
  | {
      type: 'graded';
      trial: TrialLabel;
      outcome: Outcome;
      resolved: boolean | null;
      durationMs: number;
      /** The reason why nothing could be said of the patch; absent where a verdict gives it. */
      message?: string;
    }
  | { type: 'paused'; reason: string }
  | { type: 'resumed'; reason: string }
  | { type: 'breaker'; reason: string }
  | { type: 'budget'; percent: number; spentNano: number; budgetNano: number }
  | {
      /** Pulls in progress, for displays; repeated when something has changed. */
      type: 'pulls';
      active: readonly {
        image: string;
        downloadedBytes: number;
        totalBytes: number;
      }[];
      waiting: number;
      paused: readonly { reason: string; until: number }[];
    }
  /** An image was pulled. Forecasts of later runs use the time. */
  | { type: 'pulled'; image: string; bytes: number; ms: number }
  /** A person's request to the run while it worked, and the answer. */
  | {
      type: 'control';
      command: string;
      argument: string | null;
      by: string;
      done: boolean;
      answer: string;
    }
  | { type: 'stopping'; stage: number; reason: string; next: string }
  | { type: 'note'; text: string }
  | {
      /** The verdict of a night (`run --baseline`), after its re-measurements; one for each arm. */
      type: 'gate';
      run: string;
      arm: string;
      baseline: string;
      verdict: string;
      passed: boolean;
      exitCode: number;
      line: string;
      broken: readonly string[];
      drop: number | null;
      p: number | null;
      /** Comparable nights that are newer than the baseline and none: their gate failed, or they did not end as a whole. */
      passedOver: readonly { readonly run: string; readonly why: string }[];
    }
  | { type: 'run_ended'; run: string; status: string; counts: Record<string, number>; spentNano: number };

export type RunListener = (event: RunEvent) => void;

export interface RunEvents {
  emit(event: RunEvent): void;
  on(listener: RunListener): void;
}

/** Removes secrets from every text of an event. */
export const cleanedBy =
  (redactor: Redactor) =>
  (event: RunEvent): RunEvent => {
    const json = JSON.stringify(event);
    const clean = redactor.json(json);
    return clean === json ? event : (JSON.parse(clean) as RunEvent);
  };

/** `clean` removes secrets before listeners get an event, because they write to the store, the terminal and commands. */
export function createEvents(
  onListenerError: (error: unknown) => void = () => {},
  clean: (event: RunEvent) => RunEvent = (event) => event,
): RunEvents {
  const listeners: RunListener[] = [];
  return {
    on: (listener) => void listeners.push(listener),
    emit: (said) => {
      const event = clean(said);
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (error) {
          onListenerError(error);
        }
      }
    },
  };
}
