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

function firstIn(table: UnitTable, text: string): number {
  for (let at = 0; at < text.length; at++) if (table[text.charCodeAt(at)] === 1) return at;
  return -1;
}

/** A pair of surrogates is asked for as one code point. What `replacement` returns has no half character in it. */
export function replaceUnits(text: string, table: UnitTable, replacement: (code: number) => string): string {
  const from = firstIn(table, text);
  if (from < 0) return text;
  const known = new Map<number, string>();
  let units = new Uint16Array(text.length + 64);
  let length = 0;
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    const special = table[unit] === 1;
    const code = special ? text.codePointAt(at)! : unit;
    const fresh = special ? (known.get(code) ?? replacement(code)) : '';
    if (special) known.set(code, fresh);
    if (code > 0xffff) at++;
    if (length + fresh.length + 1 > units.length) {
      const larger = new Uint16Array(units.length * 2 + fresh.length);
      larger.set(units);
      units = larger;
    }
    if (special) for (let i = 0; i < fresh.length; i++) units[length++] = fresh.charCodeAt(i);
    else units[length++] = unit;
  }
  const tail = units.subarray(0, length);
  return text.slice(0, from) + (wellFormedUnits(tail) ? utf16.decode(tail) : joined(tail));
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
