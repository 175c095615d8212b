/** Schemas for values of flags, beyond their types. Schemas stand apart from the flags, because `ls` has flags and loads no zod. */
import { z } from 'zod';
import { MOST } from '../../base/plausible.ts';

/** An empty value is a mistake. */
const filled = z.string().min(1);

export const filledText = (describe: string) =>
  ({ type: 'string', check: filled.optional(), describe }) as const;

export const filledTexts = (alias: string, describe: string) =>
  ({
    alias,
    type: 'string',
    list: true,
    check: z.array(filled).optional(),
    describe,
  }) as const;

export const integer = (least: number, describe: string, most: number = MOST.count) =>
  ({ type: 'number', check: z.number().int().min(least).max(most).optional(), describe }) as const;

/** Like `integer`, with a sentence for the error. */
export function whole(least: number, describe: string, most: number = MOST.count) {
  const error = `must be a whole number of ${least} or more`;
  // An integer that JavaScript cannot hold is no integer to zod.
  const number = z.number({ error }).max(most, `must be ${most} or less`);
  return {
    type: 'number',
    check: number
      .refine((given) => given > most || (Number.isInteger(given) && given >= least), error)
      .optional(),
    describe,
  } as const;
}

export const runName = (message: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, message)
    .refine((name) => name !== 'last', 'must not be "last", which means the newest run')
    .optional();
