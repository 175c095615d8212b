/** Keys that a user may set under `gateway:`, for agents that are programs of others. */
import { z } from 'zod';
import { identity } from '../../base/fieldClass.ts';

export const gatewayConfigSchema = z.strictObject({
  models: z
    .record(z.string(), z.string().min(1))
    .default({})
    .meta(identity('names that a program may ask for, each with the id that is asked instead')),
  provider_tools: z
    .enum(['strip', 'refuse'])
    .default('strip')
    .meta(identity('tools that run at the provider (web search and the like): left out, or refused')),
  translate: z
    .boolean()
    .optional()
    .meta(identity('a program may ask a model of another protocol; default: refused')),
});
export type GatewayConfig = z.infer<typeof gatewayConfigSchema>;
