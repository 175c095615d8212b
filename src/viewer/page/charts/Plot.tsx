/** uPlot in a React component: drawn again when data, width or colour scheme change, and always with its numbers as text nearby. */
import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef } from 'preact/compat';
import type uPlot from 'uplot';
import { useLibraries } from '../later/later.ts';

export function Plot({
  options,
  data,
  label,
}: {
  options: Omit<uPlot.Options, 'width'>;
  data: uPlot.AlignedData;
  label: string;
}) {
  const target = useRef<HTMLDivElement>(null);
  const { libraries, failed } = useLibraries();
  useEffect(() => {
    const element = target.current;
    if (!element || !libraries) return;
    const plot = new libraries.UPlot({ ...options, width: element.clientWidth || 600 }, data, element);
    const resize = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: options.height }),
    );
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [options, data, libraries]);
  if (failed) return <p className="quiet">The chart cannot be drawn: {failed}.</p>;
  // The chart's height is kept free, so that nothing moves when it comes.
  return (
    <div
      ref={target}
      className="plot"
      role="img"
      aria-label={label}
      style={libraries ? undefined : { minHeight: options.height }}
    />
  );
}

/** Canvas cannot read the style sheet by itself, and only a real property tells which of two colours `light-dark` takes. */
export function ink(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name}, #888)`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export const axis = (label: string, more: Partial<uPlot.Axis> = {}): uPlot.Axis => ({
  label,
  stroke: () => ink('--text'),
  grid: { stroke: () => ink('--line'), width: 1 },
  ticks: { stroke: () => ink('--line'), width: 1 },
  ...more,
});
