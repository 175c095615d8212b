/** Runs against each other on the same instances: who resolved what, at which price, and where two disagree. */
import { useMemo } from 'react';
import type { RunList, TrialDocument } from '../../documents/documents.ts';
import { pairsOf } from '../../documents/pairs.ts';
import { CostPlot } from '../charts/CostPlot.tsx';
import { type Side, scoreOf } from '../data/comparedSide.ts';
import { useDocument } from '../data/source.ts';
import { useManyTrials } from '../data/useTrials.ts';
import { Nothing, Up, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { Matrix } from '../tables/Matrix.tsx';
import { PairSection } from '../tables/PairSection.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, DASH, rate, rewardRange } from '../text/numbers.ts';

const MOST = 8;

function sidesOf(list: RunList): Side[] {
  return list.runs.flatMap((run) =>
    run.arms.map((arm) => ({
      key: `${run.id}:${arm.name}`,
      run: run.id,
      runName: run.name,
      arm: arm.name,
      label: run.arms.length > 1 ? `${run.name} / ${arm.name}` : run.name,
      datasetHash: run.datasetHash,
      configHash: run.configHash,
    })),
  );
}

function useSides(list: RunList | undefined): { all: Side[]; chosen: Side[] } {
  const { query } = useRoute();
  const asked = query.get('s');
  const first = query.get('a');
  return useMemo(() => {
    const all = list ? sidesOf(list) : [];
    if (asked !== null) {
      const keys = asked.split('|');
      return { all, chosen: keys.flatMap((key) => all.filter((side) => side.key === key)).slice(0, MOST) };
    }
    const start = all.find((side) => String(side.run) === first) ?? all[0];
    const other =
      all.find((side) => side !== start && side.datasetHash === start?.datasetHash) ??
      all.find((side) => side !== start);
    return { all, chosen: [start, other].filter((side) => side !== undefined) };
  }, [list, asked, first]);
}

export function ComparePage() {
  const entry = useDocument<RunList>('runs');
  const { all, chosen } = useSides(entry.data);
  const runs = useMemo(() => [...new Set(chosen.map((side) => side.run))], [chosen]);
  const { trials, error } = useManyTrials(runs, entry.data);
  const rowsOf = useMemo(() => {
    const map = new Map<string, readonly TrialDocument[]>();
    for (const side of chosen)
      map.set(
        side.key,
        (trials.get(side.run) ?? []).filter((row) => row.arm === side.arm),
      );
    return map;
  }, [chosen, trials]);
  if (!entry.data) return <Waiting entry={entry} />;
  const choose = (keys: readonly string[]) => setQuery({ s: keys.join('|'), a: undefined });
  const keys = chosen.map((side) => side.key);
  const [a] = chosen;
  if (all.length < 2)
    return (
      <Nothing title="Two runs are needed to compare">
        <p>
          {all.length === 0 ? 'There is no run here yet.' : 'There is one run with one arm here.'} Run the
          same dataset again with another model or configuration, or bring what another tool ran with{' '}
          <code>swebatch import</code>.
        </p>
      </Nothing>
    );
  return (
    <article className="page scroll">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>Compare</h1>
      <Picker all={all} keys={keys} choose={choose} />
      {error ? <p role="alert">{plain(error)}</p> : null}
      {a ? <Compared sides={chosen} rowsOf={rowsOf} /> : <p>None of the runs of this address is here.</p>}
    </article>
  );
}

interface ComparedProps {
  readonly sides: readonly Side[];
  readonly rowsOf: ReadonlyMap<string, readonly TrialDocument[]>;
}

function Compared({ sides, rowsOf }: ComparedProps) {
  const [a, b] = sides;
  return (
    <>
      <Summary sides={sides} rowsOf={rowsOf} />
      {a && b ? <Warnings a={a} b={b} /> : null}
      {a && b ? (
        <PairSection a={a} b={b} pairs={pairsOf(rowsOf.get(a.key) ?? [], rowsOf.get(b.key) ?? [])} />
      ) : (
        <p>Choose a second run to see where the two disagree.</p>
      )}
      <h2>Cost against resolved</h2>
      <CostPlot sides={sides} rowsOf={rowsOf} />
      <h2>Matrix</h2>
      <Matrix sides={sides} rowsOf={rowsOf} />
    </>
  );
}

function Picker({
  all,
  keys,
  choose,
}: {
  all: readonly Side[];
  keys: readonly string[];
  choose: (keys: readonly string[]) => void;
}) {
  return (
    <fieldset className="bar sidepicker">
      <legend>Runs, A first</legend>
      {keys.map((key, i) => (
        <label key={key}>
          <span className="quiet">{i === 0 ? 'A' : i === 1 ? 'B' : ''}</span>{' '}
          <select
            value={key}
            aria-label={`run ${i + 1}`}
            onChange={(event) => choose(keys.map((old, j) => (j === i ? event.target.value : old)))}
          >
            {all.map((side) => (
              <option key={side.key} value={side.key} disabled={side.key !== key && keys.includes(side.key)}>
                {plain(side.label)}
              </option>
            ))}
          </select>
          {keys.length > 1 ? (
            <button
              type="button"
              aria-label={`leave out run ${i + 1}`}
              onClick={() => choose(keys.filter((_key, j) => j !== i))}
            >
              ×
            </button>
          ) : null}
        </label>
      ))}
      {keys.length < MOST && keys.length < all.length ? (
        <button
          type="button"
          onClick={() => choose([...keys, all.find((side) => !keys.includes(side.key))!.key])}
        >
          add a run
        </button>
      ) : null}
      {keys.length > 1 ? (
        <button type="button" onClick={() => choose([keys[1]!, keys[0]!, ...keys.slice(2)])}>
          swap A and B
        </button>
      ) : null}
    </fieldset>
  );
}

/** States what makes a comparison unfair, before its result. */
function Warnings({ a, b }: { a: Side; b: Side }) {
  return (
    <>
      {a.datasetHash !== b.datasetHash ? (
        <p className="problem" role="note">
          These runs worked on different data: only the instances that both have are compared.
        </p>
      ) : null}
      {a.configHash !== b.configHash && a.run !== b.run ? (
        <p className="problem" role="note">
          The configurations of these runs differ in more than their names: see “Configuration” of each.
        </p>
      ) : null}
    </>
  );
}

function Summary({
  sides,
  rowsOf,
}: {
  sides: readonly Side[];
  rowsOf: ReadonlyMap<string, readonly TrialDocument[]>;
}) {
  const scores = sides.map((side) => scoreOf(rowsOf.get(side.key) ?? []));
  const rewarded = scores.some(({ reward }) => reward !== undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard
    <section className="wide" aria-label="Summary of the runs" tabIndex={0}>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Graded of planned</th>
            <th scope="col">Resolved, 95 % interval</th>
            {rewarded ? <th scope="col">Reward, 95 % interval</th> : null}
            <th scope="col">Cost</th>
            <th scope="col">Cost of one resolved</th>
          </tr>
        </thead>
        <tbody>
          {sides.map((side, i) => {
            const score = scores[i]!;
            const each =
              score.resolved > 0 && score.money.costNano !== null
                ? score.money.costNano / score.resolved
                : null;
            return (
              <tr key={side.key}>
                <th scope="row">
                  {i === 0 ? 'A: ' : i === 1 ? 'B: ' : ''}
                  {plain(side.label)}
                </th>
                <td>
                  {score.graded} / {score.planned}
                </td>
                <td>
                  {score.graded === 0 ? DASH : `${score.resolved}: ${rate(score.resolved, score.graded)}`}
                </td>
                {rewarded ? <td>{rewardRange(score.reward)}</td> : null}
                <td>{cost(score.money)}</td>
                <td>{each === null ? DASH : cost({ ...score.money, costNano: each })}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
