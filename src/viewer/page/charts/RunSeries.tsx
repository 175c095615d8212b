/** Money and trials of a run over time. */
import { useMemo } from 'preact/compat';
import type uPlot from 'uplot';
import type { RunDocument } from '../../documents/resources.ts';
import { nano } from '../text/numbers.ts';
import { axis, ink, Plot } from './Plot.tsx';

export function RunSeries({ run }: { run: RunDocument }) {
  const { spend, progress, spendData, progressData } = useMemo(() => plots(run), [run]);
  if (run.series.length < 2)
    return <p className="quiet">Two trials must end before there is a line to draw.</p>;
  const last = run.series.at(-1)!;
  // A line along zero says nothing.
  const costs = last.costNano > 0 || run.summary.budgetNano !== null;
  return (
    <div className={costs ? 'pair' : undefined}>
      {costs ? (
        <Plot options={spend} data={spendData} label={`spend over time, ${nano(last.costNano)} at the end`} />
      ) : null}
      <Plot
        options={progress}
        data={progressData}
        label={`${last.sealed} trials sealed and ${last.resolved} resolved over time`}
      />
    </div>
  );
}

function plots(run: RunDocument) {
  const x = run.series.map((point) => Date.parse(point.at) / 1000);
  const dollars = run.series.map((point) => point.costNano / 1e9);
  const budget = run.summary.budgetNano;
  const base = { height: 220, cursor: { drag: { x: true, y: false } } };
  const spend: Omit<uPlot.Options, 'width'> = {
    ...base,
    title: 'Spend, dollars',
    axes: [axis(''), axis('', { values: (_u, ticks) => ticks.map((tick) => `$${tick}`) })],
    series: [
      {},
      { label: 'spent', stroke: () => ink('--accent'), width: 2 },
      ...(budget === null
        ? []
        : [{ label: 'budget', stroke: () => ink('--bad'), dash: [6, 4], points: { show: false } }]),
    ],
  };
  const progress: Omit<uPlot.Options, 'width'> = {
    ...base,
    title: 'Trials, and rate',
    scales: { rate: {} },
    axes: [axis(''), axis(''), axis('per hour', { side: 1, scale: 'rate', grid: { show: false } })],
    series: [
      {},
      { label: 'sealed', stroke: () => ink('--accent'), width: 2 },
      { label: 'resolved', stroke: () => ink('--good'), width: 2 },
      { label: 'per hour', stroke: () => ink('--warn'), scale: 'rate', dash: [2, 3] },
    ],
  };
  const spendData: uPlot.AlignedData =
    budget === null ? [x, dollars] : [x, dollars, x.map(() => budget / 1e9)];
  const progressData: uPlot.AlignedData = [
    x,
    run.series.map((point) => point.sealed),
    run.series.map((point) => point.resolved),
    rates(run.series),
  ];
  return { spend, progress, spendData, progressData };
}

/** Endings an hour over the twenty points before each. */
function rates(series: RunDocument['series']): (number | null)[] {
  return series.map((point, i) => {
    const from = series[Math.max(0, i - 20)]!;
    const ms = Date.parse(point.at) - Date.parse(from.at);
    return ms > 0 ? ((point.ended - from.ended) / ms) * 3_600_000 : null;
  });
}
