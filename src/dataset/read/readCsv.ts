/** Rows of CSV: every cell is text, so that lists in it are columns that are parsed later, never evaluated. */
import { parse } from 'csv-parse/sync';
import { errorText } from '../../base/text/errorText.ts';
import type { RawRows } from './readRows.ts';
import type { RawRow } from './row.ts';

export const csvRows = (text: string): RawRow[] =>
  parse(text, { columns: true, bom: true, relax_column_count: true });

export function readCsv(bytes: Uint8Array): RawRows {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return csvRows(text).map((row, i) => ({ line: i + 1, row }));
  } catch (error) {
    return [{ line: 0, message: `not a readable CSV file (${errorText(error)})` }];
  }
}
