/** A against B: the paired difference, its test, and the instances on which they disagree. */
import {
  differenceOf,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  type PairedTable,
  totalOf,
} from '../../../report/statistics/paired.ts';
import { endingOf, type TrialDocument } from '../../documents/documents.ts';
import {
  pairsOf,
  type RowsScore,
  rewardOfPairs,
  summarizePairs,
  type TrialPair,
} from '../../documents/pairs.ts';
import type { RunSummary } from '../../documents/resources.ts';
import { Badge, Foldout } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, reward, words } from '../text/numbers.ts';

/** One arm of one run, and what it scored. */
export interface Side {
  readonly key: string;
  readonly run: RunSummary;
  readonly label: string;
  readonly arm: string;
  readonly rows: readonly TrialDocument[];
  readonly score: RowsScore;
}

const sign = (value: number): string => (value >= 0 ? '+' : '−');
const points = (share: number): string => `${sign(share)}${Math.abs(share * 100).toFixed(1)}`;
const signed = (value: number): string => `${sign(value)}${reward(Math.abs(value))}`;
const pValue = (p: number): string => (p < 0.0001 ? '< 0.0001' : p.toFixed(4));

function interval(table: PairedTable): string {
  const { low, high } = newcombe10(table);
  return `${points(-high)}, ${points(-low)}`;
}

export function PairSection({ a, b }: { a: Side; b: Side }) {
  const pairs = pairsOf(a.rows, b.rows);
  const { table, onlyA, onlyB, apart } = summarizePairs(pairs);
  const rewards = rewardOfPairs(pairs);
  return (
    <>
      {/* What makes a comparison unfair is said before its result. */}
      {a.run.datasetHash !== b.run.datasetHash ? (
        <p className="problem" role="note">
          These runs worked on different data: only the instances that both have are compared.
        </p>
      ) : null}
      {a.run.configHash !== b.run.configHash && a.run !== b.run ? (
        <p className="problem" role="note">
          The configurations of these runs differ in more than their names: see “Configuration” of each.
        </p>
      ) : null}
      <h2>
        A ({a.label}) against B ({b.label})
      </h2>
      {totalOf(table) === 0 ? (
        <p>No instance has a verdict on both sides yet.</p>
      ) : (
        <>
          <p>
            {totalOf(table)} pairs: both {table.both}, only A {table.aOnly}, only B {table.bOnly}, neither{' '}
            {table.neither}; {apart.length} not comparable.
          </p>
          <p>
            B − A, paired: <strong>{points(-differenceOf(table))} points</strong> [{interval(table)}]
            (Newcombe 10, 95 %). McNemar exact p {pValue(mcnemarExact(table.aOnly, table.bOnly))}, mid-p{' '}
            {pValue(mcnemarMidP(table.aOnly, table.bOnly))}.
          </p>
          {rewards ? <Rewards {...rewards} /> : null}
          <div className="pair">
            <Discordant a={a} b={b} title={`Only A resolved (${onlyA.length})`} pairs={onlyA} />
            <Discordant a={a} b={b} title={`Only B resolved (${onlyB.length})`} pairs={onlyB} />
          </div>
        </>
      )}
      {apart.length > 0 ? (
        <Foldout title={`Not comparable (${apart.length})`}>
          {() => <Discordant a={a} b={b} title="" pairs={apart} />}
        </Foldout>
      ) : null}
    </>
  );
}

function Rewards(found: NonNullable<ReturnType<typeof rewardOfPairs>>) {
  const { interval, sign: signs, permutation } = found;
  return (
    <p>
      Reward, B − A over {found.n} instances: <strong>{signed(found.difference)}</strong>
      {interval ? ` [${signed(interval.low)}, ${signed(interval.high)}] (${found.method}, 95 %)` : ''};{' '}
      {signs.better} better, {signs.worse} worse.{' '}
      {signs.p === null || permutation === null
        ? 'Fewer than six instances differ: no test.'
        : `Sign test p ${pValue(signs.p)}, sign-flip permutation p ${pValue(permutation.p)}.`}
    </p>
  );
}

const AT_ONCE = 300;

/** A trial of a side, as an address names it. */
const addressOf = ({ run, arm }: Side, row: TrialDocument | undefined): string =>
  `${run.name}/${arm}@${row?.epoch ?? 1}`;

interface DiscordantProps {
  a: Side;
  b: Side;
  title: string;
  pairs: readonly TrialPair[];
}

function Discordant({ a, b, title, pairs }: DiscordantProps) {
  return (
    <section className="discordant">
      {title ? <h3>{title}</h3> : null}
      <ul className="plainlist">
        {pairs.slice(0, AT_ONCE).map((pair) => (
          <li key={`${pair.instanceId} ${pair.epoch}`}>
            <a
              href={href(['compare', addressOf(a, pair.a), addressOf(b, pair.b), pair.instanceId])}
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
  if (row.attempt === null)
    return (
      <span className="quiet">
        {name}: <Badge word={row.verdict} />
      </span>
    );
  const text = `${name}: ${words(endingOf(row))}, ${row.steps ?? 0} steps, ${cost(row.money)}`;
  return (
    <a className="side" href={href(['attempt', row.attempt])} title={plain(text)}>
      <span>{name}</span> <Badge word={row.verdict} />
    </a>
  );
}
