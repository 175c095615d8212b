import { replaceUnits, unitTable } from '../replaceUnits.ts';

const NOT_ASCII = unitTable([[0x7f, 0xffff]]);

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** What is not printable ASCII as JSON escapes it, each UTF-16 unit by itself: `json.dumps` of Python does so by default. */
export const asciiOnly = (text: string): string =>
  replaceUnits(text, NOT_ASCII, (code) => String.fromCodePoint(code).split('').map(escaped).join(''));
