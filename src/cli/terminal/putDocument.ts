/** A report in the format that was asked for, on stdout or in a file. */
import { extname } from 'node:path';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { type Document, jsonText } from '../../report/render/document.ts';
import { renderHtml, renderMarkdown, renderTerminal } from '../../report/render/renderers.ts';
import { UserError } from '../../run/userError.ts';
import { FORMATS } from '../flags/verb.ts';
import { printData, say } from './context.ts';
import { documentWidth } from './table.ts';

interface Where {
  readonly json: boolean;
  readonly format?: (typeof FORMATS)[number] | undefined;
  /** A file instead of stdout. */
  readonly to?: string | undefined;
}

const ENDINGS: Readonly<Record<string, (typeof FORMATS)[number]>> = {
  '.json': 'json',
  '.html': 'html',
  '.htm': 'html',
  '.md': 'markdown',
  '.markdown': 'markdown',
  '': 'terminal',
  '.txt': 'terminal',
  '.log': 'terminal',
};

/** The format, by the file's name where none is named. */
function formatOf({ json, format, to = '' }: Where): (typeof FORMATS)[number] {
  if (json) return 'json';
  const found = format ?? ENDINGS[extname(to).toLowerCase()];
  if (found) return found;
  throw new UserError(`--to ${to}: no report is written as ${extname(to)}`, {
    hint: `name a file that ends in .html, .md, .json or .txt, or say --format ${FORMATS.join(', ')}`,
  });
}

export async function putDocument(
  where: Where,
  title: string,
  value: unknown,
  document: () => Document,
): Promise<void> {
  const texts = {
    json: () => jsonText(value),
    html: () => renderHtml(document(), title),
    markdown: () => renderMarkdown(document()),
    terminal: () => renderTerminal(document(), where.to ? undefined : documentWidth()),
  };
  const { to } = where;
  const text = texts[formatOf(where)]();
  if (to === undefined || to === '') return printData(text);
  await writeAtomically(to, text);
  say(`written: ${to}`);
}
