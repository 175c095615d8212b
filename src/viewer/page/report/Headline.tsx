/** What a run came to, in the largest type of the page, for several arms one line each; and the share of each group of instances. */
import { type CSSProperties, useMemo } from 'react';
import { wilson } from '../../../report/statistics/proportions.ts';
import { writeChosen } from '../../documents/facets.ts';
import { type CellGroup, groupCells, type MapCell } from '../../documents/mapGroups.ts';
import type { RunDocument } from '../../documents/resources.ts';
import type { Tally } from '../../documents/trialDocuments.ts';
import { type PlainColumn, PlainTable } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, nano, percent, rate, reward } from '../text/numbers.ts';

const bare = (share: number): string => (share * 100).toFixed(1);

function Rate({ tally, name }: { tally: Tally; name?: string }) {
  const { resolved, graded, planned } = tally;
  const armName = name ? <span className="armname">{plain(name)}</span> : null;
  if (graded === 0)
    return (
      <div className="rate">
        {armName}
        <p className="quiet">
          No verdict yet: {integer(planned)} planned, {integer(tally.sealed)} done.{' '}
          <code>swebatch evaluate</code> grades what is done.
        </p>
      </div>
    );
  const { low, high } = wilson(resolved, graded);
  return (
    <div className="rate">
      {armName}
      <p className="number">
        {bare(resolved / graded)}
        <span className="unit"> % resolved</span>
      </p>
      <div className="beside">
        <Interval x={resolved} n={graded} big />
        <p>
          {integer(resolved)} of {integer(graded)} graded · 95 % interval {bare(low)} to {bare(high)} %
        </p>
        {tally.reward ? (
          <p title="over instances; Wilson's interval, which is never too short for numbers between 0 and 1">
            Mean reward {reward(tally.reward.mean)} · 95 % interval {reward(tally.reward.interval.low)} to{' '}
            {reward(tally.reward.interval.high)}
          </p>
        ) : null}
        {graded < planned ? (
          <p className="quiet" title="everything missing counted as failed, and as resolved">
            Bounds over all planned: {percent(resolved / planned)} to{' '}
            {percent((resolved + planned - graded) / planned)}
          </p>
        ) : null}
      </div>
    </div>
  );
}

export function Headline({ run }: { run: RunDocument }) {
  if (run.arms.length < 2) return <Rate tally={run.summary.tally} />;
  return (
    <div className="rates">
      {run.arms.map(({ arm, tally }) => (
        <Rate key={arm} name={arm} tally={tally} />
      ))}
    </div>
  );
}

function Interval({ x, n, big = false }: { x: number; n: number; big?: boolean }) {
  if (n === 0) return <span className="interval none" aria-hidden="true" />;
  const { low, high } = wilson(x, n);
  const places = { '--low': low, '--high': high, '--at': x / n } as CSSProperties;
  return (
    <span className={big ? 'interval big' : 'interval'} style={places} aria-hidden="true">
      <span className="range" />
      <span className="point" />
    </span>
  );
}

interface GroupTableProps {
  title: string;
  cells: readonly MapCell[];
  by: 'repo' | 'difficulty';
  run: string;
}

/** One group says nothing that the headline does not. */
export function GroupTable({ title, cells, by, run }: GroupTableProps) {
  const groups = useMemo(() => groupCells(cells, by), [cells, by]);
  if (groups.length < 2) return null;
  const shares: PlainColumn<CellGroup>[] = [
    {
      header: 'Interval, drawn',
      drawn: true,
      cell: ({ resolved, graded }) => <Interval x={resolved} n={graded} />,
    },
    { header: 'Resolved, 95 % interval', cell: ({ resolved, graded }) => rate(resolved, graded) },
  ];
  const columns: PlainColumn<CellGroup>[] = [
    {
      header: by === 'repo' ? 'Repository' : 'Difficulty',
      cell: ({ name }) =>
        name === '' ? (
          'not said'
        ) : (
          <a href={href(['run', run, 'instances'], { [by]: writeChosen([name]) })}>{plain(name)}</a>
        ),
    },
    {
      header: 'Graded',
      cell: ({ graded, cells: own }) => (
        <>
          {integer(graded)}
          {graded < own.length ? <span className="quiet"> of {integer(own.length)}</span> : null}
        </>
      ),
    },
    // Before the first verdict there is no share to draw.
    ...(groups.some(({ graded }) => graded > 0) ? shares : []),
    { header: 'Median cost', cell: (group) => nano(medianCost(group)) },
  ];
  return (
    <section className="keep">
      <h2>{title}</h2>
      <div className="wide">
        <PlainTable className="forest" columns={columns} rows={groups} rowId={({ name }) => name} />
      </div>
    </section>
  );
}

function medianCost({ cells }: CellGroup): number | null {
  const costs = cells.flatMap(({ costNano }) => costNano ?? []).sort((a, b) => a - b);
  return costs[Math.floor(costs.length / 2)] ?? null;
}
