/** Text that others wrote: colours are kept, everything that moves, hides or reorders is shown, nothing is ever markup. */
import Anser from 'anser';
import { settleLines, showUnseen, stripEscapes } from '../../../base/text/visible.ts';

/** One line or cell of foreign text. */
export const plain = (text: string): string => showUnseen(stripEscapes(text));

interface Span {
  text: string;
  className: string;
}

/** Only the 16 named colours and weights become classes; anything else falls back to plain text. */
export function ansiSpans(text: string): Span[] {
  const clean = showUnseen(stripEscapes(settleLines(text), { keepColours: true }), { keepEscape: true });
  if (!clean.includes('\u001b')) return [{ text: clean, className: '' }];
  return Anser.ansiToJson(clean, { use_classes: true, remove_empty: true }).map((part) => ({
    text: part.content,
    className: [part.fg, part.bg && `${part.bg}-bg`, ...part.decorations.map((name) => `ansi-${name}`)]
      .filter((name) => /^ansi-[a-z-]+$/.test(name ?? ''))
      .join(' '),
  }));
}
