/** A against B: the paired difference, its test, and the instances on which they disagree. */
import {
  differenceOf,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  totalOf,
} from '../../../report/statistics/paired.ts';
import type { TrialDocument } from '../../documents/documents.ts';
import { type PairSummary, summarizePairs, type TrialPair } from '../../documents/pairs.ts';
import { rewardOfPairs } from '../../documents/shownRewards.ts';
import type { Side } from '../data/comparedSide.ts';
import { Badge, Foldout } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, reward, words } from '../text/numbers.ts';
import { ending } from './trialColumns.tsx';

const points = (share: number): string => `${share >= 0 ? '+' : '−'}${Math.abs(share * 100).toFixed(1)}`;
const pValue = (p: number): string => (p < 0.0001 ? '< 0.0001' : p.toFixed(4));

export function PairSection({ a, b, pairs }: { a: Side; b: Side; pairs: readonly TrialPair[] }) {
  const { table, onlyA, onlyB, apart } = summarizePairs(pairs);
  const n = totalOf(table);
  return (
    <>
      <h2>
        A ({plain(a.label)}) against B ({plain(b.label)})
      </h2>
      {n === 0 ? (
        <p>No instance has a verdict on both sides yet.</p>
      ) : (
        <>
          <p>
            {n} pairs: both {table.both}, only A {table.aOnly}, only B {table.bOnly}, neither {table.neither};{' '}
            {apart.length} not comparable.
          </p>
          <p>
            B − A, paired: <strong>{points(-differenceOf(table))} points</strong> [{interval(table)}]
            (Newcombe 10, 95 %). McNemar exact p {pValue(mcnemarExact(table.aOnly, table.bOnly))}, mid-p{' '}
            {pValue(mcnemarMidP(table.aOnly, table.bOnly))}.
          </p>
          <Rewards pairs={pairs} />
        </>
      )}
      {n === 0 ? null : (
        <div className="pair">
          <Discordant a={a} b={b} title={`Only A resolved (${onlyA.length})`} pairs={onlyA} />
          <Discordant a={a} b={b} title={`Only B resolved (${onlyB.length})`} pairs={onlyB} />
        </div>
      )}
      {apart.length > 0 ? (
        <Foldout title={`Not comparable (${apart.length})`}>
          {() => <Discordant a={a} b={b} title="" pairs={apart} />}
        </Foldout>
      ) : null}
    </>
  );
}

const signed = (value: number): string => `${value >= 0 ? '+' : '−'}${reward(Math.abs(value))}`;

function Rewards({ pairs }: { pairs: readonly TrialPair[] }) {
  const found = rewardOfPairs(pairs);
  if (!found) return null;
  const { difference, interval: ends, method, n, sign, permutation } = found;
  return (
    <p>
      Reward, B − A over {n} instances: <strong>{signed(difference)}</strong>
      {ends ? ` [${signed(ends.low)}, ${signed(ends.high)}] (${method}, 95 %)` : ''}; {sign.better} better,{' '}
      {sign.worse} worse.{' '}
      {sign.p === null || permutation === null
        ? 'Fewer than six instances differ: no test.'
        : `Sign test p ${pValue(sign.p)}, sign-flip permutation p ${pValue(permutation.p)}.`}
    </p>
  );
}

function interval(table: PairSummary['table']): string {
  const { low, high } = newcombe10(table);
  return `${points(-high)}, ${points(-low)}`;
}

const AT_ONCE = 300;

/** A trial of a side, as an address names it. */
const sideOf = (side: Side, row: TrialDocument | undefined): string =>
  `${side.runName}/${side.arm}@${row?.epoch ?? 1}`;

interface DiscordantProps {
  readonly a: Side;
  readonly b: Side;
  readonly title: string;
  readonly pairs: readonly TrialPair[];
}

function Discordant({ a, b, title, pairs }: DiscordantProps) {
  return (
    <section className="discordant">
      {title ? <h3>{title}</h3> : null}
      <ul className="plainlist">
        {pairs.slice(0, AT_ONCE).map((pair) => (
          <li key={`${pair.instanceId} ${pair.epoch}`}>
            <a
              href={href(['compare', sideOf(a, pair.a), sideOf(b, pair.b), pair.instanceId])}
              title="their steps beside each other"
            >
              {plain(pair.instanceId)}
            </a>
            {pair.epoch > 1 ? ` epoch ${pair.epoch}` : ''} <One name="A" row={pair.a} />{' '}
            <One name="B" row={pair.b} />{' '}
            <a
              href={href(['side'], { a: pair.a?.attempt ?? undefined, b: pair.b?.attempt ?? undefined })}
              title="both trajectories side by side"
            >
              both
            </a>{' '}
            <a href={href(['history', pair.instanceId])}>history</a>
          </li>
        ))}
      </ul>
      {pairs.length > AT_ONCE ? (
        <p className="quiet">and {pairs.length - AT_ONCE} more: see the matrix</p>
      ) : null}
    </section>
  );
}

function One({ name, row }: { name: string; row: TrialDocument | undefined }) {
  if (!row) return <span className="quiet">{name}: not in this run</span>;
  const text = `${name}: ${words(ending(row))}, ${row.steps ?? 0} steps, ${cost(row.money)}`;
  return row.attempt === null ? (
    <span className="quiet">
      {name}: <Badge word={row.verdict} />
    </span>
  ) : (
    <a className="side" href={href(['attempt', row.attempt])} title={plain(text)}>
      <span>{name}</span> <Badge word={row.verdict} />
    </a>
  );
}
