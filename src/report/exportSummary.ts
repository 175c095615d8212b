/** summary.json, summary.md and summary.html of a run's folder: made from the database, and always able to be made again. */
import { join } from 'node:path';
import { writeAtomically } from '../base/files/atomicWrite.ts';
import { pathInside } from '../base/files/pathInside.ts';
import type { RunData } from '../store/records/runData.ts';
import { type Summary, type SummaryOptions, summarize } from './measure/summary.ts';
import { jsonText } from './render/document.ts';
import { renderHtml, renderMarkdown } from './render/renderers.ts';
import { summaryDocument } from './render/summaryDocument.ts';

export function summaryFiles(
  summary: Summary,
  verdicts: RunData['verdicts'],
): [name: string, content: string][] {
  const document = summaryDocument(summary, verdicts);
  return [
    ['summary.json', jsonText(summary)],
    ['summary.md', renderMarkdown(document)],
    ['summary.html', renderHtml(document, `Run ${summary.run}`)],
  ];
}

/** `folder` is DIR/<run>. */
export async function exportSummary(
  data: RunData,
  folder: string,
  pricesOf: (data: RunData) => NonNullable<SummaryOptions['pricesOf']>,
): Promise<{ summary: Summary; paths: string[] }> {
  const summary = summarize(data, { pricesOf: pricesOf(data) });
  const files = summaryFiles(summary, data.verdicts);
  for (const [name, content] of files) await writeAtomically(pathInside(folder, name), content);
  return { summary, paths: files.map(([name]) => join(folder, name)) };
}
