/** SWE-bench-Live: rows that bring their commands and their log parser. */
import type { Instance } from '../instance.ts';
import type { DatasetKind, RawRow } from './datasetKind.ts';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;

/** Most rows name no image; the convention differs from the official one only in the namespace. */
function columns(raw: RawRow): RawRow {
  if (IMAGE_COLUMNS.some((name) => raw[name] != null)) return raw;
  const id = textOf(raw.instance_id).toLowerCase().replaceAll('__', '_1776_');
  return { ...raw, image: `starryzhang/sweb.eval.x86_64.${id}` };
}

export const live: DatasetKind = {
  name: 'swe-bench-live',
  rows: { is: (raw) => Array.isArray(raw.test_cmds), columns },
  refusal: ({ image }: Instance) =>
    image?.includes('sweb.eval.win.') ? 'its image is one of Windows containers' : undefined,
};
