/** Instances down, runs across; a cell is a verdict and leads to its attempt. */

import { type ReactNode, useMemo } from 'react';
import type { TrialDocument } from '../../documents/documents.ts';
import type { Fields, FieldValue } from '../../documents/filter.ts';
import { pairKeyOf } from '../../documents/pairs.ts';
import type { Side } from '../data/comparedSide.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import type { Column } from './column.ts';
import { numberColumn, textColumn } from './columnKinds.tsx';
import { FilteredTable } from './FilteredTable.tsx';

interface MatrixRow {
  readonly key: string;
  readonly instanceId: string;
  readonly repo: string;
  readonly epoch: number;
  readonly cells: readonly (TrialDocument | undefined)[];
}

const rowsOfMatrix = (
  sides: readonly Side[],
  rowsOf: ReadonlyMap<string, readonly TrialDocument[]>,
): MatrixRow[] => {
  const rows = new Map<string, { first: TrialDocument; cells: (TrialDocument | undefined)[] }>();
  for (const [i, side] of sides.entries())
    for (const trial of rowsOf.get(side.key) ?? []) {
      const row = rows.get(pairKeyOf(trial)) ?? { first: trial, cells: [] };
      row.cells[i] = trial;
      rows.set(pairKeyOf(trial), row);
    }
  return [...rows].map(([key, { first, cells }]) => ({
    key,
    instanceId: first.instance_id,
    repo: first.repo,
    epoch: first.epoch,
    cells,
  }));
};

const resolvedShare = (row: MatrixRow): number =>
  row.cells.filter((cell) => cell?.verdict === 'resolved').length /
  Math.max(1, row.cells.filter((cell) => cell !== undefined).length);

const FIELDS: Fields<MatrixRow> = new Map<string, (row: MatrixRow) => FieldValue>([
  ['instance', (row: MatrixRow) => row.instanceId],
  ['repo', (row: MatrixRow) => row.repo],
  ['verdict', (row: MatrixRow) => row.cells.flatMap((cell) => (cell ? [cell.verdict] : []))],
  ['a', (row: MatrixRow) => row.cells[0]?.verdict],
  ['b', (row: MatrixRow) => row.cells[1]?.verdict],
  ['share', resolvedShare],
]);

const matrixWords = (row: MatrixRow): string => `${row.instanceId} ${row.repo}`;

function verdictCell(cell: TrialDocument | undefined): ReactNode {
  if (!cell) return <span className="quiet">–</span>;
  const badge = <Badge word={cell.verdict} />;
  return cell.attempt === null ? badge : <a href={href(['attempt', cell.attempt])}>{badge}</a>;
}

const columnsOf = (sides: readonly Side[]): Column<MatrixRow>[] => [
  textColumn('instance', 'Instance', 230, (r) => r.instanceId),
  ...sides.map((side, i) => ({
    id: `side${i}`,
    header: `${i === 0 ? 'A ' : i === 1 ? 'B ' : ''}${plain(side.label)}`,
    width: 150,
    value: (r: MatrixRow) => r.cells[i]?.verdict,
    cell: (r: MatrixRow) => verdictCell(r.cells[i]),
  })),
  numberColumn('share', 'Share', 80, resolvedShare, {
    title: 'share of these runs that resolved it',
    cell: (r) => `${Math.round(resolvedShare(r) * 100)} %`,
  }),
  numberColumn('epoch', 'Epoch', 70, (r) => r.epoch),
  textColumn('repo', 'Repository', 150, (r) => r.repo),
];

export function Matrix({
  sides,
  rowsOf,
}: {
  sides: readonly Side[];
  rowsOf: ReadonlyMap<string, readonly TrialDocument[]>;
}) {
  const rows = useMemo(() => rowsOfMatrix(sides, rowsOf), [sides, rowsOf]);
  const columns = useMemo(() => columnsOf(sides), [sides]);
  return (
    <FilteredTable
      label="Matrix"
      rows={rows}
      columns={columns}
      fields={FIELDS}
      words={matrixWords}
      hint="django a=resolved b=unresolved share<0.5"
      csvName="matrix"
      wrapper="tall"
      rowId={(row) => row.key}
      rowHref={(row) => href(['history', row.instanceId])}
      empty="No instance matches."
    />
  );
}
