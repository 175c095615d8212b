/**
 * Where a reply asks for a command. The pattern is the user's and the text the model's, so neither may make the search slow: the published
 * shape, a fence up to the next closing one, is looked for by hand, every other pattern runs in the linear engine.
 */
import { type LinearRegex, linearRegex } from '../../base/regex/linearRegex.ts';

/** Nobody means a reply with more; it costs time and memory in every template that lists them. */
const MAX_FOUND = 10_000;

/** Of a longer reply an own pattern reads the beginning: the linear engine takes a third of a microsecond for each character. */
const LONGEST_READ = 256 * 1024;

/** A fence and its language, blank lines, the command, a closing fence: the default and both published versions. */
const PUBLISHED = /^(```[A-Za-z_-]*)\\s\*\\n\((?:\.|\[\\s\\S\])\*\?\)\\n```$/;

const CLOSING = '\n```';
const IS_SPACE = /\s/;

/** The commands that `actionRegex` finds, as matchAll with the flag s would. */
export function actionPattern(actionRegex: string): (text: string) => string[] {
  const opening = PUBLISHED.exec(actionRegex)?.[1];
  if (opening !== undefined) return (text) => fencedBlocks(text, opening);
  let regex: LinearRegex | undefined;
  return (text) => {
    regex ??= linearRegex(actionRegex, 's');
    return regex.all(text.slice(0, LONGEST_READ), MAX_FOUND).map((match) => match.group ?? match.text);
  };
}

/** `opening\s*\n([\s\S]*?)\n```` in one pass. */
function fencedBlocks(text: string, opening: string): string[] {
  const found: string[] = [];
  const closing = forward(text, CLOSING);
  for (let at = text.indexOf(opening); at >= 0 && found.length < MAX_FOUND; ) {
    const from = at + opening.length;
    let end = from;
    while (end < text.length && IS_SPACE.test(text[end]!)) end++;
    const block = blockAfter(text, from, end, closing);
    if (block) found.push(text.slice(block.from, block.to));
    at = text.indexOf(opening, block ? block.to + CLOSING.length : at + 1);
  }
  return found;
}

/** The block behind a fence whose white space is [from, end). The greedy `\s*` takes all lines that leave a closing fence behind them. */
function blockAfter(text: string, from: number, end: number, closing: (from: number) => number) {
  const last = text.lastIndexOf('\n', end - 1);
  if (last < from || end === from) return null;
  const to = closing(last + 1);
  if (to >= 0) return { from: last + 1, to };
  // The last line break itself may be the one before the closing fence.
  const before = last > from ? text.lastIndexOf('\n', last - 1) : -1;
  return before >= from && text.startsWith(CLOSING, last) ? { from: before + 1, to: last } : null;
}

/** indexOf for positions that only grow: a stretch without a hit is searched once. */
function forward(text: string, sought: string): (from: number) => number {
  let known = -2;
  return (from) => {
    if (known === -1 || known >= from) return known;
    known = text.indexOf(sought, from);
    return known;
  };
}
