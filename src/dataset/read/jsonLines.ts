/** JSON Lines, piece by piece: a file of a gigabyte is never in memory as a whole. */
import { errorText } from '../../base/text/errorText.ts';

export interface RawEntry {
  /** Line of the text, or row number of a table; from 1. */
  readonly line: number;
  readonly row: unknown;
  /** Key of an object keyed by id. */
  readonly key?: string;
  /** Where the line lies in the file, in bytes; JSON Lines only. */
  readonly start?: number;
  readonly length?: number;
}
export interface RawProblem {
  readonly line: number;
  readonly message: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A file with more of them is no dataset, and to read on would take minutes. */
const MOST_PROBLEMS = 1000;

interface Line {
  readonly line: number;
  readonly bytes: Uint8Array;
  readonly start: number;
}

const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20];

/** Where a line that holds nothing but space ends, its LF included; `from` where it holds more. */
function blankEnd(piece: Uint8Array, from: number): number {
  let at = from;
  while (piece[at] === SPACE || piece[at] === CR || piece[at] === TAB) at++;
  return piece[at] === LF ? at + 1 : from;
}

/**
 * Lines that are not blank. Splits at LF alone: U+2028 is legal inside a JSON string, and a lone CR is not a line end here. CRLF ends with
 * space to JSON.
 */
function* split(pieces: Iterable<Uint8Array>): Generator<Line> {
  let begun: Uint8Array[] = [];
  let start = 0;
  let line = 1;
  const ended = (last: Uint8Array): Line => {
    const bytes = begun.length === 0 ? last : Buffer.concat([...begun, last]);
    const found = { line, bytes, start };
    begun = [];
    start += bytes.length + 1;
    line += 1;
    return found;
  };
  for (const piece of pieces) {
    let from = 0;
    while (from < piece.length) {
      const end = begun.length === 0 ? blankEnd(piece, from) : from;
      if (end > from) {
        start += end - from;
        line += 1;
        from = end;
        continue;
      }
      const lf = piece.indexOf(LF, from);
      if (lf < 0) break;
      yield ended(piece.subarray(from, lf));
      from = lf + 1;
    }
    if (from < piece.length) begun.push(piece.subarray(from));
  }
  if (begun.length > 0) yield ended(new Uint8Array(0));
}

/** The row of a line; undefined for an empty one. Throws what is wrong with it. */
export function rowOfLine(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes).trim(); // trim also takes a BOM
  return text === '' ? undefined : JSON.parse(text);
}

export function* jsonLines(pieces: Iterable<Uint8Array>): Generator<RawEntry | RawProblem> {
  let problems = 0;
  for (const { line, bytes, start } of split(pieces)) {
    try {
      const row = rowOfLine(bytes);
      if (row !== undefined) yield { line, row, start, length: bytes.length };
    } catch (error) {
      const utf8 = error instanceof SyntaxError ? 'not valid JSON' : 'not valid UTF-8';
      yield { line, message: `${utf8}: ${errorText(error)}` };
      problems += 1;
      if (problems < MOST_PROBLEMS) continue;
      yield { line, message: `${MOST_PROBLEMS} lines cannot be read; the rest was not looked at` };
      return;
    }
  }
}
