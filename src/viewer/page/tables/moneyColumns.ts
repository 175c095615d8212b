/** What rows with money of every kind show of it. */
import type { Money } from '../../documents/documents.ts';
import { cost, short, tokens } from '../text/numbers.ts';
import type { Column } from './column.ts';

interface WithMoney {
  readonly money: Money;
}

export const costColumn = <Row extends WithMoney>(
  more: Pick<Column<Row>, 'width' | 'title'>,
): Column<Row> => ({
  id: 'cost',
  header: 'Cost',
  numeric: true,
  value: (r) => (r.money.costNano === null ? null : r.money.costNano / 1e9),
  cell: (r) => cost(r.money),
  ...more,
});

export const tokensColumn = <Row extends WithMoney>(): Column<Row> => ({
  id: 'tokens',
  header: 'Tokens',
  width: 80,
  numeric: true,
  value: (r) => tokens(r.money),
  cell: (r) => short(tokens(r.money)),
});
