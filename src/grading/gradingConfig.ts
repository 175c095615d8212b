/** What a user may set under `grading:`. */
import { z } from 'zod';

export const gradingConfigSchema = z.strictObject({
  enabled: z.boolean().default(false).describe('grade predictions as they arrive (--evaluate)'),
  dialect: z.enum(['v5', 'v4.1']).default('v5'),
  network: z.enum(['default', 'none']).default('default').describe("default is the harness's own: a bridge"),
  workers: z.number().int().min(1).default(2),
  timeout: z.number().min(0).default(1800).describe('seconds for the eval script'),
  memory: z.string().default('0').describe('0: no limit, as the harness'),
  cap_add: z
    .array(z.string().regex(/^[A-Z_]+$/, 'a capability is written like SYS_ADMIN'))
    .default([])
    .describe('capabilities of grading containers; SYS_ADMIN is what the harness adds for browser tests'),
  parsers: z
    .record(z.string(), z.string())
    .default({})
    .describe('log parser id to the path of a module that exports parseLog'),
});
export type GradingConfig = z.infer<typeof gradingConfigSchema>;
