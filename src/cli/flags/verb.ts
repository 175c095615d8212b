/** The shape of a verb, and its table of flags as yargs knows it. */
import type { Argv, Options, PositionalOptions } from 'yargs';
import { checkArgs } from './checkArgs.ts';
import { type Args, type Flag, type Flags, kebab } from './flags.ts';

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

const withFlags = (parser: Argv, flags: Flags): Argv =>
  Object.entries(flags).reduce(
    (all, [name, flag]) =>
      flag.place ? all.positional(name, positionalOf(flag)) : all.option(kebab(name), optionOf(flag)),
    parser,
  );

/** `compare <sides..>`: the verb and what stands behind it. */
const commandOf = (verb: string, flags: Flags): string =>
  [verb, ...Object.entries(flags).flatMap(([name, flag]) => placeOf(name, flag) ?? [])].join(' ');

function placeOf(name: string, { place, list }: Flag): string | undefined {
  const words = list ? `${name}..` : name;
  return place && (place === 'required' ? `<${words}>` : `[${words}]`);
}

/** yargs checks whether a key is present, not whether it has a value. */
const shared = ({ type, choices, default: fallback, describe }: Flag): PositionalOptions => ({
  ...(type && { type }),
  ...(choices && { choices }),
  ...(fallback !== undefined && { default: fallback }),
  ...(describe !== undefined && { describe }),
});

const positionalOf = (flag: Flag): PositionalOptions => ({
  ...shared(flag),
  ...(flag.place === 'required' && { demandOption: true }),
});

const optionOf = (flag: Flag): Options => ({
  ...(shared(flag) as Options),
  ...(flag.alias && { alias: flag.alias }),
  ...(flag.list && { array: true }),
  ...(flag.group && { group: flag.group }),
  ...(flag.coerce && { coerce: flag.coerce }),
  ...(flag.type !== 'boolean' && !flag.bare && { requiresArg: true }),
});
