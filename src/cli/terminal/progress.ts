/**
 * Shows a run while it works: bars on a terminal, one line per finished trial and a heartbeat elsewhere. People's text goes to stderr;
 * stdout is for data. Listens to events only, so nothing here can break a run.
 */

import { MultiBar, Presets, type SingleBar } from 'cli-progress';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import { exitClassOf } from '../../outcome.ts';
import { budgetEnd } from '../../run/control/budget.ts';
import type { RunEvent, TrialLabel } from '../../run/events.ts';
import { forTerminal, inCi, paintErr, printData, say, styleOfClass } from './context.ts';
import {
  apply,
  clip,
  clock,
  doneText,
  fitParts,
  gradedText,
  newState,
  overallText,
  type Progress,
  pullLines,
  reasonsText,
  type State,
  slotRows,
  unusedText,
  workDone,
} from './progressState.ts';

const HEARTBEAT_MS = 60_000;

function plainProgress(workers: number): Progress {
  const state = newState(workers);
  const summary = () =>
    say(
      `[${clock(Date.now() - state.startedAt)}] ${doneText(state)} done · ${state.slots.length} running · ${overallText(state, Date.now())}${state.reasons.size ? ` · ${reasonsText(state)}` : ''}`,
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
      return `${at} run ${event.run}: ${event.toDo} of ${plural(event.planned, 'trial')} to do on ${plural(event.slots, 'slot')}`;
    case 'trial_ended': {
      // The code of a model's error says less than its message, which follows: a 500 is no NETWORK_ERROR to a person.
      const said = event.detail && event.exitClass === 'infra' && !/^[A-Z_]+$/.test(event.detail);
      const detail = said ? ` (${event.detail})` : '';
      const unused = event.unusedBytes ? ` (${unusedText(event)})` : '';
      const patch = event.noPatch ? '' : ` · patch ${event.patchBytes} B${unused}`;
      const message =
        event.exitClass === 'infra' || event.exitClass === 'config' ? `: ${inert(event.message ?? '')}` : '';
      return `${at} ${named(state, event.trial)} ${event.exitReason}${detail} · ${plural(event.steps, 'step')} · ${formatCost(event.costNano)} · ${clock(event.elapsedMs)}${patch}${message}`;
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
      // A run that has no room for its next call has not spent all of it.
      return event.percent === 100
        ? `${at} ${budgetEnd(event.budgetNano, event.spentNano)}`
        : `${at} budget: ${event.percent} % (${formatCost(event.spentNano)} of ${formatCost(event.budgetNano)} spent)`;
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

/** One stream a process: work after the run goes on counting. */
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

/** On fewer columns the words need the room of the bar. */
const NARROW = 90;

/** cli-progress writes over what stands there. */
const CLEAR_REST = '\u001b[0K';

/** Rows are cut at the edge of the terminal; lines above them are not. */
const WRAP_ON = '\u001b[?7h';
const WRAP_OFF = '\u001b[?7l';

/** A sentence takes two rows of 80 columns. */
const NOTE_ROWS = 2;
const PULL_ROWS = 2;

/** Words of a text in rows of a width; words beyond the last row are cut. */
export function wrap(text: string, width: number, rows: number): string[] {
  const lines = [''];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1) as string;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width || lines.length === rows)
      lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return Array.from({ length: rows }, (_, i) => clip(lines[i] ?? '', width));
}

const paintReasons =
  ({ reasons }: State) =>
  (line: string): string =>
    [...reasons.keys()].reduce(
      (text, reason) =>
        text.replace(`${reason} `, () => `${paintErr(styleOfClass(exitClassOf(reason)), reason)} `),
      line,
    );

const paintIdle = (line: string): string => (/^ *\d+ idle/.test(line) ? paintErr('dim', line) : line);

export function barProgress(workers: number): Progress {
  const state = newState(workers);
  const shown = Math.min(workers, Math.max(4, (process.stderr.rows ?? 24) - 4 - NOTE_ROWS - PULL_ROWS));
  const bars = new MultiBar(
    {
      stream: process.stderr,
      hideCursor: true,
      // The last lines say it in words; rows of empty slots are no use.
      clearOnComplete: true,
      fps: 4,
      forceRedraw: true,
      linewrap: false,
    },
    Presets.shades_classic,
  );
  const width = () => (process.stderr.columns || 100) - 2;
  const barsize = width() < NARROW ? 10 : 24;
  const overall = bars.create(1, 0, { text: '', done: '' }, { format: '{bar} {done}  {text}', barsize });
  const row = () => bars.create(1, 0, { text: '' }, { format: '{text}' });
  const reasons = row();
  const slots = Array.from({ length: shown }, row);
  const notes = Array.from({ length: NOTE_ROWS }, row);
  const pulls = Array.from({ length: PULL_ROWS }, row);
  const set = (bar: SingleBar, text: string, paint = (line: string) => line) =>
    void bar.update({ text: paint(clip(text, width())) });
  const draw = () => {
    const now = Date.now();
    const done = doneText(state);
    overall.setTotal(Math.max(1, 2 * state.planned));
    overall.update(Math.min(workDone(state), 2 * state.planned), {
      done,
      text: fitParts(overallText(state, now), width() - barsize - done.length - 3),
    });
    set(
      reasons,
      fitParts(reasonsText(state), width()).trimEnd() || 'no trial has ended yet',
      paintReasons(state),
    );
    const texts = slotRows(state, { now, idle: true, rows: shown, width: width() });
    for (const [i, slot] of slots.entries()) set(slot, texts[i] ?? '', paintIdle);
    // A failure stands above the rows, where the next note cannot take its place.
    const note = state.lastNote === state.lastFailure ? '' : state.lastNote;
    const lines = wrap(inert(note), width(), NOTE_ROWS);
    for (const [i, row] of notes.entries()) set(row, lines[i] ?? '');
    const pulling = pullLines(state.pulls, now, PULL_ROWS);
    for (const [i, pull] of pulls.entries()) set(pull, inert(pulling[i] ?? ''));
  };
  // The rows stay where they are.
  const above = (text: string) =>
    stopped ? say(text) : bars.log(`${WRAP_ON}${text}${CLEAR_REST}${WRAP_OFF}\n`);
  const timer = setInterval(draw, 250);
  let stopped = false;
  const stop = () => {
    if (stopped) return;
    stopped = true;
    process.off('exit', stop);
    clearInterval(timer);
    // Writes what is waiting to be said, which stopping alone would drop.
    bars.update();
    bars.stop();
    const why = reasonsText(state);
    if (state.planned === 0) return;
    say(`${doneText(state)} done in ${clock(Date.now() - state.startedAt)}${why ? ` · ${why}` : ''}`);
  };
  // Restores the cursor and line wrapping even when a third Ctrl-C exits at once.
  process.once('exit', stop);
  return {
    listener: (event) => {
      state.lastFailure = '';
      apply(state, event);
      if (state.lastFailure !== '') above(paintErr('red', forTerminal(inert(state.lastFailure))));
    },
    say: above,
    stop,
  };
}
