/** The `run:` section, where 0 (or none) turns a limit off, and the `dataset:` section. */
import { z } from 'zod';
import { identity, runtime } from '../base/fieldClass.ts';
import { suspicionRuleSchema } from '../grading/suspicion/commands.ts';

const seconds = z.number().min(0);

export const runConfigSchema = z.strictObject({
  workers: z.number().int().min(1).default(1).meta(runtime('slots: instances at a time')),
  epochs: z.number().int().min(1).default(1).meta(identity('independent repeats of every instance')),
  cost_limit: z.number().min(0).default(0).meta(runtime('budget of the whole run in dollars, over restarts')),
  patch: z
    .enum(['submitted', 'captured', 'submitted-else-captured'])
    .default('submitted')
    .meta(identity('which patch a prediction carries')),
  emit_empty: z
    .boolean()
    .default(false)
    .meta(runtime('write "" into predictions for trials that were not decided')),
  on_interrupt: z
    .enum(['finish', 'capture'])
    .default('finish')
    .meta(runtime('what the first Ctrl-C does to running instances')),
  order: z.enum(['dataset', 'shuffle', 'longest']).default('dataset').meta(runtime()),
  retry: z
    .strictObject({
      attempts: z.number().int().min(1).default(3).meta(runtime('attempts of a trial, the first included')),
      backoff_s: seconds.default(5).meta(runtime()),
      reasons: z
        .record(z.string(), z.number().int().min(1))
        .default({ env_died: 2, internal_error: 2, model_refusal: 1 })
        .meta(runtime('attempts for one exit reason, where it differs')),
    })
    .prefault({}),
  stall: z
    .strictObject({
      start_s: seconds.default(300).meta(runtime()),
      seal_s: seconds.default(600).meta(runtime()),
      setup_s: seconds.default(900).meta(runtime()),
      model_s: seconds.default(0).meta(runtime('0: the deadlines of the model section decide')),
      rate_wait_s: seconds.default(3600).meta(runtime()),
      backoff_s: seconds.default(3600).meta(runtime()),
      exec_s: seconds.default(0).meta(runtime('0: twice environment.timeout plus a minute')),
      capture_s: seconds.default(300).meta(runtime()),
      stop_s: seconds.default(120).meta(runtime()),
      engine_s: seconds
        .default(3600)
        .meta(runtime('how long the run waits for a container engine that does not answer')),
    })
    .prefault({}),
  breaker: z
    .strictObject({
      consecutive: z
        .number()
        .int()
        .min(0)
        .default(5)
        .meta(runtime('the same error on this many instances in a row')),
      fraction: z.number().min(0).max(1).default(0.5).meta(runtime()),
      window: z.number().int().min(1).default(20).meta(runtime()),
      empty_patches: z
        .number()
        .int()
        .min(0)
        .default(10)
        .meta(runtime('no patch at all among the first finished instances')),
      probe_after_s: seconds.default(60).meta(runtime()),
      max_probes: z
        .number()
        .int()
        .min(1)
        .default(5)
        .meta(runtime('failed probes after which the run stops starting')),
    })
    .prefault({}),
  disk_floor: z
    .string()
    .regex(/^\d+(\.\d+)?\s*[kmgt]?(i?b)?$/i, 'must be a size such as 2g or 500m')
    .default('2g')
    .meta(
      runtime('below this much free space running instances are stopped and captured until there is room'),
    ),
  stop_grace_s: seconds
    .default(30)
    .meta(runtime('time to capture and remove containers after the second interrupt')),
  heartbeat_s: z.number().min(1).default(15).meta(runtime()),
  suspicion_rules: z
    .array(suspicionRuleSchema)
    .default([])
    .meta(
      runtime('what else flags an attempt for a reader: rule, says, and a regex for command, output or both'),
    ),
  env_startup_command: z
    .string()
    .optional()
    .meta(runtime("mini-swe-agent's name for environment.startup_command")),
  on_finish: z
    .string()
    .optional()
    .meta(runtime('command to run when the run ends; the event is JSON on its stdin')),
  on_budget: z.string().optional().meta(runtime('command to run at 50, 80 and 100 % of the budget')),
  on_breaker: z.string().optional().meta(runtime('command to run when the breaker opens')),
});
export type RunConfig = z.infer<typeof runConfigSchema>;

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
