/** Flags that several verbs have. Nothing here needs zod: `ls` has some of them. */
import { z } from 'zod';
import type { Flag } from './verb.ts';

export const output = {
  alias: 'o',
  type: 'string',
  default: 'results',
  describe: 'results root: holds swebatch.db and a folder for each run',
} as const satisfies Flag;

export const json = { type: 'boolean', default: false, describe: 'data as JSON on stdout' } as const;

/** A recorded run that has to be named. */
export const namedRun = {
  type: 'string',
  place: 'required',
  describe: 'name, unique prefix, or "last"',
} as const satisfies Flag;

/** The formats of `report` and `compare`. */
export const FORMATS = ['terminal', 'markdown', 'json', 'html'] as const;
export const format = {
  choices: FORMATS,
  describe: 'default: what the name of --to ends in, else terminal',
} as const satisfies Flag;
export const to = {
  type: 'string',
  describe: 'write to this file instead of stdout',
} as const satisfies Flag;

/** An empty value is a mistake. */
export const filled = z.string().min(1).optional();

export const filledList = z.array(z.string().min(1)).min(1, 'needs a value').optional();

export const integer = (least: number) => z.number().int().min(least).optional();

/** Like `integer`, with a sentence for the error. */
export function whole(least: number) {
  const error = `must be a whole number of ${least} or more`;
  return z.number({ error }).int(error).min(least, error).optional();
}

export const runName = (message: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, message)
    .refine((name) => name !== 'last', 'must not be "last", which means the newest run')
    .optional();
