/** The output of a program in so many characters as a message has room for: whole lines, and the one that says what is wrong before the others. */
import { stripVTControlCharacters } from 'node:util';

/** "ModuleNotFoundError: …", "error: …", "prog: fatal: …", "panic: …" */
const NAMED = /(?:^|[\s:])(?:[\w.$]{0,80}(?:error|exception)|fatal|panic)(?: \[\w+\])?:/i;
const TELLING =
  /\b(?:error|exception|fatal|panicked|failed|failure|cannot|can't|could not|couldn't|unable to|denied|not found|no such|missing|invalid|unknown|unsupported|refused|required|must be)\b/i;

/** The characters of an output, and of a line, that are looked at: dumps of minified code have megabytes in one. */
const [READ, READ_OF_LINE] = [65_536, 1000];

/** The end of a text in whole lines; the end of a line that is longer. */
export function lastLines(text: string, room: number): string {
  if (text.length <= room) return text;
  const end = text.slice(-room);
  const begins = text[text.length - room - 1] === '\n' ? 0 : end.indexOf('\n') + 1;
  return end.slice(begins).trim() === '' ? end : end.slice(begins);
}

/** '' where nothing was written. Only a line that alone is longer than the room is cut. */
export function errorFirst(output: string, room: number): string {
  const lines = stripVTControlCharacters(lastLines(output, READ))
    .split(/\r?\n|\r/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const last = (sought: RegExp) => lines.findLastIndex((line) => sought.test(line.slice(0, READ_OF_LINE)));
  const named = last(NAMED);
  const at = named >= 0 ? named : last(TELLING);
  const shown: string[] = [];
  let left = room;
  const take = (line: string): void => {
    shown.push(line.length > left ? `${line.slice(0, left - 1)}…` : line);
    left -= line.length + 1;
  };
  if (at >= 0) take(lines.splice(at, 1)[0]!);
  else if (lines.length > 0) take(lines.pop()!);
  const begins = at >= 0 ? 1 : 0;
  while (lines.length > 0 && lines.at(-1)!.length <= left) {
    left -= lines.at(-1)!.length + 1;
    shown.splice(begins, 0, lines.pop()!);
  }
  return shown.join('\n');
}
