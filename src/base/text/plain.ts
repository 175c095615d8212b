/**
 * Foreign text for files and for the tables of a report: what would steer, reorder or hide is left out, because other programs read
 * it and columns are counted. Tabs and line feeds stay.
 */
import { ESCAPE_BEGINNINGS, replaceDangerous } from './dangerous.ts';

export const plain = (text: string): string =>
  replaceDangerous(text.replace(ESCAPE_BEGINNINGS, ''), (code) => {
    if (code === 0x2028 || code === 0x2029) return ' ';
    return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : '';
  });

/** The same on one line. Most white space is one space, which stays as it is. */
export const line = (text: string): string =>
  plain(text)
    .replace(/\s{2,}|[^\S ]/g, ' ')
    .trim();
