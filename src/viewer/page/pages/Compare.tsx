/** Runs against each other on the same instances: who resolved what, at which price, and where two disagree. */
import { useMemo } from 'react';
import { scoreOfRows } from '../../documents/pairs.ts';
import type { RunList } from '../../documents/resources.ts';
import { CostPlot } from '../charts/CostPlot.tsx';
import { useDocument, useManyTrials } from '../data/source.ts';
import { Nothing, type PlainColumn, PlainTable, Scrolled, Up, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { Matrix } from '../tables/Matrix.tsx';
import { PairSection, type Side } from '../tables/PairSection.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, costOfEach, DASH, rate, rewardRange } from '../text/numbers.ts';

const MOST = 8;

const NO_RUNS: RunList['runs'] = [];

function useSides(runs: RunList['runs']) {
  const { query } = useRoute();
  const asked = query.get('s');
  const first = query.get('a');
  return useMemo(() => {
    const all = runs.flatMap((run) =>
      run.arms.map(({ name }) => ({
        key: `${run.id}:${name}`,
        run,
        arm: name,
        label: plain(run.arms.length > 1 ? `${run.name} / ${name}` : run.name),
      })),
    );
    if (asked !== null) {
      const keys = asked.split('|');
      return { all, chosen: keys.flatMap((key) => all.filter((side) => side.key === key)).slice(0, MOST) };
    }
    const start = all.find((side) => String(side.run.id) === first) ?? all[0];
    const other =
      all.find((side) => side !== start && side.run.datasetHash === start?.run.datasetHash) ??
      all.find((side) => side !== start);
    return { all, chosen: [start, other].filter((side) => side !== undefined) };
  }, [runs, asked, first]);
}

export function ComparePage() {
  const entry = useDocument<RunList>('runs');
  const { all, chosen } = useSides(entry.data?.runs ?? NO_RUNS);
  const runs = useMemo(() => [...new Set(chosen.map((side) => side.run.id))], [chosen]);
  const { trials, error } = useManyTrials(runs, entry.data);
  const sides = useMemo(
    () =>
      chosen.map((side): Side => {
        const rows = (trials.get(side.run.id) ?? []).filter((row) => row.arm === side.arm);
        return { ...side, rows, score: scoreOfRows(rows) };
      }),
    [chosen, trials],
  );
  if (!entry.data) return <Waiting entry={entry} />;
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
  const [a, b] = sides;
  return (
    <article className="page scroll">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>Compare</h1>
      <Picker all={all} keys={chosen.map((side) => side.key)} />
      {error ? <p role="alert">{plain(error)}</p> : null}
      {a ? (
        <>
          <Summary sides={sides} />
          {b ? <PairSection a={a} b={b} /> : <p>Choose a second run to see where the two disagree.</p>}
          <h2>Cost against resolved</h2>
          <CostPlot sides={sides} />
          <h2>Matrix</h2>
          <Matrix sides={sides} />
        </>
      ) : (
        <p>None of the runs of this address is here.</p>
      )}
    </article>
  );
}

function Picker({ all, keys }: { all: readonly { key: string; label: string }[]; keys: readonly string[] }) {
  const choose = (next: readonly string[]) => setQuery({ s: next.join('|'), a: undefined });
  return (
    <fieldset className="bar sidepicker">
      <legend>Runs, A first</legend>
      {keys.map((key, i) => (
        <label key={key}>
          <span className="quiet">{['A', 'B'][i] ?? ''}</span>{' '}
          <select
            value={key}
            aria-label={`run ${i + 1}`}
            onChange={(event) => choose(keys.with(i, event.target.value))}
          >
            {all.map((side) => (
              <option key={side.key} value={side.key} disabled={side.key !== key && keys.includes(side.key)}>
                {side.label}
              </option>
            ))}
          </select>
          {keys.length > 1 ? (
            <button
              type="button"
              aria-label={`leave out run ${i + 1}`}
              onClick={() => choose(keys.toSpliced(i, 1))}
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

function Summary({ sides }: { sides: readonly Side[] }) {
  const reward: PlainColumn<Side> = {
    header: 'Reward, 95 % interval',
    cell: ({ score }) => rewardRange(score.reward),
  };
  const columns: PlainColumn<Side>[] = [
    { header: 'Run', cell: (side) => `${['A: ', 'B: '][sides.indexOf(side)] ?? ''}${side.label}` },
    { header: 'Graded of planned', cell: ({ score }) => `${score.graded} / ${score.planned}` },
    {
      header: 'Resolved, 95 % interval',
      cell: ({ score: { graded, resolved } }) =>
        graded === 0 ? DASH : `${resolved}: ${rate(resolved, graded)}`,
    },
    ...(sides.some(({ score }) => score.reward !== undefined) ? [reward] : []),
    { header: 'Cost', cell: ({ score }) => cost(score.money) },
    { header: 'Cost of one resolved', cell: ({ score }) => costOfEach(score.money, score.resolved) },
  ];
  return (
    <Scrolled className="wide" label="Summary of the runs">
      <PlainTable columns={columns} rows={sides} rowId={(side) => side.key} />
    </Scrolled>
  );
}
