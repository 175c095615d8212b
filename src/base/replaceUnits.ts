/**
 * `text.replace(/[...]/g, ...)` for megabytes of nothing but such characters: each replacement is made once, and the result is written
 * unit by unit, because millions of small strings hold up everybody else.
 */

/** One entry for each UTF-16 unit; 1 where it may have to go. */
export type UnitTable = Uint8Array;

export function unitTable(ranges: readonly (readonly [first: number, last: number])[]): UnitTable {
  const units = new Uint8Array(0x1_0000);
  for (const [first, last] of ranges) units.fill(1, first, last + 1);
  return units;
}

export const unitsOf = (characters: string): UnitTable =>
  unitTable(Array.from(characters, (char) => [char.charCodeAt(0), char.charCodeAt(0)] as const));

const utf16 = new TextDecoder('utf-16le', { ignoreBOM: true });
const ascii = new TextDecoder('utf-8', { ignoreBOM: true });

function firstIn(table: UnitTable, text: string): number {
  for (let at = 0; at < text.length; at++) if (table[text.charCodeAt(at)] === 1) return at;
  return -1;
}

interface Written {
  readonly units: Uint16Array;
  /** The units together by "or": below 0x80 the text is ASCII. */
  readonly wide: number;
}

function writtenAs(text: string): Written {
  const units = Uint16Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return { units, wide: units.reduce((all, unit) => all | unit, 0) };
}

/** A pair of surrogates is asked for as one code point. `replacement` returns no half character. */
export function replaceUnits(text: string, table: UnitTable, replacement: (code: number) => string): string {
  const from = firstIn(table, text);
  if (from < 0) return text;
  const known = new Map<number, Written>();
  const writtenFor = (code: number): Written => {
    const fresh = known.get(code) ?? writtenAs(replacement(code));
    known.set(code, fresh);
    return fresh;
  };
  const units = new Uint16Array(lengthOf(text, from, table, writtenFor));
  let length = 0;
  let wide = 0;
  let surrogates = false;
  let last = -1;
  let fresh: Written = { units, wide };
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (table[unit] !== 1) {
      units[length++] = unit;
      wide |= unit;
      surrogates ||= (unit & 0xf800) === 0xd800;
      continue;
    }
    const code = text.codePointAt(at)!;
    if (code !== last) {
      last = code;
      fresh = writtenFor(code);
      wide |= fresh.wide;
    }
    if (code > 0xffff) at++;
    for (let i = 0; i < fresh.units.length; i++) units[length++] = fresh.units[i]!;
  }
  return text.slice(0, from) + textOf(units, wide, surrogates);
}

/** The length of the result from `from` on, in units: room that grows costs more than a second look. */
function lengthOf(text: string, from: number, table: UnitTable, written: (code: number) => Written): number {
  let length = text.length - from;
  let last = -1;
  let more = 0;
  for (let at = from; at < text.length; at++) {
    if (table[text.charCodeAt(at)] !== 1) continue;
    const code = text.codePointAt(at)!;
    if (code !== last) {
      last = code;
      more = written(code).units.length - (code > 0xffff ? 2 : 1);
    }
    length += more;
    if (code > 0xffff) at++;
  }
  return length;
}

function textOf(units: Uint16Array, wide: number, surrogates: boolean): string {
  // The result is read faster than one of two bytes a character.
  if (wide < 0x80) return ascii.decode(Uint8Array.from(units));
  if (typeof Buffer === 'function')
    return Buffer.from(units.buffer, units.byteOffset, units.byteLength).toString('utf16le');
  return surrogates && !wellFormedUnits(units) ? joined(units) : utf16.decode(units);
}

/** A decoder would change halves of characters; where they may stay, the text is put together from pieces. */
function wellFormedUnits(units: Uint16Array): boolean {
  for (let at = 0; at < units.length; at++) {
    const unit = units[at]!;
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const next = units[at + 1] ?? 0;
    if (unit > 0xdbff || next < 0xdc00 || next > 0xdfff) return false;
    at++;
  }
  return true;
}

const PIECE = 8192;
function joined(units: Uint16Array): string {
  let text = '';
  for (let at = 0; at < units.length; at += PIECE)
    text += String.fromCharCode(...units.subarray(at, at + PIECE));
  return text;
}

const NOT_ASCII = unitTable([[0x7f, 0xffff]]);
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** JSON escapes for all but printable ASCII, each UTF-16 unit by itself, as `json.dumps` of Python writes by default. */
export const asciiOnly = (text: string): string =>
  replaceUnits(text, NOT_ASCII, (code) => String.fromCodePoint(code).split('').map(escaped).join(''));

/** Lone surrogates cannot be written as UTF-8 by other tools: they become U+FFFD, in keys too. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k.toWellFormed(), wellFormed(v)]));
}
