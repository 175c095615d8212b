/** The flags of `swebatch evaluate`. */
import { z } from 'zod';

const texts = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .transform((value) => (value === undefined ? [] : [value].flat()));

export const evaluateArgsSchema = z.object({
  target: z.string().optional(),
  output: z.string(),
  subset: texts,
  split: z.string().optional(),
  dataDir: z.string().optional(),
  instance: texts,
  workers: z.number().int().min(1).optional(),
  timeout: z.number().min(0).optional(),
  memory: z.string().optional(),
  network: z.enum(['default', 'none']).optional(),
  capAdd: texts,
  dialect: z.enum(['v5', 'v4.1']).optional(),
  parser: texts,
  runId: z.string().optional(),
  again: z.boolean(),
  regrade: texts,
  write: z.boolean(),
  verifyGold: z.boolean(),
  repeat: z.number().int().min(1).optional(),
  json: z.boolean(),
});
export type EvaluateArgs = z.infer<typeof evaluateArgsSchema>;
