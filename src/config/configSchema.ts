/** A whole configuration from the schemas of its parts, with what identifies a run: the class beside each key. */
import { z } from 'zod';
import { agentConfigSchema } from '../agent/agentConfig.ts';
import { gatewayConfigSchema } from '../agent/gateway/gatewayConfig.ts';
import { type FieldClass, identity, runtime } from '../base/fieldClass.ts';
import { setting } from '../base/plausible.ts';
import { sha256 } from '../base/sha256.ts';
import { parseShard, SHARD_FORM } from '../dataset/shard.ts';
import { environmentConfigSchema, environmentNames } from '../environment/environments.ts';
import { imagesConfigSchema } from '../environment/places/imagesConfig.ts';
import { gradingConfigSchema } from '../grading/gradingConfig.ts';
import { suspicionRuleSchema } from '../grading/suspicion/commands.ts';
import { modelConfigSchema } from '../model/modelConfig.ts';
import { at, isTree } from './merge.ts';
import { suiteConfigSchema } from './suiteConfig.ts';

// The `run:` section, where 0 (or none) turns a limit off, and the `dataset:` section.

const seconds = setting.seconds();
const text = z.string().min(1);
const { count } = setting;

export const runConfigSchema = z.strictObject({
  workers: setting.atOnce(1).default(1).meta(runtime('slots: instances at a time')),
  epochs: setting.repeats(1).default(1).meta(identity('independent repeats of every instance')),
  cost_limit: setting.dollars().default(0).meta(runtime('budget of the whole run in dollars, over restarts')),
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
      attempts: count(1).default(3).meta(runtime('attempts of a trial, the first included')),
      backoff_s: seconds.default(5).meta(runtime()),
      reasons: z
        .record(z.string(), count(1))
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
        .meta(runtime('how long the run waits for an engine that does not answer')),
    })
    .prefault({}),
  breaker: z
    .strictObject({
      consecutive: count(0).default(5).meta(runtime('the same error on this many instances in a row')),
      fraction: z.number().min(0).max(1).default(0.5).meta(runtime()),
      window: count(1).default(20).meta(runtime()),
      empty_patches: count(0).default(10).meta(runtime('no patch at all among the first finished instances')),
      probe_after_s: seconds.default(60).meta(runtime()),
      max_probes: count(1).default(5).meta(runtime('failed probes after which the run stops starting')),
    })
    .prefault({}),
  disk_floor: setting
    .size()
    .default('2g')
    .meta(runtime('with less free space running instances are stopped and captured')),
  stop_grace_s: seconds
    .default(30)
    .meta(runtime('time to capture and remove containers after the second interrupt')),
  heartbeat_s: setting.seconds(1).default(15).meta(runtime()),
  suspicion_rules: z
    .array(suspicionRuleSchema)
    .default([])
    .meta(runtime('flags for a reader: rule, says, and a regex for command, output or both')),
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
  limit: count(0).optional().meta(runtime()),
  sample: count(0).optional().meta(runtime()),
  stratify: text.optional().meta(runtime()),
  seed: setting.seed(0).optional().meta(runtime('of shuffle and sample; default 42')),
  shard: z
    .string()
    .refine((given) => parseShard(given) !== null, SHARD_FORM)
    .optional()
    .meta(runtime('K/N: every N-th selected instance from the K-th; `join` makes one run of all')),
  skip_unsupported: z
    .boolean()
    .optional()
    .meta(runtime('leave out tasks that cannot run here, and report how many')),
  rows_sha256: text.optional().meta(runtime('hash over the selected ids and rows: others are refused')),
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

/** The sections that an arm may set; everything else comes from the configuration. */
const armSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ . -')
    .optional()
    .describe('default: the model name'),
  agent: z.record(z.string(), z.unknown()).optional(),
  environment: z.record(z.string(), z.unknown()).optional(),
  model: z.record(z.string(), z.unknown()).optional(),
  gateway: z.record(z.string(), z.unknown()).optional(),
});

export const SECTIONS = {
  agent: agentConfigSchema,
  environment: environmentConfigSchema,
  model: modelConfigSchema,
  run: runConfigSchema,
  grading: gradingConfigSchema,
  images: imagesConfigSchema,
  dataset: datasetConfigSchema,
  gateway: gatewayConfigSchema,
  suite: suiteConfigSchema,
} as const;

export const configSchema = z.strictObject({
  agent: agentConfigSchema.prefault({}),
  environment: environmentConfigSchema.prefault({}),
  model: modelConfigSchema.prefault({}),
  run: runConfigSchema.prefault({}),
  grading: gradingConfigSchema.prefault({}),
  images: imagesConfigSchema.prefault({}),
  dataset: datasetConfigSchema.prefault({}),
  // A section is absent where nobody sets it, so that recorded runs and exported files of other agents stay as they are.
  gateway: gatewayConfigSchema.optional(),
  suite: suiteConfigSchema.optional(),
  arms: z.array(armSchema).default([]).meta(identity('several models or configurations in one run')),
});
export type Config = z.infer<typeof configSchema>;

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** The definition below optional, default, prefault and nullable wrappers. */
function innerOf(schema: z.core.$ZodType): { type: string; shape?: Shape } {
  const { def } = schema._zod as unknown as {
    def: { type: string; shape?: Shape; innerType?: z.core.$ZodType };
  };
  const wraps = ['optional', 'default', 'prefault', 'nullable'].includes(def.type);
  return def.innerType && wraps ? innerOf(def.innerType) : def;
}

/** Schema of a dotted path; undefined where there is none. */
export function schemaAt(path: readonly string[]): z.core.$ZodType | undefined {
  let schema: z.core.$ZodType | undefined = configSchema;
  for (const key of path) {
    const shape: Shape = (schema && innerOf(schema).shape) ?? {};
    schema = Object.hasOwn(shape, key) ? shape[key] : undefined;
  }
  return schema;
}

export const keysAt = (path: readonly string[]): string[] => {
  const schema = schemaAt(path);
  return Object.keys((schema && innerOf(schema).shape) ?? {});
};

export const isNumberAt = (path: readonly string[]): boolean => {
  const schema = schemaAt(path);
  return schema !== undefined && innerOf(schema).type === 'number';
};

/** Dotted paths of everything that can be set, down to what is not an object of known keys. */
export function allPaths(path: readonly string[] = []): string[] {
  return keysAt(path).flatMap((key) => {
    const here = [...path, key];
    return keysAt(here).length > 0 ? allPaths(here) : [here.join('.')];
  });
}

/** The class of every path that can be set; undefined where the schema has none, which a test refuses. */
export const FIELD_CLASSES: Readonly<Record<string, FieldClass | undefined>> = Object.fromEntries(
  allPaths().map((path) => [
    path,
    z.globalRegistry.get(schemaAt(path.split('.'))!)?.class as FieldClass | undefined,
  ]),
);

/**
 * The settings that identify a run, in the order of the schema, so moving a key there changes every hash. The selection of rows is not among
 * them, because one selection has many spellings; the hashes of the rows are compared instead.
 */
const IDENTITY = Object.keys(FIELD_CLASSES).filter((path) => FIELD_CLASSES[path] === 'identity');

/**
 * Keys that are newer than recorded runs. A key that is not set is left out of the hash, so that old hashes stay; so is a key of one kind of
 * environment alone.
 */
const LATER: ReadonlySet<string> = new Set([
  'model.dialect',
  'model.cache_ttl',
  'grading.pids_limit',
  'grading.cpus',
  'agent.prompt_template',
  'agent.command',
  'agent.program',
  'agent.permissions',
  'agent.tell_limits',
  'agent.skills_sha256',
  'agent.instructions_sha256',
  'agent.mcp_servers',
  'gateway.models',
  'gateway.provider_tools',
  'gateway.translate',
  'suite.env',
  'suite.judge',
]);

const isOwnKey = (path: string): boolean =>
  environmentNames().some((name) => path.startsWith(`environment.${name}.`));

/** Values that stood here before a key lost its default: a configuration that leaves it out keeps its hash. */
const FORMER_DEFAULTS: Readonly<Record<string, unknown>> = { 'grading.memory': '0' };

/** Hash over the identity fields, independent of the order of keys. */
export function configHash(config: Config): string {
  const identity = IDENTITY.map(
    (path) => [path, at(config, path.split('.')) ?? FORMER_DEFAULTS[path] ?? null] as const,
  ).filter(([path, value]) => value !== null || !(LATER.has(path) || isOwnKey(path)));
  return sha256(canonical(identity));
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isTree(value)) return JSON.stringify(value) ?? 'null';
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join(',')}}`;
}
