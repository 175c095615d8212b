/** Columns by what they hold: text of others, a word as a badge, a number, money. */

import type { MoneyDocument } from '../../documents/documents.ts';
import { Badge } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, DASH, short, tokens } from '../text/numbers.ts';
import type { Column } from './column.ts';

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
