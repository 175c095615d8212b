/**
 * Text of models and containers made safe to look at. Nothing is lost: what would move the cursor, reorder the line or hide
 * itself is shown as a visible sign instead.
 */

// CSI, OSC (ended by BEL or ST), other string sequences, two-byte escapes; ECMA-48 section 5. An unfinished one ends with its line.
const ESCAPES = new RegExp(
  [
    '\\u001b\\[[0-?]*[ -/]*[@-~]',
    '\\u001b\\][^\\u0007\\u001b\\n]*(?:\\u0007|\\u001b\\\\)?',
    '\\u001b[PX^_][^\\u001b\\n]*(?:\\u001b\\\\)?',
    '\\u001b[ -/]*[0-OQ-WYZ\\\\`a-~]',
    '\\u009b[0-?]*[ -/]*[@-~]',
  ].join('|'),
  'g',
);
const COLOUR = /^\u001b\[[\d;:]*m$/;

/** Removes every escape sequence; with `keepColours` those that only set colours and weight stay. */
export function stripEscapes(text: string, options: { keepColours?: boolean } = {}): string {
  if (!text.includes('\u001b') && !text.includes('\u009b')) return text;
  return text.replace(ESCAPES, (found) => (options.keepColours === true && COLOUR.test(found) ? found : ''));
}

/** A progress bar redraws its line after a carriage return: the last drawing is what a terminal would show. */
export function settleLines(text: string): string {
  if (!text.includes('\r')) return text;
  return text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => {
      const parts = line.split('\r').filter((part) => part !== '');
      return parts.at(-1) ?? '';
    })
    .join('\n');
}

const ESC = '\u001b';
// C0 without tab and newline, DEL, C1; bidirectional controls; zero-width and byte order marks; lone surrogates.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Control characters as their pictures, bidirectional and invisible ones as ‹U+202E›, lone surrogates as U+FFFD. */
export function showUnseen(text: string, options: { keepEscape?: boolean } = {}): string {
  return text.replace(UNSEEN, (c) => {
    const code = c.charCodeAt(0);
    if (c === ESC && options.keepEscape === true) return c;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;
  });
}

/** For a terminal or a file: one call makes any text inert. */
export const safeText = (text: string): string => showUnseen(stripEscapes(settleLines(text)));
