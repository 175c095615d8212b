/** SWE-rebench V2: rows with an install_config and an image of its own namespace. */
import { isRecord } from '../../base/isRecord.ts';
import type { DatasetKind, RawRow } from './datasetKind.ts';

/** Its dates are milliseconds. */
function columns(raw: RawRow): RawRow {
  const { created_at } = raw;
  if (typeof created_at !== 'number' || !Number.isFinite(created_at)) return raw;
  const date = new Date(created_at);
  return { ...raw, created_at: Number.isNaN(date.getTime()) ? String(created_at) : date.toISOString() };
}

const imageOf = (raw: RawRow): string => String(raw.image ?? raw.image_name ?? '');

export const rebenchV2: DatasetKind = {
  name: 'swe-rebench-v2',
  rows: { is: (raw) => isRecord(raw.install_config) && imageOf(raw).includes('swerebenchv2/'), columns },
  container: ({ repo }) => ({ cwd: `/${repo.split('/')[1] ?? ''}` }),
};
