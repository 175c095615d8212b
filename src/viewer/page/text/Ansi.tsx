/** Text of a terminal in its colours. */
import { memo, useMemo } from 'react';
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
