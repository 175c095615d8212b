/** A unified diff with highlighting. diff2html escapes what it is given; the strict CSP stands behind it. */
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import php from 'highlight.js/lib/languages/php';
import plaintext from 'highlight.js/lib/languages/plaintext';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import 'diff2html/bundles/css/diff2html.min.css';
import { ColorSchemeType } from 'diff2html/lib/types.js';
import { Diff2HtmlUI } from 'diff2html/lib-esm/ui/js/diff2html-ui-base.js';
import { useEffect, useRef } from 'react';
import { plain } from './foreignText.ts';

const TOO_LONG = 400_000;

export function Diff({ text, label, split = false }: { text: string; label: string; split?: boolean }) {
  const target = useRef<HTMLDivElement>(null);
  const tooLong = text.length > TOO_LONG;
  useEffect(() => {
    if (!target.current || tooLong) return;
    const safe = plain(text);
    const ui = new Diff2HtmlUI(
      target.current,
      safe,
      {
        outputFormat: split ? 'side-by-side' : 'line-by-line',
        drawFileList: false,
        matching: 'lines',
        colorScheme: ColorSchemeType.AUTO,
        fileContentToggle: false,
        stickyFileHeaders: false,
        highlight: text.length < TOO_LONG / 4,
      },
      highlighter,
    );
    ui.draw();
    // What scrolls sideways must be reachable by keyboard.
    for (const part of target.current.querySelectorAll<HTMLElement>('.d2h-file-diff,.d2h-file-side-diff'))
      part.tabIndex = 0;
  }, [text, tooLong, split]);
  if (text.trim() === '') return <p className="quiet pad">no {label}</p>;
  if (tooLong)
    return (
      <pre className="output">
        {plain(text.slice(0, TOO_LONG))}
        {`\n… ${text.length - TOO_LONG} characters more: see the raw patch`}
      </pre>
    );
  return <div ref={target} className="diff" />;
}

const languages = {
  bash,
  c,
  cpp,
  go,
  ini,
  java,
  javascript,
  json,
  markdown,
  php,
  plaintext,
  python,
  ruby,
  rust,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

const highlighter = hljs;
