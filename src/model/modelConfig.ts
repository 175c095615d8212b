/** Keys that a user may set under `model:`. 0 means off for every limit. */

import { z } from 'zod';
import { identity, runtime } from '../base/fieldClass.ts';
import { setting } from '../base/plausible.ts';
import { visibleName } from '../base/text/inert.ts';
import { DIALECT_NAMES } from './dialects/dialects.ts';

const dollarsPerMillion = setting.dollars();

export const pricesSchema = z.strictObject({
  input: dollarsPerMillion,
  output: dollarsPerMillion,
  cache_read: dollarsPerMillion.optional().describe('default: input'),
  cache_write: dollarsPerMillion.optional().describe('default: input'),
  cache_write_1h: dollarsPerMillion.optional().describe('default: 2 x input'),
});
export type Prices = z.infer<typeof pricesSchema>;

/** The seeds' retry options in snake_case, with their defaults. */
export const retryConfigSchema = z.strictObject({
  enabled: z.boolean().default(true).meta(runtime()),
  max_retries: setting.count(0).default(3).meta(runtime()),
  base_delay_ms: setting.milliseconds().default(1000).meta(runtime()),
  max_delay_ms: setting.milliseconds().default(10_000).meta(runtime()),
  enable_jitter: z.boolean().default(true).meta(runtime()),
  max_retry_after_s: setting
    .seconds()
    .default(600)
    .meta(
      runtime(
        'so long rate limits, and a server that goes away under a conversation, are waited for; a longer Retry-After is model_unavailable',
      ),
    ),
});
export type RetryConfig = z.infer<typeof retryConfigSchema>;

const CACHE_TTLS = ['5m', '1h'] as const;

export const modelConfigSchema = z.strictObject({
  model_name: z
    .string()
    .refine(
      (name) => visibleName(name) === name && !/^\s|\s$|[^\S ]/.test(name),
      'must have no character that nobody sees, and no space before or behind it',
    )
    .optional()
    .meta(identity('model id, scripted:PATH, replay:RUN or replay:FILE')),
  model_class: z
    .string()
    .default('openai')
    .meta(identity('openai, or the path of a module that exports createModel')),
  dialect: z
    .enum(DIALECT_NAMES)
    .optional()
    .meta(identity('the protocol of the endpoint; default: what the name of the model means')),
  base_url: z.string().optional().meta(identity('default: the OpenAI API')),
  api_key_env: z
    .string()
    .default('OPENAI_API_KEY')
    .meta(runtime('name of the environment variable that holds the key')),
  model_kwargs: z.record(z.string(), z.unknown()).default({}).meta(identity('sent with every request')),
  drop_params: z
    .boolean()
    .default(false)
    .meta(runtime('leave out parameters that the model is known to refuse')),
  prices: z
    .union([pricesSchema, z.literal('free')])
    .optional()
    .meta(identity('dollars per million tokens; overrides the table')),
  cost_tracking: z.enum(['default', 'ignore_errors']).default('default').meta(identity()),
  retry: retryConfigSchema.prefault({}),
  connect_timeout_s: setting.seconds().default(15).meta(runtime()),
  first_byte_timeout_s: setting.seconds().default(600).meta(runtime()),
  idle_timeout_s: setting.seconds().default(120).meta(runtime()),
  total_timeout_s: setting.seconds().default(1800).meta(runtime()),
  stream: z.boolean().default(false).meta(runtime()),
  max_concurrent: setting
    .atOnce(0)
    .default(0)
    .meta(runtime('requests at a time over all slots; 0: as many as slots')),
  rpm: setting
    .count(1)
    .optional()
    .meta(runtime('requests a minute on this key and model; default: what headers say')),
  tpm: setting.tokens(1).optional().meta(runtime('tokens a minute, likewise')),
  set_cache_control: z.enum(['default_end']).nullable().default(null).meta(identity()),
  cache_ttl: z.enum(CACHE_TTLS).optional().meta(identity('how long a provider keeps its cache; default: 5m')),
  latency_ms: setting.milliseconds().optional().meta(runtime('scripted models only')),
});
export type ModelConfig = z.infer<typeof modelConfigSchema>;
