/** The predicted patch, the gold patch and the test output beside each other; a failed test leads to its line. */
import { useEffect, useMemo, useRef, useState } from 'preact/compat';
import { settleLines } from '../../../base/text/inert.ts';
import type { AttemptDocument, EvaluationDocument } from '../../documents/attemptDocuments.ts';
import { KEPT_WORK, keptWork } from '../../documents/keptWork.ts';
import { useDocument } from '../data/source.ts';
import { Badge, Flags, Foldout, save, Waiting } from '../parts.tsx';
import { useVirtualRows } from '../tables/virtualRows.ts';
import { Diff } from '../text/Diff.tsx';
import { plain } from '../text/foreignText.ts';
import { duration, reward, rewardNames, words } from '../text/numbers.ts';
import { Ansi } from '../text/Text.tsx';

export function PatchPanel({ doc }: { doc: AttemptDocument }) {
  const own = doc.evaluations.filter(
    (evaluation) => evaluation.attempt === null || evaluation.attempt === doc.attempt.id,
  );
  const current = own.findLast((evaluation) => evaluation.current) ?? own.at(-1);
  const [picked, setPicked] = useState<number | undefined>(undefined);
  const [split, setSplit] = useState(false);
  const shown = own.find((evaluation) => evaluation.id === picked) ?? current;
  const another = (title: string, label: string, text: string | null) =>
    text === null || text === doc.patch ? null : (
      <Foldout title={title}>{() => <Diff text={text} label={label} />}</Foldout>
    );
  return (
    <div className="scroll">
      <div className="bar">
        <label>
          <input
            type="checkbox"
            checked={split}
            onChange={(event) => setSplit(event.currentTarget.checked)}
          />{' '}
          old and new side by side
        </label>
        <button
          type="button"
          onClick={() => save(`${doc.instance.instanceId}.patch`, 'text/x-diff', keptWork(doc) ?? doc.patch)}
        >
          save patch
        </button>
        {own.length > 1 ? (
          <label>
            verdict{' '}
            <select value={shown?.id} onChange={(event) => setPicked(Number(event.currentTarget.value))}>
              {own.map((evaluation) => (
                <option key={evaluation.id} value={evaluation.id}>
                  {plain(
                    `${evaluation.startedAt.slice(0, 16)} ${evaluation.outcome} ${evaluation.source}${evaluation.current ? ' (counts)' : ''}`,
                  )}
                </option>
              ))}
            </select>
          </label>
        ) : null}
      </div>
      <div className="patches">
        <section aria-label="Patch">
          <h2>Patch</h2>
          <PatchOf doc={doc} label="patch" split={split} />
          {keptWork(doc) === null
            ? another('what the harness found in the tree', 'captured patch', doc.captured)
            : null}
          {another('what was submitted', 'submission', doc.submission)}
        </section>
        <section aria-label="Gold patch">
          <h2>Gold patch</h2>
          <Diff text={doc.instance.goldPatch} label="gold patch" split={split} />
          <Foldout title="test patch">
            {() => <Diff text={doc.instance.testPatch} label="test patch" />}
          </Foldout>
        </section>
        <section aria-label="Tests">
          <h2>Tests</h2>
          {shown ? <Verdict id={shown.id} /> : <p className="quiet pad">not graded</p>}
        </section>
      </div>
    </div>
  );
}

/** The prediction; where that is empty, the work that was kept. */
export function PatchOf({
  doc,
  label,
  split = false,
}: {
  doc: AttemptDocument;
  label: string;
  split?: boolean;
}) {
  const kept = keptWork(doc);
  if (kept === null) return <Diff text={doc.patch} label={label} split={split} />;
  return (
    <>
      <p className="quiet pad">{KEPT_WORK}</p>
      <Diff text={kept} label={label} split={split} />
    </>
  );
}

function Verdict({ id }: { id: number }) {
  const entry = useDocument<EvaluationDocument>(`evaluations/${id}`, false);
  const [marked, setMarked] = useState<{ line: number | null }>({ line: null });
  if (!entry.data) return <Waiting entry={entry} />;
  const verdict = entry.data;
  const failed = verdict.tests.filter((test) => !test.passed);
  return (
    <>
      <p>
        <Badge word={verdict.outcome} /> <Flags flags={verdict.flags.map((flag) => flag.rule)} /> by{' '}
        {plain(verdict.harness)} ({plain(verdict.source)}) in {duration(verdict.durationMs)}
        {verdict.applyMethod ? `; applied with ${plain(verdict.applyMethod)}` : ''}
        {verdict.infraReason ? `; ${plain(verdict.infraReason)}` : ''}
      </p>
      {verdict.reward === undefined ? null : (
        <p>
          reward {reward(verdict.reward)}
          {(verdict.rewards?.length ?? 0) > 1 ? ` (${plain(rewardNames(verdict.rewards))})` : ''}
        </p>
      )}
      {verdict.error ? <p className="problem">{plain(verdict.error.slice(0, 1000))}</p> : null}
      <p>
        {failed.length} of {verdict.tests.length} counted tests failed
      </p>
      <ul className="tests">
        {failed.slice(0, 200).map((test) => (
          <li key={`${test.group} ${test.name}`}>
            <button
              type="button"
              disabled={test.line === null}
              title={
                test.line === null ? 'the output does not mention it' : `line ${test.line} of the output`
              }
              onClick={() => setMarked({ line: test.line })}
            >
              {plain(test.name)}
            </button>{' '}
            <span className="quiet">{words(test.group)}</span>
          </li>
        ))}
      </ul>
      {verdict.log === null ? (
        <p className="quiet">no test output was kept</p>
      ) : (
        <Log text={verdict.log} marked={marked} />
      )}
      {verdict.report ? (
        <Foldout title="report.json">
          {() => <pre className="output">{plain(verdict.report ?? '')}</pre>}
        </Foldout>
      ) : null}
    </>
  );
}

function Log({ text, marked }: { text: string; marked: { line: number | null } }) {
  const lines = useMemo(() => settleLines(text).split('\n'), [text]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualRows({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 18,
    overscan: 20,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a click moves the view
  useEffect(() => {
    if (marked.line !== null) virtualizer.scrollToIndex(marked.line - 1, { align: 'center' });
  }, [marked]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard
    <div ref={scroller} className="log" role="log" aria-label="Test output" aria-live="off" tabIndex={0}>
      <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => (
          <div
            key={item.index}
            ref={virtualizer.measureElement}
            data-index={item.index}
            className={`placed line${marked.line === item.index + 1 ? ' marked' : ''}`}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            <span className="number" aria-hidden="true">
              {item.index + 1}
            </span>
            <span className="content">
              <Ansi text={lines[item.index]!.slice(0, 4000)} />
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}
