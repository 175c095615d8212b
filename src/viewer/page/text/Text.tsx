/** Foreign text in its colours: of terminals, of JSON and of diffs; long text is folded. */
import { memo, type ReactNode, useMemo, useState } from 'preact/compat';
import { ansiSpans, plain } from './foreignText.ts';
import { colouringOf, diffPieces, jsonPieces } from './jsonTokens.ts';
import { integer, size } from './numbers.ts';

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
  const pre = (part: ReactNode) => <pre className="output">{part}</pre>;
  const button = (to: number, says: string) => (
    <button type="button" className="fold" onClick={() => setShown(to)}>
      {says}
    </button>
  );
  // A single endless line is as heavy as many short ones.
  if (lines.length <= FOLD_OVER && text.length > 200_000 && shown === 0)
    return (
      <>
        {pre(<Ansi text={text.slice(0, 20_000)} />)}
        {button(MORE, `… show all ${integer(text.length)} characters of ${label}`)}
      </>
    );
  const head = lines.slice(0, Math.max(HEAD, shown));
  const rest = lines.length - head.length - TAIL;
  if (lines.length <= FOLD_OVER || rest <= 0)
    return (
      <>
        {pre(<Coloured text={text} whole={text} />)}
        {lines.length > FOLD_OVER ? button(0, `fold ${label}`) : null}
      </>
    );
  const hidden = lines.slice(head.length, -TAIL).join('\n');
  const found = holds(hidden, asked) ? ', what you search is inside' : '';
  return (
    <>
      {pre(<Coloured text={head.join('\n')} whole={text} />)}
      {button(shown + MORE, `… ${integer(rest)} more lines of ${label} (${size(hidden.length)}${found})`)}
      {pre(<Coloured text={lines.slice(-TAIL).join('\n')} whole={text} />)}
    </>
  );
}

interface Piece {
  readonly text: string;
  readonly className: string;
}

const Pieces = ({ pieces }: { pieces: readonly Piece[] }) =>
  pieces.map(({ text, className }, i) =>
    className === '' ? (
      text
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one immutable text
      <span key={i} className={className}>
        {text}
      </span>
    ),
  );

/** Text of a terminal in its colours. */
export const Ansi = memo(function Ansi({ text }: { text: string }) {
  return <Pieces pieces={useMemo(() => ansiSpans(text), [text])} />;
});

const Coloured = memo(function Coloured({ text, whole }: { text: string; whole: string }) {
  const kind = useMemo(() => colouringOf(whole), [whole]);
  const pieces = useMemo(() => {
    if (kind === 'none') return ansiSpans(text);
    const found = kind === 'json' ? jsonPieces(plain(text)) : diffPieces(plain(text));
    return found.map((piece) => ({ text: piece.text, className: piece.tone && `tone ${piece.tone}` }));
  }, [kind, text]);
  return <Pieces pieces={pieces} />;
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
