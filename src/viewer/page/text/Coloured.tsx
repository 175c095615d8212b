/** The output of a command: JSON and diffs in colours of the page, everything else in its own. */
import { memo, useMemo } from 'react';
import { Ansi } from './Ansi.tsx';
import { plain } from './foreignText.ts';
import { colouringOf, diffPieces, jsonPieces } from './jsonTokens.ts';

export const Coloured = memo(function Coloured({ text, whole }: { text: string; whole: string }) {
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
