/**
 * Foreign text for files and for the tables of a report: what would steer, reorder or hide is left out, because other programs read
 * it and columns are counted. Tabs and line feeds stay.
 */
import { DANGEROUS, ESCAPE_BEGINNINGS } from './dangerous.ts';

export const plain = (text: string): string =>
  text
    .replace(ESCAPE_BEGINNINGS, '')
    .replace(/[\u2028\u2029]/g, ' ')
    .replace(DANGEROUS, (char) => (HALF.test(char) ? '\ufffd' : ''));
const HALF = /[\ud800-\udfff]/u;

/** The same on one line. */
export const line = (text: string): string => plain(text).replace(/\s+/g, ' ').trim();
