/** The one rule for ids of instances, wherever they come from: a dataset, or a file of another tool. */
import { z } from 'zod';

/** Ids become file names and labels; anything else is refused before it gets near a path or a shell. */
export const instanceIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 _ . -')
  .refine((id) => id !== '.' && id !== '..' && !id.startsWith('-'), 'must not be . or .. or start with -');

/** The reason why a text cannot be an id; null when it can. */
export const instanceIdProblem = (id: string): string | null =>
  instanceIdSchema.safeParse(id).error?.issues[0]?.message ?? null;
