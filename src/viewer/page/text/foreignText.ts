/** Text that others wrote: colours are kept, everything that moves, hides or reorders is shown, nothing is ever markup. */
import Anser from 'anser';
import { settleLines, showUnseen, stripEscapes } from '../../../base/text/inert.ts';

/** One line or cell of foreign text. */
export const plain = (text: string): string => showUnseen(stripEscapes(text));

interface Span {
  text: string;
  className: string;
}

const COLOURS = { use_classes: true, remove_empty: true };
/** Nobody reads a text with more changes of colour; the rest of it is shown without. */
const MOST_CHANGES = 20_000;
/** Changes that are read together. */
const PART = 64;

/** Where at most `changes` sequences behind `from` are over. */
function endOfPart(text: string, from: number, changes: number): number {
  let at = text.indexOf('\u001b', from);
  for (let i = 0; i < changes && at >= 0; i++) at = text.indexOf('\u001b', at + 1);
  return at < 0 ? text.length : at;
}

/** Only the named colours, whether bright or not, and weights become classes; anything else falls back to plain text. */
export function ansiSpans(text: string): Span[] {
  const settled = settleLines(text);
  // Not all sequences set colours, so more are looked at than are shown.
  const cut = endOfPart(settled, 0, 2 * MOST_CHANGES);
  const coloured = stripEscapes(settled.slice(0, cut), { keepColours: true });
  const clean = showUnseen(coloured + stripEscapes(settled.slice(cut)), { keepEscape: true });
  const spans: Span[] = [];
  const anser = new Anser() as Anser & { decorations?: string[] };
  let at = 0;
  for (let changes = 0; at < clean.length && changes < MOST_CHANGES; changes += PART) {
    const end = endOfPart(clean, at, PART);
    spans.push(...anser.ansiToJson(clean.slice(at, end), COLOURS).map(spanOf));
    // Anser notes "bold" once for each time it is told, and gives all of them to every span.
    if (anser.decorations) anser.decorations = [...new Set(anser.decorations)];
    at = end;
  }
  if (at < clean.length) spans.push({ text: stripEscapes(clean.slice(at)), className: '' });
  return spans.length > 0 ? spans : [{ text: '', className: '' }];
}

const spanOf = (part: ReturnType<Anser['ansiToJson']>[number]): Span => ({
  text: part.content,
  className: [part.fg, part.bg && `${part.bg}-bg`, ...new Set(part.decorations.map((name) => `ansi-${name}`))]
    .filter((name) => /^ansi-[a-z-]+$/.test(name ?? ''))
    .join(' ')
    .replaceAll('bright-', ''),
});

/** How often a text holds a word. */
export function countIn(text: string, word: string): number {
  if (word === '') return 0;
  let n = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) n += 1;
  return n;
}

const BEGINS = '<output>';
const ENDS = '</output>';
/** The longest text before the output: the exit code. */
const AT_MOST_BEFORE = 60;

/** The output inside of an observation of mini-swe-agent, without what is wrapped around it; undefined where it has another form. */
export function outputIn(content: string): string | undefined {
  const start = content.indexOf(BEGINS);
  if (!content.startsWith('<returncode>') || start < 0 || start > AT_MOST_BEFORE) return undefined;
  const end = content.lastIndexOf(ENDS);
  if (end < start || content.slice(end + ENDS.length).trim() !== '') return undefined;
  return content
    .slice(start + BEGINS.length, end)
    .replace(/^\r?\n/, '')
    .trimEnd();
}
