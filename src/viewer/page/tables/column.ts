/** A column of a table: what it shows, sorts by, and exports; and the order of rows by it. */
import type { ReactNode } from 'react';
import type { FieldValue } from '../../documents/filter.ts';

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  /** What is sorted, filtered and exported. */
  readonly value: (row: Row) => FieldValue;
  readonly cell?: (row: Row) => ReactNode;
  readonly width: number;
  readonly numeric?: boolean;
  /** Explains the column on hover and to screen readers. */
  readonly title?: string;
  readonly hidden?: boolean;
}

export function compareValues(a: FieldValue, b: FieldValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** An empty text sorts like no value. */
export const sortedValue = <Row>(column: Column<Row>, row: Row): FieldValue => {
  const value = column.value(row);
  return value === null || value === '' ? undefined : value;
};

/** `sort` is `name` or `-name`. */
export function inOrder<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: string): Row[] {
  const isDown = sort.startsWith('-');
  const column = columns.find(({ id }) => id === sort.replace(/^-/, ''));
  if (!column) return [...rows];
  return rows.toSorted((one, other) => {
    const [a, b] = [sortedValue(column, one), sortedValue(column, other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return isDown ? compareValues(b, a) : compareValues(a, b);
  });
}
