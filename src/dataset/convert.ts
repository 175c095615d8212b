/** Writes a dataset as flat rows, for `datasets convert`; loading them again gives the same row hashes. */
import type { Instance } from './instance.ts';

export function datasetText(instances: readonly Instance[], form: 'jsonl' | 'json'): string {
  const rows = instances.map(({ extra, ...columns }) => ({ ...columns, ...extra }));
  if (form === 'json') return `${JSON.stringify(rows, null, 2)}\n`;
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}
