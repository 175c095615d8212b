/** Instances down, runs across; a cell is a verdict and leads to its attempt. */

import { type ReactNode, useMemo } from 'preact/compat';
import type { TrialDocument } from '../../documents/documents.ts';
import type { Fields, FieldValue } from '../../documents/filter.ts';
import type { RunList } from '../../documents/resources.ts';
import { useManyTrials } from '../data/source.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { type Column, numberColumn, textColumn } from './columns.tsx';
import { FilteredTable } from './FilteredTable.tsx';

/** An arm of a run, by the name that `compare` takes. */
export interface Side {
  readonly name: string;
  readonly run: RunList['runs'][number];
  readonly arm: string;
  /** As documents are named. */
  readonly path: string;
}

interface MatrixRow {
  readonly instanceId: string;
  readonly repo: string;
  readonly epoch: number;
  readonly cells: (TrialDocument | undefined)[];
}

function rowsOf(sides: readonly Side[], trials: ReadonlyMap<number, readonly TrialDocument[]>): MatrixRow[] {
  const rows = new Map<string, MatrixRow>();
  for (const [i, side] of sides.entries())
    for (const trial of trials.get(side.run.id) ?? []) {
      if (trial.arm !== side.arm) continue;
      const { instance_id: instanceId, repo, epoch } = trial;
      const row = rows.get(`${instanceId} ${epoch}`) ?? { instanceId, repo, epoch, cells: [] };
      row.cells[i] = trial;
      rows.set(`${instanceId} ${epoch}`, row);
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
    header: `${['A ', 'B '][i] ?? ''}${plain(side.name)}`,
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

export function Matrix({ sides, list }: { sides: readonly Side[]; list: RunList }) {
  const runs = useMemo(() => [...new Set(sides.map((side) => side.run.id))], [sides]);
  const { trials, error } = useManyTrials(runs, list);
  const rows = useMemo(() => rowsOf(sides, trials), [sides, trials]);
  const columns = useMemo(() => columnsOf(sides), [sides]);
  return error ? (
    <p role="alert">{plain(error)}</p>
  ) : (
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
