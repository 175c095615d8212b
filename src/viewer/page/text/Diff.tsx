/** A unified diff with highlighting. diff2html escapes what it is given; the strict CSP stands behind it. */
import 'diff2html/bundles/css/diff2html.min.css';
import { useEffect, useRef } from 'preact/compat';
import { useLibraries } from '../later/later.ts';
import { plain } from './foreignText.ts';

const TOO_LONG = 400_000;

export function Diff({ text, label, split = false }: { text: string; label: string; split?: boolean }) {
  const target = useRef<HTMLDivElement>(null);
  const { libraries } = useLibraries();
  const tooLong = text.length > TOO_LONG;
  useEffect(() => {
    if (!target.current || !libraries || tooLong) return;
    libraries.drawDiff(target.current, plain(text), {
      outputFormat: split ? 'side-by-side' : 'line-by-line',
      drawFileList: false,
      matching: 'lines',
      colorScheme: libraries.ColorSchemeType.AUTO,
      fileContentToggle: false,
      stickyFileHeaders: false,
      highlight: text.length < TOO_LONG / 4,
    });
    // Parts that scroll sideways must be reachable by keyboard.
    for (const part of target.current.querySelectorAll<HTMLElement>('.d2h-file-diff,.d2h-file-side-diff'))
      part.tabIndex = 0;
  }, [text, tooLong, split, libraries]);
  if (text.trim() === '') return <p className="quiet pad">no {label}</p>;
  if (tooLong)
    return (
      <pre className="output">
        {plain(text.slice(0, TOO_LONG))}
        {`\n… ${text.length - TOO_LONG} characters more: see the raw patch`}
      </pre>
    );
  // Without its colours until they are there.
  return libraries ? (
    <div key="drawn" ref={target} className="diff" />
  ) : (
    <pre className="output">{plain(text)}</pre>
  );
}
