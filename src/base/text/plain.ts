/**
 * Foreign text for files and for the tables of a report: what would steer, reorder or hide is left out, because other programs read
 * it and columns are counted. Tabs and line feeds stay.
 */
import { replaceUnits, unitsOf } from '../replaceUnits.ts';
import { ESCAPE_BEGINNINGS, replaceDangerous } from './dangerous.ts';

export const plain = (text: string): string =>
  replaceDangerous(text.replace(ESCAPE_BEGINNINGS, ''), (code) => {
    if (code === 0x2028 || code === 0x2029) return ' ';
    return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : '';
  });

/** `\s` without the space itself. */
const OTHER_SPACES = unitsOf(
  Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code))
    .filter((char) => char !== ' ' && /\s/.test(char))
    .join(''),
);

/** The same on one line. Most white space is one space, which stays as it is. */
export function line(text: string): string {
  // One by one first: a search for millions of short runs is slow.
  const spaced = replaceUnits(plain(text), OTHER_SPACES, () => ' ');
  return (spaced.includes('  ') ? spaced.replace(/ {2,}/g, ' ') : spaced).trim();
}
