/** The shape of a verb, and options that several share. */
import type { Argv } from 'yargs';

export interface Verb {
  readonly command: string | readonly string[];
  readonly describe: string;
  builder(parser: Argv): Argv;
  /** Returns the exit code; throws CliError for what a person can mend. */
  run(argv: Readonly<Record<string, unknown>>): Promise<number>;
}

export const outputOption = {
  alias: 'o',
  type: 'string',
  default: 'results',
  describe: 'results root: holds swebatch.db and a folder for each run',
  requiresArg: true,
} as const;

export const jsonOption = { type: 'boolean', default: false, describe: 'data as JSON on stdout' } as const;

/** A limit in dollars; none is off, as in a configuration. */
export const costLimitOption = {
  type: 'string',
  requiresArg: true,
  coerce: (value: string | readonly string[]) =>
    Array.isArray(value) ? value : value === 'none' ? 0 : Number(value),
} as const;
