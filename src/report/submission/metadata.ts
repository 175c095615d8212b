/** metadata.yaml of a leaderboard entry, typed: the board's generator drops an entry whose shape is wrong without a word. */

import { z } from 'zod';
import { stripChars } from '../../base/python/text.ts';

const text = z.string().min(1);
const list = z.array(text);

/** Strict: an older flat form, or `checked: "false (see ...)"`, must be refused here and not disappear there. */
const metadataSchema = z.strictObject({
  info: z.strictObject({
    name: text,
    site: z.string().default(''),
    report: z.string().default(''),
    authors: z.union([z.string(), list]).default([]),
    logo: z.string().optional(),
  }),
  assets: z.strictObject({ logs: z.string(), trajs: z.string() }).optional(),
  tags: z.strictObject({
    checked: z.boolean(),
    model: list,
    org: z.union([z.string(), list]),
    os_model: z.boolean(),
    os_system: z.boolean(),
    system: z.strictObject({ attempts: z.enum(['1', '2+']) }),
  }),
});
export type SubmissionMetadata = z.infer<typeof metadataSchema>;

export const SPLITS = {
  lite: 300,
  verified: 500,
  test: 2294,
  multilingual: 300,
  multimodal: 517,
  'bash-only': 500,
} as const;
export type Split = keyof typeof SPLITS;

const BUCKET = 's3://swe-bench-submissions';

/** What can be filled in from the record alone; the rest is listed for the submitter. `place`: "<split>/<entry>". */
export function draftMetadata(facts: {
  readonly models: readonly string[];
  readonly attempts: '1' | '2+';
  readonly place: string;
}): {
  metadata: SubmissionMetadata;
  toFillIn: string[];
} {
  return {
    metadata: {
      info: { name: `swebatch + ${facts.models[0] ?? 'unknown model'}`, site: '', report: '', authors: [] },
      // Where the maintainers put them when they merge.
      assets: { logs: `${BUCKET}/${facts.place}/logs`, trajs: `${BUCKET}/${facts.place}/trajs` },
      tags: {
        checked: false,
        model: [...facts.models],
        org: ['Undisclosed'],
        os_model: false,
        os_system: true,
        system: { attempts: facts.attempts },
      },
    },
    toFillIn: ['info.name', 'info.site', 'info.report', 'info.authors', 'tags.org', 'tags.os_model'],
  };
}

/** Every problem at once, by its path. */
export function parseMetadata(
  value: unknown,
): { ok: true; metadata: SubmissionMetadata } | { ok: false; problems: string[] } {
  const found = metadataSchema.safeParse(value);
  if (found.success) return { ok: true, metadata: found.data };
  return {
    ok: false,
    problems: found.error.issues.map((i) => `metadata ${i.path.join('.') || '(top)'}: ${i.message}`),
  };
}

const slug = (name: string): string =>
  stripChars(name.toLowerCase().replace(/[^a-z0-9.]+/g, '-'), '-.') || 'unnamed';

/** <YYYYMMDD>_<system>_<model>: the board shows the first eight characters as the date. */
export const entryName = (date: string, system: string, model: string): string =>
  `${date.slice(0, 10).replaceAll('-', '')}_${slug(system)}_${slug(model.split('/').at(-1)!)}`;
