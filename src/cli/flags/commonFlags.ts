/** Flags that several verbs have. Nothing here needs zod: `ls` has some of them. */
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
