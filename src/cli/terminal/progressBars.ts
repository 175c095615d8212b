/** The bars of a terminal: fixed rows, which cli-progress is good at. Draws on stderr. */
import { MultiBar, Presets, type SingleBar } from 'cli-progress';
import { inert } from '../../base/text/inert.ts';
import { say } from './context.ts';
import {
  apply,
  clip,
  clock,
  newState,
  overallText,
  type Progress,
  reasonsText,
  slotText,
} from './progressState.ts';
import { pullLines } from './pullText.ts';

/** cli-progress writes over what stands there. */
const CLEAR_REST = '\u001b[0K';

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
  const set = (bar: SingleBar, text: string) => void bar.update({ text: clip(text, width()) });
  const draw = () => {
    overall.setTotal(Math.max(1, state.toDo));
    overall.update(Math.min(state.done, state.toDo), { text: overallText(state, workers) });
    set(reasons, reasonsText(state) || 'no trial has ended yet');
    for (const [i, slot] of slots.entries())
      set(slot, `${String(i + 1).padStart(3)} ${slotText(state.slots.get(i + 1))}`);
    const lines = wrap(inert(state.lastNote), width(), NOTE_ROWS);
    for (const [i, note] of notes.entries()) set(note, lines[i] ?? '');
    const pulling = pullLines(state.pulls, Date.now(), PULL_ROWS);
    for (const [i, pull] of pulls.entries()) set(pull, inert(pulling[i] ?? ''));
  };
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
    say(
      `${state.done}/${state.toDo} done in ${clock(Date.now() - state.startedAt)}${why ? ` · ${why}` : ''}`,
    );
  };
  // Restores the cursor and line wrapping even when a third Ctrl-C exits at once.
  process.once('exit', stop);
  return {
    listener: (event) => apply(state, event),
    // Above the rows, which stay where they are.
    say: (text) => (stopped ? say(text) : bars.log(`${text}${CLEAR_REST}\n`)),
    stop,
  };
}
