/**
 * Text of models, repositories and files may look like anything, but it steers nothing: `inert` for a terminal, `plain` and `line` for files and
 * tables, `html`, `markdown` and `csvCell` on top of them.
 */
import { replaceUnits, unitsOf, unitTable } from '../replaceUnits.ts';

interface Danger {
  readonly what: string;
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

/**
 * The one table of what foreign text may not carry. Tab and line feed are left to each sanitiser; variation selectors 1 to 16 only choose how an
 * emoji is drawn.
 */
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
const ESCAPE_SEQUENCES = new RegExp(`${CSI}[@-~]|${STRINGS}|${SHORT}`, 'g');
/** Also sequences that are cut off: they are removed whole, so that their parameters do not look like text. */
export const ESCAPE_BEGINNINGS = new RegExp(`${CSI}[@-~]?|${STRINGS}|${SHORT}|\\x1b[ -/]*`, 'g');

/** Two true colours and some weights; a longer sequence is no colour that anybody chose. */
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

/** The variation selectors that are no danger in a text: in a name they make another of it that looks the same. */
const SELECTORS = '\\ufe00-\\ufe0f';
const UNSEEN = new RegExp(`[${DANGEROUS_CLASS}${SELECTORS}\\t\\n]`, 'gu');
const numbered = (code: number): string => `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;

/** A name with everything that nobody sees in it by number: two names that differ look different. */
export const visibleName = (name: string): string =>
  name.replace(UNSEEN, (found) => numbered(found.codePointAt(0)!));

/** Control characters as their pictures, others by number as ‹U+202E›, half characters as U+FFFD. */
export function showUnseen(text: string, options: { keepEscape?: boolean } = {}): string {
  return replaceDangerous(text, (code) => {
    if (code === 0x1b && options.keepEscape === true) return '\x1b';
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
    return numbered(code);
  });
}

/** Most names are this, and a plan shows half a million of them. */
const PRINTABLE = /^[\x20-\x7e]*$/;

/** Text for a person at a terminal: nothing is lost; signs that would move, reorder or hide are shown. */
export const inert = (text: string): string =>
  PRINTABLE.test(text) ? text : showUnseen(stripEscapes(settleLines(text)));

/**
 * Text for files and for the tables of a report: what would steer, reorder or hide is left out, because other programs read it and columns are
 * counted. Tabs and line feeds stay.
 */
export const plain = (text: string): string =>
  replaceDangerous(text.replace(ESCAPE_BEGINNINGS, ''), (code) => {
    if (code === 0x2028 || code === 0x2029) return ' ';
    return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : '';
  });

/** `\s` without the space itself (ECMA-262, WhiteSpace and LineTerminator). */
const OTHER_SPACES = unitTable([
  [0x09, 0x0d],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);

/** The same on one line. Most white space is one space, which stays as it is. */
export function line(text: string): string {
  // One by one first: a search for millions of short runs is slow.
  const spaced = replaceUnits(plain(text), OTHER_SPACES, () => ' ');
  return (spaced.includes('  ') ? spaced.replace(/ {2,}/g, ' ') : spaced).trim();
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const OF_HTML = unitsOf(Object.keys(ENTITIES).join(''));

/** Text for HTML, attributes, and XML. */
export const html = (text: string): string =>
  replaceUnits(plain(text), OF_HTML, (code) => ENTITIES[String.fromCharCode(code)]!);

// GitHub looks for mentions, issues and addresses in what it rendered, where an escape or an entity is the character again.
const APART = '&#8203;';

const OF_MARKDOWN = unitsOf('&<>\\`*_{}[]()#|~!');

/** Text for one line of Markdown: no table, link, image, emphasis, mention or tag comes from data. */
export function markdown(text: string): string {
  let written = replaceUnits(line(text), OF_MARKDOWN, (code) => {
    const char = String.fromCharCode(code);
    return ENTITIES[char] ?? `\\${char}`;
  });
  // A search for the sign alone is much faster than for what stands around it, and most texts have none of them.
  if (written.includes('@')) written = written.replace(/@(?=\w)/g, `@${APART}`);
  if (written.includes('\\#')) written = written.replace(/\\#(?=\d)/g, `\\#${APART}`);
  if (written.includes('://')) written = written.replace(/:(?=\/\/)/g, `:${APART}`);
  if (written.includes('.')) written = written.replace(/\bwww\./gi, (www) => `${www.slice(0, 3)}${APART}.`);
  return written;
}

export type CsvValue = string | number | boolean | null | undefined | readonly string[];

// A cell that starts like this is run by spreadsheets (OWASP, CSV injection), in full width too; plain numbers are let through.
const FORMULA = /^[=+\-@\t\n＝＋－＠]/;

const QUOTE = unitsOf('"');

/** Text for a cell of CSV (RFC 4180). A spreadsheet must not take an instance's text for a formula. */
export function csvCell(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  if (typeof value === 'boolean') return String(value);
  // Tables are often printed to a terminal, so escapes go, and first: the rest of one may begin a formula.
  const text = plain(typeof value === 'string' ? value : value.join(' '));
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${replaceUnits(safe, QUOTE, () => '""')}"` : safe;
}

export function toCsv<Row>(
  columns: readonly { header: string; value: (row: Row) => CsvValue }[],
  rows: readonly Row[],
): string {
  const lines = [columns.map((column) => csvCell(column.header))];
  for (const row of rows) lines.push(columns.map((column) => csvCell(column.value(row))));
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}
