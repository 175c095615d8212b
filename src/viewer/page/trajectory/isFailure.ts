import type { OutlineRow } from '../../documents/documents.ts';

export const isFailure = (row: OutlineRow): boolean =>
  row.timedOut || (row.exitCode !== null && row.exitCode !== 0);
