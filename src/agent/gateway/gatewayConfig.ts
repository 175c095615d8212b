/** What a user may set under `gateway:`, for agents that are programs of others. */
import { z } from 'zod';
import { identity } from '../../base/fieldClass.ts';

export const gatewayConfigSchema = z.strictObject({
  models: z
    .record(z.string(), z.string().min(1))
    .default({})
    .meta(
      identity(
        'names that a program may ask for beside the arm’s model, each with the id that is asked instead',
      ),
    ),
  provider_tools: z
    .enum(['strip', 'refuse'])
    .default('strip')
    .meta(
      identity(
        'tools that run at the provider (web search and the like): left out of the request, or refused',
      ),
    ),
  translate: z
    .boolean()
    .optional()
    .meta(
      identity(
        'a program of one protocol may ask a model of another: requests and replies are written anew; default: refused',
      ),
    ),
});
export type GatewayConfig = z.infer<typeof gatewayConfigSchema>;
