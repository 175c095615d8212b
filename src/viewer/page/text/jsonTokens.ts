/** Colours for JSON and for diffs in the output of commands. Text in, pieces of text out: nothing becomes markup. */

interface Piece {
  readonly text: string;
  /** A class of the style sheet; empty for plain text. */
  readonly tone: '' | 'string' | 'number' | 'word' | 'added' | 'removed' | 'place';
}

const TOO_LONG = 100_000;

type Colouring = 'json' | 'diff' | 'none';

/** The colouring of a text; JSON only when all of it is JSON. */
export function colouringOf(text: string): Colouring {
  if (text.length > TOO_LONG) return 'none';
  const start = text.trimStart();
  if (start.startsWith('diff --git ') || (start.startsWith('--- ') && start.includes('\n+++ ')))
    return 'diff';
  if (!start.startsWith('{') && !start.startsWith('[')) return 'none';
  try {
    JSON.parse(text);
    return 'json';
  } catch {
    return 'none';
  }
}

function toneOfLine(line: string): Piece['tone'] {
  if (
    line.startsWith('+++') ||
    line.startsWith('---') ||
    line.startsWith('diff ') ||
    line.startsWith('index ')
  )
    return 'place';
  if (line.startsWith('@@')) return 'place';
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : '';
}

export const diffPieces = (text: string): Piece[] =>
  text
    .split('\n')
    .map((line, i, all) => ({ text: i < all.length - 1 ? `${line}\n` : line, tone: toneOfLine(line) }));

const PLAIN = new Set([...'{}[],: \n\r\t']);

/** Where the token that begins at `from` ends. */
function endOf(json: string, from: number): number {
  let at = from + 1;
  if (json[from] !== '"') {
    while (at < json.length && !PLAIN.has(json[at]!) && json[at] !== '"') at += 1;
    return at;
  }
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return Math.min(json.length, at + 1);
}

const toneOf = (sign: string): Piece['tone'] =>
  sign === '"' ? 'string' : '-0123456789'.includes(sign) ? 'number' : 'word';

/** The names of fields look like words, their values like what they are. */
export function jsonPieces(json: string): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < json.length; ) {
    let end = at;
    while (end < json.length && PLAIN.has(json[end]!)) end += 1;
    if (end > at) pieces.push({ text: json.slice(at, end), tone: '' });
    if (end >= json.length) break;
    const close = endOf(json, end);
    const isName = json[end] === '"' && json[close] === ':';
    pieces.push({ text: json.slice(end, close), tone: isName ? 'word' : toneOf(json[end]!) });
    at = close;
  }
  return pieces;
}
