/** Tables as CSV (RFC 4180) for a spreadsheet, which must not take an instance's text for a formula. */
import { replaceUnits, unitsOf } from '../replaceUnits.ts';
import { plain } from './plain.ts';

export type CsvValue = string | number | boolean | null | undefined | readonly string[];

// A cell that starts like this is run by spreadsheets (OWASP, CSV injection), in full width too; plain numbers are let through.
const FORMULA = /^[=+\-@\t\n＝＋－＠]/;

const QUOTE = unitsOf('"');

export function csvCell(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  if (typeof value === 'boolean') return String(value);
  // Tables are often printed to a terminal. What is left of an escape may begin a formula, so this comes first.
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
