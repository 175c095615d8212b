/** The one table of what foreign text may not carry into a terminal, a page, a document, a table or a file name. */

import { replaceUnits, unitTable } from '../replaceUnits.ts';

interface Danger {
  readonly what: string;
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

/** Tab and line feed are left to each sanitiser; variation selectors 1 to 16 only choose how an emoji is drawn. */
export const DANGERS: readonly Danger[] = [
  {
    what: 'steers a terminal: C0, DEL and C1 controls',
    ranges: [
      [0x00, 0x08],
      [0x0b, 0x1f],
      [0x7f, 0x9f],
    ],
  },
  {
    what: 'changes the direction of what follows, so that a line reads as another',
    ranges: [
      [0x061c, 0x061c],
      [0x200e, 0x200f],
      [0x202a, 0x202e],
      [0x2066, 0x2069],
    ],
  },
  {
    what: 'ends a line where nobody sees it',
    ranges: [[0x2028, 0x2029]],
  },
  {
    what: 'has no width: soft hyphen, joiners, fillers, marks for other programs',
    ranges: [
      [0x00ad, 0x00ad],
      [0x034f, 0x034f],
      [0x115f, 0x1160],
      [0x17b4, 0x17b5],
      [0x180b, 0x180f],
      [0x200b, 0x200d],
      [0x2060, 0x2065],
      [0x206a, 0x206f],
      [0x3164, 0x3164],
      [0xfeff, 0xfeff],
      [0xffa0, 0xffa0],
      [0xfff0, 0xfffb],
      [0x1bca0, 0x1bca3],
      [0x1d173, 0x1d17a],
    ],
  },
  {
    what: 'spells a hidden message: tags and the supplement of variation selectors',
    ranges: [[0xe0000, 0xe0fff]],
  },
  {
    what: 'is half a character: with the flag "u" a pair is not found',
    ranges: [[0xd800, 0xdfff]],
  },
];

const escaped = (code: number): string => `\\u{${code.toString(16)}}`;
/** Body of a character class for the flag "u". */
const DANGEROUS_CLASS = DANGERS.flatMap(({ ranges }) => ranges)
  .map(([first, last]) => `${escaped(first)}-${escaped(last)}`)
  .join('');
export const DANGEROUS = new RegExp(`[${DANGEROUS_CLASS}]`, 'gu');

/** The same for UTF-16 units: halves of characters stand for the pairs that they may begin. */
const RANGES = DANGERS.flatMap(({ ranges }) => ranges);
const DANGEROUS_UNITS = unitTable(RANGES.filter(([first]) => first <= 0xffff));
const BEYOND = RANGES.filter(([first]) => first > 0xffff);

/** `text.replace(DANGEROUS, ...)`, for long texts too. */
export const replaceDangerous = (text: string, replacement: (code: number) => string): string =>
  replaceUnits(text, DANGEROUS_UNITS, (code) =>
    code <= 0xffff || BEYOND.some(([first, last]) => code >= first && code <= last)
      ? replacement(code)
      : String.fromCodePoint(code),
  );

/**
 * Escape sequences by ECMA-48, with 7-bit and 8-bit introducers: CSI, then strings (OSC, DCS, SOS, PM, APC), which end with their line
 * if nothing else ends them, then short ones. No sequence holds the beginning of another, so a scan is linear in the text.
 */
const CSI = '(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*';
const STRINGS =
  '(?:\\x1b[\\]PX^_]|[\\x90\\x98\\x9d-\\x9f])[^\\n\\x07\\x1b\\x90\\x98\\x9c-\\x9f]*(?:\\x07|\\x1b\\\\|\\x9c)?';
const SHORT = '\\x1b(?:[ -/]+[0-~]|[0-Z\\\\-~])';
export const ESCAPE_SEQUENCES = new RegExp(`${CSI}[@-~]|${STRINGS}|${SHORT}`, 'g');
/** Also sequences that are cut off: they are removed whole, so that their parameters do not look like text. */
export const ESCAPE_BEGINNINGS = new RegExp(`${CSI}[@-~]?|${STRINGS}|${SHORT}|\\x1b[ -/]*`, 'g');
