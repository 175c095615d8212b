/** The bars of a terminal: fixed rows, which cli-progress is good at. Draws on stderr. */
import { MultiBar, Presets, type SingleBar } from 'cli-progress';
import { inert } from '../../base/text/inert.ts';
import { exitClassOf } from '../../outcome.ts';
import { paintErr, styleOfClass } from './colour.ts';
import { forTerminal, say } from './context.ts';
import {
  apply,
  clip,
  doneText,
  newState,
  overallText,
  type Progress,
  reasonsText,
  type State,
} from './progressState.ts';
import { pullLines } from './pullText.ts';
import { slotRows } from './slotRows.ts';
import { clock } from './timeLeft.ts';

/** cli-progress writes over what stands there. */
const CLEAR_REST = '\u001b[0K';

/** Rows are cut at the edge of the terminal; what stands above them is not. */
const WRAP_ON = '\u001b[?7h';
const WRAP_OFF = '\u001b[?7l';

/** A sentence takes two rows of 80 columns. */
const NOTE_ROWS = 2;
export const PULL_ROWS = 2;

/** Words of a text in rows of a width; what does not fit the last row is cut. */
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
  const state = newState();
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
  const overall = bars.create(1, 0, { text: '' }, { format: '{bar} {value}/{total}  {text}', barsize: 24 });
  const row = () => bars.create(1, 0, { text: '' }, { format: '{text}' });
  const reasons = row();
  const slots = Array.from({ length: shown }, row);
  const notes = Array.from({ length: NOTE_ROWS }, row);
  const pulls = Array.from({ length: PULL_ROWS }, row);
  const width = () => (process.stderr.columns ?? 100) - 2;
  const set = (bar: SingleBar, text: string, paint = (line: string) => line) =>
    void bar.update({ text: paint(clip(text, width())) });
  const draw = () => {
    const total = state.sealed + state.toDo;
    overall.setTotal(Math.max(1, total));
    overall.update(Math.min(state.sealed + state.done, total), {
      text: overallText(state, state.workers ?? workers),
    });
    set(reasons, reasonsText(state) || 'no trial has ended yet', paintReasons(state));
    const texts = slotRows(state, state.workers ?? workers, shown, width());
    for (const [i, slot] of slots.entries()) set(slot, texts[i] ?? '', paintIdle);
    // A failure stands above the rows, where the next note cannot take its place.
    const note = state.lastNote === state.lastFailure ? '' : state.lastNote;
    const lines = wrap(inert(note), width(), NOTE_ROWS);
    for (const [i, row] of notes.entries()) set(row, lines[i] ?? '');
    const pulling = pullLines(state.pulls, Date.now(), PULL_ROWS);
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
