import { memo, useMemo, useState } from 'react';
import { Ansi } from './Ansi.tsx';
import { plain } from './foreignText.ts';
import { colouringOf, diffPieces, jsonPieces } from './jsonTokens.ts';
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

const Coloured = memo(function Coloured({ text, whole }: { text: string; whole: string }) {
  const kind = useMemo(() => colouringOf(whole), [whole]);
  const pieces = useMemo(
    () => (kind === 'none' ? [] : kind === 'json' ? jsonPieces(plain(text)) : diffPieces(plain(text))),
    [kind, text],
  );
  if (kind === 'none') return <Ansi text={text} />;
  return pieces.map((piece, i) =>
    piece.tone === '' ? (
      piece.text
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one immutable text
      <span key={i} className={`tone ${piece.tone}`}>
        {piece.text}
      </span>
    ),
  );
});

async function copy(text: string): Promise<void> {
  // Only pages of this machine and behind TLS have the clipboard.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement('textarea');
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand('copy');
  box.remove();
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [said, say] = useState('copy');
  return (
    <button
      type="button"
      className="copy noprint"
      aria-label={said === 'copy' ? `copy ${what}` : said}
      onClick={() => {
        copy(text).then(
          () => say('copied'),
          () => say('not allowed'),
        );
      }}
      onBlur={() => say('copy')}
    >
      {said}
    </button>
  );
}
