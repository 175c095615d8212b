/** Where the time of an attempt went: one lane a phase along the clock, with the sums as text. */
import { useEffect, useMemo, useRef } from 'preact/compat';
import type { AttemptDocument } from '../../documents/attemptDocuments.ts';
import { ink } from '../charts/Plot.tsx';
import { PlainTable, Scrolled } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { duration, percent, words } from '../text/numbers.ts';

const LANE = 24;
const LEFT = 90;

export function Waterfall({ doc: whole }: { doc: AttemptDocument }) {
  // The wait before the attempt began lies before its clock.
  const queued = whole.phases.find((phase) => phase.offset_ms < 0)?.duration_ms ?? 0;
  const doc = useMemo(
    () => ({ ...whole, phases: whole.phases.filter((phase) => phase.offset_ms >= 0) }),
    [whole],
  );
  const canvas = useRef<HTMLCanvasElement>(null);
  const { lanes, end, totals } = useMemo(() => layout(doc), [doc]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const draw = () => paint(element, doc, lanes, end);
    const watch = new ResizeObserver(draw);
    watch.observe(element);
    return () => watch.disconnect();
  }, [doc, lanes, end]);
  if (doc.phases.length === 0) return <p className="pad quiet">No phases were recorded.</p>;
  return (
    <Scrolled className="scroll pad" label="Time">
      <canvas
        ref={canvas}
        className="waterfall"
        style={{ height: lanes.length * LANE + 30 }}
        role="img"
        aria-label={`phases over ${duration(end)}; the sums follow as a table`}
      />
      {queued > 0 && (
        <p className="quiet">Before that it waited {duration(queued)} for a slot and its image.</p>
      )}
      <PlainTable
        columns={[
          { header: 'Phase', cell: (total) => plain(words(total.name)) },
          { header: 'Times', cell: (total) => total.n },
          { header: 'Sum', cell: (total) => duration(total.ms) },
          { header: 'Share', cell: (total) => percent(total.ms / Math.max(1, end)) },
          { header: 'Longest', cell: (total) => duration(total.longest) },
        ]}
        rows={totals}
        rowId={(total) => total.name}
      />
    </Scrolled>
  );
}

function layout(doc: AttemptDocument) {
  const lanes = [...new Set(doc.phases.map((phase) => phase.name))];
  const end = Math.max(
    1,
    ...[doc.attempt.elapsedMs ?? 0],
    doc.phases.reduce((max, p) => Math.max(max, p.offset_ms + (p.duration_ms ?? 0)), 0),
  );
  const totals = lanes
    .map((name) => {
      const own = doc.phases.filter((phase) => phase.name === name).map((phase) => phase.duration_ms ?? 0);
      return {
        name,
        n: own.length,
        ms: own.reduce((sum, ms) => sum + ms, 0),
        longest: own.reduce((a, b) => Math.max(a, b), 0),
      };
    })
    .sort((a, b) => b.ms - a.ms);
  return { lanes, end, totals };
}

function paint(canvas: HTMLCanvasElement, doc: AttemptDocument, lanes: readonly string[], end: number): void {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = lanes.length * LANE + 30;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const x = (ms: number) => LEFT + (ms / end) * (width - LEFT - 10);
  for (const [i, lane] of lanes.entries()) {
    context.fillStyle = ink('--text');
    context.fillText(plain(words(lane)).slice(0, 14), 4, i * LANE + LANE / 2);
    context.fillStyle = ink('--line');
    context.fillRect(LEFT, i * LANE + LANE - 1, width - LEFT, 1);
  }
  context.fillStyle = ink('--accent');
  for (const phase of doc.phases) {
    const from = x(phase.offset_ms);
    const to = x(phase.offset_ms + (phase.duration_ms ?? Math.max(0, end - phase.offset_ms)));
    context.fillRect(from, lanes.indexOf(phase.name) * LANE + 4, Math.max(1, to - from), LANE - 9);
  }
  context.fillStyle = ink('--quiet');
  for (let i = 0; i <= 4; i += 1) {
    const text = duration((end * i) / 4);
    const last = width - context.measureText(text).width - 2;
    context.fillText(text, Math.min(x((end * i) / 4), last), lanes.length * LANE + 14);
  }
}
