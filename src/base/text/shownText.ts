/**
 * Text as a person may come to see it: without escape sequences and characters that display takes out, and with literal `\u00e9` and `\xe9`
 * as their characters. What is found there is replaced in the text itself, with all that stood between.
 */
import { unitTable } from '../replaceUnits.ts';
import { DANGERS } from './inert.ts';

const RANGES = DANGERS.flatMap(({ ranges }) => ranges).filter(([first]) => first !== 0xd800);
const UNSEEN = unitTable(RANGES.filter(([first]) => first <= 0xffff));
const UNSEEN_PAIRS = RANGES.filter(([first]) => first > 0xffff);

const [ESC, BACKSLASH, LINE_FEED, BELL] = [0x1b, 0x5c, 0x0a, 0x07];
const STRING_OPENERS = new Set([...']PX^_'].map((char) => char.charCodeAt(0)));

/** Of those that JSON writes shorter, the ones that display takes out. */
const SHORT_LITERALS: Readonly<Record<string, number>> = { b: 0x08, f: 0x0c, r: 0x0d };

interface Shown {
  readonly units: Uint16Array;
  /** For each unit, where it began in the text; one entry more, for the end. */
  readonly from: Uint32Array;
  readonly length: number;
}

function hexAt(text: string, at: number, digits: number): number {
  let value = 0;
  for (let i = at; i < at + digits; i++) {
    const code = text.charCodeAt(i) | 0x20;
    const digit =
      code >= 0x30 && code <= 0x39 ? code - 0x30 : code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/** Backslashes of any number may stand before it: each level of JSON doubles them. */
function withoutLiterals(text: string): Shown {
  const units = new Uint16Array(text.length);
  const from = new Uint32Array(text.length + 1);
  let length = 0;
  const add = (unit: number, at: number) => {
    units[length] = unit;
    from[length++] = at;
  };
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit !== BACKSLASH) {
      add(unit, at);
      continue;
    }
    const start = at;
    while (text.charCodeAt(at + 1) === BACKSLASH) at++;
    const kind = text[at + 1];
    const digits = kind === 'u' ? 4 : kind === 'x' ? 2 : 0;
    const code = digits === 0 ? (SHORT_LITERALS[kind ?? ''] ?? -1) : hexAt(text, at + 2, digits);
    if (code < 0) for (let i = start; i <= at; i++) add(BACKSLASH, i);
    else {
      add(code, start);
      at += 1 + digits;
    }
  }
  from[length] = text.length;
  return { units, from, length };
}

const isBetween = (unit: number, first: number, last: number): boolean => unit >= first && unit <= last;

/** Where the escape sequence ends that begins at `at` (ECMA-48, as `stripEscapes` reads it); `at` where none begins. */
function sequenceEnd(units: Uint16Array, at: number, length: number): number {
  const unit = units[at]!;
  const seven = unit === ESC;
  if (!seven && !isBetween(unit, 0x90, 0x9f)) return at;
  let next = at + (seven ? 2 : 1);
  const opener = seven && at + 1 < length ? units[at + 1]! : 0;
  if (opener === 0x5b || unit === 0x9b) {
    while (next < length && isBetween(units[next]!, 0x30, 0x3f)) next++;
    while (next < length && isBetween(units[next]!, 0x20, 0x2f)) next++;
    return next < length && isBetween(units[next]!, 0x40, 0x7e) ? next + 1 : next;
  }
  if (STRING_OPENERS.has(opener) || (!seven && unit !== 0x9c)) {
    for (; next < length; next++) {
      const inside = units[next]!;
      if (inside === LINE_FEED) return next;
      if (inside === BELL || inside === 0x9c) return next + 1;
      if (inside === ESC) return units[next + 1] === BACKSLASH && next + 1 < length ? next + 2 : next;
      if (isBetween(inside, 0x90, 0x9f)) return next;
    }
    return next;
  }
  if (!seven) return at + 1;
  next = at + 1;
  while (next < length && isBetween(units[next]!, 0x20, 0x2f)) next++;
  return next < length && isBetween(units[next]!, 0x30, 0x7e) ? next + 1 : next;
}

/** In place: what is kept is never longer. */
function withoutUnseen({ units, from, length }: Shown): Shown {
  let kept = 0;
  for (let at = 0; at < length; at++) {
    const end = sequenceEnd(units, at, length);
    if (end > at) {
      at = end - 1;
      continue;
    }
    const unit = units[at]!;
    if (UNSEEN[unit] === 1) continue;
    if (isBetween(unit, 0xd800, 0xdbff) && at + 1 < length) {
      const code = (unit - 0xd800) * 0x400 + (units[at + 1]! - 0xdc00) + 0x1_0000;
      if (UNSEEN_PAIRS.some(([first, last]) => isBetween(code, first, last))) {
        at++;
        continue;
      }
    }
    units[kept] = unit;
    from[kept++] = from[at]!;
  }
  from[kept] = from[length]!;
  return { units, from, length: kept };
}

const CLASS = RANGES.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join('');
/** Most texts have nothing of it. */
const DISGUISE = new RegExp(`[${CLASS}]|\\\\[uxbfr]`, 'u');

/** Undefined where it is the text itself. */
function shownOf(text: string): (Shown & { readonly text: string }) | undefined {
  if (!DISGUISE.test(text)) return undefined;
  const shown = withoutUnseen(withoutLiterals(text));
  const bytes = Buffer.from(shown.units.buffer, 0, 2 * shown.length);
  return { ...shown, text: bytes.toString('utf16le') };
}

export function shownIncludes(text: string, isIn: (shown: string) => boolean): boolean {
  const shown = shownOf(text);
  return shown !== undefined && isIn(shown.text);
}

export interface Found {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** `find` gets the shown text; where two findings overlap, the earlier one of its list counts, and the other goes with it. */
export function replaceShown(text: string, find: (shown: string) => readonly Found[]): string {
  const shown = shownOf(text);
  const found = shown ? find(shown.text) : [];
  if (!shown || found.length === 0) return text;
  let out = '';
  let copied = 0;
  for (const { start, end, by } of found.toSorted((a, b) => a.start - b.start)) {
    const begin = shown.from[start]!;
    const until = shown.from[end - 1]! + 1;
    // A literal is longer than its character; up to the next one that is shown, everything goes with it.
    const whole = text.charCodeAt(until - 1) === BACKSLASH ? shown.from[end]! : until;
    if (begin >= copied) out += text.slice(copied, begin) + by;
    copied = Math.max(copied, whole);
  }
  return out + text.slice(copied);
}
