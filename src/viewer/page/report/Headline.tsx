/** The score of each arm, in the largest type of the page, and the share of each group of instances. */
import type { CSSProperties } from 'preact/compat';
import { percent } from '../../../base/text/numbers.ts';
import { scoreText } from '../../../report/measure/score.ts';
import { writeChosen } from '../../documents/facets.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { type PlainColumn, PlainTable } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, reward } from '../text/numbers.ts';
import type { ArmReport } from './ArmTable.tsx';

const bare = (share: number): string => (share * 100).toFixed(1);

/** With several epochs the mean over instances, since trials of one instance are no independent sample. */
export const shareOf = ({
  resolved,
  over,
}: {
  resolved: ArmReport['resolved'];
  over: ArmReport['estimate'];
}) =>
  over ? { at: over.mean, ...over.interval } : resolved.interval && { at: resolved.p!, ...resolved.interval };

function Rate({ arm, named }: { arm: ArmReport; named: boolean }) {
  const { resolved, estimate, planned, valid, bounds } = arm;
  const share = arm.graded ? shareOf({ resolved, over: estimate }) : null;
  const armName = named ? <span className="armname">{plain(arm.arm)}</span> : null;
  if (!share)
    return (
      <div className="rate">
        {armName}
        <p className="quiet">
          No verdict yet: {integer(planned)} planned, {integer(arm.sealed)} done.{' '}
          <code>swebatch evaluate</code> grades what is done.
        </p>
      </div>
    );
  return (
    <div className="rate">
      {armName}
      <p className="number">
        {bare(share.at)}
        <span className="unit"> % resolved</span>
      </p>
      <div className="beside">
        <Interval share={share} big />
        <p>
          {estimate
            ? `mean of ${integer(estimate.n)} instances over ${arm.epochs} epochs`
            : `${integer(resolved.x)} of ${integer(resolved.n)} graded`}{' '}
          · 95 % interval {bare(share.low)} to {bare(share.high)} %
        </p>
        {estimate ? (
          <p className="quiet">
            {integer(resolved.x)} of {integer(resolved.n)} trials resolved; trials of one instance are no
            independent sample
          </p>
        ) : null}
        {arm.reward ? (
          <p title="over instances; Wilson's interval, which is never too short for numbers between 0 and 1">
            Mean reward {reward(arm.reward.mean)} · 95 % interval {reward(arm.reward.interval.low)} to{' '}
            {reward(arm.reward.interval.high)}
          </p>
        ) : null}
        {bounds && valid < planned ? (
          <p className="quiet" title="everything missing counted as failed, and as resolved">
            Over all {integer(planned)} planned: at least {percent(bounds.worst)}, at most{' '}
            {percent(bounds.best)}
          </p>
        ) : null}
      </div>
    </div>
  );
}

export const Headline = ({ run: { report } }: { run: RunDocument }) => (
  <div className="rates">
    {report.arms.map((arm) => (
      <Rate key={arm.arm} arm={arm} named={report.arms.length > 1} />
    ))}
  </div>
);

interface IntervalProps {
  share: { at: number; low: number; high: number } | null;
  big?: boolean;
}

function Interval({ share, big = false }: IntervalProps) {
  if (!share) return <span className="interval none" aria-hidden="true" />;
  const places = { '--low': share.low, '--high': share.high, '--at': share.at } as CSSProperties;
  return (
    <span className={big ? 'interval big' : 'interval'} style={places} aria-hidden="true">
      <span className="range" />
      <span className="point" />
    </span>
  );
}

interface GroupTableProps {
  title: string;
  run: RunDocument;
  by: 'repo' | 'difficulty';
}

interface GroupRow {
  readonly key: string;
  /** By arm. */
  readonly slices: readonly (ArmReport['byRepo'][number] | undefined)[];
}

/** One group says nothing that the headline does not. */
export function GroupTable({ title, run: { report, summary }, by }: GroupTableProps) {
  const { arms } = report;
  const lists = arms.map((arm) => (by === 'repo' ? arm.byRepo : arm.byDifficulty));
  const keys = [...new Set(lists.flatMap((list) => list.map(({ key }) => key)))];
  if (keys.length < 2) return null;
  const rows = keys.map(
    (key): GroupRow => ({ key, slices: lists.map((list) => list.find((one) => one.key === key)) }),
  );
  const columns: PlainColumn<GroupRow>[] = [
    {
      header: by === 'repo' ? 'Repository' : 'Difficulty',
      cell: ({ key }) =>
        key === '(none)' ? (
          'not said'
        ) : (
          <a href={href(['run', summary.name, 'instances'], { [by]: writeChosen([key]) })}>{plain(key)}</a>
        ),
    },
    // Every arm plans the same.
    {
      header: arms.length > 1 ? 'Trials of an arm' : 'Trials',
      cell: ({ slices }) => integer(Math.max(...slices.map((slice) => slice?.planned ?? 0))),
    },
    ...arms.flatMap((arm, i): PlainColumn<GroupRow>[] =>
      // Before the first verdict there is no share to draw.
      arm.graded
        ? [
            {
              header: `Interval of ${plain(arm.arm)}, drawn`,
              drawn: true,
              cell: ({ slices }) => {
                const slice = slices[i];
                return <Interval share={slice ? shareOf({ ...slice, over: slice.overInstances }) : null} />;
              },
            },
            {
              header: arms.length > 1 ? plain(arm.arm) : 'Resolved of valid, 95 % interval',
              cell: ({ slices }) => (slices[i] ? scoreText(slices[i]) : '–'),
            },
          ]
        : [],
    ),
  ];
  return (
    <section className="keep">
      <h2>{title}</h2>
      <div className="wide">
        <PlainTable className="forest" columns={columns} rows={rows} rowId={({ key }) => key} />
      </div>
    </section>
  );
}
