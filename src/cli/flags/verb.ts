/** The shape of a verb. */
import type { Argv } from 'yargs';
import { checkArgs } from './checkArgs.ts';
import type { Args, Flags } from './flags.ts';
import { commandOf, withFlags } from './yargsOptions.ts';

export interface Verb {
  readonly command: string;
  readonly describe: string;
  readonly flags: Flags;
  builder(parser: Argv): Argv;
  /** Checks what was given. Returns the exit code; throws UserError for what a person can mend. */
  run(argv: Readonly<Record<string, unknown>>): Promise<number>;
}

interface VerbParts<T extends Flags> {
  readonly name: string;
  readonly describe: string;
  readonly flags: T;
  readonly examples: readonly (readonly [command: string, says: string])[];
  run(args: Args<T>): Promise<number>;
}

export const defineVerb = <T extends Flags>({
  name,
  describe,
  flags,
  examples,
  run,
}: VerbParts<T>): Verb => ({
  command: commandOf(name, flags),
  describe,
  flags,
  builder: (parser) =>
    examples.reduce((all, [command, says]) => all.example(command, says), withFlags(parser, flags)),
  run: async (argv) => run(await checkArgs(flags, argv)),
});
