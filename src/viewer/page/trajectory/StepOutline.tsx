/** The steps of a trajectory in one column: what each does, how it ended, its time and its cost. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { OutlineRow } from '../../documents/attemptDocuments.ts';
import { failureOf, type StepLine, stepLines } from '../../steps/alignedAttempts.ts';
import { plain } from '../text/foreignText.ts';
import { duration, nano } from '../text/numbers.ts';

const HEIGHT = 40;

interface OutlineProps {
  outline: readonly OutlineRow[];
  active: number;
  hits: ReadonlyMap<number, number>;
  show: (index: number) => void;
}

/** What a reader looks for first. */
const FILTERS: readonly (readonly [name: string, test: (line: StepLine) => boolean])[] = [
  ['edits', ({ does }) => does.kind === 'edit' || does.kind === 'submit'],
  ['tests', ({ does }) => does.kind === 'test'],
  ['failures', (line) => failureOf(line) !== ''],
];

export function StepOutline({ outline, active, hits, show }: OutlineProps) {
  const all = useMemo(() => stepLines(outline), [outline]);
  const [chosen, choose] = useState<string | undefined>(undefined);
  const filter = FILTERS.find(([name]) => name === chosen)?.[1];
  const lines = useMemo(() => (filter ? all.filter(filter) : all), [all, filter]);
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
    <div className="stepcolumn noprint">
      <fieldset className="stepfilter">
        <legend className="hide">Show only these steps</legend>
        {FILTERS.map(([name, test]) => (
          <button
            key={name}
            type="button"
            className={chosen === name ? 'chip on' : 'chip'}
            aria-pressed={chosen === name}
            disabled={!all.some(test)}
            onClick={() => choose(chosen === name ? undefined : name)}
          >
            {name} <span className="n">{all.filter(test).length}</span>
          </button>
        ))}
      </fieldset>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard */}
      <nav ref={box} className="steps" aria-label="Steps" tabIndex={0}>
        <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const line = lines[item.index]!;
            const { row, ms } = line;
            const { kind, command } = line.does;
            const failure = failureOf(line);
            const found = hits.get(row.seq) ?? 0;
            const isCurrent = item.index === current;
            return (
              <button
                key={row.seq}
                type="button"
                className={`step${isCurrent ? ' current' : ''}${failure ? ' failed' : ''}`}
                aria-current={isCurrent ? 'step' : undefined}
                style={{ transform: `translateY(${item.start}px)`, height: HEIGHT }}
                onClick={() => show(line.index)}
                title={plain(command)}
              >
                <span className="stepline">
                  <span className="number">{row.step}</span>
                  <code>{command === '' ? 'says' : plain(command.split('\n', 1)[0]!.slice(0, 120))}</code>
                </span>
                <span className="stepfacts">
                  <span className={`kind ${kind}`}>{kind}</span>
                  {failure ? <span className="bad">{failure}</span> : null}
                  {ms === null ? null : <span>{duration(ms)}</span>}
                  {row.call?.cost_nano ? <span>{nano(row.call.cost_nano)}</span> : null}
                  {found > 0 ? <span className="hit">{found} found</span> : null}
                </span>
              </button>
            );
          })}
        </div>
      </nav>
    </div>
  );
}
