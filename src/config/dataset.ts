/**
 * What a user may set under `dataset:`: which rows a run takes. Flags of `run` say the same and win; `export RUN config` writes it, so
 * that a configuration alone starts the same run again.
 */
import { z } from 'zod';

const text = z.string().min(1);
const count = z.number().int().min(0);

export const datasetConfigSchema = z.strictObject({
  subset: text.optional().describe('as --subset: a file, a folder, a known name or a hub id'),
  split: text.optional(),
  revision: text.optional().describe('commit, branch or tag of a hub dataset; default: the newest one here'),
  instances: z.array(text).optional().describe('only these ids, in dataset order'),
  shuffle: z.boolean().optional(),
  filter: text.optional(),
  slice: text.optional(),
  limit: count.optional(),
  sample: count.optional(),
  stratify: text.optional(),
  seed: count.optional().describe('of shuffle and sample; default 42'),
  rows_sha256: text
    .optional()
    .describe('hash over the selected ids and rows: a run whose selection is another one is refused'),
});
export type DatasetConfig = z.infer<typeof datasetConfigSchema>;

/**
 * The section with the flags over it. `--subset` names another dataset, to which the selection of the section says nothing; any flag
 * makes it another selection, which the hash is not about.
 */
export function withFlags(section: DatasetConfig, flags: DatasetConfig): DatasetConfig {
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  if (Object.keys(given).length === 0) return section;
  const { rows_sha256: _, ...kept } = section;
  return flags.subset === undefined ? { ...kept, ...given } : given;
}
