/**
 * Libraries that draw diffs and charts: 230 KB, which nobody needs before such a thing is in sight. They are a script of their own,
 * `assets/later.js`, which imports nothing from the page and leaves its exports as `swebatchLater`. A file that holds one run has it inside.
 */

import { Diff2HtmlUI } from 'diff2html/lib-esm/ui/js/diff2html-ui-base.js';
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

export { ColorSchemeType } from 'diff2html/lib/types.js';
export { default as UPlot } from 'uplot';

const LANGUAGES = {
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
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

export const drawDiff = (
  target: HTMLElement,
  diff: string,
  options: ConstructorParameters<typeof Diff2HtmlUI>[2],
): void => new Diff2HtmlUI(target, diff, options, hljs).draw();
