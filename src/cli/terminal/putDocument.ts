/** A report in the format that was asked for, on stdout or in a file. */
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import type { Document } from '../../report/render/document.ts';
import { jsonText } from '../../report/render/json.ts';
import { renderHtml } from '../../report/render/renderHtml.ts';
import { renderMarkdown } from '../../report/render/renderMarkdown.ts';
import { renderTerminal } from '../../report/render/renderTerminal.ts';
import type { FORMATS } from '../flags/commonFlags.ts';
import { printData, say } from './context.ts';

interface Where {
  readonly json: boolean;
  readonly format?: (typeof FORMATS)[number] | undefined;
  /** A file instead of stdout. */
  readonly to?: string | undefined;
}

export async function putDocument(
  { json, format = 'terminal', to }: Where,
  title: string,
  value: unknown,
  document: () => Document,
): Promise<void> {
  const texts = {
    json: () => jsonText(value),
    html: () => renderHtml(document(), title),
    markdown: () => renderMarkdown(document()),
    terminal: () => renderTerminal(document()),
  };
  const text = texts[json ? 'json' : format]();
  if (to === undefined || to === '') return printData(text);
  await writeAtomically(to, text);
  say(`written: ${to}`);
}
