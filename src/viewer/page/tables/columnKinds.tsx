/** Columns by what they hold: text of others, a word as a badge, a number, money. */

import type { ReactNode } from 'react';
import type { MoneyDocument } from '../../documents/documents.ts';
import type { FieldValue } from '../../documents/filter.ts';
import { Badge } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, DASH, short, tokens } from '../text/numbers.ts';

type More<Row> = Partial<Pick<Column<Row>, 'title' | 'hidden' | 'value' | 'cell'>>;
type Text = string | null | undefined;

export const textColumn = <Row,>(
  id: string,
  header: string,
  width: number,
  read: (row: Row) => Text,
  more: More<Row> = {},
): Column<Row> => ({ id, header, width, value: read, cell: (row) => plain(read(row) ?? DASH), ...more });

export const badgeColumn = <Row,>(
  id: string,
  header: string,
  width: number,
  read: (row: Row) => Text,
  more: More<Row> = {},
): Column<Row> => ({ id, header, width, value: read, cell: (row) => <Badge word={read(row)} />, ...more });

export const numberColumn = <Row,>(
  id: string,
  header: string,
  width: number,
  value: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> => ({ id, header, width, numeric: true, value, ...more });

/** Large numbers, shortened for the eye: 12.3k. */
export const countColumn = <Row,>(
  id: string,
  header: string,
  width: number,
  value: (row: Row) => number | null,
  more: More<Row> = {},
): Column<Row> => numberColumn(id, header, width, value, { cell: (row) => short(value(row)), ...more });

interface WithMoney {
  readonly money: MoneyDocument;
}

export const costColumn = <Row extends WithMoney>(width: number, more: More<Row> = {}): Column<Row> =>
  numberColumn('cost', 'Cost', width, (r) => (r.money.costNano === null ? null : r.money.costNano / 1e9), {
    cell: (r) => cost(r.money),
    ...more,
  });

export const tokensColumn = <Row extends WithMoney>(): Column<Row> =>
  countColumn('tokens', 'Tokens', 80, (r) => tokens(r.money));

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
export const sortedValue = <Row,>(column: Column<Row>, row: Row): FieldValue => {
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
