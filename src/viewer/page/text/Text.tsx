import { useMemo, useState } from 'react';
import { Ansi } from './Ansi.tsx';
import { Coloured } from './Coloured.tsx';
import { size } from './numbers.ts';

const FOLD_OVER = 40;
const HEAD = 16;
const TAIL = 12;
const MORE = 3000;

const holds = (text: string, asked: string): boolean =>
  asked.trim().length > 1 && text.toLowerCase().includes(asked.trim().toLowerCase());

/** Long output is folded in the middle; opened, it grows by a few thousand lines at a time. */
export function Output({ text, label, asked = '' }: { text: string; label: string; asked?: string }) {
  const [shown, setShown] = useState(0);
  const lines = useMemo(() => text.split('\n'), [text]);
  // A single endless line is as heavy as many short ones.
  const capped = lines.length <= FOLD_OVER && text.length > 200_000 && shown === 0;
  if (lines.length <= FOLD_OVER && !capped)
    return (
      <pre className="output">
        <Coloured text={text} whole={text} />
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
  const hidden = lines.slice(head.length, -TAIL).join('\n');
  if (rest <= 0)
    return (
      <>
        <pre className="output">
          <Coloured text={text} whole={text} />
        </pre>
        <button type="button" className="fold" onClick={() => setShown(0)}>
          fold {label}
        </button>
      </>
    );
  return (
    <>
      <pre className="output">
        <Coloured text={head.join('\n')} whole={text} />
      </pre>
      <button type="button" className="fold" onClick={() => setShown(shown + MORE)}>
        … {rest.toLocaleString('en-US')} more lines of {label} ({size(hidden.length)}
        {holds(hidden, asked) ? ', what you search is inside' : ''})
      </button>
      <pre className="output">
        <Coloured text={lines.slice(-TAIL).join('\n')} whole={text} />
      </pre>
    </>
  );
}
