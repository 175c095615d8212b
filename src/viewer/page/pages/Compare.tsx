/** Arms against each other on the same instances: what `compare` says, who resolved what, at which price. */
import { useMemo } from 'preact/compat';
import { dollars, money } from '../../../report/render/document.ts';
import type { ComparedDocument } from '../../documents/compared.ts';
import type { RunList } from '../../documents/resources.ts';
import { CostPlot } from '../charts/CostPlot.tsx';
import { useDocument } from '../data/source.ts';
import { Nothing, type PlainColumn, PlainTable, Scrolled, Up, Waiting } from '../parts.tsx';
import { scoreOfArm } from '../report/ArmTable.tsx';
import { Blocks } from '../report/Blocks.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { Matrix, type Side } from '../tables/Matrix.tsx';
import { plain } from '../text/foreignText.ts';
import { DASH, rewardRange } from '../text/numbers.ts';

const MOST = 8;
/** More trials than this make a table that nobody reads; `compare` names who changed. */
const MOST_TRIALS = 10_000;

const NO_RUNS: RunList['runs'] = [];

const sidesOf = (runs: RunList['runs']): Side[] =>
  runs.flatMap((run) =>
    run.arms.map(({ name: arm }, i) => ({
      name: run.arms.length > 1 ? `${run.name}/${arm}` : run.name,
      run,
      arm,
      path: `${run.id}.${i}`,
    })),
  );

function useSides(runs: RunList['runs']) {
  const { query } = useRoute();
  const asked = query.get('s');
  const first = query.get('a');
  return useMemo(() => {
    const all = sidesOf(runs);
    if (asked !== null) {
      const names = asked.split('|');
      return {
        all,
        chosen: names.flatMap((name) => all.filter((side) => side.name === name)).slice(0, MOST),
      };
    }
    const start = all.find((side) => side.run.name === first) ?? all[0];
    const other =
      all.find((side) => side !== start && side.run.datasetHash === start?.run.datasetHash) ??
      all.find((side) => side !== start);
    return { all, chosen: [start, other].filter((side) => side !== undefined) };
  }, [runs, asked, first]);
}

export function ComparePage() {
  const entry = useDocument<RunList>('runs');
  const { all, chosen } = useSides(entry.data?.runs ?? NO_RUNS);
  const path = chosen.map((side) => side.path).join('/');
  const found = useDocument<ComparedDocument>(path === '' ? undefined : `compare/${path}`);
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
  const trials = chosen.reduce((sum, { run }) => sum + run.planned, 0);
  return (
    <article className="page scroll">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>Compare</h1>
      <Picker all={all} names={chosen.map((side) => side.name)} />
      {chosen.length === 0 ? (
        <p>None of the runs of this address is here.</p>
      ) : found.data ? (
        <>
          <Summary sides={found.data.sides} />
          <Words compared={found.data} chosen={chosen} />
          <h2>Cost against resolved</h2>
          <CostPlot sides={found.data.sides} />
        </>
      ) : (
        <Waiting entry={found} />
      )}
      {chosen.length > 0 && trials <= MOST_TRIALS ? (
        <>
          <h2>Every instance</h2>
          <Matrix sides={chosen} list={entry.data} />
        </>
      ) : null}
    </article>
  );
}

function Picker({ all, names }: { all: readonly Side[]; names: readonly string[] }) {
  const choose = (next: readonly string[]) => setQuery({ s: next.join('|'), a: undefined });
  return (
    <fieldset className="bar sidepicker">
      <legend>Runs, A first</legend>
      {names.map((name, i) => (
        <label key={name}>
          <span className="quiet">{['A', 'B'][i] ?? ''}</span>{' '}
          <select
            value={name}
            aria-label={`run ${i + 1}`}
            onChange={(event) => choose(names.with(i, event.currentTarget.value))}
          >
            {all.map((side) => (
              <option
                key={side.name}
                value={side.name}
                disabled={side.name !== name && names.includes(side.name)}
              >
                {plain(side.name)}
              </option>
            ))}
          </select>
          {names.length > 1 ? (
            <button
              type="button"
              aria-label={`leave out run ${i + 1}`}
              onClick={() => choose(names.toSpliced(i, 1))}
            >
              ×
            </button>
          ) : null}
        </label>
      ))}
      {names.length < MOST && names.length < all.length ? (
        <button
          type="button"
          onClick={() => choose([...names, all.find((side) => !names.includes(side.name))!.name])}
        >
          add a run
        </button>
      ) : null}
      {names.length > 1 ? (
        <button type="button" onClick={() => choose([names[1]!, names[0]!, ...names.slice(2)])}>
          swap A and B
        </button>
      ) : null}
    </fieldset>
  );
}

type SideReport = ComparedDocument['sides'][number];

/** Each side by itself, as `report` says it; the comparison of both follows below. */
function Summary({ sides }: { sides: readonly SideReport[] }) {
  const columns: readonly PlainColumn<SideReport>[] = [
    { header: 'Run', cell: (side) => `${['A: ', 'B: '][sides.indexOf(side)] ?? ''}${plain(side.label)}` },
    { header: 'Trials with a result', cell: ({ report }) => `${report.valid} of ${report.planned}` },
    { header: 'Resolved, 95 % interval', cell: ({ report }) => scoreOfArm(report) },
    { header: 'Reward, 95 % interval', cell: ({ report }) => rewardRange(report.reward) },
    { header: 'Cost', cell: ({ report: { accounting } }) => money(accounting.cost) },
    {
      header: 'Cost per resolved instance',
      cell: ({ report: { accounting } }) =>
        accounting.costPerResolved?.nano == null ? DASH : dollars(accounting.costPerResolved.nano),
    },
  ];
  const shown = columns.filter(({ cell }) => sides.some((side) => cell(side) !== DASH));
  return (
    <Scrolled className="wide" label="Summary of the runs">
      <PlainTable columns={shown} rows={sides} rowId={(side) => side.label} />
    </Scrolled>
  );
}

function Words({ compared, chosen }: { compared: ComparedDocument; chosen: readonly Side[] }) {
  const [a, b] = chosen;
  const only = compared.compared?.comparisons.length === 1 ? compared.compared.comparisons[0] : undefined;
  if (!compared.words || !a || !b) return <p>Choose a second run to see where the two disagree.</p>;
  const steps = (id: string) => (
    <>
      <a href={href(['compare', a.name, b.name, id])} title="their steps beside each other">
        {plain(id)}
      </a>{' '}
      <a className="quiet" href={href(['history', id])}>
        history
      </a>
    </>
  );
  return (
    <section className="compared">
      {only ? (
        <h2>
          {plain(a.name)} (A) against {plain(b.name)} (B): {only.broken.length} broken, {only.fixed.length}{' '}
          fixed
        </h2>
      ) : (
        <h2>Each against each</h2>
      )}
      <Blocks blocks={compared.words} name={only ? steps : undefined} />
    </section>
  );
}
