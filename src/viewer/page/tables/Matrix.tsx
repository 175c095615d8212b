/** Instances down, runs across; a cell is a verdict and leads to its attempt. */

import { type ReactNode, useMemo } from 'react';
import type { TrialDocument } from '../../documents/documents.ts';
import type { Fields, FieldValue } from '../../documents/filter.ts';
import { pairKeyOf } from '../../documents/pairs.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { type Column, numberColumn, textColumn } from './columns.tsx';
import { FilteredTable } from './FilteredTable.tsx';
import type { Side } from './PairSection.tsx';

interface MatrixRow {
  readonly instanceId: string;
  readonly repo: string;
  readonly epoch: number;
  readonly cells: (TrialDocument | undefined)[];
}

function rowsOf(sides: readonly Side[]): MatrixRow[] {
  const rows = new Map<string, MatrixRow>();
  for (const [i, side] of sides.entries())
    for (const trial of side.rows) {
      const { instance_id: instanceId, repo, epoch } = trial;
      const row = rows.get(pairKeyOf(trial)) ?? { instanceId, repo, epoch, cells: [] };
      row.cells[i] = trial;
      rows.set(pairKeyOf(trial), row);
    }
  return [...rows.values()];
}

const resolvedShare = (row: MatrixRow): number =>
  row.cells.filter((cell) => cell?.verdict === 'resolved').length /
  Math.max(1, row.cells.filter((cell) => cell !== undefined).length);

const FIELDS: Fields<MatrixRow> = new Map<string, (row: MatrixRow) => FieldValue>([
  ['instance', (row) => row.instanceId],
  ['repo', (row) => row.repo],
  ['verdict', (row) => row.cells.flatMap((cell) => cell?.verdict ?? [])],
  ['a', (row) => row.cells[0]?.verdict],
  ['b', (row) => row.cells[1]?.verdict],
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
    header: `${['A ', 'B '][i] ?? ''}${side.label}`,
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

export function Matrix({ sides }: { sides: readonly Side[] }) {
  const rows = useMemo(() => rowsOf(sides), [sides]);
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
      rowId={(row) => `${row.instanceId} ${row.epoch}`}
      rowHref={(row) => href(['history', row.instanceId])}
      empty="No instance matches."
    />
  );
}
