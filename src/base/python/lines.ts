/** Where Python ends a line: `str.splitlines` knows more line breaks than a file opened as text does. */

/** What Python sees of a file opened as text: every line end is `\n`. */
export const universalNewlines = (text: string): string =>
  text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;

/** Body of a character class: each of these ends a line for `str.splitlines`, and `\r\n` does as one. */
export const LINE_BREAKS = '\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029';
const BREAK = new RegExp(`\\r\\n|[${LINE_BREAKS}]`, 'g');

/** `text.splitlines(keepends)` */
export function splitLines(text: string, keepEnds = false): string[] {
  const lines: string[] = [];
  let at = 0;
  for (const found of text.matchAll(BREAK)) {
    const end = found.index + found[0].length;
    lines.push(text.slice(at, keepEnds ? end : found.index));
    at = end;
  }
  if (at < text.length) lines.push(text.slice(at));
  return lines;
}

/** Calls `visit` for each line without making an array of them. Returning false stops. */
export function eachLine(text: string, visit: (line: string) => boolean | undefined): void {
  let from = 0;
  for (;;) {
    const end = text.indexOf('\n', from);
    if (visit(end < 0 ? text.slice(from) : text.slice(from, end)) === false || end < 0) return;
    from = end + 1;
  }
}
