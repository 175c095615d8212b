/** Settings under `images:`. 0 means off for every limit. */
import { z } from 'zod';
import { runtime } from '../../base/fieldClass.ts';
import { setting } from '../../base/plausible.ts';

/** A pull-through cache often serves each registry below a path of its own. */
export const mirrorSchema = z
  .string()
  .regex(
    /^(\[[0-9A-Fa-f:]+\]|[^/\s:]+)(:\d+)?(\/[a-z0-9._/-]+)?$/,
    'must be a host, perhaps with a path, and no https://',
  );

export const imagesConfigSchema = z.strictObject({
  max_concurrent_pulls: setting.atOnce(1).default(2).meta(runtime()),
  ahead: setting.atOnce(0).default(4).meta(runtime('images pulled before a trial asks for them')),
  pulls_per_window: setting
    .count(0)
    .default(0)
    .meta(runtime('budget of pulls from each registry; Docker Hub: 100 without a login')),
  window_seconds: setting.seconds(1).default(21_600).meta(runtime()),
  tries: setting.count(1).default(4).meta(runtime('of one pull; a 429 does not count')),
  retry_seconds: setting.seconds().default(5).meta(runtime('wait before the second try; doubles')),
  rate_limit_patience_seconds: setting
    .seconds()
    .default(23_400)
    .meta(runtime('how long one pull may wait out 429 answers in all')),
  mirrors: z
    .record(z.string(), z.array(mirrorSchema))
    .default({})
    .meta(runtime('places that are asked first, for example docker.io: [mirror.example.com/hub]')),
  rewrite: z
    .array(z.strictObject({ from: z.string().min(1), to: z.string().min(1) }))
    .default([])
    .meta(runtime('prefix of a whole image name to its replacement')),
  insecure_registries: z
    .array(z.string())
    .default([])
    .meta(runtime('hosts asked for sizes over http; loopback always is')),
  allow_emulation: z
    .boolean()
    .default(true)
    .meta(runtime('run images built for another processor, with a warning')),
  policy: z
    .union([
      z.enum(['keep', 'remove-after']),
      z.string().regex(/^lru:\d{1,6}(\.\d{1,9})?$/, 'must be lru:<GB>, below a million'),
    ])
    .default('keep')
    .meta(runtime('keep, remove-after, or lru:<GB>; only images that swebatch pulled are ever removed')),
  disk_low: setting
    .size()
    .default('10g')
    .meta(runtime('new starts and pulls pause below this much free space')),
  disk_high: setting.size().default('15g').meta(runtime('and go on above this')),
});
export type ImagesConfig = z.infer<typeof imagesConfigSchema>;

export type ImagePolicy = { kind: 'keep' } | { kind: 'remove-after' } | { kind: 'lru'; bytes: number };

export function parsePolicy(text: string): ImagePolicy {
  if (text === 'keep' || text === 'remove-after') return { kind: text };
  return { kind: 'lru', bytes: Number(text.slice('lru:'.length)) * 1e9 };
}
