/** Resolved share against cost, each run a point with its Wilson interval; the numbers stand in the summary table. */
import { useMemo } from 'preact/compat';
import type uPlot from 'uplot';
import type { ComparedDocument } from '../../documents/compared.ts';
import { scoreOfArm } from '../report/ArmTable.tsx';
import { shareOf } from '../report/Headline.tsx';
import { plain } from '../text/foreignText.ts';
import { nano } from '../text/numbers.ts';
import { type Box, labelPlaces } from './labelPlaces.ts';
import { axis, ink, Plot } from './Plot.tsx';

interface Point {
  label: string;
  dollars: number;
  share: number;
  low: number;
  high: number;
  text: string;
}

export function CostPlot({ sides }: { sides: ComparedDocument['sides'] }) {
  const points = useMemo(() => pointsOf(sides), [sides]);
  const { options, data } = useMemo(() => plotOf(points), [points]);
  if (points.length === 0) return <p className="quiet">No run here has both a cost and a verdict.</p>;
  return (
    <Plot
      options={options}
      data={data}
      label={`cost against resolved: ${points.map((point) => point.text).join('; ')}`}
    />
  );
}

const pointsOf = (sides: ComparedDocument['sides']): Point[] =>
  sides
    .flatMap(({ label, report }) => {
      const share = report.graded ? shareOf({ resolved: report.resolved, over: report.estimate }) : null;
      const { nano: costNano } = report.accounting.cost;
      if (!share || costNano === null) return [];
      return {
        label: plain(label),
        dollars: costNano / 1e9,
        share: share.at * 100,
        low: share.low * 100,
        high: share.high * 100,
        text: `${plain(label)} ${nano(costNano)} ${scoreOfArm(report)}`,
      };
    })
    .sort((one, other) => one.dollars - other.dollars);

function plotOf(points: readonly Point[]) {
  const most = Math.max(0, ...points.map((point) => point.dollars));
  const data: uPlot.AlignedData = [points.map((point) => point.dollars), points.map((point) => point.share)];
  const options: Omit<uPlot.Options, 'width'> = {
    height: 320,
    legend: { show: false },
    scales: { x: { time: false, range: [0, most * 1.25 || 1] }, y: { range: [0, 100] } },
    axes: [
      axis('cost of all attempts', { values: (_u, ticks) => ticks.map((tick) => `$${tick}`) }),
      axis('resolved, %'),
    ],
    series: [
      {},
      { label: 'resolved', paths: () => null, points: { show: true, size: 9, fill: () => ink('--accent') } },
    ],
    hooks: { draw: [(plot) => whiskers(plot, points)] },
  };
  return { options, data };
}

/** Half the width of a whisker's end. */
const CAP = 4;
const LINE_HEIGHT = 16;

function whiskers(plot: uPlot, points: readonly Point[]): void {
  const { ctx } = plot;
  const scale = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ink('--accent');
  ctx.lineWidth = 1.5 * scale;
  const cap = CAP * scale;
  const drawn = points.map((point): Box => {
    const x = plot.valToPos(point.dollars, 'x', true);
    const [low, high] = [plot.valToPos(point.low, 'y', true), plot.valToPos(point.high, 'y', true)];
    ctx.beginPath();
    ctx.moveTo(x, low);
    ctx.lineTo(x, high);
    for (const y of [low, high]) {
      ctx.moveTo(x - cap, y);
      ctx.lineTo(x + cap, y);
    }
    ctx.stroke();
    return { left: x - cap, right: x + cap, top: high, bottom: low };
  });
  writeNames(plot, points, drawn, scale);
  ctx.restore();
}

function writeNames(plot: uPlot, points: readonly Point[], drawn: readonly Box[], scale: number): void {
  const { ctx, bbox } = plot;
  ctx.fillStyle = ink('--text');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.font = `${12 * scale}px system-ui, sans-serif`;
  const names = points.map((point) => {
    const text = point.label.length > 40 ? `${point.label.slice(0, 39)}…` : point.label;
    return {
      text,
      x: plot.valToPos(point.dollars, 'x', true),
      y: plot.valToPos(point.share, 'y', true),
      width: ctx.measureText(text).width,
      height: LINE_HEIGHT * scale,
    };
  });
  const area = {
    left: bbox.left,
    top: bbox.top,
    right: bbox.left + bbox.width,
    bottom: bbox.top + bbox.height,
  };
  for (const [i, { left, top, bottom }] of labelPlaces(names, area, drawn, scale).entries())
    ctx.fillText(names[i]!.text, left, (top + bottom) / 2);
}
