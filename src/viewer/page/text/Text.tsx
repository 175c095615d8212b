import { memo, useMemo, useState } from 'react';
import { ansiSpans } from './foreignText.ts';

export const Ansi = memo(function Ansi({ text }: { text: string }) {
  const spans = useMemo(() => ansiSpans(text), [text]);
  return (
    <>
      {spans.map((span, i) =>
        span.className === '' ? (
          span.text
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: spans of one immutable text
          <span key={i} className={span.className}>
            {span.text}
          </span>
        ),
      )}
    </>
  );
});

const FOLD_OVER = 40;
const HEAD = 16;
const TAIL = 12;
const MORE = 3000;

/** Long output is folded in the middle; opened, it grows by a few thousand lines at a time. */
export function Output({ text, label }: { text: string; label: string }) {
  const [shown, setShown] = useState(0);
  const lines = useMemo(() => text.split('\n'), [text]);
  // A single endless line is as heavy as many short ones.
  const capped = lines.length <= FOLD_OVER && text.length > 200_000 && shown === 0;
  if (lines.length <= FOLD_OVER && !capped)
    return (
      <pre className="output">
        <Ansi text={text} />
      </pre>
    );
  if (capped)
    return (
      <>
        <pre className="output">
          <Ansi text={text.slice(0, 20_000)} />
        </pre>
        <button type="button" className="fold" onClick={() => setShown(MORE)}>
          … show all {text.length.toLocaleString('en-US')} characters of {label}
        </button>
      </>
    );
  const head = lines.slice(0, Math.max(HEAD, shown));
  const rest = lines.length - head.length - TAIL;
  if (rest <= 0)
    return (
      <>
        <pre className="output">
          <Ansi text={text} />
        </pre>
        <button type="button" className="fold" onClick={() => setShown(0)}>
          fold {label}
        </button>
      </>
    );
  return (
    <>
      <pre className="output">
        <Ansi text={head.join('\n')} />
      </pre>
      <button type="button" className="fold" onClick={() => setShown(shown + MORE)}>
        … {rest.toLocaleString('en-US')} more lines of {label}
      </button>
      <pre className="output">
        <Ansi text={lines.slice(-TAIL).join('\n')} />
      </pre>
    </>
  );
}
