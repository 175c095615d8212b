/** The steps of a trajectory in one column: what each does, how it ended, its time and its cost. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef } from 'react';
import type { OutlineRow } from '../../documents/documents.ts';
import { type StepLine, stepLines } from '../../steps/stepLines.ts';
import { plain } from '../text/foreignText.ts';
import { duration, nano } from '../text/numbers.ts';

const HEIGHT = 40;

export function StepOutline({
  outline,
  active,
  hits,
  show,
}: {
  outline: readonly OutlineRow[];
  active: number;
  hits: ReadonlyMap<number, number>;
  show: (index: number) => void;
}) {
  const lines = useMemo(() => stepLines(outline), [outline]);
  const current = lines.findLastIndex((line) => line.index <= active);
  const box = useRef<HTMLElement>(null);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    overscan: 8,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the column follows the step that is read
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current, { align: 'auto' });
  }, [current]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard
    <nav ref={box} className="steps noprint" aria-label="Steps" tabIndex={0}>
      <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const line = lines[item.index]!;
          return (
            <Line
              key={line.row.seq}
              line={line}
              isCurrent={item.index === current}
              hits={hits.get(line.row.seq) ?? 0}
              top={item.start}
              show={show}
            />
          );
        })}
      </div>
    </nav>
  );
}

function Line({
  line,
  isCurrent,
  hits,
  top,
  show,
}: {
  line: StepLine;
  isCurrent: boolean;
  hits: number;
  top: number;
  show: (index: number) => void;
}) {
  const { row, exitCode, timedOut, ms } = line;
  const { kind, command } = row.does ?? { kind: 'talk', command: '' };
  const failed = timedOut || (exitCode !== null && exitCode !== 0);
  return (
    <button
      type="button"
      className={`step${isCurrent ? ' current' : ''}${failed ? ' failed' : ''}`}
      aria-current={isCurrent ? 'step' : undefined}
      style={{ transform: `translateY(${top}px)`, height: HEIGHT }}
      onClick={() => show(line.index)}
      title={plain(command)}
    >
      <span className="stepline">
        <span className="number">{row.step}</span>
        <code>{command === '' ? 'says' : plain(command.split('\n', 1)[0]!.slice(0, 120))}</code>
      </span>
      <span className="stepfacts">
        <span className={`kind ${kind}`}>{kind}</span>
        {failed ? <span className="bad">{timedOut ? 'timed out' : `exit ${exitCode}`}</span> : null}
        {ms === null ? null : <span>{duration(ms)}</span>}
        {row.call?.cost_nano ? <span>{nano(row.call.cost_nano)}</span> : null}
        {hits > 0 ? <span className="hit">{hits} found</span> : null}
      </span>
    </button>
  );
}
