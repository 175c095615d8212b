/**
 * The `dataset:` section: which rows a run takes. Flags of `run` override it; `export RUN config` writes it, so that a configuration alone
 * starts the same run again.
 */
import { z } from 'zod';
import { runtime } from '../base/fieldClass.ts';

const text = z.string().min(1);
const count = z.number().int().min(0);

export const datasetConfigSchema = z.strictObject({
  subset: text.optional().meta(runtime('as --subset: a file, a folder, a known name or a hub id')),
  split: text.optional().meta(runtime()),
  revision: text
    .optional()
    .meta(runtime('commit, branch or tag of a hub dataset; default: the newest one here')),
  instances: z.array(text).optional().meta(runtime('only these ids, in dataset order')),
  shuffle: z.boolean().optional().meta(runtime()),
  filter: text.optional().meta(runtime()),
  slice: text.optional().meta(runtime()),
  limit: count.optional().meta(runtime()),
  sample: count.optional().meta(runtime()),
  stratify: text.optional().meta(runtime()),
  seed: count.optional().meta(runtime('of shuffle and sample; default 42')),
  skip_unsupported: z
    .boolean()
    .optional()
    .meta(runtime('leave out tasks that cannot run here, and report how many')),
  rows_sha256: text
    .optional()
    .meta(runtime('hash over the selected ids and rows: a run with another selection is refused')),
});
export type DatasetConfig = z.infer<typeof datasetConfigSchema>;

/**
 * The section with the flags over it. `--subset` replaces the whole section, because its selection is for another dataset. Any flag drops
 * the hash, because it changes the selection.
 */
export function withFlags(section: DatasetConfig, flags: DatasetConfig): DatasetConfig {
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  if (Object.keys(given).length === 0) return section;
  const { rows_sha256: _, ...kept } = section;
  return flags.subset === undefined ? { ...kept, ...given } : given;
}
