/** The ends of lines in Python: `str.splitlines` knows more line breaks than a file opened as text does. */

/** A file as Python reads it in text mode: every line end is `\n`. */
export function universalNewlines(text: string): string {
  if (!text.includes('\r')) return text;
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    // A part does not end between the two halves of a line end.
    const cut = at + PART - (text[at + PART - 1] === '\r' ? 1 : 0);
    parts.push(newlinesOf(text.slice(at, cut)));
    at = cut;
  }
  return parts.join('');
}

/** Characters that are read at once. */
const PART = 1024 * 1024;
const [CR, LF] = [0x0d, 0x0a];

/** By hand: where there are millions of line ends, a replacement takes ten times as long. */
function newlinesOf(text: string): string {
  const units = Buffer.from(text, 'utf16le');
  let to = 0;
  let wide = 0;
  for (let at = 0; at < units.length; at += 2) {
    let low = units[at]!;
    const high = units[at + 1]!;
    wide |= high;
    if (low === CR && high === 0) {
      low = LF;
      if (units[at + 2] === LF && units[at + 3] === 0) at += 2;
    }
    units[to] = low;
    units[to + 1] = high;
    to += 2;
  }
  if (wide !== 0) return units.toString('utf16le', 0, to);
  // Texts of one byte a character stay so: they are read faster afterwards.
  for (let at = 0; at < to; at += 2) units[at / 2] = units[at]!;
  return units.toString('latin1', 0, to / 2);
}

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

/** The lines that hold `mark`, once each, and where they end. Where they are few, the others cost next to nothing. */
export function eachLineWith(text: string, mark: string, visit: (line: string, end: number) => void): void {
  for (let at = text.indexOf(mark); at >= 0; ) {
    const from = text.lastIndexOf('\n', at) + 1;
    const found = text.indexOf('\n', at);
    const end = found < 0 ? text.length : found;
    visit(text.slice(from, end), end);
    at = found < 0 ? -1 : text.indexOf(mark, end);
  }
}

/** Calls `visit` for each line without making an array of them. Returning false stops. */
export function eachLine(text: string, visit: (line: string) => boolean | undefined): void {
  let from = 0;
  for (;;) {
    // Where lines are empty, a search for each of them takes most of the time.
    const end = text.charCodeAt(from) === 0x0a ? from : text.indexOf('\n', from);
    if (visit(end < 0 ? text.slice(from) : text.slice(from, end)) === false || end < 0) return;
    from = end + 1;
  }
}
