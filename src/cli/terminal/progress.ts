/**
 * Shows a run while it works: bars on a terminal, one line per finished trial and a heartbeat elsewhere. People's text goes to stderr;
 * stdout is for data. Listens to events only, so nothing here can break a run.
 */

import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import type { RunEvent, TrialLabel } from '../../run/events.ts';
import { inCi, printData, say } from './context.ts';
import { barProgress, PULL_ROWS } from './progressBars.ts';
import {
  apply,
  doneText,
  gradedText,
  newState,
  overallText,
  type Progress,
  reasonsText,
  type State,
} from './progressState.ts';
import { pullLines } from './pullText.ts';
import { clock } from './timeLeft.ts';

const HEARTBEAT_MS = 60_000;

function plainProgress(workers: number): Progress {
  const state = newState();
  const summary = () =>
    say(
      `[${clock(Date.now() - state.startedAt)}] ${doneText(state)} done · ${state.slots.size} running · ${overallText(state, state.workers ?? workers)}${state.reasons.size ? ` · ${reasonsText(state)}` : ''}`,
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
    say,
    stop() {
      clearInterval(timer);
      // A run that could not begin has nothing to sum up.
      if (state.planned > 0) summary();
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
      const unused = event.unusedBytes
        ? ` (it submitted nothing; its work tree has changes of ${event.unusedBytes} B)`
        : '';
      const message =
        event.exitClass === 'infra' || event.exitClass === 'config' ? `: ${inert(event.message ?? '')}` : '';
      return `${at} ${named(state, event.trial)} ${event.exitReason}${detail} · ${event.steps} steps · ${formatCost(event.costNano)} · ${clock(event.elapsedMs)} · patch ${event.patchBytes} B${unused}${message}`;
    }
    case 'graded':
      return `${at} ${named(state, event.trial)} ${inert(gradedText(event))}`;
    case 'paused':
    case 'resumed':
    case 'breaker':
      return `${at} ${event.type}: ${inert(event.reason)}`;
    case 'control':
      return `${at} ${inert(event.by)} asked: ${inert([event.command, event.argument].filter(Boolean).join(' '))}; ${inert(event.answer)}`;
    case 'budget':
      return `${at} budget: ${event.percent} % (${formatCost(event.spentNano)} of ${formatCost(event.budgetNano)} spent)`;
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

/** One stream a process: what comes after the run goes on counting. */
let seq = 0;
export const printEvent = (event: RunEvent): void =>
  printData(JSON.stringify({ seq: ++seq, at: new Date().toISOString(), ...event }));

const jsonProgress = (): Progress => ({ listener: printEvent, say, stop: () => {} });

export function createProgress(workers: number, mode: ProgressMode): Progress {
  if (mode === 'none') return { listener: () => {}, say, stop: () => {} };
  if (mode === 'json') return jsonProgress();
  // A CI gives its steps a terminal now and then, and keeps a log: rows that move would fill it.
  const moves = mode === 'auto' && process.stderr.isTTY && !inCi();
  return moves ? barProgress(workers) : plainProgress(workers);
}
