/** Foreign text for a person to read. Nothing is lost: what would move, reorder or hide is shown as a visible sign instead. */
import { ESCAPE_SEQUENCES, replaceDangerous } from './dangerous.ts';

/** Two true colours and some weights; what is longer is no colour that anybody chose. */
const COLOUR = /^\x1b\[[\d;:]{0,64}m$/;

/** Removes every escape sequence; with `keepColours` those that only set colours and weight stay. */
export function stripEscapes(text: string, options: { keepColours?: boolean } = {}): string {
  if (options.keepColours !== true) return text.replace(ESCAPE_SEQUENCES, '');
  return text.replace(ESCAPE_SEQUENCES, (found) => (COLOUR.test(found) ? found : ''));
}

/** A progress bar redraws its line after a carriage return: the last drawing is what a terminal would show. */
export function settleLines(text: string): string {
  if (!text.includes('\r')) return text;
  const unix = text.replaceAll('\r\n', '\n');
  if (!unix.includes('\r')) return unix;
  return unix
    .split('\n')
    .map((line) => line.split('\r').findLast((part) => part !== '') ?? '')
    .join('\n');
}

/** Control characters as their pictures, others by number as ‹U+202E›, half characters as U+FFFD. */
export function showUnseen(text: string, options: { keepEscape?: boolean } = {}): string {
  return replaceDangerous(text, (code) => {
    if (code === 0x1b && options.keepEscape === true) return '\x1b';
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;
  });
}
