/** What a run came to, in the largest type of the page; for several arms one line each. */
import type { CSSProperties } from 'react';
import { wilson } from '../../../report/statistics/proportions.ts';
import type { RunDocument, Tally } from '../../documents/documents.ts';
import { plain } from '../text/foreignText.ts';
import { integer, percent, reward } from '../text/numbers.ts';

const bare = (share: number): string => (share * 100).toFixed(1);

/** Failures counted in and left out: the truth lies between. */
function bounds({ resolved, graded, planned }: Tally): string {
  return `${percent(resolved / planned)} to ${percent((resolved + planned - graded) / planned)}`;
}

function Rate({ tally, name }: { tally: Tally; name?: string }) {
  const { resolved, graded, planned } = tally;
  if (graded === 0)
    return (
      <div className="rate">
        {name ? <span className="armname">{plain(name)}</span> : null}
        <p className="quiet">
          No verdict yet: {integer(planned)} planned, {integer(tally.sealed)} done.{' '}
          <code>swebatch evaluate</code> grades what is done.
        </p>
      </div>
    );
  const { low, high } = wilson(resolved, graded);
  return (
    <div className="rate">
      {name ? <span className="armname">{plain(name)}</span> : null}
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
            Bounds over all planned: {bounds(tally)}
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

export function Interval({ x, n, big = false }: { x: number; n: number; big?: boolean }) {
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
