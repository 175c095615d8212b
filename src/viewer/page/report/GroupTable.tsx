/** The share of each repository, or of each difficulty, with its interval. */
import { useMemo } from 'react';
import { writeChosen } from '../../documents/facets.ts';
import { type CellGroup, groupCells, type MapCell } from '../../documents/mapGroups.ts';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { DASH, integer, nano, rate } from '../text/numbers.ts';
import { Interval } from './Headline.tsx';

interface GroupTableProps {
  readonly title: string;
  readonly cells: readonly MapCell[];
  readonly by: 'repo' | 'difficulty';
  readonly run: string;
}

/** One group says nothing that the headline does not. */
export function GroupTable({ title, cells, by, run }: GroupTableProps) {
  const groups = useMemo(() => groupCells(cells, by), [cells, by]);
  if (groups.length < 2) return null;
  // Before the first verdict there is no share to draw.
  const isGraded = groups.some(({ graded }) => graded > 0);
  return (
    <section className="keep">
      <h2>{title}</h2>
      <div className="wide">
        <table className="forest">
          <thead>
            <tr>
              <th scope="col">{by === 'repo' ? 'Repository' : 'Difficulty'}</th>
              <th scope="col">Graded</th>
              {isGraded ? (
                <>
                  <th scope="col">
                    <span className="hide">Interval, drawn</span>
                  </th>
                  <th scope="col">Resolved, 95 % interval</th>
                </>
              ) : null}
              <th scope="col">Median cost</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <Line key={group.name} group={group} by={by} run={run} isGraded={isGraded} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function median(group: CellGroup): number | null {
  const costs = group.cells.flatMap(({ costNano }) => costNano ?? []).sort((a, b) => a - b);
  return costs[Math.floor(costs.length / 2)] ?? null;
}

interface LineProps {
  readonly group: CellGroup;
  readonly by: 'repo' | 'difficulty';
  readonly run: string;
  /** Some group has a verdict. */
  readonly isGraded: boolean;
}

function Line({ group, by, run, isGraded }: LineProps) {
  const { name, cells, graded, resolved } = group;
  return (
    <tr>
      <th scope="row">
        {name === '' ? (
          'not said'
        ) : (
          <a href={href(['run', run, 'instances'], { [by]: writeChosen([name]) })}>{plain(name)}</a>
        )}
      </th>
      <td>
        {integer(graded)}
        {graded < cells.length ? <span className="quiet"> of {integer(cells.length)}</span> : null}
      </td>
      {isGraded ? (
        <>
          <td className="drawn">
            <Interval x={resolved} n={graded} />
          </td>
          <td>{graded === 0 ? DASH : rate(resolved, graded)}</td>
        </>
      ) : null}
      <td>{nano(median(group))}</td>
    </tr>
  );
}
