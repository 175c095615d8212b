/** Instances down, runs across; a cell is a verdict and leads to its attempt. */
import { useMemo } from 'react';
import type { TrialDocument } from '../../documents/documents.ts';
import { compileFilter, type Fields, type FieldValue } from '../../documents/filter.ts';
import { keyOf } from '../../documents/pairs.ts';
import type { Side } from '../data/comparedSide.ts';
import { Badge, CsvButton, FilterBox } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import type { Column } from './column.ts';
import { DataTable } from './DataTable.tsx';

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
      const row = rows.get(keyOf(trial)) ?? { first: trial, cells: [] };
      row.cells[i] = trial;
      rows.set(keyOf(trial), row);
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

export function Matrix({
  sides,
  rowsOf,
  filter: text,
}: {
  sides: readonly Side[];
  rowsOf: ReadonlyMap<string, readonly TrialDocument[]>;
  filter: string;
}) {
  const { query } = useRoute();
  const all = useMemo(() => rowsOfMatrix(sides, rowsOf), [sides, rowsOf]);
  const filter = useMemo(() => compileFilter(text, FIELDS, (row) => `${row.instanceId} ${row.repo}`), [text]);
  const rows = useMemo(() => all.filter(filter.test), [all, filter]);
  const columns = useMemo<readonly Column<MatrixRow>[]>(
    () => [
      {
        id: 'instance',
        header: 'Instance',
        width: 230,
        value: (r) => r.instanceId,
        cell: (r) => plain(r.instanceId),
      },
      ...sides.map((side, i) => ({
        id: `side${i}`,
        header: `${i === 0 ? 'A ' : i === 1 ? 'B ' : ''}${plain(side.label)}`,
        width: 150,
        value: (r: MatrixRow) => r.cells[i]?.verdict,
        cell: (r: MatrixRow) => {
          const cell = r.cells[i];
          if (!cell) return <span className="quiet">–</span>;
          return cell.attempt === null ? (
            <Badge word={cell.verdict} />
          ) : (
            <a href={href(['attempt', cell.attempt])}>
              <Badge word={cell.verdict} />
            </a>
          );
        },
      })),
      {
        id: 'share',
        header: 'Share',
        title: 'share of these runs that resolved it',
        width: 80,
        numeric: true,
        value: resolvedShare,
        cell: (r) => `${Math.round(resolvedShare(r) * 100)} %`,
      },
      { id: 'epoch', header: 'Epoch', width: 70, numeric: true, value: (r) => r.epoch },
      { id: 'repo', header: 'Repository', width: 150, value: (r) => r.repo, cell: (r) => plain(r.repo) },
    ],
    [sides],
  );
  return (
    <>
      <div className="bar">
        <FilterBox
          value={text}
          onChange={(f) => setQuery({ f })}
          problems={filter.problems}
          hint="filter: django a=resolved b=unresolved share<0.5"
        />
        <span className="quiet" role="status">
          {rows.length} of {all.length}
        </span>
        <CsvButton name="matrix" columns={columns} rows={rows} />
      </div>
      <div className="tall">
        <DataTable
          label="Matrix"
          rows={rows}
          columns={columns}
          rowId={(row) => row.key}
          rowHref={(row) => href(['history', row.instanceId])}
          sort={query.get('sort') ?? ''}
          onSort={(sort) => setQuery({ sort })}
          empty="No instance matches."
        />
      </div>
    </>
  );
}
