/** Text that others wrote: colours are kept, everything that moves, hides or reorders is shown, nothing is ever markup. */
import Anser from 'anser';
import { memo, useMemo, useState } from 'react';
import { settleLines, showUnseen, stripEscapes } from '../../base/text/visibleText.ts';

/** One line or cell of foreign text. */
export const plain = (text: string): string => showUnseen(stripEscapes(text));

interface Span {
  text: string;
  className: string;
}

/** Only the 16 named colours and weights become classes; anything else falls back to plain text. */
export function ansiSpans(text: string): Span[] {
  const clean = showUnseen(stripEscapes(settleLines(text), { keepColours: true }), { keepEscape: true });
  if (!clean.includes('\u001b')) return [{ text: clean, className: '' }];
  return Anser.ansiToJson(clean, { use_classes: true, remove_empty: true }).map((part) => ({
    text: part.content,
    className: [part.fg, part.bg && `${part.bg}-bg`, ...part.decorations.map((name) => `ansi-${name}`)]
      .filter((name) => /^ansi-[a-z-]+$/.test(name ?? ''))
      .join(' '),
  }));
}

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
